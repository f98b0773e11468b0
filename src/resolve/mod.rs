//! Which bundle of which catalog is installed, and what it brings along.
//!
//! Choosing takes catalogs, what is wanted and what there is already, and gives bundles; nothing is fetched.

mod channel_order;
pub mod universe;
pub mod upgrade_graph;
pub mod upgrade_path;

use std::{collections::BTreeSet, sync::Arc};

use semver::Version;

use crate::{
    catalog::{CatalogBundle, Gvk, Package},
    problem::Problem,
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
        version: Option<crate::versions::Constraint>,
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

/// A bundle that may be chosen, in one channel.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The position of its catalog among the catalogs asked.
    pub catalog: usize,
    /// Its package.
    pub package: Arc<Package>,
    /// The channel; empty when the rules know no channels.
    pub channel: String,
    /// Its position among the bundles of the package.
    pub bundle: usize,
}

/// A bundle that was chosen.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The bundle.
    pub candidate: Candidate,
    /// What asks for it: the bundle that does, and its requirement in words. Nothing when the user does.
    pub required_by: BTreeSet<(String, String)>,
}

/// Why nothing was chosen: a short tree of sentences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusal {
    /// What could not be done.
    pub message: String,
    /// Why not, each reason with the reasons behind it.
    pub reasons: Vec<Reason>,
    /// What to do about it.
    pub hint: Option<String>,
    /// What is wrong with the catalogs, where that is the reason.
    pub problems: Vec<Problem>,
}

/// One sentence, and the sentences that explain it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reason {
    /// Lower case, no full stop.
    pub sentence: String,
    /// Why it is so.
    pub because: Vec<Reason>,
}

impl Candidate {
    /// The bundle.
    #[must_use]
    pub fn bundle(&self) -> Option<&CatalogBundle> {
        self.package.bundles.get(self.bundle)
    }
}
