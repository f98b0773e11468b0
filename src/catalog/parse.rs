//! One document of a catalog becomes a blob of a [`Package`].
//!
//! Follows `Meta.UnmarshalJSON` and `fbcBuilder.addMeta` of operator-registry (`alpha/declcfg/declcfg.go`, `load.go`):
//! a document without a schema is refused, unknown schemas are kept, the keys of blobs are found in any case as Go's
//! JSON reader finds them, and a field of the wrong type refuses its blob.

use serde_json::{Map, Value};

use super::package::{
    BUNDLE_SCHEMA, CHANNEL_SCHEMA, CatalogBundle, Channel, ChannelEntry, DEPRECATIONS_SCHEMA,
    Deprecation, Deprecations, Detail, FOR_PEOPLE, OtherBlob, PACKAGE_SCHEMA, Package,
    PackageDefinition, Property, RelatedImage, field,
};
use crate::{
    manifest::decode_base64,
    problem::{Place, Problem},
};

/// The rule that a document of a catalog breaks when it is no blob.
pub(super) const BLOB_RULE: &str = "catalog-blob";

/// What a document says it is: `schema`, `package` and `name`, each empty when it is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Its schema, such as `olm.bundle`.
    pub schema: String,
    /// The package that it belongs to.
    pub package: String,
    /// Its name.
    pub name: String,
}

impl Head {
    /// The package that the document is a part of: a definition is a part of the package that it names.
    #[must_use]
    pub fn owner(&self) -> &str {
        if self.schema == PACKAGE_SCHEMA {
            &self.name
        } else {
            &self.package
        }
    }
}

/// What a document says it is.
///
/// # Errors
/// When it is no map, has two spellings of one key, has no schema, or says something other than text.
pub(super) fn head(value: &Value) -> Result<Head, String> {
    let Some(fields) = value.as_object() else {
        return Err("the document is not a map".to_owned());
    };
    let mut head = Head::default();
    for (key, place) in [
        ("schema", &mut head.schema),
        ("package", &mut head.package),
        ("name", &mut head.name),
    ] {
        let mut spellings = fields
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(key));
        if let Some((name, value)) = spellings.next() {
            let Some(text) = value.as_str() else {
                let what = if value.is_null() {
                    "has no value"
                } else {
                    "is not text"
                };
                return Err(format!("{name} {what}"));
            };
            text.clone_into(place);
        }
    }
    Ok(head)
}

/// Two spellings of one key, which Go's readers refuse.
fn two_spellings(fields: &Map<String, Value>) -> Option<(&str, &str)> {
    let mut seen = std::collections::BTreeMap::new();
    fields.keys().find_map(|key| {
        let before = seen.insert(key.to_ascii_lowercase(), key);
        before.map(|before| (before.as_str(), key.as_str()))
    })
}

/// Adds a document to its package.
///
/// # Errors
/// When a field of it has the wrong type; all of them are told.
pub(super) fn add(
    package: &mut Package,
    head: Head,
    value: Value,
    place: Place,
    detail: Detail,
) -> Result<(), Vec<Problem>> {
    let mut blob = Blob {
        place,
        problems: vec![],
    };
    let Value::Object(fields) = value else {
        return Err(vec![blob.problem("the document is not a map")]);
    };
    if head.schema.is_empty() {
        return Err(vec![blob.problem("the document has no schema")]);
    }
    if let Some((one, other)) = two_spellings(&fields) {
        let message = format!("{one} and {other} are two spellings of one key");
        return Err(vec![blob.problem(message)]);
    }
    match head.schema.as_str() {
        PACKAGE_SCHEMA => {
            blob.check_icon(&fields);
            package.definitions.push(PackageDefinition {
                place: blob.place.clone(),
                default_channel: blob.text(&fields, "defaultChannel", ""),
                description: blob.text(&fields, "description", ""),
                properties: blob.properties(&fields, detail),
            });
        }
        CHANNEL_SCHEMA => package.channels.push(Channel {
            place: blob.place.clone(),
            name: head.name,
            entries: blob.maps(&fields, "entries", "", |blob, at, entry| ChannelEntry {
                name: blob.text(entry, "name", at),
                replaces: blob.text(entry, "replaces", at),
                skips: blob.texts(entry, "skips", at),
                skip_range: blob.text(entry, "skipRange", at),
            }),
            properties: blob.properties(&fields, detail),
        }),
        BUNDLE_SCHEMA => package.bundles.push(CatalogBundle {
            place: blob.place.clone(),
            name: head.name,
            image: blob.text(&fields, "image", ""),
            properties: blob.properties(&fields, detail),
            related_images: blob.maps(&fields, "relatedImages", "", |blob, at, image| {
                RelatedImage {
                    name: blob.text(image, "name", at),
                    image: blob.text(image, "image", at),
                }
            }),
        }),
        DEPRECATIONS_SCHEMA => {
            let entries = blob.maps(&fields, "entries", "", Blob::deprecation);
            let place = blob.place.clone();
            package.deprecations.push(Deprecations { place, entries });
        }
        _ => package.others.push(OtherBlob {
            place: blob.place.clone(),
            schema: head.schema,
            name: head.name,
            value: Value::Object(fields),
        }),
    }
    if blob.problems.is_empty() {
        Ok(())
    } else {
        Err(blob.problems)
    }
}

