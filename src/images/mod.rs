//! Every reference to an image in objects, and where it stands: one walk, to read them and to change them.
//!
//! | File | What it does |
//! | --- | --- |
//! | `fields.rs` | which fields of which kinds are there for images |
//! | `strings.rs` | all texts of an object, in order, with their JSON pointers |
//! | `free_text.rs` | references within text of any kind |
//! | `pin/` | digests in the place of tags |
//! | `mirror/` | where images are mirrored |
//! | `export/` | lists of images as other programs read them |
//!
//! Where images are looked for follows operator-manifest (Python) `operator_manifest/operator.py` (`OperatorCSV`); it is
//! more here, because not only ClusterServiceVersions are read. Nothing is looked up, and no default is filled in.

pub mod export;
mod fields;
pub mod free_text;
pub mod mirror;
pub mod pin;
mod strings;

use std::{collections::BTreeSet, iter, ops::Range, sync::Arc};

use serde_json::Value;

use self::{
    fields::Field,
    strings::{Place, Strings},
};
use crate::{
    image::ImageReference,
    manifest::{Manifest, ObjectKey, Origin},
};

/// The annotation whose whole value is an image: the operator's own.
const CONTAINER_IMAGE: &str = "containerImage";
/// Annotations that name no image: in one kubectl keeps a copy of the object, which is no place of its own; in the other
/// is what the image of a CatalogSource is made of.
const NO_IMAGES: [&str; 2] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "olm.catalogImageTemplate",
];
/// Bytes of a text that may be a reference as a whole: more than registry, repository, tag and digest can have.
const LONGEST_REFERENCE: usize = 640;

/// What an image is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A container runs it.
    Container,
    /// An init container runs it.
    InitContainer,
    /// It is mounted as a volume.
    ImageVolume,
    /// A variable `RELATED_IMAGE_*` of a container names it.
    RelatedImageVariable,
    /// Another variable of a container holds what looks like one.
    Variable,
    /// It stands in the value of a variable, which is more than an image.
    VariablePart,
    /// An entry of a ClusterServiceVersion's `relatedImages`.
    RelatedImage,
    /// It stands in an annotation.
    Annotation,
    /// It is an argument or a word of the command of a container.
    Argument,
    /// It stands in such an argument, which is more than an image.
    ArgumentPart,
    /// Any other text, as a whole, is what another field names.
    Text,
    /// A catalog is served from it.
    Catalog,
    /// A bundle is in it.
    Bundle,
}

impl Role {
    /// The word for it in output.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::InitContainer => "initContainer",
            Self::ImageVolume => "volume",
            Self::RelatedImageVariable | Self::Variable | Self::VariablePart => "env",
            Self::RelatedImage => "relatedImage",
            Self::Annotation => "annotation",
            Self::Argument | Self::ArgumentPart => "argument",
            Self::Text => "text",
            Self::Catalog => "catalog",
            Self::Bundle => "bundle",
        }
    }

    /// What people call it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::InitContainer => "init container",
            Self::RelatedImageVariable | Self::Variable | Self::VariablePart => "variable",
            Self::RelatedImage => "related image",
            other => other.word(),
        }
    }

    /// Whether it is a part of a text of which nobody knows what reads it.
    #[must_use]
    pub fn is_part(self) -> bool {
        matches!(self, Self::VariablePart | Self::ArgumentPart)
    }

    /// Whether a kubelet pulls it for the operator's own pods.
    #[must_use]
    pub fn is_pulled(self) -> bool {
        matches!(
            self,
            Self::Container | Self::InitContainer | Self::ImageVolume
        )
    }
}

/// A text that names an image, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageUse {
    /// The object.
    pub object: Arc<ObjectKey>,
    /// Where the object came from.
    pub origin: Origin,
    /// Where in the object, as a JSON pointer: `/spec/template/spec/containers/0/image`.
    pub pointer: Arc<str>,
    /// What the image is used for.
    pub role: Role,
    /// What it is called there: the container's name, the variable's, the related image's, or the annotation's key; empty
    /// where there is no such name.
    pub name: Arc<str>,
    /// The text as it was written; of a container it need not be a reference.
    pub text: String,
    /// The bytes of the string at `pointer` that it takes, which may be a part.
    pub span: Range<usize>,
}

/// The images of several objects that belong together: those that [`of`] finds, and every text that as a whole is one of
/// them, or one that `is_known` knows by its [canonical](crate::image::canonical) text. In a fixed order.
///
/// Not for what one word could be many things: `postgres` names an image only in a field that is there for one. What
/// Secrets hold is not looked at.
#[must_use]
pub fn of_all(manifests: &[Manifest], is_known: &dyn Fn(&str) -> bool) -> Vec<ImageUse> {
    let found = of_each(manifests, is_known);
    found.into_iter().flatten().collect()
}

/// The images of an object that are found by what its fields and annotations mean, in a fixed order.
#[must_use]
pub fn of(manifest: &Manifest) -> Vec<ImageUse> {
    let finder = Finder::new(manifest);
    let mut found: Vec<_> = fields::of(manifest)
        .into_iter()
        .map(|field| finder.field(field))
        .collect();
    let mut strings = Strings::of(manifest.object());
    while let Some((place, text)) = strings.next() {
        if let Place::Annotation(key) = place {
            finder.annotation(key, text, &strings, &mut found);
        }
    }
    found
}

