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
    Cli, Command, OVERVIEW, STACK_BYTES, apply, cache, catalog, check, cleanup, completion, diff,
    explain,
    failure::{Class, Failure},
    images, interrupt, output, pin, rbac, render, status, version,
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
    interrupt::end_when_interrupted();
    let worker = thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
    let failure = match worker.map(thread::JoinHandle::join) {
        Ok(Ok(Ok(code))) => return code,
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

fn work() -> Result<ExitCode, Failure> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let program = arguments.first().map(Path::new).and_then(Path::file_stem);
    if program.is_some_and(|name| name == completion::COMPLETER) {
        return completion::complete(arguments.split_off(1)).map(done);
    }
    if arguments.get(1).is_some_and(|word| word == "__complete") {
        return completion::complete(arguments.split_off(2)).map(done);
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let Some(command) = cli.command else {
        return output::print_text(OVERVIEW).map(done);
    };
    // Nothing was printed for what could not be read, and this time it is fetched anew.
    match run_command(&command) {
        Err(_) if found_damage() => run_command(&command),
        ended => ended,
    }
}

fn done((): ()) -> ExitCode {
    ExitCode::SUCCESS
}

fn run_command(command: &Command) -> Result<ExitCode, Failure> {
    let ended = match command {
        Command::Diff(args) => return diff::run(args),
        Command::Apply(args) => apply::run(args),
        Command::Cleanup(args) => cleanup::run(args),
        Command::Status(args) => status::run(args),
        Command::Render(args) => render::run(args),
        Command::Rbac(args) => rbac::run(args),
        Command::Images(args) => images::run(args),
        Command::Pin(args) => pin::run(args),
        Command::Catalog(command) => catalog::run(command),
        Command::Explain(args) => explain::run(args),
        Command::Check(args) => check::run(args),
        Command::Cache(args) => cache::run(args),
        Command::Completion(args) => completion::run(args),
        Command::Version(args) => version::run(args),
    };
    ended.map(done)
}
