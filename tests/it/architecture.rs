//! Holds the module table true: who may name whom, and that every file opens by saying what it is for.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::program::root;

/// Each module and the modules it may name, bottom first: a module may only name ones listed above it.
const MAY_USE: &[(&str, &[&str])] = &[
    ("limits", &[]),
    ("near", &[]),
    ("concurrent", &[]),
    ("problem", &[]),
    ("kube_version", &[]),
    ("files", &[]),
    ("image", &[]),
    ("archive", &["limits"]),
    ("oci", &["archive", "limits"]),
    ("versions", &[]),
    ("manifest", &["limits", "problem", "versions"]),
    ("logins", &["image", "limits", "manifest"]),
    ("images", &["image", "limits", "manifest", "problem"]),
    (
        "bundle",
        &["files", "images", "limits", "manifest", "problem"],
    ),
    ("render", &["bundle", "limits", "manifest", "problem"]),
    (
        "catalog",
        &[
            "files", "image", "limits", "manifest", "problem", "versions",
        ],
    ),
    (
        "resolve",
        &[
            "catalog", "limits", "manifest", "near", "problem", "versions",
        ],
    ),
    (
        "pull_secrets",
        &["image", "images", "logins", "manifest", "problem"],
    ),
    (
        "install",
        &[
            "catalog",
            "image",
            "images",
            "kube_version",
            "limits",
            "manifest",
            "near",
            "problem",
            "render",
            "resolve",
            "versions",
        ],
    ),
    (
        "source",
        &[
            "archive",
            "catalog",
            "concurrent",
            "files",
            "image",
            "images",
            "limits",
            "logins",
            "manifest",
            "oci",
            "problem",
        ],
    ),
    (
        "review",
        &["image", "images", "limits", "manifest", "problem"],
    ),
    (
        "cluster",
        &["concurrent", "limits", "manifest", "problem", "review"],
    ),
    (
        "cli",
        &[
            "bundle",
            "catalog",
            "cluster",
            "concurrent",
            "files",
            "image",
            "images",
            "install",
            "kube_version",
            "limits",
            "logins",
            "manifest",
            "near",
            "oci",
            "problem",
            "pull_secrets",
            "render",
            "resolve",
            "review",
            "source",
            "versions",
        ],
    ),
];

#[test]
fn modules_use_only_what_the_table_allows() {
    let mut problems = vec![];
    for file in rust_files(&root().join("src")) {
        let module = top_module(&file);
        if module == "lib" || module == "main" {
            continue;
        }
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == module) else {
            problems.push(format!(
                "{}: `{module}` is not in the table",
                file.display()
            ));
            continue;
        };
        let text = fs::read_to_string(&file).expect("a source file");
        for used in modules_named_in(&text)
            .into_iter()
            .chain(modules_above(&file, &text))
        {
            if used != module && !allowed.contains(&used.as_str()) {
                problems.push(format!(
                    "{}: `{module}` may not use `{used}`",
                    file.display()
                ));
            }
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn the_table_has_no_cycles() {
    let mut above = BTreeSet::new();
    for (module, uses) in MAY_USE {
        for used in *uses {
            assert!(
                above.contains(used),
                "`{module}` uses `{used}`, which is listed below it"
            );
        }
        above.insert(module);
    }
}

#[test]
fn every_file_opens_by_saying_what_it_is_for() {
    let all = ["src", "tests", "benches"]
        .iter()
        .flat_map(|folder| rust_files(&root().join(folder)));
    let silent: Vec<_> = all
        .filter(|file| {
            !fs::read_to_string(file)
                .expect("a source file")
                .starts_with("//!")
        })
        .collect();
    assert!(silent.is_empty(), "no `//!` on the first line: {silent:?}");
}

/// The clippy fence is only as good as the files that step over it.
#[test]
fn only_the_edges_touch_the_world() {
    let opened: Vec<_> = rust_files(&root().join("src"))
        .into_iter()
        .filter(|file| {
            let text = fs::read_to_string(file).expect("a source file");
            text.contains("clippy::disallowed_methods") || text.contains("clippy::disallowed_types")
        })
        .map(|file| {
            file.strip_prefix(root())
                .expect("below the root")
                .to_owned()
        })
        .collect();
    assert_eq!(
        opened,
        [
            "src/cli/mod.rs",
            "src/cluster/connection/mod.rs",
            "src/cluster/lock/mod.rs",
            "src/cluster/wait.rs",
            "src/source/mod.rs"
        ]
        .map(Path::new)
    );
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).expect("a source folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn top_module(file: &Path) -> String {
    let relative = file.strip_prefix(root().join("src")).expect("below src");
    let first = relative.components().next().expect("a name").as_os_str();
    first
        .to_str()
        .expect("Unicode")
        .trim_end_matches(".rs")
        .to_owned()
}

/// The `x` of every `crate::x`, of every `crate::{x::…, …}`, and of every `super::x` that is one of our modules.
fn modules_named_in(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for after in text.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            Some(group) => names.extend(first_names(group)),
            None => names.extend([identifier(after)]),
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The `x` of every chain of `super::` that climbs to the root of the crate.
fn modules_above(file: &Path, text: &str) -> Vec<String> {
    let relative = file.strip_prefix(root().join("src")).expect("below src");
    let is_folder = relative.file_name().is_some_and(|name| name == "mod.rs");
    let depth = relative.components().count() - usize::from(is_folder);
    let chain = "super::".repeat(depth);
    let starts = text
        .match_indices(&chain)
        .filter(|(at, _)| !text[..*at].ends_with("super::"));
    starts
        .map(|(at, _)| identifier(&text[at + chain.len()..]))
        .filter(|name| MAY_USE.iter().any(|(module, _)| module == name))
        .collect()
}

/// The leading name of each part of `a::b, c::{d, e}}`, up to the brace that closes the group.
fn first_names(group: &str) -> Vec<String> {
    let (mut depth, mut start, mut names) = (0, 0, vec![]);
    for (at, character) in group.char_indices() {
        match character {
            ',' | '}' if depth == 0 => {
                names.push(identifier(group[start..at].trim_start()));
                start = at + 1;
                if character == '}' {
                    break;
                }
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    names
}

fn identifier(text: &str) -> String {
    text.chars()
        .take_while(|character| character.is_alphanumeric() || *character == '_')
        .collect()
}
