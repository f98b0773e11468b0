//! The files of one source, in memory. Every source yields a [`FileTree`] and every parser takes one, so that
//! content is never unpacked to disk and parsers never see where it came from.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

/// Files by their path relative to the source's root, with `/` between the parts.
#[derive(Debug, Default)]
pub struct FileTree {
    files: BTreeMap<String, Vec<u8>>,
    folders: BTreeSet<String>,
}

/// Why a path cannot be that of a file in a [`FileTree`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is not an acceptable path: {reason}")]
pub struct BadPath {
    path: String,
    reason: &'static str,
}

impl FileTree {
    /// Adds a file; one that was there under the same path is replaced.
    ///
    /// # Errors
    /// When the path is absolute, climbs with `..`, has an empty part, or holds control characters.
    pub fn insert(&mut self, path: impl Into<String>, content: Vec<u8>) -> Result<(), BadPath> {
        let path = path.into();
        check(&path)?;
        self.files.insert(path, content);
        Ok(())
    }

    /// Notes a folder, so that also an empty one is known.
    ///
    /// # Errors
    /// As [`FileTree::insert`].
    pub fn insert_folder(&mut self, path: impl Into<String>) -> Result<(), BadPath> {
        let path = path.into();
        check(&path)?;
        self.folders.insert(path);
        Ok(())
    }

    /// The content of one file.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// The paths of all files, in byte order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The paths of the files below `folder`, in byte order.
    #[must_use]
    pub fn paths_in(&self, folder: &str) -> Vec<String> {
        let prefix = format!("{folder}/");
        let from = self.files.range(prefix.clone()..);
        from.map(|(path, _)| path)
            .take_while(|path| path.starts_with(&prefix))
            .cloned()
            .collect()
    }

    /// The folders below `folder`, in byte order.
    #[must_use]
    pub fn folders_in(&self, folder: &str) -> Vec<&str> {
        let prefix = format!("{folder}/");
        let folders = self.folders.iter().map(String::as_str);
        folders.filter(|path| path.starts_with(&prefix)).collect()
    }

    /// Whether `folder` is known or holds a file.
    #[must_use]
    pub fn has_folder(&self, folder: &str) -> bool {
        self.folders.contains(folder) || !self.paths_in(folder).is_empty()
    }

    /// The SHA-256 digest of all files, their paths among it, as `sha256:…`. Folders do not count.
    #[must_use]
    pub fn digest(&self) -> String {
        let files = self.files.iter();
        let files: Vec<_> = files
            .map(|(path, content)| (path, Sha256::digest(content)))
            .collect();
        digest_of(
            files
                .iter()
                .map(|(path, digest)| (path.as_str(), digest.as_slice())),
        )
    }

    /// Takes a file out, so that its bytes are free again as soon as they are parsed.
    pub fn take(&mut self, path: &str) -> Option<Vec<u8>> {
        self.files.remove(path)
    }
}

/// The digest of files, as [`FileTree::digest`] gives it, from the SHA-256 digest of each, by path in byte order.
pub fn digest_of<'f>(files: impl Iterator<Item = (&'f str, &'f [u8])>) -> String {
    let mut all = Sha256::new();
    for (path, digest) in files {
        all.update(digest);
        all.update(path);
        // No path holds it, and a digest has one length.
        all.update([0]);
    }
    let hex = all
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    format!("sha256:{hex}")
}

fn check(path: &str) -> Result<(), BadPath> {
    let refuse = |reason| {
        let path = path.to_owned();
        Err(BadPath { path, reason })
    };
    if path.chars().any(char::is_control) {
        return refuse("it holds control characters");
    }
    if path.starts_with('/') {
        return refuse("it is absolute");
    }
    if path.split('/').any(|part| part == ".." || part == ".") {
        return refuse("it holds `.` or `..`");
    }
    if path.split('/').any(str::is_empty) {
        return refuse("a part of it is empty");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_source_are_refused() {
        for path in [
            "../a",
            "a/../../b",
            "/etc/passwd",
            "a//b",
            "",
            "a/./b",
            "a\u{1b}[0m",
        ] {
            let refused = FileTree::default().insert(path, vec![]);
            assert!(refused.is_err(), "{path:?} was taken");
        }
    }

    #[test]
    fn folders_are_listed_without_their_neighbours() {
        let mut tree = FileTree::default();
        for path in [
            "manifests/a.yaml",
            "manifests/sub/b.yaml",
            "manifests-old/c.yaml",
        ] {
            tree.insert(path, vec![]).expect("good path");
        }
        assert_eq!(
            tree.paths_in("manifests"),
            ["manifests/a.yaml", "manifests/sub/b.yaml"]
        );
    }
}
