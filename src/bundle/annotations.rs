//! `metadata/annotations.yaml`: what the bundle says of itself.
//!
//! operator-controller `rukpak/bundle/source/source.go` reads the package name from it and nothing else; the layout
//! (`manifests/` and `metadata/`) is fixed whatever the annotations say.

use serde_json::Value;

use crate::{limits::Limits, manifest::yaml, problem::Problem};

/// The path of the file in a bundle.
pub(super) const PATH: &str = "metadata/annotations.yaml";

const PACKAGE: &str = "operators.operatorframework.io.bundle.package.v1";
const MEDIA_TYPE: &str = "operators.operatorframework.io.bundle.mediatype.v1";
const MANIFESTS: &str = "operators.operatorframework.io.bundle.manifests.v1";

/// The annotations of a bundle.
#[derive(Debug)]
pub(super) struct Annotations {
    /// The package name; empty when there is none.
    pub package: String,
}

impl Annotations {
    /// Reads the file, adding what is wrong with it to `problems`; there are none when it is no YAML.
    pub(super) fn parse(
        content: &[u8],
        limits: &Limits,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let documents = match yaml::read(content, limits) {
            Ok(documents) => documents,
            Err(error) => {
                problems.push(error.in_file(PATH));
                return None;
            }
        };
        let first = documents.into_iter().next().map(|document| document.value);
        let entries = first.as_ref().and_then(|value| value.get("annotations"));
        let entry = |key: &str| {
            entries
                .and_then(|entries| entries.get(key))
                .filter(|value| !value.is_null())
        };
        warn_of_other_layouts(entry, problems);
        let package = match entry(PACKAGE) {
            None => String::new(),
            Some(Value::String(package)) => package.clone(),
            Some(other) => {
                let message =
                    format!("annotations.{PACKAGE}: expected a text, found {other}; quote it");
                problems.push(Problem::error("type", message).at(PATH));
                String::new()
            }
        };
        Some(Self { package })
    }
}

fn warn_of_other_layouts<'a>(
    entry: impl Fn(&str) -> Option<&'a Value>,
    problems: &mut Vec<Problem>,
) {
    for (key, only) in [(MEDIA_TYPE, "registry+v1"), (MANIFESTS, "manifests/")] {
        let Some(value) = entry(key) else { continue };
        if value.as_str().map(|text| text.trim_end_matches('/')) != Some(only.trim_end_matches('/'))
        {
            let message = format!(
                "{key} is {value}; the bundle is read as {only:?} all the same, as OLM does"
            );
            problems.push(Problem::warning("annotations", message).at(PATH));
        }
    }
}
