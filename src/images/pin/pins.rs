//! Which digest each image has: the map `replacements.json` of operator-manifest and operator-manifest-tools.
//!
//! Both programs take whatever is in the file. Here every value must have a digest, because a map without pins nothing. A
//! text is looked up as it is written first, then as any spelling of the same image, which keeps its spelling. Values are
//! never looked up again, so a map may swap two images. A scheme (`oci://`) is no part of an image.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;

use super::words::quoted;
use crate::image::{self, ImageReference, split_scheme};

/// Entries of a file; the largest real ClusterServiceVersion names 94 images.
const MOST_ENTRIES: usize = 100_000;
/// Wrong entries that a message tells of.
const MOST_TOLD: usize = 20;

/// What images are to be replaced by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    /// By the text as it was written.
    by_text: BTreeMap<String, String>,
    /// The first text that was written of each image, by its canonical text.
    by_image: BTreeMap<String, String>,
}

/// Why a text is no such map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PinsError {
    /// It is not a JSON map.
    #[error("it is no JSON map from images to images: {0}")]
    Form(String),
    /// Entries are wrong: each with the reason, in the order of the file.
    #[error("{}", told(.0))]
    Entries(Vec<String>),
}

impl Pins {
    /// Reads a map.
    ///
    /// # Errors
    /// When it is none, or something in it is no image with a digest; all that is wrong at once.
    pub fn parse(text: &[u8]) -> Result<Self, PinsError> {
        let entries: Entries =
            serde_json::from_slice(text).map_err(|error| PinsError::Form(error.to_string()))?;
        Self::of_entries(entries.0)
    }

    /// The map of these entries, wherever they were read.
    ///
    /// # Errors
    /// When something in them is no image with a digest; all that is wrong at once.
    pub fn of_entries(
        entries: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<Self, PinsError> {
        let mut pins = Self::default();
        let added = entries.into_iter();
        let wrong: Vec<_> = added
            .filter_map(|(image, pinned)| pins.add(&image, &pinned).err())
            .collect();
        if wrong.is_empty() {
            Ok(pins)
        } else {
            Err(PinsError::Entries(wrong))
        }
    }

    /// What takes the place of an image, however it is spelt. A text that is no reference is found as it was inserted.
    #[must_use]
    pub fn get(&self, image: &str) -> Option<String> {
        let (_, image) = split_scheme(image);
        if let Some(pinned) = self.by_text.get(image) {
            return Some(pinned.clone());
        }
        let written = self.by_image.get(&image::canonical(image))?;
        let pinned = self.by_text.get(written)?;
        Some(spelt_as(image, written, pinned).unwrap_or_else(|| pinned.clone()))
    }

    /// Whether something takes the place of an image, of which this is the canonical text.
    #[must_use]
    pub fn knows(&self, canonical: &str) -> bool {
        self.by_image.contains_key(canonical)
    }

    /// Adds what takes the place of an image; what was there before counts.
    pub fn insert(&mut self, image: &str, pinned: String) {
        let (_, image) = split_scheme(image);
        let first = self.by_image.entry(image::canonical(image));
        first.or_insert_with(|| image.to_owned());
        let (_, pinned) = split_scheme(&pinned);
        let pinned = pinned.to_owned();
        self.by_text.entry(image.to_owned()).or_insert(pinned);
    }

    /// Adds what other pins say of images that these do not know.
    pub fn extend(&mut self, others: &Self) {
        for (image, pinned) in others.iter() {
            self.insert(image, pinned.to_owned());
        }
    }

    /// Images as they were written, sorted, and what takes their places.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let pins = self.by_text.iter();
        pins.map(|(image, pinned)| (image.as_str(), pinned.as_str()))
    }

    /// The text of the file: sorted by the images as they were written, two spaces deep, one line each.
    #[must_use]
    pub fn to_json(&self) -> String {
        let entries = self.iter();
        let map: serde_json::Map<_, _> = entries
            .map(|(image, pinned)| (image.to_owned(), Value::from(pinned)))
            .collect();
        format!("{:#}\n", Value::Object(map))
    }

    /// Adds an entry of a file.
    fn add(&mut self, image: &str, pinned: &Value) -> Result<(), String> {
        let Some(pinned) = pinned.as_str() else {
            return Err(format!("what {} becomes is no text", quoted(image)));
        };
        let becomes = || format!("{} becomes {}", quoted(image), quoted(pinned));
        let (_, pinned) = split_scheme(pinned);
        let reference = ImageReference::parse(pinned)
            .map_err(|error| format!("{}, which is no image: {error}", becomes()))?;
        if reference.digest.is_none() {
            return Err(format!("{}, which has no digest", becomes()));
        }
        let (_, image) = split_scheme(image);
        if let Some(before) = self.by_text.get(image)
            && before != pinned
        {
            let before = quoted(before);
            return Err(format!("{}, but before it became {before}", becomes()));
        }
        self.insert(image, pinned.to_owned());
        Ok(())
    }
}

