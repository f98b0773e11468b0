//! Which image of an OCI layout is meant. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::cut;
use crate::oci::{
    digest::Digest,
    manifest::{Descriptor, INDEX_ENTRIES},
};

/// Where an image's name stands, in the order in which they are looked at: the OCI's own, and that of containerd and
/// Docker, which is the whole name.
const NAMES: [&str; 2] = [
    "org.opencontainers.image.ref.name",
    "io.containerd.image.name",
];

#[derive(Deserialize)]
struct Marker {
    #[serde(rename = "imageLayoutVersion")]
    version: String,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "mediaType", default)]
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

/// Which image is meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// This one.
    Image(Descriptor),
    /// That of a digest that the index does not list, and so does not know the size of.
    Digest(Digest),
    /// None has the name; these are the names that there are.
    None(Vec<String>),
    /// Several are there, with these names, and none was named.
    Several(Vec<String>),
}

/// Whether the file `oci-layout` is one of a version that is known.
///
/// # Errors
/// Why it is not.
pub(super) fn check_marker(marker: &[u8]) -> Result<(), String> {
    let marker: Marker = serde_json::from_slice(marker)
        .map_err(|error| format!("its file oci-layout cannot be read ({error})"))?;
    if marker.version.starts_with("1.") {
        Ok(())
    } else {
        let version = cut(&marker.version);
        Err(format!("its version is {version:?}, and only 1 is known"))
    }
}

/// Chooses an image by an `index.json` and what the user named.
///
/// # Errors
/// Why the text is no index.
pub(super) fn choose(index: &[u8], reference: Option<&str>) -> Result<Choice, String> {
    let index: Index = serde_json::from_slice(index)
        .map_err(|error| format!("its index.json cannot be read ({error})"))?;
    if index.manifests.len() > INDEX_ENTRIES {
        let count = index.manifests.len();
        return Err(format!(
            "it has {count} images, over the limit of {INDEX_ENTRIES}"
        ));
    }
    let mut images = vec![];
    for entry in index.manifests {
        let digest = Digest::parse(&entry.digest).map_err(|error| error.to_string())?;
        let annotations = entry.annotations.unwrap_or_default();
        let names: Vec<_> = NAMES
            .iter()
            .filter_map(|name| annotations.get(*name).cloned())
            .collect();
        let (media_type, size) = (entry.media_type, entry.size);
        let image = Descriptor {
            media_type,
            digest,
            size,
        };
        images.push((image, names));
    }
    match reference {
        None => Ok(only(images)),
        Some(reference) => match reference.strip_prefix('@') {
            Some(digest) => {
                let digest = Digest::parse(digest).map_err(|error| error.to_string())?;
                let found = images.into_iter().find(|(image, _)| image.digest == digest);
                Ok(found.map_or(Choice::Digest(digest), |(image, _)| Choice::Image(image)))
            }
            None => Ok(named(images, reference)),
        },
    }
}

fn only(mut images: Vec<(Descriptor, Vec<String>)>) -> Choice {
    match images.len() {
        0 => Choice::None(vec![]),
        1 => images
            .pop()
            .map_or(Choice::None(vec![]), |(image, _)| Choice::Image(image)),
        _ => Choice::Several(images.iter().map(name_of).collect()),
    }
}

fn named(images: Vec<(Descriptor, Vec<String>)>, reference: &str) -> Choice {
    let names: Vec<_> = images.iter().map(name_of).collect();
    let has_name = |names: &[String]| names.iter().any(|name| name == reference);
    let mut found: Vec<_> = images
        .into_iter()
        .filter(|(_, names)| has_name(names))
        .map(|(image, _)| image)
        .collect();
    found.dedup_by(|a, b| a.digest == b.digest);
    match found.len() {
        0 => Choice::None(names),
        1 => found.pop().map_or(Choice::None(names), Choice::Image),
        // One name of several images tells nothing; their digests do.
        _ => Choice::Several(
            found
                .iter()
                .map(|image| format!("@{}", image.digest))
                .collect(),
        ),
    }
}

/// What to call an image by: a name, or its digest where it has none.
fn name_of((image, names): &(Descriptor, Vec<String>)) -> String {
    let digest = || format!("@{}", image.digest);
    names.first().cloned().unwrap_or_else(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(digit: char, name: &str) -> String {
        let digest = digit.to_string().repeat(64);
        let annotations = match name {
            "" => String::new(),
            name => {
                format!(r#", "annotations": {{"org.opencontainers.image.ref.name": "{name}"}}"#)
            }
        };
        format!(r#"{{"mediaType": "m", "digest": "sha256:{digest}", "size": 7{annotations}}}"#)
    }

    fn index(entries: &[String]) -> Vec<u8> {
        format!(r#"{{"manifests": [{}]}}"#, entries.join(",")).into_bytes()
    }

    fn image(digit: char) -> Choice {
        Choice::Image(Descriptor {
            media_type: "m".to_owned(),
            digest: digest(digit),
            size: 7,
        })
    }

    fn digest(digit: char) -> Digest {
        let text = format!("sha256:{}", digit.to_string().repeat(64));
        Digest::parse(&text).expect("a digest")
    }

    #[test]
    fn an_image_is_chosen_by_name_or_digest_or_because_it_is_alone() {
        let one = index(&[entry('a', "v1")]);
        let two = index(&[entry('a', "v1"), entry('b', "")]);
        let same = index(&[entry('a', "v1"), entry('b', "v1")]);
        let by = |digit| format!("@{}", digest(digit));
        let (by_a, by_b, by_c) = (by('a'), by('b'), by('c'));
        let cases = [
            (&one, None, image('a')),
            (&two, Some("v1"), image('a')),
            (&two, Some(by_b.as_str()), image('b')),
            (&two, Some(&by_c), Choice::Digest(digest('c'))),
            (
                &two,
                None,
                Choice::Several(vec!["v1".to_owned(), by_b.clone()]),
            ),
            (&one, Some("v2"), Choice::None(vec!["v1".to_owned()])),
            (
                &same,
                Some("v1"),
                Choice::Several(vec![by_a.clone(), by_b.clone()]),
            ),
            (&index(&[]), None, Choice::None(vec![])),
        ];
        for (index, reference, expected) in cases {
            assert_eq!(choose(index, reference), Ok(expected), "{reference:?}");
        }
    }

    #[test]
    fn what_is_no_index_is_refused() {
        let many: Vec<_> = (0..=INDEX_ENTRIES).map(|_| entry('a', "")).collect();
        let outside = entry('a', "").replace("sha256:", "sha256:../");
        let cases = [
            (b"{}".to_vec(), "manifests"),
            (b"[[[".to_vec(), "cannot be read"),
            (index(&many), "over the limit of 1000"),
            (index(&[outside]), "is no digest"),
        ];
        for (text, reason) in cases {
            let error = choose(&text, None).expect_err(reason);
            assert!(error.contains(reason), "{error}");
        }
        assert!(check_marker(br#"{"imageLayoutVersion": "1.0.0"}"#).is_ok());
        assert!(check_marker(br#"{"imageLayoutVersion": "2.0.0"}"#).is_err());
        assert!(check_marker(b"").is_err());
    }
}
