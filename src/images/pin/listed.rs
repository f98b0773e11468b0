//! Digests that a catalog knows: its `relatedImages` name what a bundle needs, often by digest where the bundle itself
//! has tags.

use std::collections::{BTreeMap, BTreeSet};

use super::{Pins, Unpinned};
use crate::image::{DEFAULT_TAG, ImageReference};

/// An entry of a list of images.
#[derive(Debug, Clone, Copy)]
pub struct ListedImage<'l> {
    /// What it is called, which may be nothing.
    pub name: &'l str,
    /// The image.
    pub image: &'l str,
}

/// The digests that a list has of these images.
///
/// An entry without a tag does not say which tag it was. It is taken for that of an image when it is the only digest of
/// the repository and the image the only one without; else when an entry is called like what names the image.
#[must_use]
pub fn listed(unpinned: &[Unpinned], list: &[ListedImage<'_>]) -> Pins {
    let mut repositories: BTreeMap<String, Repository<'_>> = BTreeMap::new();
    for entry in list {
        if let Ok(image) = ImageReference::parse(entry.image)
            && let Some(digest) = &image.digest
        {
            let repository = repositories.entry(image.normalized().name());
            repository.or_default().add(entry.name, &image.tag, digest);
        }
    }
    let references = unpinned
        .iter()
        .filter_map(|wanted| Some((wanted, ImageReference::parse(&wanted.image).ok()?)));
    let references: Vec<_> = references.collect();
    for (_, image) in &references {
        if let Some(repository) = repositories.get_mut(&image.normalized().name()) {
            repository.wanted.insert(image.canonical());
        }
    }
    let mut pins = Pins::default();
    for (wanted, image) in &references {
        let repository = repositories.get(&image.normalized().name());
        if let Some(digest) = repository.and_then(|repository| repository.digest(wanted, image)) {
            pins.insert(&wanted.image, format!("{}@{digest}", image.name()));
        }
    }
    pins
}

/// What is listed of a repository, and what is wanted of it.
#[derive(Default)]
struct Repository<'l> {
    by_tag: BTreeMap<Option<String>, BTreeSet<String>>,
    /// Of entries without a tag.
    by_name: BTreeMap<&'l str, BTreeSet<String>>,
    wanted: BTreeSet<ImageReference>,
}

impl<'l> Repository<'l> {
    fn add(&mut self, name: &'l str, tag: &Option<String>, digest: &str) {
        let of_tag = self.by_tag.entry(tag.clone()).or_default();
        of_tag.insert(digest.to_owned());
        if tag.is_none() && !name.is_empty() {
            let of_name = self.by_name.entry(name).or_default();
            of_name.insert(digest.to_owned());
        }
    }

    /// The digest of an image, if the entries that may be meant have one and no other.
    fn digest(&self, wanted: &Unpinned, image: &ImageReference) -> Option<&String> {
        let tag = image.tag.as_deref().unwrap_or(DEFAULT_TAG);
        let by_tag = self.by_tag.get(&Some(tag.to_owned()));
        let is_alone = self.wanted.len() == 1 && self.by_tag.len() == 1;
        let alone = self.by_tag.get(&None).filter(|_| is_alone);
        let names = wanted.uses.iter().map(|found| &*found.name);
        let by_name = names.filter_map(|name| self.by_name.get(name)).flatten();
        by_tag
            .and_then(only)
            .or_else(|| alone.and_then(only))
            .or_else(|| only(by_name))
    }
}

/// The digest that all are.
fn only<'d>(digests: impl IntoIterator<Item = &'d String>) -> Option<&'d String> {
    let mut digests = digests.into_iter();
    let first = digests.next()?;
    digests.all(|digest| digest == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{images::pin, manifest::Manifest};

    /// The digits of the digests that a list has of the images of containers, each with its name.
    fn found(containers: &[(&str, &str)], list: &[(&str, &str, &str)]) -> Vec<(String, String)> {
        let container = |(name, image): &(&str, &str)| json!({"name": name, "image": image});
        let containers: Vec<_> = containers.iter().map(container).collect();
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": containers}});
        let wanted = pin::wanted(&[Manifest::generated(pod, "a test")]);
        let list: Vec<_> = list
            .iter()
            .map(|(name, image, digit)| (name, format!("{image}@sha256:{}", digit.repeat(64))))
            .collect();
        let list: Vec<_> = list
            .iter()
            .map(|(name, image)| ListedImage { name, image })
            .collect();
        let digit = |pinned: &str| pinned.chars().last().map(String::from);
        listed(&wanted, &list)
            .iter()
            .map(|(image, pinned)| (image.to_owned(), digit(pinned).unwrap_or_default()))
            .collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(image, digit): &(&str, &str)| ((*image).to_owned(), (*digit).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn a_tag_counts_before_anything_else() {
        let list = [
            ("a", "q.io/x:1", "1"),
            ("a", "q.io/x:2", "2"),
            ("c", "q.io/x:latest", "3"),
        ];
        let containers = [("a", "q.io/x:2"), ("a", "q.io/x"), ("a", "q.io/x:4")];
        assert_eq!(
            found(&containers, &list),
            pairs(&[("q.io/x", "3"), ("q.io/x:2", "2")])
        );
    }

    #[test]
    fn an_entry_without_a_tag_is_for_the_only_image_of_its_repository() {
        let list = [("", "docker.io/org/x", "1"), ("b", "docker.io/org/x", "1")];
        assert_eq!(
            found(&[("a", "org/x:2")], &list),
            pairs(&[("org/x:2", "1")])
        );
        assert_eq!(found(&[("a", "org/x:2"), ("a", "org/x:3")], &list), []);
    }

    #[test]
    fn else_an_entry_is_for_the_image_that_is_called_so() {
        let list = [
            ("a", "q.io/x", "1"),
            ("b", "q.io/x", "2"),
            ("c", "q.io/x", "3"),
        ];
        let containers = [
            ("a", "q.io/x:1"),
            ("b", "q.io/x:2"),
            ("c", "q.io/x:2"),
            ("d", "q.io/x:4"),
        ];
        assert_eq!(found(&containers, &list), pairs(&[("q.io/x:1", "1")]));
    }
}
