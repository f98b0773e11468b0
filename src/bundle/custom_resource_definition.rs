//! CustomResourceDefinitions of `apiextensions.k8s.io/v1beta1`, which no API server has taken since Kubernetes 1.22,
//! turned into `v1` where that loses nothing.
//!
//! OLM v1 decodes them into the v1 types, keeps the old `apiVersion` and loses what the new types lack. The rules of
//! the conversion are those of apiextensions-apiserver (`pkg/apis/apiextensions/v1beta1/conversion.go`) and of
//! structural schemas (`pkg/apiserver/schema/validation.go`), which v1 insists on.

use serde_json::{Map, Value, json};

use crate::{
    manifest::{Manifest, findings::Path, list_at, map_at},
    problem::Problem,
};

const GROUP: &str = "apiextensions.k8s.io";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
/// As many reasons against a conversion are collected.
const MOST_OBSTACLES: usize = 100;
/// As many versions take a copy of what is said once for all.
const MOST_VERSIONS: usize = 100;

/// Fields of a v1beta1 `spec` that v1 has per version, and their place there.
const PER_VERSION: [(&str, &str); 3] = [
    ("validation", "schema"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
];

/// Brings a v1beta1 definition to v1, with a warning; leaves any other alone. What has no equal in v1 is an error
/// that says what to change.
pub(super) fn to_v1(manifest: &mut Manifest, problems: &mut Vec<Problem>) {
    if manifest.api_version() != format!("{GROUP}/v1beta1") {
        return;
    }
    let (key, origin) = (manifest.key(), manifest.origin.clone());
    manifest
        .object_mut()
        .insert("apiVersion".to_owned(), format!("{GROUP}/v1").into());
    let spec = map_at(manifest.object_mut(), "spec");
    let obstacles = spec_to_v1(spec);
    approve(manifest);
    let about = |problem: Problem| problem.at(&origin).on(&key);
    if obstacles.is_empty() {
        let message = format!("{GROUP}/v1beta1 is gone since Kubernetes 1.22; converted to v1");
        problems.push(about(Problem::warning("crd-v1beta1", message)));
    }
    problems.extend(obstacles.into_iter().map(|reason| {
        let message = format!(
            "{GROUP}/v1beta1 is gone since Kubernetes 1.22 and v1 cannot express it: {reason}"
        );
        about(Problem::error("crd-v1beta1", message))
    }));
}

/// Groups below `k8s.io` and `kubernetes.io` are Kubernetes' own: v1 wants to hear that one is used without approval.
fn approve(manifest: &mut Manifest) {
    const APPROVED: &str = "api-approved.kubernetes.io";
    let spec = manifest.object().get("spec");
    let group = spec.and_then(|spec| spec.get("group")?.as_str());
    let is_protected = group.is_some_and(|group| {
        let below = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
        below("k8s.io") || below("kubernetes.io")
    });
    let annotations = manifest.metadata("annotations");
    if is_protected && annotations.and_then(|all| all.get(APPROVED)).is_none() {
        manifest.annotate(APPROVED, "unapproved, v1beta1 did not ask");
    }
}

/// Converts the spec; gives what stands in the way.
fn spec_to_v1(spec: &mut Map<String, Value>) -> Vec<String> {
    let preserve = spec.remove("preserveUnknownFields") != Some(Value::Bool(false));
    let version = spec.remove("version");
    let versions = list_at(spec, "versions");
    if versions.is_empty() {
        let Some(name) = version.filter(Value::is_string) else {
            return vec![
                "spec.version and spec.versions are both missing; name a version".to_owned(),
            ];
        };
        versions.push(json!({"name": name, "served": true, "storage": true}));
    }
    if versions.len() > MOST_VERSIONS {
        return vec![format!(
            "spec.versions holds more than {MOST_VERSIONS} versions"
        )];
    }
    spread_over_versions(spec);
    conversion_to_v1(spec);
    spec.entry("scope").or_insert_with(|| "Namespaced".into());
    let mut obstacles = vec![];
    for version in list_at(spec, "versions")
        .iter_mut()
        .filter_map(Value::as_object_mut)
    {
        for column in list_in(version, "additionalPrinterColumns") {
            rename(column, "JSONPath", "jsonPath");
        }
        let name = version
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let schema = map_at(map_at(version, "schema"), "openAPIV3Schema");
        schema.entry("type").or_insert_with(|| "object".into());
        let mut structural = Structural {
            preserve,
            place: format!("spec.versions[{name}].schema.openAPIV3Schema"),
            obstacles: &mut obstacles,
        };
        structural.node(schema, &Path::Root);
        structural.metadata(schema);
    }
    obstacles
}

/// What v1beta1 says once for all versions goes to each that does not say it itself.
fn spread_over_versions(spec: &mut Map<String, Value>) {
    for (field, place) in PER_VERSION {
        let Some(value) = spec.remove(field).filter(|value| !value.is_null()) else {
            continue;
        };
        for version in list_at(spec, "versions")
            .iter_mut()
            .filter_map(Value::as_object_mut)
        {
            version.entry(place).or_insert_with(|| value.clone());
        }
    }
}

fn conversion_to_v1(spec: &mut Map<String, Value>) {
    let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) else {
        return;
    };
    let config = conversion.remove("webhookClientConfig");
    let versions = conversion.remove("conversionReviewVersions");
    if let Some(config) = config.filter(|config| !config.is_null()) {
        // v1beta1 fills the list in, v1 wants it written.
        let versions = versions.filter(|versions| !versions.is_null());
        let versions = versions.unwrap_or_else(|| json!(["v1beta1"]));
        let webhook = json!({"clientConfig": config, "conversionReviewVersions": versions});
        conversion.insert("webhook".to_owned(), webhook);
    }
}

