//! From the arguments to the exit code.

use std::{
    ffi::OsString,
    panic,
    path::Path,
    process::ExitCode,
    sync::{Mutex, PoisonError},
    thread,
};

use clap::Parser;

use super::{
    Cli, Command, OVERVIEW, STACK_BYTES, catalog, check, completion, explain,
    failure::{Class, Failure},
    output, render, version,
};

/// The last panic's message. It is told when the panic ends the program, and not where one was caught on purpose.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs the program.
#[must_use]
pub fn run() -> ExitCode {
    panic::set_hook(Box::new(|panic| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic.to_string());
    }));
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
    match cli.command {
        None => output::print_text(OVERVIEW),
        Some(Command::Render(args)) => render::run(&args),
        Some(Command::Catalog(command)) => catalog::run(&command),
        Some(Command::Explain(args)) => explain::run(&args),
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Completion(args)) => completion::run(&args),
        Some(Command::Version(args)) => version::run(&args),
    }
}
