//! From a bundle to every object that its install results in. No I/O, no clock, no randomness: the same bundle and
//! the same options give the same objects in the same order.
//!
//! Reproduces operator-controller `rukpak/render/registryv1/registryv1.go`: a list of generators, each one a function.

pub mod certificates;
mod containers;
mod duplicates;
mod generate;
mod install_mode;
mod join;
mod names;
mod options;
pub mod overrides;

use serde_json::Value;

use self::generate::{GENERATORS, Rendering};
pub use self::{
    join::{Brought, Joined, Owned, join},
    options::{RenderOptions, StoredCsv},
};
use crate::{
    bundle::Bundle,
    manifest::{Manifest, order},
    problem::Problem,
};

/// What belongs to an object in a cluster: taken from one, a manifest would be refused by the next.
const LIVE_ONLY: [&str; 8] = [
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The objects of an install, in the order in which they can be created, and what there is to say about them.
#[derive(Debug)]
pub struct Rendered {
    /// The objects.
    pub manifests: Vec<Manifest>,
    /// Warnings and notes.
    pub problems: Vec<Problem>,
}

/// Renders a bundle that [`crate::bundle::check`] has looked at.
///
/// # Errors
/// Everything that stands in the way, warnings and notes among it.
pub fn render(bundle: Bundle, options: &RenderOptions) -> Result<Rendered, Vec<Problem>> {
    let mut problems = vec![];
    let modes = &bundle.csv.install_modes;
    let watched = &options.watched;
    // Without targets there is nothing to print, but the other problems are to be told too.
    let targets = install_mode::targets(modes, &options.namespace, watched, &mut problems)
        .unwrap_or_default();
    let Bundle {
        csv, crds, others, ..
    } = bundle;
    let mut rendering = Rendering {
        csv: &csv,
        targets: &targets,
        options,
        crds,
        others,
        manifests: vec![],
        problems,
    };
    for generate in GENERATORS {
        generate(&mut rendering);
    }
    let Rendering {
        mut manifests,
        mut problems,
        ..
    } = rendering;
    manifests.iter_mut().for_each(strip);
    let mut manifests = duplicates::merge(manifests, &mut problems);
    if problems.iter().any(Problem::is_error) {
        return Err(problems);
    }
    order::sort(&mut manifests);
    Ok(Rendered {
        manifests,
        problems,
    })
}

/// What `kubectl apply` keeps of an object in the object itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Takes out of an object of the user's own, which may be from a cluster, what belongs to it there.
pub fn strip_live(manifest: &mut Manifest) {
    strip(manifest);
    manifest.object_mut().remove("status");
    let metadata = manifest.metadata_mut();
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.remove(LAST_APPLIED);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

/// Takes out of an object what belongs to it in a cluster.
fn strip(manifest: &mut Manifest) {
    let metadata = manifest.metadata_mut();
    for field in LIVE_ONLY {
        metadata.remove(field);
    }
}
