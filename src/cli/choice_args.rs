//! The flags that choose versions of packages, and the request that they make.

use std::{fmt, str::FromStr};

use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};

use super::{
    catalog_args::CatalogArgs,
    failure::{Class, Failure},
};
use crate::{
    catalog::{Catalog, Detail, Gvk, check},
    problem::{Problem, Severity},
    resolve::{self, Chosen, Provided, Request, Rules, Wanted, lock::Asked},
    versions::{self, Constraint, Version},
};

/// How versions are chosen.
#[derive(Debug, Args)]
pub(super) struct ChoiceArgs {
    #[command(flatten)]
    pub catalogs: CatalogArgs,
    /// Channel (default: the package's own default); with --version, repeat for several
    #[arg(long, value_name = "NAME", requires = "catalog", value_parser = NonEmptyStringValueParser::new())]
    pub channel: Vec<String>,
    /// Bundle to install, rather than the head of the channel, when nothing of the package is installed
    #[arg(long, value_name = "BUNDLE", requires = "catalog", conflicts_with = "version", value_parser = NonEmptyStringValueParser::new())]
    pub starting_csv: Option<String>,
    /// Range of versions, such as `1.2.3`, `~1.2` or `>=2.4 <2.6`: the highest is chosen, by the rules of OLM v1
    #[arg(long, value_name = "RANGE", requires = "catalog", value_parser = Constraint::parse)]
    pub version: Option<Constraint>,
    /// Whether --version keeps to the catalog's upgrades from what is installed
    #[arg(
        long,
        value_name = "POLICY",
        requires = "version",
        default_value = "CatalogProvided"
    )]
    pub upgrade_constraint_policy: UpgradePolicy,
    /// Bundle that is installed already, with its version if no catalog has it; repeat for several
    #[arg(long, value_name = "BUNDLE[=VERSION]", requires = "catalog")]
    pub installed: Vec<InstalledBundle>,
    /// API or package that the cluster has from elsewhere: KIND.VERSION.GROUP or PACKAGE[=VERSION]; repeat for several
    #[arg(long, value_name = "API|PACKAGE", requires = "catalog", value_parser = parse_provided)]
    pub provided: Vec<Provided>,
    /// Leave out the packages that the package needs
    #[arg(long, requires = "catalog")]
    pub no_dependencies: bool,
}

/// The value of `--upgrade-constraint-policy`, in the words of a ClusterExtension.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(super) enum UpgradePolicy {
    /// Only along the catalog's upgrades
    CatalogProvided,
    /// To any version, also back
    SelfCertified,
}

/// The value of `--installed`.
#[derive(Debug, Clone)]
pub(super) struct InstalledBundle {
    name: String,
    version: Option<Version>,
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

/// An API begins with its kind, which begins with a capital; names of packages have none.
fn parse_provided(text: &str) -> Result<Provided, String> {
    if !text.starts_with(|first: char| first.is_ascii_uppercase()) {
        let (name, version) = with_version(text)?;
        return Ok(Provided::Package { name, version });
    }
    let mut parts = text.splitn(3, '.').map(str::to_owned);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(kind), Some(version), group) => Ok(Provided::Api(Gvk {
            group: group.unwrap_or_default(),
            version,
            kind,
        })),
        _ => Err("use KIND.VERSION.GROUP for an API".to_owned()),
    }
}

impl ChoiceArgs {
    /// What is asked for, for a lock.
    pub(super) fn asked(&self) -> Asked {
        let provided = self.provided.iter().map(ToString::to_string);
        let policy = self.upgrade_constraint_policy;
        Asked {
            channels: self.channel.clone(),
            version: self.version.as_ref().map(ToString::to_string),
            starting_csv: self.starting_csv.clone(),
            self_certified: matches!(policy, UpgradePolicy::SelfCertified),
            installed: self.installed.iter().map(ToString::to_string).collect(),
            provided: provided.collect(),
            without_dependencies: self.no_dependencies,
        }
    }

    /// Looks for what opm would refuse the chosen packages for: OLM v0 never gets to see such a catalog, OLM v1 goes on.
    ///
    /// # Errors
    /// When a package cannot be read.
    pub(super) fn judge(
        &self,
        chosen: &[Chosen],
        catalogs: &[Catalog],
        problems: &mut Vec<Problem>,
    ) -> Result<(), Failure> {
        for chosen in chosen {
            let name = &chosen.candidate.package.name;
            let Some(catalog) = catalogs.get(chosen.candidate.catalog) else {
                continue;
            };
            let package = catalog.package(name, Detail::Full).map_err(|problems| {
                Failure::refused(problems, format!("package {name} cannot be read"))
            })?;
            let mut found = package.as_ref().map(check::check).unwrap_or_default();
            found.retain(Problem::is_error);
            if self.version.is_some() {
                for problem in &mut found {
                    problem.severity = Severity::Warning;
                }
            }
            problems.extend(found);
        }
        Ok(())
    }

    /// What is asked of the catalogs.
    ///
    /// # Errors
    /// When flags do not go together, or what is installed is in no catalog.
    pub(super) fn request(&self, package: &str, catalogs: &[Catalog]) -> Result<Request, Failure> {
        let rules = match &self.version {
            Some(version) => Rules::ClusterExtension {
                channels: self.channel.clone(),
                version: Some(version.clone()),
                upgrades: match self.upgrade_constraint_policy {
                    UpgradePolicy::CatalogProvided => resolve::UpgradePolicy::CatalogProvided,
                    UpgradePolicy::SelfCertified => resolve::UpgradePolicy::SelfCertified,
                },
            },
            None if self.channel.len() > 1 => {
                let message = "several channels need --version, which chooses among their versions";
                return Err(Failure::new(Class::Usage, message));
            }
            None => Rules::Subscription {
                channel: self.channel.first().cloned(),
                starting_csv: self.starting_csv.clone(),
            },
        };
        let installed = self.installed.iter().map(|bundle| {
            let InstalledBundle { name, version } = bundle;
            resolve::installed_bundle(catalogs, package, name, version.as_ref())
        });
        Ok(Request {
            wanted: vec![Wanted {
                package: package.to_owned(),
                catalog: None,
                rules,
            }],
            installed: installed.collect::<Result<_, _>>()?,
            provided: self.provided.clone(),
            without_dependencies: self.no_dependencies,
        })
    }
}
