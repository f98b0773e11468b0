//! The files of a bundle in a tar archive.

use std::{collections::BTreeMap, io::Read, path::Path};

use super::SourceError;
use crate::{
    archive::{self, Member},
    files::FileTree,
    limits::{BundleSize, Limits},
};

/// The files of one place, with their paths below it.
type FilesOfPlace = Vec<(String, Vec<u8>)>;

/// Reads the files of an archive that are below one of some folders, wherever in the archive those stand; with several
/// such places, those of the outermost.
pub(super) fn folders(
    source: &Path,
    reader: Box<dyn Read + '_>,
    folders: &[&str],
    limits: &Limits,
) -> Result<FileTree, SourceError> {
    // The outermost place comes first.
    let mut by_root: BTreeMap<(usize, String), FilesOfPlace> = BTreeMap::new();
    let mut sum = BundleSize::default();
    let each = |member: Member<'_>| {
        let Some(root) = root_of(&member.path, folders) else {
            return Ok(());
        };
        sum.add(member.size, limits)
            .map_err(|over| archive::bad(member.path.as_bytes(), &over.to_string()))?;
        let mut content = vec![];
        member.content.read_to_end(&mut content)?;
        let path = member
            .path
            .strip_prefix(root)
            .unwrap_or_default()
            .to_owned();
        let depth = root.matches('/').count();
        let of_root = by_root.entry((depth, root.to_owned())).or_default();
        of_root.push((path, content));
        Ok(())
    };
    let read = archive::each_member(reader, limits.catalog_bytes, each);
    read.map_err(|error| match error.get_ref() {
        Some(inner) if inner.is::<archive::NoArchive>() => {
            SourceError::NotAnArchive(source.to_owned())
        }
        _ => SourceError::reading(source, error),
    })?;
    let mut tree = FileTree::default();
    let outermost = by_root.pop_first().map(|(_, files)| files);
    for (path, content) in outermost.unwrap_or_default() {
        let added = tree.insert(path, content);
        added.map_err(|error| SourceError::Name {
            root: source.to_owned(),
            source: error,
        })?;
    }
    Ok(tree)
}

/// The part of a path before one of the folders, with a slash at its end unless it is empty.
fn root_of<'p>(path: &'p str, folders: &[&str]) -> Option<&'p str> {
    let mut start = 0;
    for part in path.split_inclusive('/') {
        let is_folder = part
            .strip_suffix('/')
            .is_some_and(|name| folders.contains(&name));
        if is_folder {
            return path.get(..start);
        }
        start += part.len();
    }
    None
}
