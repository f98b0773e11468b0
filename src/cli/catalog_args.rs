//! The flags that name catalogs, and the catalogs that they lead to.

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::Args;

use super::{
    failure::{Class, Failure},
    source_args::{SourceArgs, tell_notices, unread},
    threads,
};
use crate::{
    bundle,
    catalog::Catalog,
    concurrent::concurrently,
    install::CatalogRef,
    limits::Limits,
    manifest::names,
    source::{self, SourceError, Sources},
};

/// Catalogs that are waited for at the same time.
const CATALOGS_AT_ONCE: usize = 4;

/// Which catalogs are read.
#[derive(Debug, Clone, Args)]
pub(super) struct CatalogArgs {
    /// Catalog to take packages from: a folder of YAML and JSON files, a file, a tar archive, an image (docker://IMAGE,
    /// oci:DIR, oci-archive:FILE or docker-archive:FILE) or `-`; repeat for several, of which the first is preferred.
    /// Messages call it NAME, by default what the folder, file or image is called
    #[arg(long, value_name = "[NAME=]SOURCE")]
    pub catalog: Vec<CatalogSource>,
    /// Priority of a catalog (default: 0): the highest is preferred; repeat for several
    #[arg(long, value_name = "NAME=NUMBER", requires = "catalog")]
    pub catalog_priority: Vec<CatalogPriority>,
}

/// Which catalogs are read by a command about catalogs, and how strictly.
#[derive(Debug, Args)]
pub(super) struct RequiredCatalogArgs {
    #[command(flatten)]
    catalogs: CatalogArgs,
    #[command(flatten)]
    sources: SourceArgs,
}

impl RequiredCatalogArgs {
    /// Opens the catalogs, in the order in which they were named.
    ///
    /// # Errors
    /// As [`CatalogArgs::open_required`].
    pub(super) fn open(&self) -> Result<Vec<Catalog>, Failure> {
        let sources = self.sources.open()?;
        self.catalogs.open_required(&sources)
    }
}

/// A catalog, and what to call it.
#[derive(Debug, Clone)]
pub(super) struct CatalogSource {
    /// What messages call it.
    name: String,
    /// Whether the user named it, rather than its source.
    is_named: bool,
    /// Where it is.
    source: PathBuf,
}

/// The priority of a catalog.
#[derive(Debug, Clone)]
pub(super) struct CatalogPriority {
    name: String,
    priority: i64,
}

impl FromStr for CatalogSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = text.split_once('=').filter(|(name, _)| is_name(name));
        let (name, source) = match named {
            Some((name, source)) => (name.to_owned(), source),
            None => (default_name(text), text),
        };
        if name.is_empty() || source.is_empty() {
            return Err("use SOURCE or NAME=SOURCE".to_owned());
        }
        Ok(Self {
            name,
            is_named: named.is_some(),
            source: PathBuf::from(source),
        })
    }
}

/// Whether a text is a name and no path; a CatalogSource may be named with its namespace before it.
fn is_name(text: &str) -> bool {
    let (namespace, name) = text.split_once('/').unwrap_or(("olm", text));
    let no_path = |part: &str| !part.contains(['/', '\\']);
    no_path(name) && (!text.contains('/') || names::label_error(namespace).is_none())
}

/// What a folder or file is called, without the ending.
fn default_name(source: &str) -> String {
    if source == source::STDIN {
        return "stdin".to_owned();
    }
    let path = source::path_of_image(source).unwrap_or_else(|| source.to_owned());
    let name = Path::new(&path).file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or(&path);
    let endings = [
        ".tar.gz", ".tar.zst", ".tgz", ".tar", ".yaml", ".yml", ".json",
    ];
    let stem = endings.iter().find_map(|ending| name.strip_suffix(ending));
    stem.filter(|stem| !stem.is_empty())
        .unwrap_or(name)
        .to_owned()
}

impl FromStr for CatalogPriority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = "use NAME=NUMBER, with the name of a catalog";
        let (name, priority) = text.rsplit_once('=').ok_or(usage)?;
        let name = name.to_owned();
        let priority = priority.parse().map_err(|_| usage)?;
        Ok(Self { name, priority })
    }
}

impl CatalogSource {
    /// Opens this catalog alone.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn open(&self, sources: &Sources) -> Result<Catalog, Failure> {
        let found = sources.catalog(&self.source, None);
        let catalog = open(&self.name, &self.source, 0, found, sources.limits());
        tell_notices(sources);
        catalog
    }

    /// Where it is, as the user named it.
    pub(super) fn text(&self) -> &str {
        self.source.to_str().unwrap_or_default()
    }
}

impl CatalogArgs {
    /// Whether any is named.
    pub(super) fn is_given(&self) -> bool {
        !self.catalog.is_empty()
    }

