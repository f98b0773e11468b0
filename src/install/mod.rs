//! What is wanted, and how: [`Install`], the one value that OLM's own objects and flags become.
//!
//! Nothing is read here: [`Objects`] are parsed from texts, and `olm_v0.rs`, `olm_v1.rs` and `rukpak.rs` make
//! [`Install`]s and [`CatalogRef`]s of them. After that nobody knows which API an install came from.
//!
//! What is wrong with one install or catalog stops only that one: it is a [`Stopped`], and the others go on.

mod annotations;
mod api_types;
mod catalog_source;
mod certificates;
mod cluster_facts;
pub mod image_template;
mod objects;
mod olm_v0;
mod olm_v1;
mod operator_group;
mod rukpak;
mod stopped;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

pub use self::{certificates::CertificateSource, objects::Objects, stopped::Stopped};
use crate::{
    kube_version::KubeVersion,
    manifest::{Manifest, ObjectKey},
    problem::{Place, Problem},
    render::overrides::{Overrides, Proxy},
    resolve::{Installed, InstalledBundle, Provided, Rules},
};

/// What is to be installed once, and how.
#[derive(Debug, Clone)]
pub struct Install {
    /// What it is called in messages, lists and locks, unique in a run: `ops/queue-operator`.
    pub id: String,
    /// The object that asks for it; nothing when flags do.
    pub object: Option<Asker>,
    /// The namespace to install into; nothing leaves it to what the bundle suggests.
    pub namespace: Option<String>,
    /// The namespaces to watch; none leaves it to the bundle.
    pub watched: Vec<String>,
    /// What is installed.
    pub content: Content,
    /// What is changed on every Deployment.
    pub overrides: Overrides,
    /// Where certificates come from; nothing leaves it to the flag.
    pub certificates: Option<CertificateSource>,
    /// Pull Secrets that it names itself, besides those of its catalogs.
    pub pull_secrets: Vec<SecretRef>,
    /// ServiceAccounts that use the pull Secrets besides those of the Deployments.
    pub also_service_accounts: Vec<String>,
    /// What there is to say about it.
    pub notes: Vec<Problem>,
}

impl Install {
    /// Whether flags ask for it, so that it is the only one.
    #[must_use]
    pub fn is_of_flags(&self) -> bool {
        self.object.is_none()
    }
}

/// The object that asks for an install, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// Its identity.
    pub key: ObjectKey,
    /// Where it is written.
    pub place: Place,
}

impl From<&Manifest> for Asker {
    fn from(manifest: &Manifest) -> Self {
        Self {
            key: manifest.key(),
            place: Place::from(&manifest.origin),
        }
    }
}

/// What is installed.
#[derive(Debug, Clone)]
pub enum Content {
    /// One bundle, and nothing that it needs.
    Bundle(BundleSource),
    /// A version of a package, and what it needs.
    Package(Box<PackageWish>),
}

/// Where a bundle is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleSource {
    /// What a user may name as a source: a folder, an archive, a layout, an image with its scheme.
    Source(PathBuf),
    /// A reference to an image.
    Image(String),
}

/// A package that is wanted.
#[derive(Debug, Clone)]
pub struct PackageWish {
    /// Its name.
    pub package: String,
    /// The only catalog to take it from, by [`CatalogRef::id`]; from any in scope when there is none.
    pub catalog: Option<String>,
    /// The catalogs that may give it and what it needs, by [`CatalogRef::id`], the preferred one first.
    pub scope: Vec<String>,
    /// How its version is chosen.
    pub rules: Rules,
    /// Bundles that are installed already, of which a catalog may know more.
    pub installed: Vec<InstalledBundle>,
    /// Operators that are installed in the namespace already.
    pub beside: Arc<[Installed]>,
    /// What the cluster has from elsewhere.
    pub provided: Vec<Provided>,
    /// Whether what it needs is left to the user.
    pub without_dependencies: bool,
    /// Wishes with one of these are solved together, as OLM v0 does for a namespace; nothing is solved alone.
    pub together: Option<String>,
}

