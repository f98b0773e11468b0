//! The Go side: asking the program.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::program::tool;

/// Gives Go's answer to each input: its `value`, or its `error`.
pub(crate) fn ask_go(inputs: &[Value]) -> Vec<Value> {
    let mut child = Command::new(tool("go-types"))
        .arg("convert")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("go-types starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let lines: Vec<String> = inputs.iter().map(|input| format!("{input}\n")).collect();
    let writer = std::thread::spawn(move || {
        lines
            .iter()
            .try_for_each(|line| stdin.write_all(line.as_bytes()))
    });
    let answers = BufReader::new(child.stdout.take().expect("a pipe"))
        .lines()
        .map(|line| serde_json::from_str(&line.expect("text")).expect("JSON"))
        .collect();
    writer.join().expect("a writer").expect("all written");
    assert!(child.wait().expect("an end").success());
    answers
}

/// Hands over Go's answer to every object below a folder, with its `file` and `input`.
pub(crate) fn go_on_corpus(root: &Path, mut take: impl FnMut(Value)) {
    let mut child = Command::new(tool("go-types"))
        .arg("corpus")
        .arg(root)
        .stdout(Stdio::piped())
        .spawn()
        .expect("go-types starts");
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        take(serde_json::from_str(&line.expect("text")).expect("JSON"));
    }
    assert!(child.wait().expect("an end").success());
}

/// The Rust source of the table of types.
pub(crate) fn table() -> String {
    let output = Command::new(tool("go-types")).arg("table").output();
    String::from_utf8(output.expect("go-types runs").stdout).expect("text")
}
