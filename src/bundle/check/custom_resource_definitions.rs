//! Checks of the CustomResourceDefinitions that a bundle brings and owns.

use std::collections::BTreeSet;

use super::{Facts, repeated};
use crate::{bundle::Bundle, manifest::Manifest, problem::Problem};

/// `CheckCRDResourceUniqueness`.
pub(super) fn names_are_unique(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    for name in repeated(bundle.crds.iter().map(Manifest::name)) {
        let crds = bundle.crds.iter().filter(|crd| crd.name() == name);
        let places: Vec<_> = crds.map(|crd| crd.origin.to_string()).collect();
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
