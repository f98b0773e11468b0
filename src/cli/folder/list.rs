//! The list of the files in a folder that are ours: text, sorted, one name a line, comments after `#`.
//!
//! It is kept in Git with the files, so it is input like any other: each line must be a plain file name, or none of it
//! is used. The worst that a forged list can do is to name a file in the same folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{FolderError, failed};

/// Hidden, and without an ending that kubectl, Argo CD or Flux would read.
pub(super) const LIST_FILE: &str = ".kubectl-olm-files";

const HEADER: &str = "# The files here that kubectl olm wrote: it replaces them, and removes those it no longer needs.\n";

/// More than any folder of ours needs, and little enough to read whole.
const MAX_BYTES: u64 = 16 << 20;

/// Names of files in the folder, each checked to be a plain file name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct List(BTreeSet<String>);

impl List {
    /// Takes names that are known to be plain.
    pub(super) fn new(names: impl Iterator<Item = String>) -> List {
        List(names.collect())
    }

    /// Reads the list of `folder`.
    pub(super) fn read(folder: &Path) -> Result<List, FolderError> {
        let path = folder.join(LIST_FILE);
        let unusable = |reason| FolderError::List {
            folder: folder.to_owned(),
            reason,
        };
        let metadata = fs::symlink_metadata(&path).map_err(failed("read", &path))?;
        if metadata.len() > MAX_BYTES {
            let reason = format!("it is larger than {} MB", MAX_BYTES >> 20);
            return Err(unusable(reason));
        }
        let bytes = fs::read(&path).map_err(failed("read", &path))?;
        let text = String::from_utf8(bytes).map_err(|_| unusable("it is not text".to_owned()))?;
        List::parse(&text).map_err(unusable)
    }

    /// Gives the reason if a line is not a name. Line ends may be those of Windows, which Git may have made of ours.
    fn parse(text: &str) -> Result<List, String> {
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let names = lines.map(|(index, line)| {
            let reason = || {
                format!(
                    "line {} is not a file name: \"{}\"",
                    index + 1,
                    excerpt(line)
                )
            };
            is_plain_name(line)
                .then(|| line.to_owned())
                .ok_or_else(reason)
        });
        names.collect::<Result<_, _>>().map(List)
    }

    /// The text of the list file; the same names always give the same bytes.
    pub(super) fn to_text(&self) -> String {
        let lines: String = self.0.iter().map(|name| format!("{name}\n")).collect();
        format!("{HEADER}{lines}")
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(super) fn union(&self, other: &List) -> List {
        List(self.0.union(&other.0).cloned().collect())
    }
}

/// Whether a name is that of a file directly in the folder, visible and of letters that are safe everywhere.
///
/// With no separators, no leading dot and no colon, it is neither a path nor one of our hidden files, nor a drive or a
/// stream on Windows.
pub(super) fn is_plain_name(name: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    name.len() <= 255
        && name.bytes().all(is_safe)
        && !name.starts_with(['.', '-'])
        && name.ends_with(|last: char| last.is_ascii_alphanumeric())
}

/// The start of a line, safe for a terminal.
fn excerpt(line: &str) -> String {
    line.chars().take(60).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back_is_the_same_list() {
        let list = List::new(["b.yaml", "a.yaml"].map(str::to_owned).into_iter());
        let text = list.to_text();
        assert_eq!(text, format!("{HEADER}a.yaml\nb.yaml\n"));
        assert_eq!(List::parse(&text).unwrap(), list);
        assert_eq!(List::parse(&text.replace('\n', "\r\n")).unwrap(), list);
    }

    #[test]
    fn lines_that_are_no_plain_names_are_refused() {
        let long = "a".repeat(256);
        let lines = [
            "..",
            ".",
            "../a.yaml",
            "/etc/passwd",
            "a/b",
            "a\\b",
            "C:a",
            "a:b",
            ".git",
            "-rf",
            " a",
            "a ",
            "a.",
            "a\tb",
            "<<<<<<< HEAD",
            "=======",
            "ä",
            &long,
        ];
        for line in lines {
            let error = List::parse(&format!("# comment\na.yaml\n{line}\n")).unwrap_err();
            assert!(error.starts_with("line 3 is not a file name"), "{error}");
        }
    }

    #[test]
    fn control_characters_do_not_reach_the_message() {
        let error = List::parse("a\u{1b}[2J\n").unwrap_err();
        assert_eq!(error, "line 1 is not a file name: \"a\\u{1b}[2J\"");
    }
}
