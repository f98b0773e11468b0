//! Configurations of images: their labels, and how their layers came about.
//!
//! The labels are those of `opm` and the bundle tools: operator-registry, `pkg/lib/bundle/generate.go` and
//! `pkg/containertools/labelreader.go`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{DOCUMENT_BYTES, checked_json, paths::tidy};

/// What is used of an image's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What was done to make it, first step first; empty when it does not say.
    pub history: Vec<Step>,
}

/// A step in which an image was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// What was done, as the tool that did it writes it.
    pub created_by: String,
    /// Whether no layer came of it.
    pub is_empty: bool,
}

/// What the labels of an image say that it is. Folders have neither a leading nor a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A bundle.
    Bundle,
    /// A file-based catalog, and the folder it is in.
    Catalog(String),
    /// A catalog as an `SQLite` database.
    Database,
}

/// What all labels of OLM begin with.
const OLM: &str = "operators.operatorframework.io.";

impl Config {
    /// Reads a configuration. What is not used of it may be anything.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(body: &[u8]) -> Result<Self, String> {
        if body.len() as u64 > DOCUMENT_BYTES {
            return Err(format!("it is over the limit of {DOCUMENT_BYTES} bytes"));
        }
        let value = checked_json::parse(body).map_err(|error| format!("it is no JSON: {error}"))?;
        let Value::Object(top) = value else {
            return Err("it is no JSON object".to_owned());
        };
        checked_json::names(&top, &["config", "history"])?;
        let labels = match object(&top, "config")? {
            Some(config) => {
                checked_json::names(config, &["Labels"])?;
                object(config, "Labels")?
            }
            None => None,
        };
        let labels = labels.into_iter().flatten();
        let labels = labels.map(|(name, label)| match label {
            Value::String(label) => Ok((name.clone(), label.clone())),
            Value::Null => Ok((name.clone(), String::new())),
            _ => Err("a label in it is no text".to_owned()),
        });
        let labels = labels.collect::<Result<_, String>>()?;
        let history = match top.get("history") {
            None | Some(Value::Null) => vec![],
            Some(Value::Array(steps)) => steps.iter().map(step).collect::<Result<_, String>>()?,
            Some(_) => return Err("its history is no list".to_owned()),
        };
        Ok(Self { labels, history })
    }

    /// What the labels say that the image is; nothing when they do not say.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        let label = |name: &str| self.labels.get(&format!("{OLM}{name}"));
        if let Some(folder) = label("index.configs.v1") {
            return Some(Kind::Catalog(tidy(folder)));
        }
        if label("bundle.mediatype.v1").is_some() || label("bundle.manifests.v1").is_some() {
            return Some(Kind::Bundle);
        }
        label("index.database.v1").map(|_| Kind::Database)
    }
}

fn object<'v>(
    of: &'v Map<String, Value>,
    name: &str,
) -> Result<Option<&'v Map<String, Value>>, String> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(format!("its field {name:?} is no object")),
    }
}

fn step(step: &Value) -> Result<Step, String> {
    let Value::Object(step) = step else {
        return Err("a step of its history is no object".to_owned());
    };
    checked_json::names(step, &["created_by", "empty_layer"])?;
    let created_by = step.get("created_by").and_then(Value::as_str);
    Ok(Step {
        created_by: created_by.unwrap_or_default().to_owned(),
        is_empty: step.get("empty_layer").and_then(Value::as_bool) == Some(true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(labels: &str) -> Option<Kind> {
        let body = format!(r#"{{"config": {{"Labels": {labels}}}, "rootfs": {{"type": 1}}}}"#);
        Config::parse(body.as_bytes())
            .expect("a configuration")
            .kind()
    }

    #[test]
    fn labels_say_what_an_image_is() {
        let catalog = Some(Kind::Catalog("configs/all".to_owned()));
        for (labels, expected) in [
            (
                r#"{"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1"}"#,
                Some(Kind::Bundle),
            ),
            (
                r#"{"operators.operatorframework.io.bundle.manifests.v1": "manifests/"}"#,
                Some(Kind::Bundle),
            ),
            (
                r#"{"operators.operatorframework.io.index.configs.v1": "/configs/./all/"}"#,
                catalog,
            ),
            (
                r#"{"operators.operatorframework.io.index.database.v1": "/index.db"}"#,
                Some(Kind::Database),
            ),
            (r#"{"name": null}"#, None),
            ("null", None),
        ] {
            assert_eq!(kind(labels), expected, "{labels}");
        }
        assert_eq!(Config::parse(b"{}"), Ok(Config::default()));
    }

    #[test]
    fn what_programs_read_differently_is_refused() {
        for body in [
            r#"{"config": {"Labels": {"a": "b"}, "labels": {"a": "c"}}}"#,
            r#"{"config": {}, "Config": {}}"#,
            r#"{"config": {}, "config": {}}"#,
            r#"{"history": [{"empty_layer": true, "Empty_Layer": false}]}"#,
            r#"{"config": []}"#,
            "[]",
            "",
        ] {
            assert!(Config::parse(body.as_bytes()).is_err(), "{body}");
        }
        let large = vec![b' '; 5 << 20];
        assert!(Config::parse(&large).is_err_and(|why| why.contains("4194304")));
    }
}
