//! Brings an object of generic JSON into the form it has after Go has decoded it into a struct and printed it again.
//!
//! OLM decodes bundles with the converter of apimachinery (pkg/runtime/converter.go, `FromUnstructured`) and prints
//! what it generates with encoding/json. On the way unknown fields vanish, wrong types are errors, null becomes a
//! zero, and zeros of `omitempty` fields vanish. CRD schemas pass through the marshallers of apiextensions
//! (pkg/apis/apiextensions/v1/marshal.go). This module does the same to a value in place, along the table of the Go
//! types in `go_types`. It applies no defaults and validates nothing that Go's decoder does not.
//!
//! Three things differ on purpose. What Go prints and no API server needs (null, `strategy: {}`, the zero of a
//! required field that nobody wrote, a CRD's status) is left out; integers that do not fit are refused where Go would
//! cut off their upper bits; and a list of numbers is not taken for bytes.
//!
//! The functions call each other as deep as the value is nested, which its reader has bounded.

use serde_json::{Map, Value};

use super::findings::Path;
pub use super::findings::{Finding, Findings};
use super::go_scalars::{self, Refusal};

/// A Go struct: what it is called, and the fields it has in JSON.
#[derive(Debug)]
pub struct Struct {
    /// The Go type, as in `apps/v1 DeploymentSpec`.
    pub name: &'static str,
    /// Sorted by name; those of inlined structs are among them.
    pub fields: &'static [Field],
    /// Whether a field is `Zero::Added`.
    adds: bool,
}

impl Struct {
    /// Makes an entry of the table. The fields must be sorted by name.
    #[must_use]
    pub const fn new(name: &'static str, fields: &'static [Field]) -> Struct {
        let mut adds = false;
        let mut index = 0;
        while index < fields.len() {
            adds |= matches!(fields[index].zero, Zero::Added);
            index += 1;
        }
        Struct { name, fields, adds }
    }
}

/// A field of a Go struct.
#[derive(Debug)]
pub struct Field {
    /// The name in JSON.
    pub name: &'static str,
    /// What the field holds, or points to.
    pub shape: Shape,
    /// Whether it is a pointer in Go, so that `{}` and nothing are not the same.
    pub pointer: bool,
    /// What becomes of a zero.
    pub zero: Zero,
}

/// What becomes of a field whose value is `""`, `false`, `0`, `[]` or `{}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zero {
    /// It is taken out (Go's `omitempty`).
    Dropped,
    /// It stays if somebody wrote it.
    Kept,
    /// It is there even if nobody wrote it: an API server can tell.
    Added,
}

