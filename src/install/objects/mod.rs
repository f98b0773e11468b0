//! The objects of the user's manifests, by what they mean to an install.
//!
//! They are read as kubectl reads them, and held against the types of their kinds, so that a field that was mistyped is
//! an error here and not a default later. What is kept is the object as it was written. What objects mean together is
//! not known here.
//!
//! | File | What it does |
//! | --- | --- |
//! | `file.rs` | reads one file, object by object |
//! | `stream.rs` | opens documents and lists |
//! | `kinds.rs` | the table of kinds and versions |
//! | `fields.rs` | unknown fields and wrong types |
//! | `rules.rs` | fields that must be there, and the choices of the others |
//! | `identity.rs` | what names an object, and whether it can be called that |
//! | `fault.rs` | what is wrong, before its line is known |

mod fault;
mod fields;
mod file;
mod identity;
mod kinds;
mod rules;
mod stream;

use std::collections::BTreeMap;

use self::file::File;
use crate::{
    limits::Limits,
    manifest::{Manifest, ObjectKey},
    problem::Problem,
};

/// The objects that an install is said with, as they were written. Each has a name and no field of
/// a wrong type; unknown fields are only in a status, or in a ClusterServiceVersion.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    /// `operators.coreos.com/v1alpha1` CatalogSource.
    pub catalog_sources: Vec<Manifest>,
    /// `operators.coreos.com/v1alpha1` Subscription.
    pub subscriptions: Vec<Manifest>,
    /// `operators.coreos.com/v1` OperatorGroup.
    pub operator_groups: Vec<Manifest>,
    /// `operators.coreos.com/v1alpha1` ClusterServiceVersion: what is installed already.
    pub cluster_service_versions: Vec<Manifest>,
    /// `olm.operatorframework.io/v1` ClusterCatalog.
    pub cluster_catalogs: Vec<Manifest>,
    /// `olm.operatorframework.io/v1` ClusterExtension.
    pub cluster_extensions: Vec<Manifest>,
    /// `core.rukpak.io` Bundle.
    pub bundles: Vec<Manifest>,
    /// `core.rukpak.io` BundleDeployment.
    pub bundle_deployments: Vec<Manifest>,
    /// `v1` Namespace.
    pub namespaces: Vec<Manifest>,
    /// `v1` ServiceAccount: what its list has already.
    pub service_accounts: Vec<Manifest>,
    /// `v1` Secret.
    pub secrets: Vec<Manifest>,
    /// `config.openshift.io/v1` Proxy.
    pub proxies: Vec<Manifest>,
    /// `config.openshift.io/v1` ImageDigestMirrorSet and ImageTagMirrorSet, `operator.openshift.io/v1alpha1`
    /// ImageContentSourcePolicy: where images are mirrored. Every rule in them is one that nodes take.
    pub mirror_sets: Vec<Manifest>,
    /// Where each object stands in the list of its kind.
    known: BTreeMap<ObjectKey, usize>,
    /// How many objects of each kind were left out, by the kind and its group as kubectl writes them.
    left_out: BTreeMap<String, usize>,
}

impl Objects {
    /// Reads a file of manifests, and adds what is wrong with it to `problems`. `path` names the file in messages.
    /// Objects with which something is wrong are not kept.
    pub fn read(&mut self, path: &str, text: &[u8], limits: &Limits, problems: &mut Vec<Problem>) {
        File::new(self, path, problems).read(text, limits);
    }

    /// A note for each kind of which objects were left out of all files that were read, since they mean nothing to an
    /// install.
    #[must_use]
    pub fn left_out(&self) -> Vec<Problem> {
        let note = |(kind, count): (&String, &usize)| {
            let objects = if *count == 1 { "object" } else { "objects" };
            let message =
                format!("{count} {objects} of kind {kind} left out: no part of an install");
            Problem::note("left-out", message)
        };
        self.left_out.iter().map(note).collect()
    }
}
