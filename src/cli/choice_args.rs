//! The flags that choose versions of packages, and the request that they make.

use std::{str::FromStr, sync::Arc};

use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};

use super::{
    catalog_args::CatalogArgs,
    failure::{Class, Failure},
};
use crate::{
    install::PackageWish,
    resolve::{self, InstalledBundle, Provided, Rules},
    versions::Constraint,
};

/// How versions are chosen.
#[derive(Debug, Args)]
pub(super) struct ChoiceArgs {
    #[command(flatten)]
    pub catalogs: CatalogArgs,
    /// Channel (default: the package's own default); with --version, repeat for several
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub channel: Vec<String>,
    /// Bundle to install, rather than the head of the channel, when nothing of the package is installed
    #[arg(long, value_name = "BUNDLE", conflicts_with = "version", value_parser = NonEmptyStringValueParser::new())]
    pub starting_csv: Option<String>,
    /// Range of versions, such as `1.2.3`, `~1.2` or `>=2.4 <2.6`: the highest is chosen, by the rules of OLM v1
    #[arg(long, value_name = "RANGE", value_parser = Constraint::parse)]
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
    #[arg(long, value_name = "BUNDLE[=VERSION]")]
    pub installed: Vec<InstalledBundle>,
    /// API or package that the cluster has from elsewhere: KIND.VERSION.GROUP or PACKAGE[=VERSION]; repeat for several
    #[arg(long, value_name = "API|PACKAGE", value_parser = Provided::from_str)]
    pub provided: Vec<Provided>,
    /// Leave out the packages that the package needs
    #[arg(long)]
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

impl ChoiceArgs {
    /// The flags that choose a version and are given.
    pub(super) fn of_version(&self) -> Vec<&'static str> {
        let given = [
            ("--channel", !self.channel.is_empty()),
            ("--starting-csv", self.starting_csv.is_some()),
            ("--version", self.version.is_some()),
        ];
        named(&given)
    }

    /// The flags that only mean something to a package of a catalog, and are given.
    pub(super) fn of_packages(&self) -> Vec<&'static str> {
        let given = [
            ("--installed", !self.installed.is_empty()),
            ("--provided", !self.provided.is_empty()),
            ("--no-dependencies", self.no_dependencies),
        ];
        [self.of_version(), named(&given)].concat()
    }

    /// What is wanted of a package, from these catalogs, by id.
    ///
    /// # Errors
    /// When flags do not go together.
    pub(super) fn wish(&self, package: &str, scope: Vec<String>) -> Result<PackageWish, Failure> {
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
        Ok(PackageWish {
            package: package.to_owned(),
            catalog: None,
            scope,
            rules,
            installed: self.installed.clone(),
            beside: Arc::default(),
            provided: self.provided.clone(),
            without_dependencies: self.no_dependencies,
            together: None,
        })
    }
}

fn named(given: &[(&'static str, bool)]) -> Vec<&'static str> {
    let given = given.iter().filter(|(_, is_given)| *is_given);
    given.map(|(flag, _)| *flag).collect()
}
