//! The files of a bundle in a tar archive.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    path::Path,
};

use super::{
    SourceError,
    archive::{self, Member},
};
use crate::{files::FileTree, limits::Limits};

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
    let (mut files, mut bytes) = (0, 0);
    let each = |member: Member<'_>| {
        let Some(root) = root_of(&member.path, folders) else {
            return Ok(());
        };
        files += 1;
        bytes += member.size;
        let bounds = [
            (member.size, limits.file_bytes, "bytes a file"),
            (files, limits.bundle_files as u64, "files a bundle"),
            (bytes, limits.bundle_bytes, "bytes a bundle"),
        ];
        for (count, limit, what) in bounds {
            if count > limit {
                let message = format!(
                    "{:?} is over the limit of {limit} {what} (--no-limits lifts it for content you trust)",
                    member.path
                );
                return Err(io::Error::other(message));
            }
        }
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
    for (path, content) in by_root
        .pop_first()
        .map(|(_, files)| files)
        .unwrap_or_default()
    {
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