/// A Secret, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretRef {
    /// Its namespace; nothing fits any.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Who names it, for messages: `catalogsource.operators.coreos.com/team in olm`.
    pub named_by: String,
}

/// A catalog that installs may use.
#[derive(Debug, Clone)]
pub struct CatalogRef {
    /// What it is called in messages, lists and locks, unique in a run.
    pub id: String,
    /// The object; nothing when a flag names the catalog.
    pub manifest: Option<Manifest>,
    /// Its namespace; nothing fits any.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// The labels that a ClusterExtension selects by; nothing when it is no ClusterCatalog.
    pub labels: Option<BTreeMap<String, String>>,
    /// The highest is preferred. Of a catalog that a flag names, it is what another flag says.
    pub priority: Option<i64>,
    /// Where its content is.
    pub content: CatalogContent,
    /// The pull Secrets that it names.
    pub pull_secrets: Vec<SecretRef>,
}

/// Where a catalog's content is.
#[derive(Debug, Clone)]
pub enum CatalogContent {
    /// A source that the user names.
    Source(PathBuf),
    /// A reference to an image.
    Image(String),
    /// Its image is not known, as its template cannot be filled in or is mistyped, which stops the catalog and what needs
    /// it.
    Unresolved(Stopped),
    /// It cannot be had without a cluster, which stops what needs it.
    Unreadable(Stopped),
}

/// What is known of the cluster and of the run besides the objects.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// The version of Kubernetes.
    pub kube_version: Option<KubeVersion>,
    /// The namespace for everything, whatever its object says.
    pub namespace: Option<String>,
    /// What the user says that is to be watched, whatever an OperatorGroup says.
    pub watched: Vec<String>,
    /// Catalogs that flags name, the preferred one first. One with the name of an object stands for its content.
    pub catalogs: Vec<CatalogRef>,
    /// Bundles that are installed already.
    pub installed: Vec<InstalledBundle>,
    /// What the cluster has from elsewhere.
    pub provided: Vec<Provided>,
    /// Whether dependencies are left to the user everywhere.
    pub without_dependencies: bool,
}

/// Everything that is wanted.
#[derive(Debug, Default)]
pub struct Wanted {
    /// The installs, in the order in which they were read: those of OLM v0, of OLM v1, of RukPak.
    pub installs: Vec<Install>,
    /// The catalogs.
    pub catalogs: Vec<CatalogRef>,
    /// Installs that cannot be, by what they are called.
    pub stopped: Vec<(String, Stopped)>,
    /// OpenShift's proxy, which every Deployment is told of.
    pub proxy: Option<Proxy>,
}

/// An install or why it cannot be, with what it is called.
type Found = (String, Result<Install, Stopped>);

/// Works out what the objects want.
///
/// Everything in them is well-formed, which [`Objects::read`] has seen to; what does not fit together stops the install
/// that it is about.
#[must_use]
pub fn wanted(objects: &Objects, given: &Given) -> Wanted {
    let catalogs = catalogs(objects, given);
    let found = olm_v0::installs(objects, given, &catalogs)
        .into_iter()
        .chain(olm_v1::installs(objects, given, &catalogs))
        .chain(rukpak::installs(objects, given));
    let found: Vec<Found> = found.collect();
    let mut called: BTreeMap<String, usize> = BTreeMap::new();
    for (id, _) in &found {
        *called.entry(id.clone()).or_default() += 1;
    }
    let mut wanted = Wanted::default();
    for (id, install) in found {
        let is_alone = called.get(&id) == Some(&1);
        match install {
            Ok(install) if is_alone => wanted.installs.push(install),
            Ok(install) => wanted.stopped.push((id, namesake(install))),
            Err(stopped) => wanted.stopped.push((id, stopped)),
        }
    }
    wanted.catalogs = catalogs;
    wanted.proxy = cluster_facts::proxy(objects);
    wanted
}