fn rename(value: &mut Value, from: &str, to: &str) {
    if let Some(map) = value.as_object_mut()
        && let Some(moved) = map.remove(from)
    {
        map.insert(to.to_owned(), moved);
    }
}

fn list_in<'a>(map: &'a mut Map<String, Value>, field: &str) -> &'a mut [Value] {
    map.get_mut(field)
        .and_then(Value::as_array_mut)
        .map_or(&mut [], Vec::as_mut_slice)
}

/// Makes a schema structural. Where v1beta1 keeps unknown fields, every level that names fields has to say so.
struct Structural<'a> {
    preserve: bool,
    /// The place of the schema in the definition.
    place: String,
    obstacles: &'a mut Vec<String>,
}

impl Structural<'_> {
    fn node(&mut self, schema: &mut Map<String, Value>, at: &Path<'_>) {
        if is_int_or_string(schema) {
            // `oneOf` and `anyOf` mean the same for types that exclude each other; v1 knows the second, in this order.
            schema.remove("oneOf");
            let alternatives = json!([{"type": "integer"}, {"type": "string"}]);
            schema.insert("anyOf".to_owned(), alternatives);
            schema.insert(INT_OR_STRING.to_owned(), true.into());
        }
        let int_or_string = schema.get(INT_OR_STRING) == Some(&Value::Bool(true));
        let is = |wanted: &str| schema.get("type").is_some_and(|r#type| r#type == wanted);
        let (is_object, is_array) = (is("object"), is("array"));
        if !int_or_string {
            if !schema.contains_key("type") || self.preserve && is_object {
                schema.insert(PRESERVE.to_owned(), true.into());
            }
            self.junctors(schema, at);
        }
        if is_array {
            // Without a word on the items, they may be anything.
            schema.entry("items").or_insert_with(|| json!({}));
        }
        if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            let properties = Path::Key(at, "properties");
            for (name, field) in fields.iter_mut() {
                self.child(field, &Path::Key(&properties, name));
            }
        }
        for under in ["items", "additionalProperties"] {
            if let Some(child) = schema.get_mut(under) {
                self.child(child, &Path::Key(at, under));
            }
        }
    }

    /// Of an object's own `metadata`, v1 lets a schema restrict nothing but the name. What only says again what every
    /// object has is left out; a restriction is in the way.
    fn metadata(&mut self, schema: &mut Map<String, Value>) {
        let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
        let Some(Value::Object(metadata)) = fields.and_then(|fields| fields.get_mut("metadata"))
        else {
            return;
        };
        let at = Path::Key(&Path::Root, "metadata");
        for restriction in [
            "required",
            "minProperties",
            "maxProperties",
            "not",
            "allOf",
            "anyOf",
            "oneOf",
        ] {
            if metadata.contains_key(restriction) {
                let at = Path::Key(&at, restriction);
                self.obstacle(
                    &at,
                    "restricts more than name and generateName; take it out",
                );
            }
        }
        let names = metadata.remove("properties");
        *metadata = Map::from_iter([("type".to_owned(), "object".into())]);
        if let Some(Value::Object(mut names)) = names {
            names.retain(|name, _| name == "name" || name == "generateName");
            if !names.is_empty() {
                metadata.insert("properties".to_owned(), names.into());
            }
        }
    }

    fn child(&mut self, schema: &mut Value, at: &Path<'_>) {
        match schema {
            Value::Object(schema) => self.node(schema, at),
            Value::Array(_) => self.obstacle(at, "is a list of schemas; v1 takes a single one"),
            _ => {}
        }
    }

    /// Inside `allOf`, `anyOf`, `oneOf` and `not`, v1 allows constraints only, on fields that are named outside.
    fn junctors(&mut self, schema: &mut Map<String, Value>, at: &Path<'_>) {
        for junctor in ["allOf", "anyOf", "not", "oneOf"] {
            let Some(mut branches) = schema.remove(junctor) else {
                continue;
            };
            let at = Path::Key(at, junctor);
            match &mut branches {
                Value::Array(branches) => {
                    for (index, branch) in branches.iter_mut().enumerate() {
                        if let Some(branch) = branch.as_object_mut() {
                            self.branch(branch, schema, &Path::Index(&at, index));
                        }
                    }
                }
                Value::Object(branch) => self.branch(branch, schema, &at),
                _ => {}
            }
            schema.insert(junctor.to_owned(), branches);
        }
    }

    fn branch(
        &mut self,
        branch: &mut Map<String, Value>,
        outside: &Map<String, Value>,
        at: &Path<'_>,
    ) {
        branch.remove("description");
        let inner = branch.get("type");
        if inner.is_some() && inner == outside.get("type") {
            branch.remove("type");
        }
        for forbidden in ["type", "default", "additionalProperties", "nullable"] {
            if branch.contains_key(forbidden) {
                let at = Path::Key(at, forbidden);
                self.obstacle(&at, "is not allowed there; move it out");
            }
        }
        let named = outside.get("properties");
        let properties = Path::Key(at, "properties");
        let fields = branch.get_mut("properties").and_then(Value::as_object_mut);
        for (name, field) in fields.into_iter().flatten() {
            let at = Path::Key(&properties, name);
            let outside = named.and_then(|named| named.get(name)?.as_object());
            match (field.as_object_mut(), outside) {
                (Some(field), Some(outside)) => self.branch(field, outside, &at),
                (_, None) => self.obstacle(&at, "is not named outside; add it to `properties`"),
                (None, _) => {}
            }
        }
    }

    fn obstacle(&mut self, at: &Path<'_>, reason: &str) {
        if self.obstacles.len() < MOST_OBSTACLES {
            self.obstacles.push(format!("{}.{at} {reason}", self.place));
        }
    }
}

fn is_int_or_string(schema: &Map<String, Value>) -> bool {
    let integer = json!({"type": "integer"});
    let string = json!({"type": "string"});
    let alternatives = schema
        .get("anyOf")
        .or_else(|| schema.get("oneOf"))
        .and_then(Value::as_array);
    !schema.contains_key("type")
        && alternatives
            .is_some_and(|two| two.len() == 2 && two.contains(&integer) && two.contains(&string))
}
