//! Runs a credential helper: `docker-credential-NAME get`.
//!
//! Speaks the protocol of docker/docker-credential-helpers (`client/client.go`) as far as reading goes. A helper is
//! found by its name through absolute folders of PATH only, gets the registry on its standard input, and has to answer
//! in time and briefly. What it writes to standard error, and what it answers when it fails, is thrown away: either may
//! hold the very password.

use std::{
    env,
    ffi::OsStr,
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use secrecy::{ExposeSecret, SecretSlice};
use serde_json::{Map, Value};

use crate::logins::{Login, Secret};

/// Bytes that a helper may answer.
const LONGEST_ANSWER: u64 = 64 << 10;
/// How long to wait before asking again whether a helper that has answered has ended, too.
const POLL: Duration = Duration::from_millis(5);
/// What a helper answers when it keeps nothing for a registry.
const NOT_FOUND: &[u8] = b"credentials not found in native keychain";
/// The user of an answer whose secret is an identity token.
const TOKEN_USER: &str = "<token>";
/// The one name that helpers know Docker's own registry by.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// Why a helper gave no answer. Holds nothing that it said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HelperError {
    /// A name that could lead out of the folders of programs.
    #[error("its name has more in it than a-z, 0-9, `.`, `_` and `-`")]
    Name,
    /// It is not installed.
    #[error("there is no such program in the folders of PATH")]
    Missing,
    /// It could not be run.
    #[error("it could not be run: {0}")]
    NotRun(std::io::ErrorKind),
    /// It ended badly.
    #[error("it failed: {0}")]
    Failed(ExitStatus),
    /// It hung.
    #[error("it took longer than {} seconds", .0.as_secs_f32())]
    TooSlow(Duration),
    /// It talks too much.
    #[error("it answered more than {LONGEST_ANSWER} bytes")]
    TooLong,
    /// It answers something else than a login.
    #[error("its answer is no JSON with a user and a secret")]
    Answer,
    /// The login cannot be sent.
    #[error("the secret that it answered has a control character in it")]
    Control,
}

/// Asks a helper for the login of a registry; nothing if it keeps none.
pub(super) fn ask(
    name: &str,
    registry: &str,
    path: &OsStr,
    timeout: Duration,
) -> Result<Option<Login>, HelperError> {
    let program = find(name, path)?;
    let server = if registry == "docker.io" {
        DOCKER_HUB
    } else {
        registry
    };
    let (answer, status) = run(&program, server, timeout)?;
    let answer = answer.expose_secret();
    if status.success() {
        read(answer)
    } else if answer.trim_ascii() == NOT_FOUND {
        Ok(None)
    } else {
        Err(HelperError::Failed(status))
    }
}

/// Whether a name can be that of a helper, and not a way to some other program.
pub(super) fn is_name(name: &str) -> bool {
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    !name.is_empty() && name.len() <= 100 && name.bytes().all(fits)
}

fn find(name: &str, path: &OsStr) -> Result<PathBuf, HelperError> {
    if !is_name(name) {
        return Err(HelperError::Name);
    }
    let file = format!("docker-credential-{name}");
    let folders = env::split_paths(path).filter(|folder| folder.is_absolute());
    let mut programs = folders.flat_map(|folder| {
        // Windows' programs have an ending, which people may have written or not.
        [
            folder.join(&file),
            folder.join(format!("{file}{}", env::consts::EXE_SUFFIX)),
        ]
    });
    programs
        .find(|program| is_program(program))
        .ok_or(HelperError::Missing)
}

fn is_program(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else {
        return false;
    };
    #[cfg(unix)]
    let runs = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let runs = true;
    metadata.is_file() && runs
}

/// Runs a helper to its end, or ends it together with everything that it started.
fn run(
    program: &Path,
    server: &str,
    timeout: Duration,
) -> Result<(SecretSlice<u8>, ExitStatus), HelperError> {
    let deadline = Instant::now() + timeout;
    let mut child = spawn(program).map_err(|error| HelperError::NotRun(error.kind()))?;
    let outcome = answer(&mut child, server, deadline, timeout);
    if outcome.is_err() {
        kill(&mut child);
    }
    outcome
}

