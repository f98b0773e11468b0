//! A folder on disk as a source.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
};

use walkdir::WalkDir;

use super::{
    SourceError,
    catalog_files::{CatalogFiles, CatalogSource, Part},
};
use crate::{
    files::FileTree,
    limits::{BundleSize, Limits, Over},
};

/// How deep folders are searched for others.
const SEARCH_DEPTH: usize = 8;

/// Reads every file below some folders of `root`. Links are followed as long as they stay inside.
pub(super) fn read(
    root: &Path,
    folders: &[&str],
    limits: &Limits,
) -> Result<FileTree, SourceError> {
    let failed = |source| SourceError::Read {
        path: root.to_owned(),
        source,
    };
    if !fs::metadata(root).map_err(failed)?.is_dir() {
        return Err(SourceError::NotAFolder(root.to_owned()));
    }
    let real_root = fs::canonicalize(root).map_err(failed)?;
    let mut reader = Reader {
        root,
        real_root,
        limits,
        sum: BundleSize::default(),
        tree: FileTree::default(),
    };
    for folder in folders {
        let path = root.join(folder);
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => reader.folder(&path)?,
            Ok(_) => return Err(SourceError::NotAFolder(path)),
            Err(source) if source.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(SourceError::Read { path, source }),
        }
    }
    Ok(reader.tree)
}

/// Lists the files of a catalog below `root`, which stay where they are. Links are followed as long as they stay inside.
pub(super) fn catalog(root: &Path, limits: &Limits) -> Result<CatalogSource, SourceError> {
    let real_root = fs::canonicalize(root).map_err(|error| SourceError::reading(root, error))?;
    let mut files = CatalogFiles::default();
    for entry in WalkDir::new(root)
        .follow_root_links(true)
        .sort_by_file_name()
    {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(root).to_owned();
            SourceError::reading(&path, cause(error))
        })?;
        let path = entry.path();
        if entry.path_is_symlink() && entry.depth() > 0 {
            stay_inside(path, root, &real_root)?;
        }
        let metadata = fs::metadata(path).map_err(|error| SourceError::reading(path, error))?;
        if metadata.is_dir() {
            continue;
        }
        if !metadata.is_file() {
            return Err(SourceError::NotAFile(path.to_owned()));
        }
        files.note(path, &metadata);
        let (file, size) = (path.to_owned(), metadata.len());
        files.insert(
            relative(path, root)?,
            Part {
                file,
                start: 0,
                size,
            },
        );
        if files.len() > limits.catalog_files {
            return Err(SourceError::Limit {
                path: root.to_owned(),
                limit: limits.catalog_files as u64,
                what: "files a catalog",
            });
        }
    }
    Ok(files.below(root))
}

/// Reads one file; it may be a link.
pub(super) fn read_file(path: &Path, limits: &Limits) -> Result<Vec<u8>, SourceError> {
    let failed = |source| SourceError::Read {
        path: path.to_owned(),
        source,
    };
    // Asked first, because opening a pipe would wait for its other end.
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(SourceError::NotAFile(path.to_owned()));
    }
    let over = SourceError::Limit {
        path: path.to_owned(),
        limit: limits.file_bytes,
        what: "bytes a file",
    };
    if metadata.len() > limits.file_bytes {
        return Err(over);
    }
    let mut content = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    let file = File::open(path).map_err(failed)?;
    file.take(limits.file_bytes.saturating_add(1))
        .read_to_end(&mut content)
        .map_err(failed)?;
    if content.len() as u64 > limits.file_bytes {
        return Err(over);
    }
    Ok(content)
}

/// The folders below `root` that hold a folder of the given name, by path; those inside others are left out.
///
/// # Errors
/// When a folder on the way cannot be read.
pub fn folders_with(root: &Path, name: &str) -> Result<Vec<PathBuf>, SourceError> {
    let mut found = vec![];
    let mut walk = WalkDir::new(root)
        .max_depth(SEARCH_DEPTH)
        .sort_by_file_name()
        .into_iter();
    while let Some(entry) = walk.next() {
        let entry = entry.map_err(|error| SourceError::Read {
            path: error.path().unwrap_or(root).to_owned(),
            source: cause(error),
        })?;
        if entry.file_type().is_dir() && entry.path().join(name).is_dir() {
            found.push(entry.into_path());
            walk.skip_current_dir();
        }
    }
    Ok(found)
}

struct Reader<'a> {
    root: &'a Path,
    real_root: PathBuf,
    limits: &'a Limits,
    sum: BundleSize,
    tree: FileTree,
}

impl Reader<'_> {
    fn folder(&mut self, path: &Path) -> Result<(), SourceError> {
        let failed = |path: &Path, source| SourceError::Read {
            path: path.to_owned(),
            source,
        };
        for entry in WalkDir::new(path)
            .follow_root_links(true)
            .sort_by_file_name()
        {
            let entry = entry.map_err(|error| {
                let path = error.path().unwrap_or(path).to_owned();
                failed(&path, cause(error))
            })?;
            let path = entry.path();
            if entry.path_is_symlink() {
                stay_inside(path, self.root, &self.real_root)?;
            }
            let metadata = fs::metadata(path).map_err(|source| failed(path, source))?;
            let name = relative(path, self.root)?;
            let added = if metadata.is_dir() {
                self.tree.insert_folder(name)
            } else {
                let content = self.content(path)?;
                self.tree.insert(name, content)
            };
            added.map_err(|source| SourceError::Name {
                root: self.root.to_owned(),
                source,
            })?;
        }
        Ok(())
    }

    fn content(&mut self, path: &Path) -> Result<Vec<u8>, SourceError> {
        let content = read_file(path, self.limits)?;
        let added = self.sum.add(content.len() as u64, self.limits);
        added.map_err(|Over { limit, what }| SourceError::Limit {
            path: self.root.to_owned(),
            limit,
            what,
        })?;
        Ok(content)
    }
}

fn stay_inside(link: &Path, root: &Path, real_root: &Path) -> Result<(), SourceError> {
    let target = fs::canonicalize(link).map_err(|error| SourceError::reading(link, error))?;
    if target.starts_with(real_root) {
        return Ok(());
    }
    let (link, root) = (link.to_owned(), root.to_owned());
    Err(SourceError::LinkOutside { link, root })
}

/// The path relative to the root, `/` between the parts.
fn relative(path: &Path, root: &Path) -> Result<String, SourceError> {
    let below = path.strip_prefix(root).unwrap_or(path);
    let parts: Option<Vec<_>> = below.iter().map(|part| part.to_str()).collect();
    let parts = parts.ok_or_else(|| SourceError::NotUnicode(path.to_owned()))?;
    Ok(parts.join("/"))
}

/// What the system says, without the path that the message has already.
pub(super) fn cause(error: walkdir::Error) -> io::Error {
    let circle = || io::Error::other("its links lead in a circle");
    error.into_io_error().unwrap_or_else(circle)
}
