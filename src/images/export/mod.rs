//! Lists of images as other programs read them: for `oc image mirror`, oc-mirror, skopeo, and for OpenShift's mirror
//! rules.
//!
//! Nothing is copied and nothing asked here, and whether an image can be copied is not known. In all lists images are
//! spelt out, `docker.io/library/nginx:latest` for `nginx`, sorted, and none stands twice.

mod lists;
mod mapping;
mod mirror_sets;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

pub use self::{
    lists::{imageset, skopeo},
    mapping::mapping,
    mirror_sets::{icsp, idms, itms},
};
use super::{
    Role,
    mirror::{MirrorRules, Mirrored},
};
use crate::{image::ImageReference, problem::Problem};

/// An image that has to be where pods pull from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needed {
    /// The image.
    pub image: ImageReference,
    /// The tag that it had before its digest was found.
    pub tag: Option<String>,
    /// What it is used for.
    pub roles: BTreeSet<Role>,
}

/// Where images are to be copied.
#[derive(Debug, Clone)]
pub enum Destination<'a> {
    /// To one registry, each in the repository that it has in its own.
    Registry(Registry),
    /// To where rules say that they are mirrored.
    Rules(&'a MirrorRules),
}

/// A registry, and perhaps a path in it: `registry.corp:5000/mirror`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry(String);

/// Why a text is no [`Registry`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no registry: it takes a host with a dot or a port, and perhaps a path, as in registry.corp:5000/mirror"
)]
pub struct RegistryError(String);

/// A list for another program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Export {
    /// The list, lines or YAML; empty where nothing is in it.
    pub text: String,
    /// The images that are not in it, in the order of the list.
    pub left_out: Vec<LeftOut>,
}

/// An image that is not in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The image.
    pub image: ImageReference,
    /// Why it is not.
    pub why: WhyLeftOut,
}

/// Why an image is not in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyLeftOut {
    /// The list is for references with a digest.
    HasNoDigest,
    /// The list is for references with a tag.
    HasDigest,
    /// It is a catalog, which is told by its own object where its image is.
    IsCatalog,
    /// It is at the destination already.
    IsThere,
    /// Its name would be longer than names may be.
    TooLong,
    /// No rule says where it is mirrored.
    HasNoRule,
    /// Rules speak of it, but only with a digest, or only with a tag, which is what it does not have.
    HasRuleForOtherForm,
}

/// As in "quay.io/org/app:1: …".
impl fmt::Display for WhyLeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HasNoDigest => "it has no digest",
            Self::HasDigest => "it has a digest",
            Self::IsCatalog => "it is a catalog, whose own object says where its image is",
            Self::IsThere => "it is there already",
            Self::TooLong => "its name would be longer than names may be",
            Self::HasNoRule => "no rule says where it is mirrored",
            Self::HasRuleForOtherForm => {
                "rules speak of it only with a digest, or only with a tag, which it does not have"
            }
        })
    }
}

impl Registry {
    /// Reads a registry.
    ///
    /// # Errors
    /// When images could not be in it.
    pub fn parse(text: &str) -> Result<Self, RegistryError> {
        let image = ImageReference::parse(&format!("{text}/image"));
        let has_host = image.is_ok_and(|image| image.registry.is_some());
        if !has_host {
            return Err(RegistryError(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl Destination<'_> {
    /// What an image is called there, without tag and digest.
    fn name_of(&self, image: &ImageReference) -> Result<ImageReference, WhyLeftOut> {
        let there = match self {
            Self::Registry(Registry(registry)) => {
                let name = image.name();
                let below = name.strip_prefix(registry.as_str());
                if below.is_some_and(|below| below.starts_with('/')) {
                    return Err(WhyLeftOut::IsThere);
                }
                let name = format!("{registry}/{}", image.repository);
                ImageReference::parse(&name).map_err(|_| WhyLeftOut::TooLong)?
            }
            Self::Rules(rules) => match rules.mirrored(image) {
                Mirrored::At(there) => there,
                Mirrored::OtherForm => return Err(WhyLeftOut::HasRuleForOtherForm),
                Mirrored::Nowhere => return Err(WhyLeftOut::HasNoRule),
            },
        };
        let there = ImageReference {
            tag: None,
            digest: None,
            ..there.normalized()
        };
        Ok(there)
    }
}

/// What is known of an image besides its name.
#[derive(Debug, Default)]
struct About<'a> {
    /// The tag that an image with a digest has as well.
    tag: Option<&'a str>,
    roles: BTreeSet<Role>,
}

/// Every image once, spelt out, with a digest or else with a tag, never both.
fn sources(needed: &[Needed]) -> BTreeMap<ImageReference, About<'_>> {
    let mut sources: BTreeMap<ImageReference, About<'_>> = BTreeMap::new();
    for Needed { image, tag, roles } in needed {
        let about = sources.entry(image.canonical()).or_default();
        if image.digest.is_some() {
            let tag = image.tag.as_deref().or(tag.as_deref());
            about.tag = about.tag.or(tag);
        }
        about.roles.extend(roles);
    }
    sources
}

/// What is wrong when two images would become one.
fn same_destination(one: &ImageReference, other: &ImageReference, there: &str) -> Problem {
    let message = format!(
        "{one} and {other} would both become {there}, and the one that is copied last would take the place of the \
         other; send them to different repositories by mirror rules"
    );
    Problem::error("same-destination", message)
}