    /// Opens the catalogs, of which one at least must be named.
    ///
    /// # Errors
    /// When none is, or as [`CatalogArgs::open`].
    pub(super) fn open_required(&self, sources: &Sources) -> Result<Vec<Catalog>, Failure> {
        if self.is_given() {
            return self.open(sources);
        }
        let failure = Failure::new(Class::Usage, "no catalog is named");
        Err(failure.with_hint("name one with --catalog"))
    }

    /// The catalogs, for installs, in the order in which they were named.
    ///
    /// # Errors
    /// When the names are not clear.
    pub(super) fn refs(&self) -> Result<Vec<CatalogRef>, Failure> {
        self.check_names()?;
        let catalogs = self.catalog.iter().map(|catalog| {
            let priority = self.priority(&catalog.name);
            CatalogRef::of_flag(&catalog.name, priority, catalog.source.clone())
        });
        Ok(catalogs.collect())
    }

    /// Whether there is one catalog, without a name of its own.
    pub(super) fn is_one_without_name(&self) -> bool {
        matches!(self.catalog.as_slice(), [only] if !only.is_named)
    }

    fn check_names(&self) -> Result<(), Failure> {
        let mut names = BTreeSet::new();
        if let Some(twice) = self
            .catalog
            .iter()
            .find(|catalog| !names.insert(&catalog.name))
        {
            let message = format!("two catalogs are called {}", twice.name);
            let hint = "name them: --catalog NAME=SOURCE";
            return Err(Failure::new(Class::Usage, message).with_hint(hint));
        }
        let unknown = |given: &&CatalogPriority| !names.contains(&given.name);
        if let Some(given) = self.catalog_priority.iter().find(unknown) {
            let names: Vec<_> = names.iter().map(|name| name.as_str()).collect();
            let message = format!("there is no catalog called {}", given.name);
            let hint = format!("the catalogs are called {}", names.join(", "));
            return Err(Failure::new(Class::Usage, message).with_hint(hint));
        }
        Ok(())
    }

    fn priority(&self, name: &str) -> Option<i64> {
        let mut given = self.catalog_priority.iter().rev();
        let given = given.find(|given| given.name == name);
        given.map(|given| given.priority)
    }

    /// Opens the catalogs: those of higher priority first, then in the order in which they were named.
    ///
    /// # Errors
    /// When the names are not clear, or a catalog cannot be read.
    pub(super) fn open(&self, sources: &Sources) -> Result<Vec<Catalog>, Failure> {
        self.check_names()?;
        // Registries are slower than disks, and several of them may be waited for at once.
        let found = concurrently(&self.catalog, CATALOGS_AT_ONCE, |catalog| {
            sources.catalog(&catalog.source, None)
        });
        let opened = self.catalog.iter().zip(found).map(|(catalog, found)| {
            let priority = self.priority(&catalog.name).unwrap_or(0);
            open(
                &catalog.name,
                &catalog.source,
                priority,
                found,
                sources.limits(),
            )
        });
        let mut opened = opened.collect::<Result<Vec<_>, _>>()?;
        tell_notices(sources);
        opened.sort_by_key(|catalog| Reverse(catalog.priority));
        Ok(opened)
    }
}

/// The catalog that was found in a source.
///
/// # Errors
/// When there is none, or it cannot be read.
pub(super) fn open(
    name: &str,
    source: &Path,
    priority: i64,
    found: Result<source::Read<source::CatalogSource>, SourceError>,
    limits: &Limits,
) -> Result<Catalog, Failure> {
    let unread = |failure| unread(failure, source);
    let found = found.map_err(|error| unread(error.into()))?;
    threads::prepare(limits);
    let source::CatalogSource { content, stamp } = found.content;
    let known = stamp.as_ref().and_then(source::kept_index);
    let is_known = known.is_some();
    let catalog = match known {
        Some(index) => Ok(Catalog::indexed(name, priority, content, index, limits)),
        None => Catalog::read(name, priority, content, limits),
    };
    let mut catalog = catalog.map_err(|problems| {
        let message = format!("{} cannot be read as a catalog", source.display());
        let failure = Failure::refused(problems, message);
        let mut folders = bundle::FOLDERS.iter();
        if folders.all(|folder| source.join(folder).is_dir()) {
            failure.with_hint("this is a bundle: `kubectl olm render DIR` renders it")
        } else {
            unread(failure)
        }
    })?;
    catalog.image = found.image.map(|digest| digest.to_string());
    if catalog.packages().next().is_none() {
        let message = format!("{} holds no package", source.display());
        return Err(unread(Failure::new(Class::Refused, message)));
    }
    if let Some(stamp) = stamp.filter(|_| !is_known) {
        source::keep_index(&stamp, catalog.index());
    }
    Ok(catalog)
}
