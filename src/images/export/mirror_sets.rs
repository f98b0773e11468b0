//! The objects that tell the nodes of OpenShift where images are mirrored.
//!
//! Follows oc-mirror, so that objects of both fit together: v2 `internal/pkg/clusterresources/clusterresources.go`
//! (`generateImageMirrors`, `attemptNamespaceScope`), and for ImageContentSourcePolicies the name and label of v1. It
//! differs where a mirror's path ends with the source's in the middle of a word, which oc-mirror takes for the same.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{About, Destination, Export, LeftOut, Needed, WhyLeftOut, same_destination, sources};
use crate::{image::ImageReference, images::Role, manifest::yaml, problem::Problem};

/// Which references a list is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Digest,
    Tag,
}

/// The images of a list, and where they are.
struct Mirrors {
    /// Mirrors by source, in order.
    by_source: BTreeMap<String, Vec<String>>,
    /// Each image, and its name at the destination.
    images: Vec<(ImageReference, ImageReference)>,
    left_out: Vec<LeftOut>,
}

/// An ImageDigestMirrorSet for all images with a digest.
#[must_use]
pub fn idms(needed: &[Needed], destination: &Destination<'_>) -> Export {
    let mirrors = mirrors(needed, destination, Form::Digest);
    let head = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ImageDigestMirrorSet",
        "metadata": {"name": "idms-operator-0"},
    });
    export(mirrors, head, "imageDigestMirrors")
}

/// An ImageTagMirrorSet for all images without a digest.
///
/// # Errors
/// Every two images that would become one.
pub fn itms(needed: &[Needed], destination: &Destination<'_>) -> Result<Export, Vec<Problem>> {
    let mirrors = mirrors(needed, destination, Form::Tag);
    let mut copied: BTreeMap<String, &ImageReference> = BTreeMap::new();
    let mut problems = vec![];
    for (image, there) in &mirrors.images {
        let there = format!("{there}:{}", image.tag.as_deref().unwrap_or_default());
        match copied.get(&there) {
            Some(other) => problems.push(same_destination(other, image, &there)),
            None => {
                copied.insert(there, image);
            }
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let head = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ImageTagMirrorSet",
        "metadata": {"name": "itms-operator-0"},
    });
    Ok(export(mirrors, head, "imageTagMirrors"))
}

/// An ImageContentSourcePolicy for all images with a digest, for OpenShift before 4.13.
#[must_use]
pub fn icsp(needed: &[Needed], destination: &Destination<'_>) -> Export {
    let mirrors = mirrors(needed, destination, Form::Digest);
    let head = json!({
        "apiVersion": "operator.openshift.io/v1alpha1",
        "kind": "ImageContentSourcePolicy",
        "metadata": {
            "name": "operator-0",
            "labels": {"operators.openshift.org/catalog": "true"},
        },
    });
    export(mirrors, head, "repositoryDigestMirrors")
}

/// Where all images of a form are.
fn mirrors(needed: &[Needed], destination: &Destination<'_>, form: Form) -> Mirrors {
    let mut mirrors = Mirrors {
        by_source: BTreeMap::new(),
        images: vec![],
        left_out: vec![],
    };
    for (image, about) in sources(needed) {
        match name_in(&image, &about, destination, form) {
            Ok(there) => {
                let (source, mirror) = scopes(&image, &there);
                let of_source = mirrors.by_source.entry(source).or_default();
                if !of_source.contains(&mirror) {
                    of_source.push(mirror);
                }
                mirrors.images.push((image, there));
            }
            Err(why) => mirrors.left_out.push(LeftOut { image, why }),
        }
    }
    mirrors
}

/// What an image is called at the destination, if the list is for it.
fn name_in(
    image: &ImageReference,
    about: &About<'_>,
    destination: &Destination<'_>,
    form: Form,
) -> Result<ImageReference, WhyLeftOut> {
    let is_pulled = about.roles.iter().any(|role| role.is_pulled());
    if about.roles.contains(&Role::Catalog) && !is_pulled {
        return Err(WhyLeftOut::IsCatalog);
    }
    match (form, &image.digest) {
        (Form::Digest, None) => Err(WhyLeftOut::HasNoDigest),
        (Form::Tag, Some(_)) => Err(WhyLeftOut::HasDigest),
        _ => destination.name_of(image),
    }
}

/// What the rule says of source and mirror: the folders that they are in, where they have the same name there, or else
/// their repositories.
fn scopes(image: &ImageReference, there: &ImageReference) -> (String, String) {
    let above = there.repository.strip_suffix(image.repository.as_str());
    let is_below = above.is_some_and(|above| above.is_empty() || above.ends_with('/'));
    // Above a repository of one part there is only the registry, of which the rule would take all.
    if is_below && image.repository.contains('/') {
        (folder(image), folder(there))
    } else {
        (image.name(), there.name())
    }
}

/// Registry and repository without the last part.
fn folder(image: &ImageReference) -> String {
    let name = image.name();
    match name.rsplit_once('/') {
        Some((folder, _)) => folder.to_owned(),
        None => name,
    }
}

/// The object with its list in `field`; no text where nothing is in it.
fn export(mirrors: Mirrors, head: Value, field: &str) -> Export {
    let by_source = mirrors.by_source.iter();
    let entries: Vec<_> = by_source
        .map(|(source, mirrors)| json!({"source": source, "mirrors": mirrors}))
        .collect();
    let mut text = String::new();
    if !entries.is_empty() {
        let mut object = head;
        object["spec"] = json!({ field: entries });
        yaml::write(&object, &mut text);
    }
    Export {
        text,
        left_out: mirrors.left_out,
    }
}