/// Why an install cannot be that is called as another one is: nobody could tell what is whose.
fn namesake(install: Install) -> Stopped {
    let message = format!("two installs are called {}", install.id);
    let mut problem = Problem::error("install-name", message);
    if let Some(asker) = install.object {
        problem = problem.at(asker.place).on(asker.key);
    }
    Stopped::because(problem, "give one of the objects another name")
}

/// The catalogs of objects, then those that only flags name.
fn catalogs(objects: &Objects, given: &Given) -> Vec<CatalogRef> {
    let mut catalogs = catalog_source::catalogs(objects, given);
    catalogs.extend(olm_v1::catalogs(objects, given));
    let stands_for_none = |given: &&CatalogRef| {
        let mut objects = catalogs
            .iter()
            .filter_map(|catalog| catalog.manifest.as_ref());
        !objects.any(|object| given.stands_for(object))
    };
    let of_flags: Vec<_> = given
        .catalogs
        .iter()
        .filter(stands_for_none)
        .cloned()
        .collect();
    catalogs.extend(of_flags);
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for catalog in &catalogs {
        *names.entry(catalog.name.clone()).or_default() += 1;
    }
    for catalog in &mut catalogs {
        if names.get(&catalog.name).is_some_and(|count| *count > 1) {
            let kind = || {
                catalog
                    .manifest
                    .as_ref()
                    .map(|object| object.kind().to_lowercase())
            };
            let before = catalog.namespace.clone().or_else(kind);
            if let Some(before) = before {
                catalog.id = format!("{before}/{}", catalog.name);
            }
        }
    }
    catalogs
}

impl CatalogRef {
    /// A catalog that a flag names.
    #[must_use]
    pub fn of_flag(name: &str, priority: Option<i64>, source: PathBuf) -> Self {
        Self {
            id: name.to_owned(),
            manifest: None,
            namespace: None,
            name: name.to_owned(),
            labels: Some(olm_v1::labels_of_name(name)),
            priority,
            content: CatalogContent::Source(source),
            pull_secrets: vec![],
        }
    }

    /// Whether a Subscription may name it: it is a CatalogSource, or what a flag names.
    fn is_of_olm_v0(&self) -> bool {
        self.manifest.is_none() || self.labels.is_none()
    }

    /// A catalog that a flag names, by another name.
    #[must_use]
    pub fn called(&self, name: &str) -> Self {
        Self {
            content: self.content.clone(),
            ..Self::of_flag(name, self.priority, PathBuf::new())
        }
    }

    /// Whether it is what the user names in place of an object's content: by its name, also with its namespace before.
    pub fn stands_for(&self, object: &Manifest) -> bool {
        self.name == object.name() || self.name == id_of(object)
    }
}

/// An error about an object.
fn about(manifest: &Manifest, rule: &'static str, message: impl Into<String>) -> Problem {
    let problem = Problem::error(rule, message);
    problem.at(&manifest.origin).on(manifest.key())
}

/// What an object is called: its name, behind its namespace where it has one.
fn id_of(object: &Manifest) -> String {
    match object.namespace() {
        "" => object.name().to_owned(),
        namespace => format!("{namespace}/{}", object.name()),
    }
}

/// Whether something in a namespace is meant where one is asked for. Without a namespace, it is wherever it is applied.
fn fits(namespace: &str, wanted: Option<&str>) -> bool {
    namespace.is_empty() || Some(namespace) == wanted
}

/// A part of an object that is well-formed; its default where there is none. What is null counts as missing.
fn field<T: DeserializeOwned + Default>(value: Option<&Value>) -> T {
    let mut value = value.cloned().unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, value| !value.is_null());
    }
    serde_json::from_value(value).unwrap_or_default()
}

/// A field in a part of a part, where null counts as missing, too.
fn or_default<'de, T, D>(value: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

/// A list of texts, in which null is an empty one, as for Go.
fn texts<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<String>, D::Error> {
    let texts: Vec<Option<String>> = or_default(value)?;
    Ok(texts.into_iter().map(Option::unwrap_or_default).collect())
}
