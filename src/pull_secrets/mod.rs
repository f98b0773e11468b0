//! Pull Secrets: copies in the namespace of an install, the ServiceAccounts that use them, and images that none is for.
//!
//! OLM itself hands the Secrets that a CatalogSource names only to the pods of the catalog and of the unpacking of
//! bundles (operator-lifecycle-manager `pkg/controller/registry/reconciler/grpc.go`,
//! `pkg/controller/bundle/bundle_unpacker.go`); the pods of operators get them here. What a ServiceAccount's list does
//! for its pods is the rule of the API server (k8s.io/kubernetes `plugin/pkg/admission/serviceaccount`).
//!
//! Nothing is read and no cluster is asked here. Data of Secrets stands in the copies and nowhere else: problems name
//! objects, fields and keys.
//!
//! | File | What it does |
//! | --- | --- |
//! | `copies.rs` | what is copied of a Secret, and which Secrets there are |
//! | `accounts.rs` | puts names into ServiceAccounts and pod templates |
//! | `coverage.rs` | images that no login is for |

mod accounts;
mod copies;
mod coverage;

pub use self::{
    accounts::{agree, is_for_entries, keep_entries},
    copies::{is_copy, of_logins},
    coverage::uncovered,
};
use crate::{
    manifest::{Manifest, order},
    problem::Problem,
};

/// The rule that pull Secrets and what uses them break.
const RULE: &str = "pull-secret";

/// A pull Secret that an install needs.
#[derive(Debug, Clone)]
pub struct PullSecret {
    /// Its name, in the namespace of the install too.
    pub name: String,
    /// The Secret that is copied; nothing when it is not in the input, so that there is only the name.
    pub source: Option<Manifest>,
    /// Who names it, for messages: `catalogsource.operators.coreos.com/team in olm`.
    pub named_by: String,
}

/// Adds copies of the Secrets to the objects of an install, and puts their names into the ServiceAccounts that its
/// Deployments use, and into `also`; these are made where they are not among the objects. All is in the order of
/// creation then. Without Secrets nothing is added.
///
/// What stands in the way is told as errors, after which the objects are not to be used; that a Secret has to be in the
/// namespace already, and that a pod template has a list of its own, as notes.
pub fn attach(
    manifests: &mut Vec<Manifest>,
    namespace: &str,
    secrets: &[PullSecret],
    also: &[String],
    problems: &mut Vec<Problem>,
) {
    let wanted = copies::wanted(secrets, namespace, problems);
    if wanted.is_empty() {
        return;
    }
    let names: Vec<_> = wanted.iter().map(|secret| secret.name.to_owned()).collect();
    copies::add(manifests, namespace, wanted, problems);
    accounts::add_names(manifests, namespace, &names, also, problems);
    order::sort(manifests);
}
