//! From the arguments to the exit code.

use std::{
    ffi::OsString,
    panic,
    path::Path,
    process::{self, ExitCode},
    sync::{Mutex, PoisonError},
    thread,
};

use clap::Parser;

use super::{
    Cli, Command, OVERVIEW, STACK_BYTES, cache, catalog, check, completion, explain,
    failure::{Class, Failure},
    images, output, pin, render, version,
};
use crate::source::cache::found_damage;

/// The last panic's message. It is told when the panic ends the program, and not where one was caught on purpose.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs the program.
#[must_use]
pub fn run() -> ExitCode {
    panic::set_hook(Box::new(|panic| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic.to_string());
    }));
    end_when_interrupted();
    let worker = thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
    let failure = match worker.map(thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => return ExitCode::SUCCESS,
        Ok(Ok(Err(failure))) => failure,
        Ok(Err(_)) => bug(),
        Err(error) => Failure::of(Class::Bug, &error),
    };
    output::tell(&failure.text(""));
    failure.exit_code()
}

/// The exit code of what was interrupted.
const INTERRUPTED: i32 = 130;

/// Has SIGINT, SIGTERM and SIGHUP end the program at once. What is written is either there or not, as it takes its name
/// only when it is whole; what is left of it, the next run removes.
fn end_when_interrupted() {
    let ended = ctrlc::set_handler(|| {
        output::tell("interrupted");
        process::exit(INTERRUPTED);
    });
    // Without a handler they end it all the same, and only the exit code is another one.
    drop(ended);
}

fn bug() -> Failure {
    let panic = PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
    let message = format!("internal error: {}", panic.unwrap_or_default());
    Failure::new(Class::Bug, message)
        .with_hint("this is a bug; please report it with the command and its input")
}

fn work() -> Result<(), Failure> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let program = arguments.first().map(Path::new).and_then(Path::file_stem);
    if program.is_some_and(|name| name == completion::COMPLETER) {
        return completion::complete(arguments.split_off(1));
    }
    if arguments.get(1).is_some_and(|word| word == "__complete") {
        return completion::complete(arguments.split_off(2));
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let Some(command) = cli.command else {
        return output::print_text(OVERVIEW);
    };
    // Nothing was printed for what could not be read, and this time it is fetched anew.
    match run_command(&command) {
        Err(_) if found_damage() => run_command(&command),
        ended => ended,
    }
}

fn run_command(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Render(args) => render::run(args),
        Command::Images(args) => images::run(args),
        Command::Pin(args) => pin::run(args),
        Command::Catalog(command) => catalog::run(command),
        Command::Explain(args) => explain::run(args),
        Command::Check(args) => check::run(args),
        Command::Cache(args) => cache::run(args),
        Command::Completion(args) => completion::run(args),
        Command::Version(args) => version::run(args),
    }
}