/// Changes the images that [`of_all`] finds: `to` gives the text to put in the place of one, or nothing where it stays.
/// Each is changed once, whatever it is changed to.
pub fn rewrite(
    manifests: &mut [Manifest],
    is_known: &dyn Fn(&str) -> bool,
    to: &mut dyn FnMut(&ImageUse) -> Option<String>,
) {
    let found = of_each(manifests, is_known);
    for (manifest, images) in manifests.iter_mut().zip(found) {
        for images in images.chunk_by(|one, next| one.pointer == next.pointer) {
            rewrite_text(manifest, images, to);
        }
    }
}

/// Changes the images of one text, which are in the order in which they stand in it.
fn rewrite_text(
    manifest: &mut Manifest,
    images: &[ImageUse],
    to: &mut dyn FnMut(&ImageUse) -> Option<String>,
) {
    let Some(image) = images.first() else { return };
    let Some(Value::String(text)) = at_mut(manifest, &image.pointer) else {
        return;
    };
    let mut changed = String::with_capacity(text.len());
    let mut done = 0;
    for image in images {
        if let Some(new) = to(image) {
            changed += text.get(done..image.span.start).unwrap_or_default();
            changed += &new;
            done = image.span.end;
        }
    }
    changed += text.get(done..).unwrap_or_default();
    *text = changed;
}

/// The images of each object, as [`of_all`].
fn of_each(manifests: &[Manifest], is_known: &dyn Fn(&str) -> bool) -> Vec<Vec<ImageUse>> {
    let mut found: Vec<_> = manifests.iter().map(of).collect();
    let references = found.iter().flatten();
    let references = references.filter_map(|image| ImageReference::parse(&image.text).ok());
    let named: BTreeSet<_> = references
        .map(|image| image.canonical().to_string())
        .collect();
    let is_known = |image: &str| named.contains(image) || is_known(image);
    for (manifest, images) in manifests.iter().zip(&mut found) {
        images.extend(known(manifest, images, &is_known));
    }
    found
}

/// The texts of an object that as a whole are images that are known, and are not among those `found` already.
fn known(
    manifest: &Manifest,
    found: &[ImageUse],
    is_known: &dyn Fn(&str) -> bool,
) -> Vec<ImageUse> {
    if manifest.group().is_empty() && manifest.kind() == "Secret" {
        return vec![];
    }
    let found: BTreeSet<&str> = found.iter().map(|image| &*image.pointer).collect();
    let containers = fields::containers(manifest);
    let finder = Finder::new(manifest);
    let mut images = vec![];
    let mut strings = Strings::of(manifest.object());
    while let Some((place, text)) = strings.next() {
        if place == Place::Value
            && whole_reference(text).is_some_and(|image| is_known(&image))
            && let Some(pointer) = strings.pointer()
            && !found.contains(pointer.as_str())
        {
            let (role, name) = fields::role_in(&containers, &pointer);
            images.push(finder.field(Field {
                pointer,
                role,
                name,
                text,
                start: 0,
            }));
        }
    }
    images
}

/// The canonical text of a text that as a whole is a reference, and more than one word.
fn whole_reference(text: &str) -> Option<String> {
    let may_be_one = text.len() <= LONGEST_REFERENCE
        && text.contains(['/', ':', '@'])
        && text.bytes().all(free_text::is_part);
    if !may_be_one {
        return None;
    }
    let reference = ImageReference::parse(text).ok()?;
    Some(reference.canonical().to_string())
}

/// What all images of one object have in common.
struct Finder {
    object: Arc<ObjectKey>,
    origin: Origin,
}

impl Finder {
    fn new(manifest: &Manifest) -> Self {
        Self {
            object: Arc::new(manifest.key()),
            origin: manifest.origin.clone(),
        }
    }

    /// The image in a field.
    fn field(&self, field: Field<'_>) -> ImageUse {
        ImageUse {
            object: Arc::clone(&self.object),
            origin: self.origin.clone(),
            pointer: field.pointer.into(),
            role: field.role,
            name: field.name.into(),
            text: field.text.to_owned(),
            span: field.start..field.start + field.text.len(),
        }
    }

    /// The images of the annotation that `strings` is at.
    fn annotation(&self, key: &str, text: &str, strings: &Strings<'_>, found: &mut Vec<ImageUse>) {
        if NO_IMAGES.contains(&key) {
            return;
        }
        let is_whole = key == CONTAINER_IMAGE && ImageReference::parse(text).is_ok();
        let spans: Vec<_> = if is_whole {
            iter::once(0..text.len()).collect()
        } else {
            free_text::references(text).collect()
        };
        if spans.is_empty() {
            return;
        }
        let Some(pointer) = strings.pointer() else {
            return;
        };
        let (pointer, name) = (Arc::<str>::from(pointer), Arc::<str>::from(key));
        found.extend(spans.into_iter().map(|span| ImageUse {
            object: Arc::clone(&self.object),
            origin: self.origin.clone(),
            pointer: Arc::clone(&pointer),
            role: Role::Annotation,
            name: Arc::clone(&name),
            text: text.get(span.clone()).unwrap_or_default().to_owned(),
            span,
        }));
    }
}

/// The value that a JSON pointer leads to.
fn at_mut<'a>(manifest: &'a mut Manifest, pointer: &str) -> Option<&'a mut Value> {
    let pointer = pointer.strip_prefix('/')?;
    let first = pointer.split('/').next()?;
    let rest = pointer.get(first.len()..)?;
    let first = first.replace("~1", "/").replace("~0", "~");
    manifest.object_mut().get_mut(&first)?.pointer_mut(rest)
}
