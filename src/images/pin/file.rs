//! The text of a ClusterServiceVersion with digests in it, its comments and layout kept.
//!
//! As operator-manifest does, only objects of the kind ClusterServiceVersion are looked at, whatever their group is.

use std::sync::Arc;

use serde_json::Value;

use super::{Pins, is_csv, pin};
use crate::{
    limits::Limits,
    manifest::{
        Manifest, Origin,
        yaml::{self, Document},
    },
    problem::Problem,
};

/// A file that was pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedFile {
    /// Its text.
    pub text: String,
    /// Whether comments and layout are those of the original.
    pub keeps_layout: bool,
    /// The digests that were put there.
    pub used: Pins,
}

/// Pins the ClusterServiceVersions in the text of a file, and leaves all else in it alone. `path` is for messages.
///
/// # Errors
/// When it cannot be read, and as [`pin`](super::pin()).
pub fn pin_file(
    path: &str,
    text: &str,
    pins: &Pins,
    limits: &Limits,
) -> Result<PinnedFile, Vec<Problem>> {
    let documents = yaml::read(text.as_bytes(), limits);
    let documents = documents.map_err(|error| vec![error.in_file(path)])?;
    let (wanted, used) = pinned(path, &documents, pins)?;
    let edited = edited(text, &documents, &wanted, limits);
    let keeps_layout = edited.is_some();
    Ok(PinnedFile {
        text: edited.unwrap_or_else(|| anew(text, &wanted)),
        keeps_layout,
        used,
    })
}

/// The ClusterServiceVersions in the text of a file.
///
/// # Errors
/// When it cannot be read.
pub fn csvs(path: &str, text: &[u8], limits: &Limits) -> Result<Vec<Manifest>, Problem> {
    let documents = yaml::read(text, limits).map_err(|error| error.in_file(path))?;
    let csvs = csvs_of(path, &documents);
    Ok(csvs.map(|(_, csv)| csv).collect())
}

/// The ClusterServiceVersions among documents, and which they are.
fn csvs_of(path: &str, documents: &[Document]) -> impl Iterator<Item = (usize, Manifest)> {
    let path: Arc<str> = path.into();
    let manifests = documents.iter().map(move |document| {
        let (path, line) = (Arc::clone(&path), document.line);
        Manifest::new(document.value.clone(), Origin::File { path, line })
    });
    manifests
        .enumerate()
        .filter(|(_, manifest)| is_csv(manifest))
}

/// What the documents are to say, and the digests in them.
fn pinned(
    path: &str,
    documents: &[Document],
    pins: &Pins,
) -> Result<(Vec<Value>, Pins), Vec<Problem>> {
    let mut wanted: Vec<Value> = documents.iter().map(|it| it.value.clone()).collect();
    let (places, mut manifests): (Vec<usize>, Vec<Manifest>) = csvs_of(path, documents).unzip();
    let used = pin(&mut manifests, pins)?;
    for (at, manifest) in places.into_iter().zip(manifests) {
        if let Some(value) = wanted.get_mut(at) {
            *value = manifest.into_value();
        }
    }
    Ok((wanted, used))
}

/// The text with what changed written into it; none where that cannot be done.
fn edited(text: &str, documents: &[Document], wanted: &[Value], limits: &Limits) -> Option<String> {
    let mut text = text.to_owned();
    for (at, (document, wanted)) in documents.iter().zip(wanted).enumerate() {
        if document.value != *wanted {
            text = yaml::edit(&text, at, wanted, limits)?;
        }
    }
    Some(text)
}

/// All documents written anew: as JSON if the text was that.
fn anew(text: &str, wanted: &[Value]) -> String {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    if text.trim_start().starts_with('{') && values.all(|value| value.is_ok()) {
        let documents = wanted.iter().map(|value| format!("{value:#}\n"));
        return documents.collect();
    }
    let mut out = String::new();
    for value in wanted {
        if !out.is_empty() {
            out.push_str("---\n");
        }
        yaml::write(value, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn pin_text(text: &str) -> Result<PinnedFile, Vec<Problem>> {
        let mut pins = Pins::default();
        pins.insert("quay.io/x/y:v1", format!("quay.io/x/y{DIGEST}"));
        pin_file("csv.yaml", text, &pins, &Limits::DEFAULT)
    }

    /// The text and whether its layout was kept, of a file that was pinned.
    fn pinned_text(text: &str) -> (String, bool) {
        let pinned = pin_text(text).unwrap_or_else(|problems| panic!("{problems:?}"));
        (pinned.text, pinned.keeps_layout)
    }

    #[test]
    fn only_what_is_pinned_changes_and_only_in_csvs() {
        let text = "# one\nkind: ConfigMap\ndata: {image: 'quay.io/x/y:v1'}\n---\nkind:   ClusterServiceVersion\nspec:\n  # two\n  install:\n    spec: {deployments: [{spec: {template: {spec: {containers: [{name: m, image: 'quay.io/x/y:v1'}]}}}}]} # three\n";
        let (before, csv) = text.split_once("---").unwrap_or_default();
        let csv = csv.replace("quay.io/x/y:v1", &format!("quay.io/x/y{DIGEST}"));
        let listed = format!("  relatedImages:\n  - image: quay.io/x/y{DIGEST}\n    name: m\n");
        let expected = format!("{before}---{csv}{listed}");
        assert_eq!(pinned_text(text), (expected.clone(), true));
        assert_eq!(pinned_text(&expected), (expected, true));
    }

    #[test]
    fn a_file_without_a_csv_stays_as_it_is() {
        let text = "kind: x\r\n\n  # odd\nimage: quay.io/x/y:v1";
        assert_eq!(pinned_text(text), (text.to_owned(), true));
    }

    #[test]
    fn where_the_layout_cannot_be_kept_everything_is_written_anew() {
        let yaml = "kind: ClusterServiceVersion # lost\nmetadata: {annotations: {a: &a quay.io/x/y:v1}}\nspec: {*a : b}\n---\nkind: B\n";
        let pinned = pin_text(yaml).unwrap_or_else(|problems| panic!("{problems:?}"));
        let start = format!(
            "kind: ClusterServiceVersion\nmetadata:\n  annotations:\n    a: quay.io/x/y{DIGEST}\n"
        );
        assert!(pinned.text.starts_with(&start), "{}", pinned.text);
        assert!(pinned.text.ends_with("---\nkind: B\n"), "{}", pinned.text);
        assert!(!pinned.keeps_layout);
        // Halves of a character, written as escapes, are for readers of JSON alone.
        let json = r#"{"kind": "ClusterServiceVersion", "metadata": {"annotations": {"containerImage": "quay.io/x/y:v1", "b": "\ud83d\ude00"}}}"#;
        let pinned = pin_text(json).unwrap_or_else(|problems| panic!("{problems:?}"));
        assert!(pinned.text.starts_with("{\n  \"kind\""), "{}", pinned.text);
        assert!(pinned.text.contains(DIGEST) && !pinned.keeps_layout);
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_line() {
        let problems = pin_text("a: 1\nb: [\n").err().unwrap_or_default();
        let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(shown.len(), 1);
        assert!(
            shown
                .iter()
                .all(|it| it.starts_with("error[yaml]: csv.yaml:2: ")),
            "{shown:?}"
        );
    }
}
