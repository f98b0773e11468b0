//! Shows differences with the program that `KUBECTL_EXTERNAL_DIFF` names, exactly as kubectl does (k8s.io/kubectl
//! `pkg/cmd/diff/diff.go`: `getCommand`, `DiffVersion`, `InfoObject.Name`).
//!
//! It gets two folders with a file for each object. Unlike kubectl's, ours are masked for all that `diff/mask.rs` hides,
//! and hold nothing that could steer a terminal.

use std::{env, fs, path::Path, process::Command};

use tempfile::TempDir;

use super::{Differs, push_harmless};
use crate::{
    cli::failure::{Class, Failure},
    cluster::diff::{self, Difference},
};

const VARIABLE: &str = "KUBECTL_EXTERNAL_DIFF";

/// As long may the name of a file be, in bytes.
const NAME_BYTES: usize = 240;

/// The program and its arguments, in one text; nothing when none is named.
pub(super) fn program() -> Option<String> {
    let program = env::var(VARIABLE).ok();
    program.filter(|program| !program.is_empty())
}

/// Runs the program over the differences. As for `diff`, its exit code is 0 when it finds none, and 1 when it does.
///
/// # Errors
/// When the files for it cannot be written, it cannot be run, or ends with another code.
pub(super) fn show(differences: &[Difference], program: &str) -> Result<Differs, Failure> {
    let folders = folders(differences).map_err(|error| {
        let mut failure = Failure::of(Class::Output, &error);
        failure.prefix("cannot write the files to compare");
        failure
    })?;
    let (program, options) = split(program);
    let mut command = Command::new(program);
    command.args(folders.each_ref().map(TempDir::path));
    command.args(options);
    let status = command.status().map_err(|error| {
        let mut failure = Failure::of(Class::Usage, &error);
        failure.prefix(format!("cannot run `{program}`, which {VARIABLE} names"));
        failure
    })?;
    match status.code() {
        Some(0) => Ok(Differs::No),
        Some(1) => Ok(Differs::Yes),
        _ => {
            let message = format!("`{program}`, which {VARIABLE} names, failed: {status}");
            Err(Failure::new(Class::Output, message))
        }
    }
}

/// The program, and those of its options that kubectl takes: it drops what has anything but letters, digits, `-` and `=`.
fn split(program: &str) -> (&str, Vec<&str>) {
    let mut words = program.split(' ');
    let program = words.next().unwrap_or_default();
    let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'=');
    let options = words.filter(|word| !word.is_empty() && word.bytes().all(is_harmless));
    (program, options.collect())
}

/// The folders of what is there and of what would be.
fn folders(differences: &[Difference]) -> std::io::Result<[TempDir; 2]> {
    let folder = |prefix| tempfile::Builder::new().prefix(prefix).tempdir();
    let folders = [folder("LIVE-")?, folder("MERGED-")?];
    for (number, difference) in differences.iter().enumerate() {
        let name = file_name(difference, number);
        let sides = [&difference.before, &difference.after];
        for (folder, side) in folders.iter().zip(sides) {
            let mut text = String::new();
            for line in diff::text(side.as_ref()).lines() {
                push_harmless(line, &mut text);
                text.push('\n');
            }
            fs::write(Path::new(folder.path()).join(&name), text)?;
        }
    }
    Ok(folders)
}

/// `group.version.Kind.namespace.name`, the group only where there is one. What is too long ends in the number.
fn file_name(difference: &Difference, number: usize) -> String {
    let key = &difference.key;
    let object = difference.after.as_ref().or(difference.before.as_ref());
    let version = object.and_then(|object| object.get("apiVersion")?.as_str());
    let version = version.unwrap_or_default();
    let version = version
        .rsplit_once('/')
        .map_or(version, |(_, version)| version);
    let parts = [version, &key.kind, &key.namespace, &key.name].join(".");
    let name = match key.group.as_str() {
        "" => parts,
        group => format!("{group}.{parts}"),
    };
    let harmless = name.chars().map(|character| match character {
        '/' | '\\' => '_',
        character if character.is_control() => '_',
        character => character,
    });
    let mut name: String = harmless.collect();
    if name.len() > NAME_BYTES {
        name.truncate(name.floor_char_boundary(NAME_BYTES));
        name.push_str(&format!("-{number}"));
    }
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::ObjectKey;

    #[test]
    fn the_program_gets_the_options_that_kubectl_gives_it() {
        let (program, options) = split("colordiff -N  -u --color=always $(id) a;b ../x");
        assert_eq!(program, "colordiff");
        assert_eq!(options, ["-N", "-u", "--color=always"]);
    }

    #[test]
    fn each_object_is_a_file_in_both_folders() {
        let difference = |group: &str, name: &str| Difference {
            key: ObjectKey {
                group: group.to_owned(),
                kind: "Role".to_owned(),
                namespace: "ops".to_owned(),
                name: name.to_owned(),
            },
            before: None,
            after: Some(json!({"apiVersion": format!("{group}/v1"), "kind": "Role"})),
            fields: vec![],
        };
        let long = "x".repeat(253);
        let differences = [
            difference("rbac.authorization.k8s.io", "../a:b"),
            difference("", &long),
        ];
        let folders = folders(&differences).unwrap();
        for (folder, prefix) in folders.iter().zip(["LIVE-", "MERGED-"]) {
            let name = folder.path().file_name().unwrap().to_str().unwrap();
            assert!(name.starts_with(prefix), "{name}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        }
        let name = "rbac.authorization.k8s.io.v1.Role.ops..._a:b";
        let read = |folder: &TempDir| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read(&folders[0]), "");
        assert_eq!(
            read(&folders[1]),
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"
        );
    }

    #[test]
    fn what_the_program_says_counts() {
        for (program, expected) in [("true", Some(Differs::No)), ("false", Some(Differs::Yes))] {
            assert_eq!(show(&[], program).ok(), expected, "{program}");
        }
        for (program, word) in [("/no/such/diff", "cannot run"), ("ls --none", "failed")] {
            let failure = show(&[], program).unwrap_err();
            assert!(failure.message().contains(word), "{failure:?}");
        }
    }
}
