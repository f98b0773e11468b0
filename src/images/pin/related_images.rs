//! `spec.relatedImages` of a ClusterServiceVersion, made of everything that names an image in it.
//!
//! Reproduces `set_related_images` of operator-manifest (Python): six sources in this order, each of which also gives the
//! image a name, and two images of one name are refused. Differs from it on purpose:
//! - an image is listed once, where that lists it under each of its names; and it gets the name of an annotation only where
//!   nothing else names it, because that name is made of the digest and says nothing;
//! - containers of one name in several deployments are told apart by the deployment's name, where that refuses them;
//! - images of volumes are listed as well, because a kubelet pulls them;
//! - a text that is no reference is not listed, and an entry that names no image stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{Pins, replacement, words::description};
use crate::{
    image::{DEFAULT_TAG, ImageReference, canonical, split_scheme},
    images::{self, CONTAINER_IMAGE, ImageUse, Role, fields::RELATED_IMAGE},
    manifest::Manifest,
    problem::Problem,
};

/// What stands in the pointers into init containers, and in no other pointer into a container.
const INIT_CONTAINERS: &str = "/initContainers/";
/// Where deployments stand in a ClusterServiceVersion.
const DEPLOYMENTS: &str = "/spec/install/spec/deployments";

/// The list as it is once images have been replaced; nothing where it stays as it is.
///
/// # Errors
/// Every two images that would get one name.
pub(super) fn related_images(
    csv: &Manifest,
    pins: &Pins,
) -> Result<Option<Vec<Value>>, Vec<Problem>> {
    let spec = match csv.object().get("spec") {
        None | Some(Value::Null) => None,
        Some(Value::Object(spec)) => Some(spec),
        Some(_) => return Ok(None),
    };
    let existing = match spec.and_then(|spec| spec.get("relatedImages")) {
        None | Some(Value::Null) => &[],
        Some(Value::Array(list)) => list.as_slice(),
        Some(_) => return Ok(None),
    };
    let mut list = List::default();
    for entry in existing {
        list.keep(entry, pins);
    }
    let uses = images::of(csv);
    for source in sources(csv, &uses, pins) {
        list.add(&source);
    }
    if !list.conflicts.is_empty() {
        let conflicts = list.conflicts.into_iter();
        let problem = |message| {
            Problem::error("related-images", message)
                .at(&csv.origin)
                .on(csv.key())
        };
        return Err(conflicts.map(problem).collect());
    }
    Ok((!list.entries.is_empty()).then_some(list.entries))
}

/// Notes of the entries that pinning leaves out, as an earlier one lists the same image.
pub fn listed_twice(csv: &Manifest, pins: &Pins) -> Vec<Problem> {
    let list = csv
        .object()
        .get("spec")
        .and_then(|spec| spec.get("relatedImages"));
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    let mut first = BTreeMap::new();
    let mut notes = vec![];
    for entry in entries {
        let text = |field| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let (name, (_, image)) = (text("name"), split_scheme(text("image")));
        if image.is_empty() {
            continue;
        }
        let image = pins.get(image).unwrap_or_else(|| image.to_owned());
        if let Some(first) = first.insert(canonical(&image), name) {
            let message =
                format!("{name} is left out of spec.relatedImages: {first} lists the same image");
            let note = Problem::note("related-images", message);
            notes.push(note.at(&csv.origin).on(csv.key()));
        }
    }
    notes
}

/// A list in the making.
#[derive(Default)]
struct List {
    entries: Vec<Value>,
    /// The images in it, however they are spelt.
    images: BTreeSet<String>,
    /// What has each name: its description, and the image.
    names: BTreeMap<String, (String, String)>,
    conflicts: BTreeSet<String>,
}

impl List {
    /// Takes an entry over that was there before.
    fn keep(&mut self, entry: &Value, pins: &Pins) {
        let text = |field| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let (name, image) = (text("name"), text("image"));
        let Some(fields) = entry.as_object().filter(|_| !image.is_empty()) else {
            self.entries.push(entry.clone());
            return;
        };
        let (scheme, image) = split_scheme(image);
        let image = pins.get(image).unwrap_or_else(|| image.to_owned());
        let mut fields = fields.clone();
        fields.insert("image".to_owned(), format!("{scheme}{image}").into());
        self.push(name, &image, || format!("relatedImage {name}"), fields);
    }

    /// Adds what else names an image.
    fn add(&mut self, source: &Source) {
        let entry = json!({"name": source.name, "image": source.image});
        let fields = entry.as_object().cloned().unwrap_or_default();
        self.push(
            &source.name,
            &source.image,
            || description(source.found),
            fields,
        );
    }

    /// Adds an entry, unless its image is there already or its name is another image's.
    fn push(
        &mut self,
        name: &str,
        image: &str,
        description: impl Fn() -> String,
        fields: Map<String, Value>,
    ) {
        let canonical = canonical(image);
        // An entry may go without a name, and several do in real bundles: operator-sdk leaves it out where it finds several.
        if !name.is_empty() {
            let named = self.names.get(name);
            if let Some((first, first_image)) =
                named.filter(|(_, image)| self::canonical(image) != canonical)
            {
                self.conflicts.insert(format!(
                    "two images would be listed as {name}: {first} has {first_image}, and {} has {image}: rename one of \
                     them, or correct spec.relatedImages",
                    description()
                ));
                return;
            }
            let names = self.names.entry(name.to_owned());
            names.or_insert_with(|| (description(), image.to_owned()));
        }
        if !self.images.insert(canonical) {
            return;
        }
        self.entries.push(Value::Object(fields));
    }
}

