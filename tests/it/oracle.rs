//! Asks Go: programs of `tests/tools` that answer a line of JSON with a line of JSON.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde::{Serialize, de::DeserializeOwned};

use super::program::tool;

/// A running program of Go; it ends with this.
pub(crate) struct Oracle {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    /// Starts a program that `tests/run` has built.
    pub(crate) fn start(program: &str, arguments: &[&str]) -> Oracle {
        let mut child = Command::new(tool(program))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the oracle starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Oracle {
            child,
            input,
            output,
        }
    }

    /// Asks one question and waits for its answer.
    pub(crate) fn ask<A: DeserializeOwned>(&mut self, question: &impl Serialize) -> A {
        let mut input = self.input.as_ref().expect("open until dropped");
        let mut line = serde_json::to_vec(question).expect("a question is JSON");
        line.push(b'\n');
        input.write_all(&line).expect("the oracle reads");
        let mut answer = String::new();
        self.output
            .read_line(&mut answer)
            .expect("the oracle answers");
        serde_json::from_str(&answer).expect("the oracle answers in JSON")
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}
