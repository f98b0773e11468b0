//! Where the parts of an image are, and that they are what they should be.

use std::io::{self, Read};

use super::{
    super::{
        cache::Cache,
        layout::Store,
        registry::{Registries, RegistryError},
    },
    ImageError, Unfit,
};
use crate::{
    image::ImageReference,
    oci::{
        digest::{Digest, Hasher},
        manifest::{Delivered, Descriptor},
    },
};

/// Where an image is.
#[derive(Debug)]
pub(in crate::source) enum Origin {
    /// A registry.
    Registry {
        /// The reference, complete.
        image: ImageReference,
        /// All registries; nothing when none may be asked.
        registries: Option<Registries>,
    },
    /// A layout or an archive.
    Store(Box<dyn Store>),
}

impl Origin {
    /// What stands at the top of the image. What a tag means is asked each time; what a digest means never changes.
    pub(in crate::source) fn top(&self, cache: &Cache) -> Result<Delivered, ImageError> {
        let (image, registries) = match self {
            Self::Store(store) => return Ok(store.top()?),
            Self::Registry { image, registries } => (image, registries),
        };
        let name = image.to_string();
        let known = match image.digest.as_deref().map(Digest::parse) {
            Some(digest) => Some((digest?, None)),
            None if registries.is_none() => cache.tag(&name),
            None => None,
        };
        if let Some((digest, media_type)) = known
            && let Some(body) = cache.blob(&digest)
        {
            return Ok(Delivered {
                body,
                media_type,
                digest,
            });
        }
        let registries = registries.as_ref().ok_or(Unfit::NotInCache)?;
        let top = registries.manifest(image)?;
        cache.keep_blob(&top.digest, &top.body);
        if image.digest.is_none() {
            cache.keep_tag(&name, &top.digest, top.media_type.as_deref());
        }
        Ok(top)
    }

    /// The manifest of an image in an index.
    pub(super) fn manifest(
        &self,
        wanted: &Descriptor,
        cache: &Cache,
    ) -> Result<Vec<u8>, ImageError> {
        let Self::Registry { image, registries } = self else {
            return self.document(wanted, cache);
        };
        if let Some(body) = cache.blob(&wanted.digest) {
            return Ok(body);
        }
        // Registries keep manifests apart from everything else.
        let registries = registries.as_ref().ok_or(Unfit::PartlyInCache)?;
        let body = registries.manifest_in(image, &wanted.digest)?.body;
        cache.keep_blob(&wanted.digest, &body);
        Ok(body)
    }

    /// A configuration, or a manifest where it is kept like one. Whoever read of it saw that it is not too large.
    pub(super) fn document(
        &self,
        wanted: &Descriptor,
        cache: &Cache,
    ) -> Result<Vec<u8>, ImageError> {
        if let Some(body) = cache.blob(&wanted.digest) {
            return Ok(body);
        }
        let mut body = vec![];
        let mut verified = Verified::new(self.blob(wanted)?, wanted);
        let read = verified.read_to_end(&mut body);
        verified.finish()?;
        read.map_err(|source| ImageError::Layer {
            layer: wanted.digest.clone(),
            source,
        })?;
        cache.keep_blob(&wanted.digest, &body);
        Ok(body)
    }

    /// Opens any part of the image; its bytes are as they come.
    pub(super) fn blob(
        &self,
        wanted: &Descriptor,
    ) -> Result<Box<dyn Read + Send + '_>, ImageError> {
        match self {
            Self::Registry { image, registries } => {
                let registries = registries.as_ref().ok_or(Unfit::PartlyInCache)?;
                Ok(registries.blob(image, wanted)?)
            }
            Self::Store(store) => Ok(store.blob(wanted)?),
        }
    }
}

/// Content that is compared with its digest and its size while it is read. It ends where the size says, whatever comes
/// behind.
pub(super) struct Verified<R> {
    reader: R,
    wanted: Descriptor,
    hasher: Hasher,
    read: u64,
    failure: Option<io::Error>,
}

impl<R: Read> Verified<R> {
    /// Content that should be what `wanted` says.
    pub(super) fn new(reader: R, wanted: &Descriptor) -> Self {
        Self {
            reader,
            wanted: wanted.clone(),
            hasher: Hasher::new(wanted.digest.algorithm()),
            read: 0,
            failure: None,
        }
    }

    /// Reads what is left, and judges all of it.
    ///
    /// # Errors
    /// When it could not be read, or is not what it should be.
    pub(super) fn finish(mut self) -> Result<(), ImageError> {
        if self.failure.is_none() {
            // A failure is noted below.
            let _ = io::copy(&mut self, &mut io::sink());
        }
        let digest = self.wanted.digest;
        if let Some(failure) = self.failure {
            return Err(match failure.downcast::<RegistryError>() {
                Ok(error) => ImageError::Registry(error),
                Err(source) => ImageError::Layer {
                    layer: digest,
                    source,
                },
            });
        }
        let (expected, actual) = (self.wanted.size, self.read);
        if expected != actual {
            return Err(ImageError::Size {
                digest,
                expected,
                actual,
            });
        }
        let (expected, actual) = (digest, self.hasher.finish());
        if expected != actual {
            return Err(ImageError::Mismatch { expected, actual });
        }
        Ok(())
    }
}

impl<R: Read> Read for Verified<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.wanted.size.saturating_add(1).saturating_sub(self.read);
        let most = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let buffer = buffer.get_mut(..most).unwrap_or_default();
        match self.reader.read(buffer) {
            Ok(read) => {
                self.hasher.update(buffer.get(..read).unwrap_or_default());
                self.read += read as u64;
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                let kind = error.kind();
                self.failure = Some(error);
                Err(kind.into())
            }
        }
    }
}
