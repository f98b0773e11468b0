//! Lines `source=destination`, one for each image or repository: the file of `oc image mirror -f`, and the `mapping.txt`
//! that both versions of oc-mirror write.
//!
//! Follows `parseFile` of openshift/oc `pkg/cli/image/mirror/mappings.go` where lines are blank or comments, and
//! openshift/oc-mirror `internal/pkg/cli/dryrun.go` where references have the scheme `docker://`. What oc-mirror took
//! from a disk is passed over: no object names it.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Form,
    names::{self, Use, said},
};
use crate::{
    image::{DEFAULT_TAG, ImageReference},
    limits::Limits,
    problem::{Place, Problem},
};

/// The rule that lines break.
const RULE: &str = "mirror-line";
/// The scheme of registries, which says nothing.
const DOCKER: &str = "docker://";
/// What stands before a source that is on a disk.
const ON_DISK: [&str; 3] = ["file://", "oci:", "dir:"];

/// What one line says.
pub(super) enum Line {
    /// One image is copied.
    Image {
        source: ImageReference,
        destination: ImageReference,
    },
    /// All images of a repository or more are.
    Prefix { source: String, mirror: String },
}

/// Whether a text is made of lines rather than of objects: the first line that says anything has an equals sign behind
/// one word.
pub(super) fn is_lines(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n').map(content);
    let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
    let mut sides = first.splitn(2, |byte| *byte == b'=');
    let source = sides.next().unwrap_or_default().trim_ascii_end();
    let is_word = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'"' | b'\'');
    sides.next().is_some() && source.iter().all(is_word)
}

/// A line without its comment and the blanks around it.
fn content(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let line = line.split(|byte| *byte == b'#').next();
    line.unwrap_or_default().trim_ascii()
}

/// Reads all lines.
///
/// # Errors
/// Everything in them that is no rule, each with its line.
pub(super) fn read(path: &str, text: &[u8], limits: &Limits) -> Result<Vec<Line>, Vec<Problem>> {
    let (mut found, mut problems) = (vec![], vec![]);
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = content(line);
        if line.is_empty() {
            continue;
        }
        let place = Place {
            path: path.to_owned(),
            line: index + 1,
        };
        if found.len() + problems.len() >= limits.document_nodes {
            let limit = limits.document_nodes;
            let message = format!(
                "the file has more lines than the limit of {limit} (--no-limits lifts it for content you trust)"
            );
            problems.push(Problem::error("limit", message).at(place));
            break;
        }
        match one(line) {
            Ok(line) => found.extend(line),
            Err(message) => problems.push(Problem::error(RULE, message).at(place)),
        }
    }
    if problems.is_empty() {
        Ok(found)
    } else {
        Err(problems)
    }
}

/// One line; nothing if its source is on a disk.
fn one(line: &[u8]) -> Result<Option<Line>, String> {
    let line = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8".to_owned())?;
    let (source, destination) = line.split_once('=').ok_or_else(|| {
        "there is no `=`; a line is `source=destination`, and a file holds either lines or objects"
            .to_owned()
    })?;
    let (source, destination) = (source.trim(), destination.trim());
    if ON_DISK.iter().any(|scheme| source.starts_with(scheme)) {
        return Ok(None);
    }
    let source = without_scheme("the source", source)?;
    let destination = without_scheme("the destination", destination)?;
    if is_host(source) || source.starts_with('*') {
        return prefix(source.to_owned(), destination).map(Some);
    }
    let written = source;
    let source = image("the source", source)?;
    if source.tag.is_none() && source.digest.is_none() {
        // `docker.io/team` is all that is in it, and no image of `library`: so nodes take it.
        let is_whole = ImageReference::parse(written).is_ok_and(|image| image.registry.is_some());
        let name = if is_whole {
            written.to_owned()
        } else {
            source.name()
        };
        return prefix(name, destination).map(Some);
    }
    let destination = image("the destination", destination)?;
    Ok(Some(Line::Image {
        source,
        destination,
    }))
}

fn prefix(source: String, destination: &str) -> Result<Line, String> {
    if let Some(fault) = names::fault(&source, Use::Source) {
        return Err(format!("the source {fault}"));
    }
    let mirror = if is_host(destination) {
        destination.to_owned()
    } else {
        let image = image("the destination", destination)?;
        if image.tag.is_some() || image.digest.is_some() {
            return Err(format!(
                "the destination {} has a tag or digest and the source has none, so that they do not stand for the same images; give both one or neither",
                said(destination)
            ));
        }
        image.name()
    };
    match names::fault(&mirror, Use::Mirror) {
        Some(fault) => Err(format!("the destination {fault}")),
        None => Ok(Line::Prefix { source, mirror }),
    }
}

