//! What is not as containerd does it, and what is told about what cannot be had; the rest is compared with containerd.

use super::*;
use crate::oci::layer::EntryKind;

/// A layer, from a line for each entry: `f` a file, `d` a folder, `l` a link and its text, `h` a hard link and the other
/// name, `s` a device, `w` a whiteout, `o` an opaque one.
fn layer(lines: &[&str]) -> Vec<LayerEntry> {
    let lines = lines.iter().enumerate();
    let entries = lines.map(|(position, line)| {
        let words: Vec<&str> = line.split(' ').collect();
        let text = || words.get(2).copied().unwrap_or_default().to_owned();
        let kind = match words[0] {
            "f" => EntryKind::File {
                position: position as u64,
                size: 1,
            },
            "d" => EntryKind::Folder,
            "l" => EntryKind::SymbolicLink(text()),
            "h" => EntryKind::HardLink(text()),
            "s" => EntryKind::Special,
            "w" => EntryKind::Whiteout,
            _ => EntryKind::OpaqueWhiteout,
        };
        let path = words[1].to_owned();
        LayerEntry { path, kind }
    });
    entries.collect()
}

fn below_a(layers: &[&[&str]]) -> Result<Overlay, String> {
    let layers: Vec<_> = layers.iter().map(|lines| layer(lines)).collect();
    let a = ["a".to_owned()];
    overlay(&layers, &a, &a)
}

fn files(layers: &[&[&str]]) -> Vec<(String, usize)> {
    let made = below_a(layers).expect("nothing is wrong");
    assert_eq!(made.missing, [""; 0]);
    let files = made.files.into_iter();
    files.map(|(path, place)| (path, place.layer)).collect()
}

#[test]
fn whiteouts_hide_what_lower_layers_have_wherever_they_stand() {
    let lower: &[&str] = &["f a/x/old", "f a/y"];
    let expected = [("a/x/new".to_owned(), 1), ("a/y".to_owned(), 0)];
    assert_eq!(files(&[lower, &["w a/x", "f a/x/new"]]), expected);
    assert_eq!(files(&[lower, &["f a/x/new", "w a/x"]]), expected);
    assert_eq!(files(&[lower, &["o a/x", "f a/x/new"]]), expected);
    assert_eq!(files(&[lower, &["f a/x/new", "o a/x"]]), expected);
    assert_eq!(files(&[lower, &["w a/x"]]), [("a/y".to_owned(), 0)]);
    assert_eq!(files(&[lower, &["w a"], &["d a"]]), []);
}

#[test]
fn what_may_surprise_is_noted() {
    let notes = |layers: &[&[&str]]| below_a(layers).expect("nothing is wrong").notes;
    assert_eq!(
        notes(&[&["f a/x", "f a/x"]]),
        ["\"a/x\" is twice in one layer; the last one counts"]
    );
    assert_eq!(notes(&[&["f a/x", "w a/x"]]).len(), 1);
    assert_eq!(
        notes(&[&["d a", "d a", "f a/x"], &["w a/x", "f a/x"]]),
        [""; 0]
    );
    let many: Vec<String> = (0..100).map(|number| format!("f a/{number}")).collect();
    let twice: Vec<&str> = many.iter().chain(&many).map(String::as_str).collect();
    assert_eq!(notes(&[&twice]).len(), 20);
}

#[test]
fn what_was_not_read_is_told() {
    let missing = |layers: &[&[&str]]| below_a(layers).expect("nothing is wrong").missing;
    for (line, expected) in [
        ("l a /data/b/c", "data/b/c"),
        ("l a/x ../../../b", "b"),
        ("l a/x ../b/../c/d", "b"),
        ("h a/x usr/share/x", "usr/share/x"),
        // Who writes to `b/x` writes to `a/x`.
        ("l b a", "b"),
        ("l b /", "b"),
    ] {
        assert_eq!(missing(&[&[line]]), [expected], "{line}");
    }
    // What comes to nothing may do so for what is missing.
    assert_eq!(missing(&[&["l b a/x", "l a/x /b"]]), ["b"]);
}

#[test]
fn what_cannot_be_had_is_named() {
    let forty: Vec<String> = (0..41)
        .map(|number| format!("l a/{number} {}", number + 1))
        .collect();
    let forty: Vec<&str> = forty.iter().map(String::as_str).chain(["f a/41"]).collect();
    for (lines, expected) in [
        (&["s a/null"][..], "\"a/null\" is a device or a pipe"),
        (
            &["l a/x x"],
            "\"a/x\" leads over more than 40 links, or in a circle",
        ),
        (
            &forty,
            "\"a/0\" leads over more than 40 links, or in a circle, by way of \"a/40\"",
        ),
        (
            &["d a/b", "l a/b/up .."],
            "\"a/b/up\" is a link in a circle",
        ),
        (
            &["d a/b", "d a/c", "l a/b/x ../c", "l a/c/x ../b"],
            "is a link in a circle",
        ),
        (
            &["l a/x y"],
            "\"a/x\" is a link to \"a/y\", which is not there",
        ),
        (
            &["h a/x a/y"],
            "\"a/x\" is a hard link to \"a/y\", which is not there",
        ),
        (
            &["d a/y", "h a/x a/y"],
            "\"a/x\" is a hard link to \"a/y\", which is a folder",
        ),
        (
            &["f a/x", "f a/x/y"],
            "\"a/x/y\" is below \"a/x\", which is no folder",
        ),
    ] {
        let why = below_a(&[lines]).expect_err("is wrong");
        assert!(why.contains(expected), "{lines:?}: {why}");
    }
    // What a later layer takes away is nobody's business.
    assert_eq!(
        files(&[&["s a/null", "l a/x y", "f a/z"], &["w a/null", "w a/x"]]),
        [("a/z".to_owned(), 0)]
    );
}

#[test]
fn links_that_multiply_are_stopped() {
    let mut lines = vec!["f a/0/x".to_owned()];
    for level in 1..40 {
        for link in 0..4 {
            lines.push(format!("l a/{level}/{link} ../{}", level - 1));
        }
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let why = below_a(&[&lines]).expect_err("is too much");
    assert!(why.contains("too many files or too long a path"), "{why}");
}