fn spawn(program: &Path) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    command
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // A group of its own, so that its children can be ended with it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}

/// Waits for the answer and for the end.
fn answer(
    child: &mut Child,
    server: &str,
    deadline: Instant,
    timeout: Duration,
) -> Result<(SecretSlice<u8>, ExitStatus), HelperError> {
    let failed = |error: std::io::Error| HelperError::NotRun(error.kind());
    if let Some(mut input) = child.stdin.take() {
        // A helper that knows its answer need not listen, and the name of a registry fits into any pipe.
        let _ = input.write_all(server.as_bytes());
    }
    let output = child.stdout.take().ok_or(HelperError::Answer)?;
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .spawn(move || {
            let mut answer = Vec::with_capacity(4096);
            let read = output.take(LONGEST_ANSWER + 1).read_to_end(&mut answer);
            // Nobody listens any more when it took too long.
            let _ = sender.send(read.map(|_| SecretSlice::from(answer)));
        })
        .map_err(failed)?;
    let left = deadline.saturating_duration_since(Instant::now());
    let answer = receiver.recv_timeout(left);
    let answer = answer
        .map_err(|_| HelperError::TooSlow(timeout))?
        .map_err(failed)?;
    if answer.expose_secret().len() as u64 > LONGEST_ANSWER {
        return Err(HelperError::TooLong);
    }
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok((answer, status));
        }
        if Instant::now() >= deadline {
            return Err(HelperError::TooSlow(timeout));
        }
        thread::sleep(POLL);
    }
}

/// Ends a helper that has not been waited for yet, so that its number cannot be another's.
fn kill(child: &mut Child) {
    #[cfg(unix)]
    let _ = rustix::process::kill_process_group(
        rustix::process::Pid::from_child(child),
        rustix::process::Signal::KILL,
    );
    let _ = child.kill();
    let _ = child.wait();
}

/// Reads the answer of a helper that found something.
fn read(answer: &[u8]) -> Result<Option<Login>, HelperError> {
    let answer: Value = serde_json::from_slice(answer).map_err(|_| HelperError::Answer)?;
    let Value::Object(mut answer) = answer else {
        return Err(HelperError::Answer);
    };
    let mut take = |field| take_text(&mut answer, field).ok_or(HelperError::Answer);
    let (user, secret) = (take("Username")?, take("Secret")?);
    if user.expose_secret().is_empty() && secret.expose_secret().is_empty() {
        return Ok(None);
    }
    let is_token = user.expose_secret() == TOKEN_USER;
    let (password, identity_token) = if is_token {
        (Secret::default(), Some(secret))
    } else {
        (secret, None)
    };
    let login = Login {
        user: if is_token { Secret::default() } else { user },
        password,
        identity_token,
    };
    login.check().map_err(|_| HelperError::Control)?;
    Ok(Some(login))
}

/// A field that holds text; a missing one is empty.
fn take_text(answer: &mut Map<String, Value>, field: &str) -> Option<Secret> {
    match answer.remove(field) {
        None | Some(Value::Null) => Some(Secret::default()),
        Some(Value::String(text)) => Some(Secret::from(text)),
        Some(_) => None,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn one_that_hangs_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pipe = folder.path().join("pipe");
        // What another process writes can be run at once: nobody here has it open for writing.
        let made = Command::new("/bin/sh")
            .args(["-c", r#"mkfifo "$0" && echo "$1" > "$2" && chmod 755 "$2""#])
            .arg(&pipe)
            .arg(format!(
                "#!/bin/sh\nsleep 1000 3> {} & wait",
                pipe.display()
            ))
            .arg(folder.path().join("docker-credential-hangs"))
            .status();
        assert!(made.expect("a shell").success());
        // This ends when nobody holds the pipe open any more.
        let ended = thread::spawn(move || fs::read(pipe));
        let second = Duration::from_secs(1);
        let given = ask("hangs", "quay.io", folder.path().as_os_str(), second);
        assert_eq!(given.expect_err("no answer"), HelperError::TooSlow(second));
        ended.join().expect("a thread").expect("the pipe's end");
    }
}
