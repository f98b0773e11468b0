//! Command lines with everything that they print: cases that are data, one in each file of a folder.
//!
//! A case runs in a folder of its own with the files that it names, beside which `testdata` is the project's. It has one
//! run, or several in `runs`, one after the other.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use kubectl_olm::{limits::Limits, manifest::yaml};
use serde::Deserialize;
use serde_json::Value;

use super::program::{Run, program, root};

/// Files by path.
type Files = BTreeMap<String, String>;

/// A run, and everything that comes of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// The arguments.
    args: Vec<String>,
    /// What it reads.
    #[serde(default)]
    stdin: String,
    /// Files that are written before it, by path.
    #[serde(default)]
    before: Files,
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    stderr: String,
    #[serde(default)]
    code: i32,
    /// Files that are there after it, with their text, or with nothing where there must be none.
    #[serde(default)]
    written: BTreeMap<String, Option<String>>,
}

/// Runs every case of a folder.
pub(crate) fn check(folder: &str) {
    let entries = fs::read_dir(root().join(folder)).expect("cases");
    let mut cases: Vec<_> = entries.map(|entry| entry.expect("a case").path()).collect();
    cases.sort();
    assert!(cases.len() > 10, "cases are missing");
    let wrong: Vec<_> = cases.iter().filter_map(|path| wrong_with(path)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

fn wrong_with(path: &Path) -> Option<String> {
    let text = fs::read(path).expect("a case");
    let documents = yaml::read(&text, &Limits::DEFAULT);
    let documents = documents.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let value = documents.into_iter().next().expect("a document").value;
    let (files, runs) = read(value).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::os::unix::fs::symlink(root().join("testdata"), folder.path().join("testdata"))
        .expect("a link");
    write(folder.path(), &files);
    for expected in &runs {
        write(folder.path(), &expected.before);
        let mut program = program();
        program.current_dir(folder.path()).args(&expected.args);
        let run = run(program, &expected.stdin);
        let mut told = format!(
            "{}: {:?}: exit code {}\n{}----- standard error\n{}",
            path.display(),
            expected.args,
            run.code,
            run.stdout,
            run.stderr
        );
        let mut is_wrong = (&run.stdout, &run.stderr, run.code)
            != (&expected.stdout, &expected.stderr, expected.code);
        for (name, text) in &expected.written {
            let there = fs::read_to_string(folder.path().join(name)).ok();
            if there != *text {
                is_wrong = true;
                told += &format!("----- {name}\n{}", there.unwrap_or_default());
            }
        }
        if is_wrong {
            return Some(told);
        }
    }
    None
}

/// The files of a case and its runs: those in `runs`, or the only one, which is what else it says.
fn read(mut value: Value) -> serde_json::Result<(Files, Vec<Expected>)> {
    let case = value.as_object_mut().expect("a map");
    let files = case
        .remove("files")
        .map_or(Ok(Files::new()), serde_json::from_value)?;
    let runs = match case.remove("runs") {
        Some(runs) => {
            assert!(case.is_empty(), "beside `runs` there is only `files`");
            serde_json::from_value(runs)?
        }
        None => vec![serde_json::from_value(value)?],
    };
    Ok((files, runs))
}

fn write(folder: &Path, files: &Files) {
    for (name, text) in files {
        let file: PathBuf = folder.join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }
}

fn run(mut program: Command, stdin: &str) -> Run {
    let program = program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = program.spawn().expect("the program starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    // A program that reads nothing may be gone already.
    let _ = pipe.write_all(stdin.as_bytes());
    drop(pipe);
    child.wait_with_output().expect("the program ends").into()
}