/// Something outside of the list that names an image.
struct Source<'a> {
    found: &'a ImageUse,
    /// What the image will be called in the list.
    name: String,
    /// What it names after images have been replaced.
    image: String,
}

/// What names images outside of the list, in the order in which they are listed.
fn sources<'a>(csv: &Manifest, uses: &'a [ImageUse], pins: &Pins) -> Vec<Source<'a>> {
    let mut sources = vec![];
    for found in in_order(uses) {
        // What is no reference cannot be mirrored.
        if ImageReference::parse(&found.text).is_ok() {
            let image = replacement(found, pins).unwrap_or_else(|| found.text.clone());
            let name = name(found, &image);
            sources.push(Source { found, name, image });
        }
    }
    let is_annotation = |source: &Source| source.found.role == Role::Annotation;
    let named_otherwise: BTreeSet<_> = sources
        .iter()
        .filter(|source| !is_annotation(source))
        .map(|source| canonical(&source.image))
        .collect();
    sources.retain(|source| {
        !is_annotation(source) || !named_otherwise.contains(&canonical(&source.image))
    });
    qualify(&mut sources, csv);
    sources
}

/// What names images in the order of operator-manifest, which takes the matches in annotations from the last to the first.
fn in_order(uses: &[ImageUse]) -> Vec<&ImageUse> {
    let is_operator = |found: &&ImageUse| *found.name == *CONTAINER_IMAGE;
    let in_init = |found: &&ImageUse| found.pointer.contains(INIT_CONTAINERS);
    let of = |role| uses.iter().filter(move |found| found.role == role);
    let mut ordered: Vec<_> = of(Role::Annotation).filter(is_operator).collect();
    ordered.extend(of(Role::Container));
    ordered.extend(of(Role::InitContainer));
    ordered.extend(of(Role::ImageVolume));
    ordered.extend(of(Role::RelatedImageVariable).filter(|found| !in_init(found)));
    ordered.extend(of(Role::RelatedImageVariable).filter(in_init));
    ordered.extend(
        of(Role::Annotation)
            .filter(|found| !is_operator(found))
            .rev(),
    );
    ordered
}

/// What an image is called in the list after the place where it stands.
fn name(found: &ImageUse, image: &str) -> String {
    let name = match found.role {
        Role::Annotation => return format!("{}-annotation", repository_and_tag(image)),
        Role::RelatedImageVariable => {
            let name = found.name.strip_prefix(RELATED_IMAGE);
            name.unwrap_or_default().to_ascii_lowercase()
        }
        _ => found.name.to_string(),
    };
    if name.is_empty() {
        return repository_and_tag(image);
    }
    name
}

/// `foo-v1` of `registry.example/namespace/foo:v1`: what stands behind registry and namespace, which may have slashes, and
/// the tag or the digits of the digest.
fn repository_and_tag(image: &str) -> String {
    let Ok(reference) = ImageReference::parse(image) else {
        return image.to_owned();
    };
    let name = reference.name();
    let repository = name.splitn(3, '/').last().unwrap_or_default();
    let digest = reference.digest.as_deref();
    let digits = digest.and_then(|digest| Some(digest.split_once(':')?.1));
    let tag = digits.or(reference.tag.as_deref()).unwrap_or(DEFAULT_TAG);
    format!("{repository}-{tag}")
}

/// Puts the deployment before the names of containers that stand for different images in different deployments.
fn qualify(sources: &mut [Source], csv: &Manifest) {
    let is_container =
        |source: &Source| matches!(source.found.role, Role::Container | Role::InitContainer);
    let mut images_of: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    for source in sources.iter().filter(|source| is_container(source)) {
        if let Some(deployment) = deployment(csv, &source.found.pointer) {
            let images = images_of.entry(source.name.clone()).or_default();
            images.insert((deployment, canonical(&source.image)));
        }
    }
    let differ = |images: &BTreeSet<(String, String)>| {
        let deployments: BTreeSet<_> = images.iter().map(|(deployment, _)| deployment).collect();
        let images: BTreeSet<_> = images.iter().map(|(_, image)| image).collect();
        deployments.len() > 1 && images.len() > 1
    };
    images_of.retain(|_, images| differ(images));
    for source in sources.iter_mut().filter(|source| is_container(source)) {
        if images_of.contains_key(&source.name)
            && let Some(deployment) = deployment(csv, &source.found.pointer)
        {
            source.name = format!("{deployment}-{}", source.name);
        }
    }
}

/// The name of the deployment that a pointer goes into, or its position where it has none.
fn deployment(csv: &Manifest, pointer: &str) -> Option<String> {
    let below = pointer.strip_prefix(DEPLOYMENTS)?.strip_prefix('/')?;
    let position = below.split('/').next()?;
    let deployments = csv
        .object()
        .get("spec")?
        .pointer("/install/spec/deployments")?;
    let name = deployments
        .get(position.parse::<usize>().ok()?)?
        .get("name");
    let name = name.and_then(Value::as_str).filter(|name| !name.is_empty());
    Some(name.unwrap_or(position).to_owned())
}
