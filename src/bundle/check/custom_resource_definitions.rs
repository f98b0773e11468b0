//! Checks of the CustomResourceDefinitions that a bundle brings and owns.

use std::collections::{BTreeMap, BTreeSet};

use super::Facts;
use crate::{bundle::Bundle, manifest::Manifest, problem::Problem};

/// `CheckCRDResourceUniqueness`.
pub(super) fn names_are_unique(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for crd in &bundle.crds {
        places
            .entry(crd.name())
            .or_default()
            .push(crd.origin.to_string());
    }
    for (name, places) in places.into_iter().filter(|(_, places)| places.len() > 1) {
        let message = format!("stands more than once in the bundle: {}", places.join(", "));
        let object = format!("customresourcedefinition.apiextensions.k8s.io/{name}");
        problems.push(Problem::error("crd-unique", message).on(object));
    }
}

/// `CheckOwnedCRDExistence`.
pub(super) fn owned_ones_exist(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    let brought: BTreeSet<_> = bundle.crds.iter().map(Manifest::name).collect();
    let owned: BTreeSet<_> = bundle.csv.owned_crds.iter().map(String::as_str).collect();
    for name in owned.difference(&brought) {
        let message =
            format!("owns custom resource definition {name:?}, which the bundle does not bring");
        problems.push(bundle.in_csv(Problem::error("owned-crd", message)));
    }
}

/// The linters of OLM's bundles refuse a definition that the ClusterServiceVersion does not own; its installers don't.
pub(super) fn brought_ones_are_owned(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    let owned: BTreeSet<_> = bundle.csv.owned_crds.iter().map(String::as_str).collect();
    for crd in bundle.crds.iter().filter(|crd| !owned.contains(crd.name())) {
        let message = "the ClusterServiceVersion does not own it; list it under `customresourcedefinitions.owned`";
        let problem = Problem::warning("unowned-crd", message);
        problems.push(problem.at(&crd.origin).on(crd.key()));
    }
}
