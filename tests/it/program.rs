//! Runs the program as a user would, with nothing of the environment but the PATH.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// What a run gave.
pub(crate) struct Run {
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
    /// The exit code; -1 when a signal ended it.
    pub(crate) code: i32,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
            code: output.status.code().unwrap_or(-1),
        }
    }
}

/// The program, ready to be given arguments.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-olm"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    // What one run keeps for the next stays with the tests.
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.stdin(Stdio::null()).current_dir(root());
    command
}

/// Runs the program to its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    program()
        .args(arguments)
        .output()
        .expect("the program starts")
        .into()
}

/// The project's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Makes a pipe, which whoever opens it to read waits for.
pub(crate) fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo").success());
}

/// What `tests/run` has built for the tests.
pub(crate) fn tool(name: &str) -> PathBuf {
    let path = root().join("target/tools").join(name);
    assert!(
        path.exists(),
        "{} is missing: start the tests by `tests/run`, which builds it",
        path.display()
    );
    path
}
