//! An OCI layout, in a folder or in an archive as skopeo writes it.

use std::{io::Read, path::Path};

use super::{
    Form, Opened, Store, StoreError,
    archive::ImageArchive,
    folder::LayoutFolder,
    index::{self, Choice},
};
use crate::oci::{
    digest::Digest,
    manifest::{Delivered, Descriptor},
};

/// An image in an OCI layout.
#[derive(Debug)]
pub(super) struct OciLayout {
    files: Files,
    top: Top,
}

#[derive(Debug)]
enum Files {
    Folder(LayoutFolder),
    Archive(ImageArchive),
}

/// The manifest or index of the image that is meant.
#[derive(Debug)]
enum Top {
    Listed(Descriptor),
    Digest(Digest),
}

impl OciLayout {
    /// The layout in a folder.
    pub(super) fn in_folder(folder: &Path, reference: Option<&str>) -> Result<Self, StoreError> {
        Self::new(Files::Folder(LayoutFolder::open(folder)?), reference)
    }

    /// The layout in an archive.
    pub(super) fn in_archive(
        archive: ImageArchive,
        reference: Option<&str>,
    ) -> Result<Self, StoreError> {
        Self::new(Files::Archive(archive), reference)
    }

    fn new(files: Files, reference: Option<&str>) -> Result<Self, StoreError> {
        let no_layout = |reason| files.is_none(reason);
        let missing = |name: &str| files.is_none(format!("it has no file {name}"));
        let marker = files.document("oci-layout")?;
        index::check_marker(&marker.ok_or_else(|| missing("oci-layout"))?).map_err(no_layout)?;
        let index = files.document("index.json")?;
        let index = index.ok_or_else(|| missing("index.json"))?;
        let path = files.path().to_owned();
        let top = match index::choose(&index, reference).map_err(no_layout)? {
            Choice::Image(image) => Top::Listed(image),
            Choice::Digest(digest) => Top::Digest(digest),
            Choice::None(names) => {
                let Some(reference) = reference.map(super::cut) else {
                    return Err(no_layout("it holds no image".to_owned()));
                };
                return Err(StoreError::NoImage {
                    path,
                    reference,
                    names,
                });
            }
            Choice::Several(names) => {
                let form = files.form();
                return Err(StoreError::Several { path, names, form });
            }
        };
        Ok(Self { files, top })
    }
}

impl Store for OciLayout {
    fn top(&self) -> Result<Delivered, StoreError> {
        let (digest, media_type) = match &self.top {
            Top::Listed(image) => (&image.digest, Some(&image.media_type)),
            Top::Digest(digest) => (digest, None),
        };
        let file = file_of(digest);
        let found = self.files.document(&file)?;
        let body = found.ok_or_else(|| self.files.missing(digest))?;
        let actual = digest.algorithm().digest(&body);
        if actual != *digest {
            return Err(StoreError::Digest {
                path: self.files.path().to_owned(),
                file,
                expected: digest.clone(),
                actual,
            });
        }
        Ok(Delivered {
            body,
            media_type: media_type.filter(|name| !name.is_empty()).cloned(),
            digest: actual,
        })
    }

    fn blob(&self, blob: &Descriptor) -> Result<Box<dyn Read + Send + '_>, StoreError> {
        let found = self.files.open(&file_of(&blob.digest))?;
        let (_, reader) = found.ok_or_else(|| self.files.missing(&blob.digest))?;
        Ok(reader)
    }
}

/// Where content is in a layout. A digest is well formed, so it leads nowhere else.
fn file_of(digest: &Digest) -> String {
    format!("blobs/{}/{}", digest.algorithm().name(), digest.hex())
}

impl Files {
    fn path(&self) -> &Path {
        match self {
            Self::Folder(folder) => folder.path(),
            Self::Archive(archive) => archive.path(),
        }
    }

    fn form(&self) -> Form {
        match self {
            Self::Folder(_) => Form::Layout,
            Self::Archive(_) => Form::OciArchive,
        }
    }

    fn is_none(&self, reason: String) -> StoreError {
        let (path, form) = (self.path().to_owned(), self.form());
        StoreError::NoneOf { path, form, reason }
    }

    fn missing(&self, digest: &Digest) -> StoreError {
        StoreError::Missing {
            path: self.path().to_owned(),
            file: file_of(digest),
            digest: digest.clone(),
        }
    }

    /// Opens a file; nothing when there is none.
    fn open(&self, name: &str) -> Result<Option<Opened<'_>>, StoreError> {
        match self {
            Self::Folder(folder) => {
                let opened = folder.open_file(name)?;
                // It may grow while it is read.
                Ok(opened.map(|(file, size)| (size, Box::new(file.take(size)) as Box<_>)))
            }
            Self::Archive(archive) => Ok(archive.open_file(name)),
        }
    }

    /// Reads a small file; nothing when there is none.
    fn document(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        super::document(name, self.open(name)?, |reason| self.is_none(reason))
    }
}