/// The document that is being read, and what is wrong with it.
struct Blob {
    place: Place,
    problems: Vec<Problem>,
}

impl Blob {
    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::error(BLOB_RULE, message).at(self.place.clone())
    }

    fn wrong(&mut self, at: &str, key: &str, what: &str) {
        let problem = self.problem(format!("{}{key} is not {what}", prefix(at)));
        self.problems.push(problem);
    }

    fn text(&mut self, fields: &Map<String, Value>, key: &str, at: &str) -> String {
        match field(fields, key) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(_) => {
                self.wrong(at, key, "text");
                String::new()
            }
        }
    }

    fn list<'v>(&mut self, fields: &'v Map<String, Value>, key: &str, at: &str) -> &'v [Value] {
        match field(fields, key) {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.wrong(at, key, "a list");
                &[]
            }
        }
    }

    fn texts(&mut self, fields: &Map<String, Value>, key: &str, at: &str) -> Vec<String> {
        let mut texts = vec![];
        for (index, item) in self.list(fields, key, at).iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text.clone()),
                Value::Null => texts.push(String::new()),
                _ => self.wrong(at, &format!("{key}[{index}]"), "text"),
            }
        }
        texts
    }

    fn maps<T>(
        &mut self,
        fields: &Map<String, Value>,
        key: &str,
        at: &str,
        read: impl Fn(&mut Self, &str, &Map<String, Value>) -> T,
    ) -> Vec<T> {
        let empty = Map::new();
        let mut items = vec![];
        for (index, item) in self.list(fields, key, at).iter().enumerate() {
            let at = format!("{}{key}[{index}]", prefix(at));
            match item {
                Value::Object(fields) => items.push(read(self, &at, fields)),
                Value::Null => items.push(read(self, &at, &empty)),
                _ => self
                    .problems
                    .push(self.problem(format!("{at} is not a map"))),
            }
        }
        items
    }

    fn properties(&mut self, fields: &Map<String, Value>, detail: Detail) -> Vec<Property> {
        let mut properties = self.maps(fields, "properties", "", |blob, at, fields| {
            let kind = blob.text(fields, "type", at);
            if detail != Detail::Full && FOR_PEOPLE.contains(&kind.as_str()) {
                return None;
            }
            let value = field(fields, "value").cloned().unwrap_or_default();
            Some(Property { kind, value })
        });
        properties.drain(..).flatten().collect()
    }

    /// Nothing shows the icon, but a broken one makes opm refuse the catalog.
    fn check_icon(&mut self, fields: &Map<String, Value>) {
        match field(fields, "icon") {
            None => {}
            Some(Value::Object(icon)) => {
                self.text(icon, "mediatype", "icon");
                let data = self.text(icon, "base64data", "icon");
                if decode_base64(&data).is_err() {
                    self.wrong("icon", "base64data", "base64");
                }
            }
            Some(_) => self.wrong("", "icon", "a map"),
        }
    }

    fn deprecation(&mut self, at: &str, fields: &Map<String, Value>) -> Deprecation {
        let reference = match field(fields, "reference") {
            Some(Value::Object(reference)) => Some(reference),
            None => None,
            Some(_) => {
                self.wrong(at, "reference", "a map");
                None
            }
        };
        let at_reference = format!("{at}.reference");
        let mut of_reference = |key| {
            reference.map_or_else(String::new, |fields| self.text(fields, key, &at_reference))
        };
        Deprecation {
            schema: of_reference("schema"),
            name: of_reference("name"),
            message: self.text(fields, "message", at),
        }
    }
}

fn prefix(at: &str) -> String {
    match at {
        "" => String::new(),
        at => format!("{at}."),
    }
}