fn without_scheme<'t>(side: &str, text: &'t str) -> Result<&'t str, String> {
    let text = text.strip_prefix(DOCKER).unwrap_or(text);
    if text.is_empty() {
        return Err(format!("{side} is missing; a line is `source=destination`"));
    }
    // What may hold a password is not shown.
    if text.contains("://") {
        return Err(format!(
            "{side} begins with a scheme that is not {DOCKER}, and is no image in a registry"
        ));
    }
    Ok(text)
}

/// Whether a text is a registry alone, rather than an image of Docker's with or without a tag.
fn is_host(text: &str) -> bool {
    let (host, port) = text.split_once(':').unwrap_or((text, "0"));
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    !text.contains('/') && is_port && (host.contains('.') || host == "localhost")
}

fn image(side: &str, text: &str) -> Result<ImageReference, String> {
    let parsed = ImageReference::parse(text).map_err(|error| {
        // What may hold a password is not shown.
        let mut behind = text.split('@').skip(1);
        let shown = if behind.any(|text| !text.starts_with("sha")) {
            "with an `@` that is before no digest".to_owned()
        } else {
            said(text)
        };
        format!("{side} {shown} is no image: {error}")
    })?;
    Ok(parsed.normalized())
}

/// What is known of images one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Images {
    /// Where an image is, by its name with its digest or tag, in the order of the lines.
    exact: BTreeMap<String, Vec<ImageReference>>,
    /// What is known of a repository, by its name.
    repositories: BTreeMap<String, Repository>,
}

/// A repository of which lines name images.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Repository {
    /// The repositories that have the images.
    pub(super) mirrors: BTreeSet<String>,
    /// Whether a line names a tag.
    has_tags: bool,
    /// Whether a line names a digest.
    has_digests: bool,
}

impl Images {
    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty()
    }

    /// Both are in their normal form.
    pub(super) fn add(&mut self, source: &ImageReference, destination: ImageReference) {
        let repository = self.repositories.entry(source.name()).or_default();
        repository.mirrors.insert(destination.name());
        match Form::of(source) {
            Form::Digest => repository.has_digests = true,
            Form::Tag => repository.has_tags = true,
        }
        self.exact.entry(key(source)).or_default().push(destination);
    }

    /// Where lines say that an image is, which is in its normal form. What has a digest is taken to be where other
    /// images of its repository are, if no line names it: what a tag meant was copied with that tag.
    pub(super) fn places(&self, image: &ImageReference) -> Vec<ImageReference> {
        let mut places = match self.exact.get(&key(image)) {
            Some(destinations) => destinations.iter().map(|to| placed(image, to)).collect(),
            None if image.digest.is_some() => self.where_others_are(image),
            None => vec![],
        };
        let mut seen = BTreeSet::new();
        places.retain(|place| place != image && seen.insert(place.clone()));
        places
    }

    fn where_others_are(&self, image: &ImageReference) -> Vec<ImageReference> {
        let repository = self.repositories.get(&image.name());
        let mirrors = repository.map(|repository| &repository.mirrors);
        let only = mirrors.filter(|mirrors| mirrors.len() == 1);
        let mirrors = only.into_iter().flatten();
        let parsed = mirrors.filter_map(|name| ImageReference::parse(name).ok());
        parsed.map(|to| placed(image, &to)).collect()
    }

    /// Whether lines name images of the same repository by the other form alone.
    pub(super) fn has_only_other_form(&self, image: &ImageReference) -> bool {
        let repository = self.repositories.get(&image.name());
        repository.is_some_and(|repository| match Form::of(image) {
            Form::Digest => !repository.has_digests,
            Form::Tag => !repository.has_tags,
        })
    }
}

/// An image at the destination of its line. A digest is the same everywhere, and a tag may have become another one.
fn placed(image: &ImageReference, destination: &ImageReference) -> ImageReference {
    let destination = destination.clone();
    match &image.digest {
        Some(digest) => ImageReference {
            tag: None,
            digest: Some(digest.clone()),
            ..destination
        },
        None if destination.digest.is_some() => destination,
        None => ImageReference {
            tag: destination.tag.or_else(|| image.tag.clone()),
            ..destination
        },
    }
}

/// What stands for an image, which is in its normal form: a tag beside a digest says nothing.
fn key(image: &ImageReference) -> String {
    let name = image.name();
    match (&image.digest, &image.tag) {
        (Some(digest), _) => format!("{name}@{digest}"),
        (None, Some(tag)) => format!("{name}:{tag}"),
        (None, None) => format!("{name}:{DEFAULT_TAG}"),
    }
}
