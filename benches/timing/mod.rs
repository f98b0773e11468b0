//! How benchmarks run programs beside each other: those that are compared with, a place for what they write, and the
//! fastest of several rounds.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use super::{
    program::{self, root},
    registry::plain,
};

pub(crate) const ROUNDS: usize = 3;

/// Everything that is written, until the end of the run.
pub(crate) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// For the benchmark of this name.
    pub(crate) fn new(name: &str) -> Self {
        let folder = root().join(format!("target/bench-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        // The registry is to keep its storage there too.
        tempfile::env::override_temp_dir(&folder).expect("it is set once");
        Self { folder }
    }

    /// A folder that is empty.
    pub(crate) fn empty(&self, name: &str) -> PathBuf {
        let folder = self.folder.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        folder
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Installs what is compared with, where it is missing.
pub(crate) fn install_peers() {
    let is_there = |program: &str| {
        let mut command = Command::new(program);
        let status = command
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok()
    };
    for needed in ["bash", "curl", "gzip", "sha256sum"] {
        assert!(is_there(needed), "{needed} is not on the PATH; install it");
    }
    if ["skopeo", "umoci"].into_iter().all(is_there) {
        return;
    }
    println!("installing skopeo and umoci");
    let install =
        "apt-get update -qq && apt-get install -qq -y --no-install-recommends skopeo umoci";
    let installed = Command::new("sh")
        .args(["-c", install])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null())
        .status();
    assert!(
        installed.is_ok_and(|status| status.success()),
        "skopeo and umoci cannot be installed; run as root: {install}"
    );
}

/// Runs the program.
pub(crate) fn answered(cache: &Path, words: &[&str]) -> Duration {
    let mut program = program::program();
    program.env("XDG_CACHE_HOME", cache).args(words);
    program.args(["--insecure-registry", &plain().address()]);
    timed(&mut program)
}

/// Runs a program that must succeed.
pub(crate) fn timed(command: &mut Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::piped());
    let begun = Instant::now();
    let output = command.output().expect("it starts");
    let taken = begun.elapsed();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {told}");
    taken
}

pub(crate) fn fastest(round: impl Fn() -> Duration) -> Duration {
    let rounds = (0..ROUNDS).map(|_| round());
    rounds.min().expect("a round")
}

pub(crate) fn tell(what: &str, taken: Duration, limit: Option<Duration>) {
    let beside = limit.map(|limit| format!(", {:.2} times the limit", ratio(taken, limit)));
    println!(
        "  {what}: {:.0} ms{}",
        taken.as_secs_f64() * 1000.0,
        beside.unwrap_or_default()
    );
}

pub(crate) fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