/// What a Go type reads and prints.
#[derive(Debug)]
pub enum Shape {
    /// Raw JSON, kept as it is.
    Any,
    /// True or false.
    Bool,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// A number of 64 bits.
    Float,
    /// A string.
    String,
    /// Base64 text.
    Bytes,
    /// `500m`, `1Gi`, or a number.
    Quantity,
    /// A whole number of 32 bits, or a string.
    IntOrString,
    /// RFC 3339.
    Time,
    /// A semantic version.
    Version,
    /// The release of a package of one version.
    Release,
    /// A list of what is inside.
    List(&'static Shape),
    /// An object with free keys.
    Map(&'static Shape),
    /// An object with fields.
    Struct(&'static Struct),
    /// A schema, `true` or `false`.
    SchemaOrBool(&'static Struct),
    /// A schema or a list of schemas; Go reads anything else as nothing.
    SchemaOrList(&'static Struct),
    /// A schema or a list of property names; Go reads anything else as nothing.
    SchemaOrNames(&'static Struct),
    /// What belongs to the cluster: Go reads it, and it is taken out.
    Discarded(&'static Struct),
}

/// Makes `value` what Go would make of it by decoding it into `to` and printing that, without the noise.
///
/// Every problem is found, not just the first. What Go refuses is taken out, so that the rest can still be looked at.
pub fn conform(value: &mut Value, to: &'static Struct) -> Findings {
    let mut findings = Findings::default();
    structure(value, to, &Path::Root, &mut findings);
    findings
}

/// A struct: known fields in their own form, unknown ones out.
fn structure(value: &mut Value, to: &Struct, at: &Path<'_>, findings: &mut Findings) {
    let Value::Object(entries) = value else {
        findings.wrong_type(at, &format!("an object ({})", to.name), value);
        *value = Value::Null;
        return;
    };
    // Both sides are sorted, so that what was passed need not be looked at again.
    let mut fields = to.fields;
    let mut holes = false;
    for (key, value) in entries.iter_mut() {
        match fields.binary_search_by(|field| field.name.cmp(key)) {
            Ok(index) => {
                field(value, &fields[index], &Path::Key(at, key), findings);
                fields = &fields[index + 1..];
            }
            Err(index) => {
                findings.drop(&Path::Key(at, key));
                *value = Value::Null;
                fields = &fields[index..];
            }
        }
        holes |= value.is_null();
    }
    if holes {
        entries.retain(|_, value| !value.is_null());
    }
    if to.adds {
        add_zeros(entries, to);
    }
}

/// Writes the zeros that an API server would miss.
#[cold]
fn add_zeros(entries: &mut Map<String, Value>, to: &Struct) {
    for field in to.fields {
        if field.zero == Zero::Added && !entries.contains_key(field.name) {
            entries.insert(field.name.to_owned(), zero_of(&field.shape));
        }
    }
}

/// The value of a field; null says that the field is to be taken out.
fn field(value: &mut Value, field: &Field, at: &Path<'_>, findings: &mut Findings) {
    if value.is_null() {
        return;
    }
    conform_to(value, &field.shape, at, findings);
    let droppable = match field.shape {
        Shape::Struct(_) => !field.pointer,
        _ => field.zero == Zero::Dropped,
    };
    if droppable && is_zero(value) {
        *value = Value::Null;
    }
}

/// A value that is not null. Null afterwards says that Go prints nothing.
fn conform_to(value: &mut Value, shape: &Shape, at: &Path<'_>, findings: &mut Findings) {
    match shape {
        Shape::Struct(to) => structure(value, to, at, findings),
        Shape::Discarded(to) => {
            structure(value, to, at, findings);
            *value = Value::Null;
        }
        Shape::List(of) => list(value, of, at, findings),
        Shape::Map(of) => map(value, of, at, findings),
        Shape::String if value.is_string() => {}
        Shape::Bool if value.is_boolean() => {}
        Shape::SchemaOrBool(to) | Shape::SchemaOrList(to) | Shape::SchemaOrNames(to) => {
            schema_or(value, shape, to, at, findings);
        }
        _ => scalar(value, shape, at, findings),
    }
}

fn list(value: &mut Value, of: &Shape, at: &Path<'_>, findings: &mut Findings) {
    let Value::Array(items) = value else {
        findings.wrong_type(at, "a list", value);
        *value = Value::Null;
        return;
    };
    for (index, value) in items.iter_mut().enumerate() {
        item(value, of, &Path::Index(at, index), findings);
    }
}

fn map(value: &mut Value, of: &Shape, at: &Path<'_>, findings: &mut Findings) {
    let Value::Object(entries) = value else {
        findings.wrong_type(at, "an object", value);
        *value = Value::Null;
        return;
    };
    let mut holes = false;
    for (key, value) in entries.iter_mut() {
        item(value, of, &Path::Key(at, key), findings);
        holes |= value.is_null();
    }
    if holes && !matches!(of, Shape::Any) {
        entries.retain(|_, value| !value.is_null());
    }
}

/// An item of a list or a map, where Go reads null as a zero.
fn item(value: &mut Value, of: &Shape, at: &Path<'_>, findings: &mut Findings) {
    if value.is_null() {
        *value = zero_of(of);
    }
    if !value.is_null() {
        conform_to(value, of, at, findings);
    }
    if value.is_null() && !matches!(of, Shape::Any) {
        *value = zero_of(of);
    }
}

/// The fields of a schema that hold a schema or something else.
fn schema_or(
    value: &mut Value,
    shape: &Shape,
    schema: &'static Struct,
    at: &Path<'_>,
    findings: &mut Findings,
) {
    match (shape, &*value) {
        (_, Value::Object(_)) => structure(value, schema, at, findings),
        (Shape::SchemaOrBool(_), Value::Bool(_)) => {}
        (Shape::SchemaOrBool(_), _) => {
            findings.wrong_type(at, "a boolean or a schema", value);
            *value = Value::Null;
        }
        (_, Value::Array(items)) if items.is_empty() => *value = Value::Null,
        (Shape::SchemaOrList(_), Value::Array(_)) => {
            list(value, &Shape::Struct(schema), at, findings);
        }
        (_, Value::Array(_)) => list(value, &Shape::String, at, findings),
        _ => {
            findings.drop(at);
            *value = Value::Null;
        }
    }
}

/// All that holds no Go values of other types.
fn scalar(value: &mut Value, shape: &Shape, at: &Path<'_>, findings: &mut Findings) {
    let outcome = match shape {
        Shape::Any => {
            go_scalars::any(value);
            Ok(())
        }
        Shape::Int32 => go_scalars::integer(value, i32::MIN.into(), i32::MAX.into()),
        Shape::Int64 => go_scalars::integer(value, i64::MIN, i64::MAX),
        Shape::Float => go_scalars::float(value),
        Shape::Bytes => go_scalars::bytes(value),
        Shape::Quantity => go_scalars::quantity(value),
        Shape::IntOrString => go_scalars::int_or_string(value),
        Shape::Time => go_scalars::time(value),
        Shape::Version => go_scalars::version(value),
        Shape::Release => go_scalars::release(value),
        Shape::Bool => Err(Refusal::WrongType("a boolean")),
        _ => Err(Refusal::WrongType("a string")),
    };
    match outcome {
        Ok(()) => return,
        Err(Refusal::WrongType(expected)) => findings.wrong_type(at, expected, value),
        Err(Refusal::Invalid(problem)) => findings.refuse(at, problem),
    }
    *value = Value::Null;
}

/// What Go prints for the zero of a type; null for what it prints as null.
fn zero_of(shape: &Shape) -> Value {
    match shape {
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::Float | Shape::IntOrString => Value::from(0),
        Shape::Quantity => Value::from("0"),
        Shape::Version => Value::from("0.0.0"),
        Shape::String | Shape::Release => Value::from(""),
        Shape::Struct(_) => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::go_types::{
        CLUSTER_SERVICE_VERSION, CUSTOM_RESOURCE_DEFINITION, SUBSCRIPTION_CONFIG,
    };
    use super::*;

    /// Conforms a pod template's spec, and gives it back with what was found.
    fn pod(pod: Value) -> (Value, Findings) {
        let deployment = json!({"name": "d", "spec": {"template": {"spec": pod}}});
        let mut csv = json!({"spec": {"install": {"spec": {"deployments": [deployment]}}}});
        let findings = conform(&mut csv, &CLUSTER_SERVICE_VERSION);
        let pod = csv.pointer_mut("/spec/install/spec/deployments/0/spec/template/spec");
        (pod.map(Value::take).unwrap_or_default(), findings)
    }

    fn schema(schema: Value) -> (Value, Findings) {
        let version = json!({"name": "v1", "schema": {"openAPIV3Schema": schema}});
        let mut crd = json!({"spec": {"versions": [version]}});
        let findings = conform(&mut crd, &CUSTOM_RESOURCE_DEFINITION);
        let schema = crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema");
        (schema.map(Value::take).unwrap_or_default(), findings)
    }

    #[test]
    fn unknown_fields_are_taken_out_and_named() {
        let (pod, findings) =
            pod(json!({"containers": [{"name": "a", "imagePolicy": "x"}], "Volumes": []}));
        assert_eq!(pod, json!({"containers": [{"name": "a"}]}));
        let at = "spec.install.spec.deployments[0].spec.template.spec";
        let expected = [
            format!("{at}.Volumes"),
            format!("{at}.containers[0].imagePolicy"),
        ];
        assert_eq!(findings.dropped, expected);
        assert!(findings.errors.is_empty());
    }

    #[test]
    fn null_is_nothing_in_a_field_and_zero_in_a_list_or_map() {
        let given = json!({"hostname": null, "nodeSelector": {"a": null}, "tolerations": [null], "overhead": {"cpu": null}});
        let expected =
            json!({"nodeSelector": {"a": ""}, "tolerations": [{}], "overhead": {"cpu": "0"}});
        assert_eq!(pod(given).0, expected);
    }

    #[test]
    fn zeros_stay_where_go_has_a_pointer() {
        let given = json!({
            "hostNetwork": false, "hostname": "", "nodeSelector": {}, "tolerations": [],
            "securityContext": {}, "hostUsers": false, "terminationGracePeriodSeconds": 0,
            "containers": [{"resources": {}}], "volumes": [{"emptyDir": {}}],
        });
        let expected = json!({
            "securityContext": {}, "hostUsers": false, "terminationGracePeriodSeconds": 0,
            "containers": [{}], "volumes": [{"emptyDir": {}}],
        });
        assert_eq!(pod(given).0, expected);
    }

    #[test]
    fn zeros_that_an_api_server_would_miss_are_added() {
        let given = json!({"containers": [{"ports": [{"name": "a"}, null], "livenessProbe": {"httpGet": {"port": null}}}]});
        let expected = json!({"containers": [{
            "ports": [{"name": "a", "containerPort": 0}, {"containerPort": 0}],
            "livenessProbe": {"httpGet": {"port": 0}},
        }]});
        assert_eq!(pod(given).0, expected);
        let mut crd =
            json!({"spec": {"versions": [{"name": "v1", "storage": true}]}, "status": {}});
        conform(&mut crd, &CUSTOM_RESOURCE_DEFINITION);
        let expected =
            json!({"spec": {"versions": [{"name": "v1", "served": false, "storage": true}]}});
        assert_eq!(crd, expected);
    }

    #[test]
    fn every_wrong_type_is_reported_with_its_fix() {
        let mut csv = json!({
            "metadata": {"annotations": {"foo": 3, "example.com/bar": true}},
            "spec": {"minKubeVersion": 1.2, "keywords": "a", "cleanup": {"enabled": "true"}},
        });
        let findings = conform(&mut csv, &CLUSTER_SERVICE_VERSION);
        let errors: Vec<String> = findings.errors.iter().map(Finding::to_string).collect();
        let expected = [
            "metadata.annotations[\"example.com/bar\"]: expected a string, found the boolean true; quote it",
            "metadata.annotations.foo: expected a string, found the number 3; quote it",
            "spec.cleanup.enabled: expected a boolean, found the string \"true\"; take its quotes off",
            "spec.keywords: expected a list, found the string \"a\"; make it an item of a list",
            "spec.minKubeVersion: expected a string, found the number 1.2; quote it",
        ];
        assert_eq!(errors, expected);
    }

    #[test]
    fn schemas_pass_through_their_marshallers() {
        let given = json!({
            "additionalProperties": {}, "additionalItems": false, "items": [{"type": "a", "x": 1}, null],
            "dependencies": {"a": ["b", null], "c": {"x": 1}, "d": 7, "e": null},
            "default": {"a": null}, "example": "", "enum": [null, 0], "not": {}, "properties": {}, "required": [],
        });
        let expected = json!({
            "additionalProperties": {}, "additionalItems": false, "items": [{"type": "a"}, {}],
            "dependencies": {"a": ["b", ""], "c": {}},
            "default": {"a": null}, "example": "", "enum": [null, 0], "not": {},
        });
        let (schema, findings) = schema(given);
        assert_eq!(schema, expected);
        assert!(findings.errors.is_empty());
        let lost = findings
            .dropped
            .iter()
            .any(|path| path.ends_with("dependencies.d"));
        assert!(lost, "{:?}", findings.dropped);
    }

    #[test]
    fn schemas_that_are_neither_of_two_things_are_refused() {
        let (_, findings) = schema(json!({"additionalProperties": "true", "items": [1]}));
        assert_eq!(findings.errors.len(), 2, "{:?}", findings.errors);
        // Go reads over this one.
        let (schema, findings) = schema(json!({"items": "x"}));
        assert_eq!((schema, findings.errors.len()), (json!({}), 0));
    }

    #[test]
    fn an_override_tells_an_empty_map_from_none() {
        let mut config =
            json!({"nodeSelector": {}, "affinity": {}, "env": [{"name": "A", "value": ""}]});
        conform(&mut config, &SUBSCRIPTION_CONFIG);
        let expected = json!({"nodeSelector": {}, "affinity": {}, "env": [{"name": "A"}]});
        assert_eq!(config, expected);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let findings = conform(&mut json!([]), &CLUSTER_SERVICE_VERSION);
        let expected =
            "expected an object (operators/v1alpha1 ClusterServiceVersion), found a list";
        assert_eq!(findings.errors[0].to_string(), expected);
    }
}
