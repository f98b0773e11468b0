//! What is asked of the catalogs: which packages, by whose rules, and what is there already.

use std::{fmt, str::FromStr};

use semver::Version;

use crate::{
    catalog::Gvk,
    versions::{self, Constraint},
};

/// What is to be resolved. Everything wanted is resolved together, so that it fits together.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The packages asked for.
    pub wanted: Vec<Wanted>,
    /// The operators that are installed in the namespace already.
    pub installed: Vec<Installed>,
    /// What the cluster has from elsewhere.
    pub provided: Vec<Provided>,
    /// Whether dependencies are left to the user.
    pub without_dependencies: bool,
}

impl Request {
    /// Whether the cluster has a package from elsewhere.
    #[must_use]
    pub fn provides(&self, package: &str) -> bool {
        let mut provided = self.provided.iter();
        provided
            .any(|provided| matches!(provided, Provided::Package { name, .. } if name == package))
    }
}

/// One package that is asked for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Its name.
    pub package: String,
    /// The only catalog to take it from; from any when there is none.
    pub catalog: Option<String>,
    /// How its version is chosen.
    pub rules: Rules,
}

/// How a version is chosen.
#[derive(Debug, Clone)]
pub enum Rules {
    /// As OLM v0 does for a Subscription.
    Subscription {
        /// The channel; every channel of the package, the default one first, when there is none.
        channel: Option<String>,
        /// The bundle to start from when nothing of the package is installed.
        starting_csv: Option<String>,
    },
    /// As OLM v1 does for a ClusterExtension.
    ClusterExtension {
        /// The channels; all when there are none.
        channels: Vec<String>,
        /// The versions that will do; all when there is none.
        version: Option<Constraint>,
        /// Whether the catalog's upgrade edges count.
        upgrades: UpgradePolicy,
    },
}

/// `upgradeConstraintPolicy` of a ClusterExtension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UpgradePolicy {
    /// Only along the edges that the catalog has.
    #[default]
    CatalogProvided,
    /// To any version, also back.
    SelfCertified,
}

/// An operator that is installed already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// The name of its bundle.
    pub name: String,
    /// Its package.
    pub package: String,
    /// Its version, where it is known.
    pub version: Option<Version>,
    /// The APIs that it provides.
    pub provides: Vec<Gvk>,
}

/// As `--provided` takes it: `Kind.version.group`, or a package, with `=` before its version.
impl fmt::Display for Provided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api(Gvk {
                group,
                version,
                kind,
            }) if group.is_empty() => write!(f, "{kind}.{version}"),
            Self::Api(Gvk {
                group,
                version,
                kind,
            }) => write!(f, "{kind}.{version}.{group}"),
            Self::Package {
                name,
                version: Some(version),
            } => write!(f, "{name}={version}"),
            Self::Package {
                name,
                version: None,
            } => f.write_str(name),
        }
    }
}

/// Something that the cluster has from elsewhere, so that no bundle need bring it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provided {
    /// An API.
    Api(Gvk),
    /// A package, in any version when there is none.
    Package {
        /// Its name.
        name: String,
        /// Its version.
        version: Option<Version>,
    },
}

/// An API begins with its kind, which begins with a capital; names of packages have none.
impl FromStr for Provided {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.starts_with(|first: char| first.is_ascii_uppercase()) {
            let (name, version) = with_version(text)?;
            return Ok(Self::Package { name, version });
        }
        let mut parts = text.splitn(3, '.').map(str::to_owned);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(kind), Some(version), group) => Ok(Self::Api(Gvk {
                group: group.unwrap_or_default(),
                version,
                kind,
            })),
            _ => Err("use KIND.VERSION.GROUP for an API".to_owned()),
        }
    }
}

/// A bundle that is installed already, as the user tells: `NAME[=VERSION]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledBundle {
    /// The name of the bundle.
    pub name: String,
    /// Its version, where it was told.
    pub version: Option<Version>,
}

impl FromStr for InstalledBundle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, version) = with_version(text)?;
        Ok(Self { name, version })
    }
}

/// As the user wrote it, but for how the version is written.
impl fmt::Display for InstalledBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}={version}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Splits `NAME[=VERSION]`.
fn with_version(text: &str) -> Result<(String, Option<Version>), String> {
    let (name, version) = match text.split_once('=') {
        Some((_, "")) => return Err("a version is missing behind the `=`".to_owned()),
        Some((name, version)) => (name, Some(versions::parse_tolerant(version)?)),
        None => (text, None),
    };
    if name.is_empty() || name.contains('/') {
        return Err(format!("{name:?} cannot be a name"));
    }
    Ok((name.to_owned(), version))
}
