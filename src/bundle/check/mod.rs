//! The checks of a bundle: one list, one function each. All of them run, and all they find is told at once.
//!
//! The first thirteen are the validators of operator-controller `rukpak/render/registryv1/validators/validator.go`,
//! in its order and with its meaning. The rest is what OLM finds only when it installs, or never.

mod custom_resource_definitions;
mod deployments;
mod images;
mod objects;
mod webhooks;

use super::Bundle;
use crate::problem::Problem;

/// What a check may know besides the bundle.
#[derive(Debug, Default)]
pub struct Facts {
    /// The version of Kubernetes that the bundle shall run on.
    pub kube_version: Option<semver::Version>,
    /// Whether its images get digests in the place of tags.
    pub is_pinned: bool,
}

/// One check: adds what it finds.
type Check = fn(&Bundle, &Facts, &mut Vec<Problem>);

/// Every check, in the order in which OLM runs its own.
const CHECKS: &[Check] = &[
    deployments::names_are_unique,
    deployments::names_are_valid,
    custom_resource_definitions::names_are_unique,
    custom_resource_definitions::owned_ones_exist,
    objects::package_is_named,
    webhooks::conversion_needs_all_namespaces,
    webhooks::deployments_exist,
    webhooks::names_are_unique,
    webhooks::names_are_valid,
    webhooks::conversion_is_unique,
    webhooks::conversion_is_of_owned,
    webhooks::rules_are_allowed,
    objects::kinds_are_supported,
    webhooks::types_are_known,
    webhooks::conversion_prunes_unknown_fields,
    webhooks::ports_are_unambiguous,
    webhooks::api_services_are_served,
    deployments::ports_are_unique,
    deployments::exist,
    deployments::service_accounts_are_valid,
    deployments::operator_conditions_are_not_needed,
    objects::api_versions_are_given,
    objects::kinds_are_installed,
    custom_resource_definitions::brought_ones_are_owned,
    objects::names_are_valid,
    objects::sizes_are_within_limits,
    objects::kube_version_is_enough,
    images::claims_are_kept,
];

/// Runs every check.
#[must_use]
pub fn check(bundle: &Bundle, facts: &Facts) -> Vec<Problem> {
    let mut problems = vec![];
    for check in CHECKS {
        check(bundle, facts, &mut problems);
    }
    problems
}

impl Bundle {
    /// A problem of the ClusterServiceVersion.
    fn in_csv(&self, problem: Problem) -> Problem {
        problem
            .at(&self.csv.manifest.origin)
            .on(self.csv.manifest.key())
    }
}

/// The texts that stand more than once, sorted.
fn repeated<'a>(texts: impl Iterator<Item = &'a str>) -> std::collections::BTreeSet<&'a str> {
    let mut seen = std::collections::BTreeSet::new();
    texts.filter(|text| !seen.insert(*text)).collect()
}
