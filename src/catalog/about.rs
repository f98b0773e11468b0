//! What a bundle says of itself for people: from the property `olm.csv.metadata`, or from the ClusterServiceVersion
//! that the catalog embeds as `olm.bundle.object`.
//!
//! Texts only: what cannot be read is left out and not told, as the checks of a catalog do that. Follows `parseObjects`
//! of operator-registry (`alpha/declcfg/load.go`) in where a ClusterServiceVersion is looked for.

use serde_json::Value;

use super::{
    embedded,
    package::{BUNDLE_OBJECT_PROPERTY, CSV_METADATA_PROPERTY, CatalogBundle},
};
use crate::{limits::Limits, manifest::yaml};

/// The texts of one bundle; what it does not say is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// What people call it.
    pub display_name: String,
    /// What it does, in one line; from the annotation `description` where there is one.
    pub summary: String,
    /// What it does, in Markdown.
    pub description: String,
    /// Who provides it.
    pub provider: String,
    /// Words that it wants to be found by.
    pub keywords: Vec<String>,
    /// The install modes that it supports, in its own order.
    pub install_modes: Vec<String>,
    /// The oldest Kubernetes that it runs on.
    pub min_kube_version: String,
}

impl About {
    /// The texts of a bundle that was read with [`Detail::Full`](super::Detail::Full).
    #[must_use]
    pub fn of(bundle: &CatalogBundle) -> Self {
        if let Some(metadata) = bundle.properties_of(CSV_METADATA_PROPERTY).next() {
            return Self::read(&metadata["annotations"], metadata);
        }
        let embedded = bundle.properties_of(BUNDLE_OBJECT_PROPERTY);
        let csv = embedded.filter_map(cluster_service_version).next();
        csv.map_or_else(Self::default, |csv| {
            Self::read(&csv["metadata"]["annotations"], &csv["spec"])
        })
    }

    fn read(annotations: &Value, spec: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let description = text(&spec["description"]);
        let summary = match text(&annotations["description"]) {
            short if short.is_empty() => summary(&description),
            short => one_line(&short),
        };
        let modes = list(&spec["installModes"]).into_iter();
        Self {
            display_name: one_line(&text(&spec["displayName"])),
            summary,
            description,
            provider: one_line(&text(&spec["provider"]["name"])),
            keywords: list(&spec["keywords"]).iter().map(text).collect(),
            install_modes: modes
                .filter(|mode| mode["supported"] == true)
                .map(|mode| text(&mode["type"]))
                .collect(),
            min_kube_version: text(&spec["minKubeVersion"]),
        }
    }
}

/// The first sentence of a text in Markdown, without its headings where there is something else.
#[must_use]
pub fn summary(markdown: &str) -> String {
    let lines = || markdown.lines().map(str::trim);
    let is_prose = |line: &&str| line.starts_with(char::is_alphanumeric);
    let paragraph = lines().skip_while(|line| !is_prose(line));
    let paragraph: Vec<_> = paragraph.take_while(is_prose).collect();
    let text = if paragraph.is_empty() {
        let mut bare = lines().map(|line| line.trim_matches(['#', '*', '=', '-', ' ']));
        let heading = bare.find(|line| !line.is_empty());
        heading.unwrap_or_default().to_owned()
    } else {
        paragraph.join(" ")
    };
    let sentence = text.split(". ").next().unwrap_or_default();
    one_line(sentence.trim_end_matches('.'))
}

fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ")
}

/// The object of an `olm.bundle.object` property, when it is a ClusterServiceVersion.
fn cluster_service_version(property: &Value) -> Option<Value> {
    const KIND: &str = "ClusterServiceVersion";
    let text = embedded::object(property).ok()?;
    memchr::memmem::find(&text, KIND.as_bytes())?;
    let documents = yaml::read(&text, &Limits::DEFAULT).ok()?;
    let object = documents.into_iter().next()?.value;
    (object["kind"] == KIND).then_some(object)
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_STANDARD};
    use serde_json::json;

    use super::*;
    use crate::catalog::Property;

    fn bundle(properties: &[(&str, Value)]) -> CatalogBundle {
        let properties = properties.iter().map(|(kind, value)| Property {
            kind: (*kind).to_owned(),
            value: value.clone(),
        });
        CatalogBundle {
            properties: properties.collect(),
            ..CatalogBundle::default()
        }
    }

    #[test]
    fn an_embedded_csv_says_the_same_in_yaml_and_json() {
        let spec = json!({
            "displayName": "Queue", "provider": {"name": "Example"}, "keywords": ["mq"],
            "installModes": [{"type": "OwnNamespace", "supported": false}, {"type": "AllNamespaces", "supported": true}],
        });
        let csv = json!({"kind": "ClusterServiceVersion", "spec": spec});
        let mut in_yaml = String::new();
        yaml::write(&csv, &mut in_yaml);
        for text in [csv.to_string(), in_yaml] {
            let crd = BASE64_STANDARD.encode("kind: CustomResourceDefinition");
            let data = BASE64_STANDARD.encode(text);
            let about = About::of(&bundle(&[
                (BUNDLE_OBJECT_PROPERTY, json!({"data": "no base64"})),
                (BUNDLE_OBJECT_PROPERTY, json!({"data": crd})),
                (BUNDLE_OBJECT_PROPERTY, json!({"data": data})),
            ]));
            assert_eq!(about.display_name, "Queue");
            assert_eq!(about.provider, "Example");
            assert_eq!(about.keywords, ["mq"]);
            assert_eq!(about.install_modes, ["AllNamespaces"]);
        }
    }

    #[test]
    fn a_summary_is_the_first_sentence_that_is_prose() {
        for (markdown, expected) in [
            ("", ""),
            ("# Queue\n\nRuns  queues. And more.", "Runs queues"),
            ("Runs v1.2\nqueues.\nMore", "Runs v1.2 queues"),
            ("- item\nRuns queues\n- item", "Runs queues"),
            ("## Only a heading ##\n---", "Only a heading"),
        ] {
            assert_eq!(summary(markdown), expected);
        }
    }

    #[test]
    fn the_annotation_is_the_summary() {
        let metadata =
            json!({"annotations": {"description": "Short\ntext"}, "description": "Long. Text"});
        let about = About::of(&bundle(&[(CSV_METADATA_PROPERTY, metadata)]));
        assert_eq!(
            (about.summary.as_str(), about.description.as_str()),
            ("Short text", "Long. Text")
        );
    }
}
