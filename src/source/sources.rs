//! All that content is read with, set up once for a run: the cache, the registries, and how strict to be.

use std::{
    fmt,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use super::{
    SourceError,
    cache::Cache,
    catalog_files::{self, CatalogSource},
    credentials::{Credentials, Environment, PullSecret},
    dir, image_source,
    image_source::ImageSource,
    images::{Found, Image, ImageError, Origin, Reading},
    layout,
    mirrors::Mirrors,
    place::{ImagePlace, Place, STDIN_NAME},
    registry::{Progress, Registries, RegistrySettings},
    tar_files,
};
use crate::{
    files::FileTree,
    image::ImageReference,
    images::mirror::MirrorRules,
    limits::Limits,
    oci::{digest::Digest, manifest, platform::Platform},
};

/// How content is read.
#[derive(Debug)]
pub struct Settings {
    /// How much content may cost.
    pub limits: Limits,
    /// The platform whose image is taken of several; nothing leaves the choice to the program.
    pub platform: Option<Platform>,
    /// Whether registries may be asked.
    pub offline: bool,
    /// Whether what registries gave is kept for the next run.
    pub cache: bool,
    /// The file with credentials for registries, instead of those of docker and podman.
    pub authfile: Option<PathBuf>,
    /// Secrets of the input with credentials for registries, which are tried before all others.
    pub pull_secrets: Vec<PullSecret>,
    /// Where else images are asked for, before what the files of this machine say.
    pub mirrors: MirrorRules,
    /// How registries are asked.
    pub registries: RegistrySettings,
    /// What is told how far downloads are.
    pub progress: Arc<dyn Progress>,
}

impl Settings {
    /// With no registry, and nothing else that a user could say.
    #[must_use]
    pub fn offline() -> Self {
        Self {
            limits: Limits::DEFAULT,
            platform: None,
            offline: true,
            cache: true,
            authfile: None,
            pull_secrets: vec![],
            mirrors: MirrorRules::default(),
            registries: RegistrySettings::default(),
            progress: Arc::new(()),
        }
    }
}

/// What was read, and the image that it was read from.
#[derive(Debug)]
pub struct Read<T> {
    /// What was read.
    pub content: T,
    /// The digest of the image, where it is one: what its tag meant.
    pub image: Option<Digest>,
}

/// All that content is read with. Registries and the cache are opened when they are first needed.
pub struct Sources {
    settings: Settings,
    cache: OnceLock<Cache>,
    registries: Mutex<Option<Registries>>,
    notices: Mutex<Vec<String>>,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

impl Sources {
    /// Nothing is opened or read yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            cache: OnceLock::new(),
            registries: Mutex::new(None),
            notices: Mutex::new(vec![]),
        }
    }

    /// How much content may cost.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// Where images are mirrored by the user's rules.
    #[must_use]
    pub fn mirrors(&self) -> &MirrorRules {
        &self.settings.mirrors
    }

    /// What there is to tell about what was read since this was asked last, each thing once.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = std::mem::take(&mut *lock(&self.notices));
        notices.extend(self.cache.get().and_then(Cache::trouble));
        notices.sort();
        notices.dedup();
        notices
    }

    /// Reads the files below some folders of a source: a folder, an archive, an image, or an archive on standard input.
    /// An archive may have the folders in a folder of its own.
    ///
    /// # Errors
    /// The first thing that cannot be read.
    pub fn files(&self, source: &Path, folders: &[&str]) -> Result<FileTree, SourceError> {
        let limits = self.limits();
        match Place::of(source)? {
            Place::Folder => dir::read(source, folders, limits),
            Place::File => tar_files::folders(source, open(source)?, folders, limits),
            Place::Stdin => {
                let stdin = Box::new(io::stdin().lock());
                tar_files::folders(Path::new(STDIN_NAME), stdin, folders, limits)
            }
            Place::Image(place) => {
                let name = source.to_string_lossy();
                let read = self.read_image(place, &name, vec![], |image| image.bundle(folders))?;
                Ok(read.content)
            }
        }
    }

    /// Finds the files of a catalog: a folder, a file, an archive, an image, or a file or archive on standard input.
    /// `pinned` is what the tag of an image stands for, where that is not to be asked.
    ///
    /// # Errors
    /// When there are none, they cannot be read, or a limit is reached.
    pub fn catalog(
        &self,
        source: &Path,
        pinned: Option<&Digest>,
    ) -> Result<Read<CatalogSource>, SourceError> {
        let limits = self.limits();
        let content = match Place::of(source)? {
            Place::Folder => dir::catalog(source, limits)?,
            Place::File => catalog_files::of_file(source, open(source)?, limits)?,
            Place::Stdin => {
                let stdin = Box::new(io::stdin().lock());
                catalog_files::of_stream(Path::new(STDIN_NAME), stdin, limits)?
            }
            Place::Image(place) => {
                let name = source.to_string_lossy();
                return self.read_catalog(place.at(pinned), &name, vec![]);
            }
        };
        Ok(Read {
            content,
            image: None,
        })
    }

    /// Finds the files of a catalog in an image: from what the user says that it stands for, else from its registry.
    /// `pinned` is what its tag stands for, where that is not to be asked.
    ///
    /// # Errors
    /// When the image cannot be had.
    pub fn catalog_image(
        &self,
        image: &str,
        given: &[ImageSource],
        pinned: Option<&Digest>,
    ) -> Result<Read<CatalogSource>, SourceError> {
        match image_source::find(image, given, &[]) {
            Ok(source) => self.catalog(&source, None),
            Err(tried) => {
                let place = ImagePlace::registry(image)?.at(pinned);
                self.read_catalog(place, image, tried)
            }
        }
    }

    /// Reads the files below some folders of an image: from what the user says that it stands for, else from its
    /// registry. `pinned` is what its tag stands for, where that is not to be asked.
    ///
    /// # Errors
    /// When the image cannot be had.
    pub fn image(
        &self,
        image: &str,
        given: &[ImageSource],
        pinned: Option<&Digest>,
        folders: &[&str],
    ) -> Result<Read<FileTree>, SourceError> {
        let tried = match image_source::find(image, given, folders) {
            Ok(source) => {
                return Ok(Read {
                    content: self.files(&source, folders)?,
                    image: None,
                });
            }
            Err(tried) => tried,
        };
        let place = ImagePlace::registry(image)?.at(pinned);
        self.read_image(place, image, tried, |image| image.bundle(folders))
    }

    /// The digest of what a reference to an image means: of the index, where there is one. It is that of bytes that
    /// were read and are a manifest or an index; nothing else of the image is fetched.
    ///
    /// # Errors
    /// When the image cannot be had.
    pub fn digest(&self, image: &ImageReference) -> Result<Digest, SourceError> {
        let origin = Origin::Registry {
            image: image.normalized(),
            registries: self.registries()?,
        };
        let top = origin.top(self.cache()).and_then(|top| {
            manifest::parse(&top.body, top.media_type.as_deref())?;
            Ok(top.digest)
        });
        top.map_err(|error| SourceError::of_image(&image.to_string(), vec![], error))
    }

    fn read_catalog(
        &self,
        place: ImagePlace,
        name: &str,
        tried: Vec<PathBuf>,
    ) -> Result<Read<CatalogSource>, SourceError> {
        let mut read = self.read_image(place, name, tried, |image| image.catalog())?;
        if !self.settings.cache {
            read.content.stamp = None;
        }
        Ok(read)
    }

    /// Opens an image and reads something of it. `tried` is what could have stood for it.
    fn read_image<T>(
        &self,
        place: ImagePlace,
        name: &str,
        tried: Vec<PathBuf>,
        read: impl FnOnce(&Image<'_>) -> Result<Found<T>, ImageError>,
    ) -> Result<Read<T>, SourceError> {
        let limits = self.limits();
        let origin = match place {
            ImagePlace::Registry(image) => Ok(Origin::Registry {
                image,
                registries: self.registries()?,
            }),
            ImagePlace::OnDisk(form, path, name) => {
                let opened = layout::open(form, &path, name.as_deref(), limits);
                opened.map(Origin::Store).map_err(ImageError::from)
            }
        };
        let reading = Reading {
            cache: self.cache(),
            limits,
            platform: self.settings.platform.as_ref(),
        };
        let image = origin.and_then(|origin| Image::open(origin, reading));
        let found = image.and_then(|image| Ok((read(&image)?, image.digest)));
        let (found, digest) = found.map_err(|error| SourceError::of_image(name, tried, error))?;
        let notes = found.notes.into_iter();
        lock(&self.notices).extend(notes.map(|note| format!("{name}: {note}")));
        Ok(Read {
            content: found.content,
            image: Some(digest),
        })
    }

    fn cache(&self) -> &Cache {
        self.cache.get_or_init(|| {
            if !self.settings.cache {
                return Cache::none();
            }
            let (cache, notice) = Cache::open(None);
            lock(&self.notices).extend(notice);
            cache
        })
    }

    /// All registries; nothing when none may be asked.
    fn registries(&self) -> Result<Option<Registries>, SourceError> {
        let settings = &self.settings;
        if settings.offline {
            return Ok(None);
        }
        let mut opened = lock(&self.registries);
        if let Some(registries) = &*opened {
            return Ok(Some(registries.clone()));
        }
        let environment = Environment::from_process();
        let secrets = &settings.pull_secrets;
        let credentials = Credentials::read(settings.authfile.as_deref(), secrets, &environment)?;
        let registries = Registries::new(
            settings.registries.clone(),
            credentials,
            Mirrors::read(&environment)?.with(settings.mirrors.clone()),
            Arc::clone(&settings.progress),
        )?;
        Ok(Some(opened.insert(registries).clone()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(path: &Path) -> Result<Box<dyn io::Read>, SourceError> {
    let file = File::open(path).map_err(|error| SourceError::reading(path, error))?;
    Ok(Box::new(file))
}
