//! Bundles on their way from what may be chosen to what is chosen.

use std::{collections::BTreeSet, sync::Arc};

use super::{Refusal, verdict::Verdict};
use crate::catalog::{CatalogBundle, Package};

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

/// What rules make of the bundles of a package.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// What may be chosen, best first.
    pub(super) candidates: Vec<Candidate>,
    /// What may not, and why.
    pub(super) excluded: Vec<(Candidate, Verdict)>,
    /// Why there are no candidates.
    pub(super) refusal: Option<Refusal>,
}

/// A bundle that was chosen.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The bundle.
    pub candidate: Candidate,
    /// What asks for it: the bundle that does, and its requirement in words. Nothing when the user does.
    pub required_by: BTreeSet<(String, String)>,
}

impl Candidate {
    /// The bundle.
    #[must_use]
    pub fn bundle(&self) -> Option<&CatalogBundle> {
        self.package.bundles.get(self.bundle)
    }

    /// Whether the other is the same bundle in the same channel of the same catalog.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        let place = |of: &Self| (of.catalog, of.bundle);
        place(self) == place(other)
            && self.channel == other.channel
            && self.package.name == other.package.name
    }
}