/// What takes the place of an image that a map knows in another spelling, in its own; nothing where that is elsewhere.
fn spelt_as(image: &str, written: &str, pinned: &str) -> Option<String> {
    let [image, written, pinned] = [image, written, pinned].map(ImageReference::parse);
    let (image, pinned) = (image.ok()?, pinned.ok()?);
    let is_there = written.ok()?.normalized().name() == pinned.normalized().name();
    let digest = pinned.digest.filter(|_| is_there)?;
    Some(format!("{}@{digest}", image.name()))
}

/// What is wrong with entries, one after the other.
fn told(wrong: &[String]) -> String {
    let (first, more) = wrong.split_at(wrong.len().min(MOST_TOLD));
    let mut text = first.join("; ");
    if !more.is_empty() {
        text += &format!("; and {} more", more.len());
    }
    text
}

/// The entries of a map, all of them, in the order of the file.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor).map(Self)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Vec<(String, Value)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a map of at most {MOST_ENTRIES} entries")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = vec![];
        while let Some(entry) = map.next_entry()? {
            if entries.len() == MOST_ENTRIES {
                return Err(serde::de::Error::invalid_length(MOST_ENTRIES + 1, &self));
            }
            entries.push(entry);
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The map as a file, and what is wrong with it.
    fn refusal(text: &str) -> String {
        Pins::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn all_wrong_entries_of_a_map_are_told_at_once() {
        let digest = "0".repeat(64);
        let text = format!(
            r#"{{"quay.io/a:1": "quay.io/a:2", "Quay.io/A:1": "x", "redis": "redis@sha256:{digest}",
            "redis": "other@sha256:{digest}", "quay.io/b:1": 7, "quay.io/c:1": "quay.io/c@sha256:12",
            "redis:latest": "redis@sha256:{digest}"}}"#
        );
        let expected = [
            r#""quay.io/a:1" becomes "quay.io/a:2", which has no digest"#.to_owned(),
            r#""Quay.io/A:1" becomes "x", which has no digest"#.to_owned(),
            format!(
                r#""redis" becomes "other@sha256:{digest}", but before it became "redis@sha256:{digest}""#
            ),
            r#"what "quay.io/b:1" becomes is no text"#.to_owned(),
            r#""quay.io/c:1" becomes "quay.io/c@sha256:12", which is no image: invalid reference format"#.to_owned(),
        ];
        assert_eq!(refusal(&text), expected.join("; "));
    }

    #[test]
    fn what_is_no_map_is_refused() {
        for text in ["", "[]", "7", "{", r#"{"a": "b"} x"#, "\u{feff}{}"] {
            let error = Pins::parse(text.as_bytes()).unwrap_err();
            assert!(matches!(error, PinsError::Form(_)), "{text}: {error}");
        }
        let entries = (0..30).map(|number| format!(r#""a{number}": 7"#));
        let text = format!("{{{}}}", entries.collect::<Vec<_>>().join(","));
        assert!(
            refusal(&text).ends_with("; and 10 more"),
            "{}",
            refusal(&text)
        );
    }

    #[test]
    fn a_map_is_written_as_it_is_read() {
        let digest = "0".repeat(64);
        let text = format!(
            "{{\n  \"docker.io/z:1\": \"docker.io/library/z@sha256:{digest}\",\n  \"redis\": \"redis@sha256:{digest}\"\n}}\n"
        );
        let mut pins = Pins::parse(text.as_bytes()).unwrap();
        assert_eq!(pins.to_json(), text);
        let redis = format!("redis@sha256:{digest}");
        for (spelling, expected) in [
            ("redis", "redis"),
            ("redis:latest", "redis"),
            ("docker.io/redis", "docker.io/redis"),
            (
                "index.docker.io/library/redis:latest",
                "index.docker.io/library/redis",
            ),
            // As it is written, word for word.
            ("z:1", "z"),
            ("oci://docker.io/z:1", "docker.io/library/z"),
        ] {
            let expected = format!("{expected}@sha256:{digest}");
            assert_eq!(pins.get(spelling), Some(expected), "{spelling}");
        }
        assert_eq!(pins.get("redis:7"), None);
        pins.insert("redis", "later".to_owned());
        assert_eq!(pins.get("redis"), Some(redis));
        pins.insert("no image", "something".to_owned());
        assert_eq!(pins.get("no image").as_deref(), Some("something"));
        assert_eq!(Pins::default().to_json(), "{}\n");
    }
}
