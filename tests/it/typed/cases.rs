//! Cases made to be difficult, and what is expected of them.

use serde_json::{Value, json};

/// Which of Go's answers a case is to get, and whether ours is the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Expected {
    /// Both accept with the same value, or both refuse.
    Same,
    /// Go accepts what we refuse on purpose.
    OnlyGoAccepts,
}
use Expected::{OnlyGoAccepts, Same};

/// All cases made by hand.
pub(crate) fn cases() -> Vec<(Value, Expected)> {
    [
        nulls(),
        zeros(),
        unknown_fields(),
        wrong_types(),
        numbers(),
        amounts(),
        integers_or_strings(),
        schemas(),
        versions_times_bytes(),
    ]
    .concat()
}

#[rustfmt::skip]
fn nulls() -> Vec<(Value, Expected)> {
    vec![
        (json!({"kind": "ClusterServiceVersion", "apiVersion": null, "metadata": null, "spec": null, "status": null}), Same),
        (metadata(json!({"creationTimestamp": null, "labels": null, "annotations": {"a": null}, "ownerReferences": [null]})), Same),
        (pod(json!({"containers": null, "nodeSelector": {"a": null}, "volumes": [null], "tolerations": [null, {}]})), Same),
        (container(json!({"args": ["a", null], "ports": [null, {"containerPort": null}], "env": [{"name": null, "value": null}]})), Same),
        (limits(Value::Null), Same),
        (deployment(json!({"replicas": null, "strategy": null, "selector": null, "template": null})), Same),
        (schema(json!({"default": null, "enum": [null, "a"], "items": null, "not": null, "properties": {"a": null}, "required": [null]})), Same),
        (schema(json!({"items": {"properties": {"a": null}, "enum": [null], "required": [null], "default": null, "allOf": [null]}})), Same),
        (json!({"kind": "CustomResourceDefinition", "status": {"conditions": null, "storedVersions": ["v1"]}, "metadata": {"annotations": {}}}), Same),
        (crd(json!({"versions": [null, {"name": null, "served": null, "storage": true}]})), Same),
    ]
}

#[rustfmt::skip]
fn zeros() -> Vec<(Value, Expected)> {
    vec![
        (deployment(json!({"replicas": 0, "strategy": {}, "selector": {}, "paused": false, "minReadySeconds": 0, "template": {}})), Same),
        (deployment(json!({"strategy": {"rollingUpdate": {}}, "revisionHistoryLimit": 0, "template": {"metadata": {}, "spec": {}}})), Same),
        (pod(json!({"volumes": [{"name": "", "emptyDir": {}}, {"name": "b", "emptyDir": {"sizeLimit": 0}}], "securityContext": {}, "affinity": {}})), Same),
        (pod(json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}, "topologyKey": ""}]}}})), Same),
        (container(json!({"resources": {}, "image": "", "command": [], "securityContext": {}, "tty": false, "ports": [{}]})), Same),
        (container(json!({"livenessProbe": {"httpGet": {}}, "readinessProbe": {"tcpSocket": {}}, "startupProbe": {"grpc": {"service": ""}, "timeoutSeconds": 0}})), Same),
        (container(json!({"env": [{"name": "A", "value": "", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]})), Same),
        (container(json!({"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1.0"}}}]})), Same),
        (csv(json!({"install": {"spec": {"permissions": [{"rules": [{"verbs": [], "apiGroups": []}, {}, null]}, {"rules": []}]}}})), Same),
        (csv(json!({"webhookdefinitions": [{"containerPort": 0, "targetPort": 0, "rules": [], "admissionReviewVersions": [], "objectSelector": {}, "timeoutSeconds": 0}]})), Same),
        (csv(json!({"cleanup": {"enabled": false}, "installModes": [{"type": "x"}], "customresourcedefinitions": {}, "provider": {}})), Same),
        (csv(json!({"customresourcedefinitions": {"owned": [{"specDescriptors": [{"path": "a", "value": {"b": null, "c": 1.0}}, {"path": "", "value": null}, {"value": ""}]}]}})), Same),
        (crd(json!({"conversion": {"webhook": {"clientConfig": {"service": {"port": 0}, "caBundle": ""}, "conversionReviewVersions": []}}, "preserveUnknownFields": false})), Same),
        (crd(json!({"versions": [{"subresources": {"status": {}, "scale": {}}, "additionalPrinterColumns": [{"priority": 0}], "deprecationWarning": ""}]})), Same),
        (crd(json!({"versions": [{"subresources": {}, "schema": {}, "selectableFields": [{}]}]})), Same),
        (config(json!({"nodeSelector": {}, "env": [], "affinity": {}, "resources": {}, "selector": {}, "volumes": [{"name": "a", "configMap": {"defaultMode": 0, "optional": false}}]})), Same),
    ]
}

#[rustfmt::skip]
fn unknown_fields() -> Vec<(Value, Expected)> {
    vec![
        (container(json!({"imagePullPolicyy": "Always", "env": [{"name": "A", "valuefrom": {}, "Value": "x"}], "lifecycle": {"preStop": {"nope": 1}}})), Same),
        (crd(json!({"version": "v1", "validation": {"openAPIV3Schema": {}}, "subresources": {"status": {}}, "additionalPrinterColumns": [], "versions": []})), Same),
        (schema(json!({"x-kubernetes-unknown": true, "properties": {"x-a": {"x-b": 1}}, "additionalProperties": {"x-c": 1}, "items": {"Type": "string"}})), Same),
    ]
}

#[rustfmt::skip]
fn wrong_types() -> Vec<(Value, Expected)> {
    vec![
        (metadata(json!({"annotations": {"foo": 3, "bar": true}})), Same),
        (metadata(json!({"labels": ["a"]})), Same),
        (container(json!({"env": [{"name": "A", "value": 1}, {"name": "B", "value": true}]})), Same),
        (container(json!({"args": "one", "command": [1], "ports": {"containerPort": 1}})), Same),
        (container(json!({"ports": [{"containerPort": "8080"}]})), Same),
        (container(json!("busybox")), Same),
        (pod(json!({"hostNetwork": "true"})), Same),
        (pod(json!({"nodeSelector": {"a": true}})), Same),
        (json!({"kind": "ClusterServiceVersion", "spec": [], "metadata": "x"}), Same),
        (schema(json!({"maxLength": "5"})), Same),
        (schema(json!({"properties": []})), Same),
        (schema(json!({"required": true})), Same),
        (schema(json!({"items": {"maxLength": "5"}})), Same),
        (schema(json!({"additionalProperties": {"items": {"required": [true]}}})), Same),
    ]
}

#[rustfmt::skip]
fn numbers() -> Vec<(Value, Expected)> {
    vec![
        (deployment(json!({"replicas": 2.0})), Same),
        (deployment(json!({"replicas": 2.5})), Same),
        (deployment(json!({"replicas": i32::MAX})), Same),
        (deployment(json!({"replicas": 3_000_000_000_i64})), OnlyGoAccepts),
        (deployment(json!({"progressDeadlineSeconds": 1e10})), OnlyGoAccepts),
        (pod(json!({"activeDeadlineSeconds": i64::MAX, "terminationGracePeriodSeconds": i64::MIN})), Same),
        (pod(json!({"activeDeadlineSeconds": u64::MAX})), OnlyGoAccepts),
        (schema(json!({"maxLength": 9.0, "minLength": 1e3, "maximum": 5, "minimum": -0.5, "multipleOf": 1e-7})), Same),
        (schema(json!({"maximum": i64::MAX, "minimum": i64::MIN, "multipleOf": 9_007_199_254_740_993_i64})), Same),
        (schema(json!({"maximum": u64::MAX, "minimum": 1e22, "multipleOf": 1e20})), Same),
        (schema(json!({"items": {"maxLength": 9.0, "maximum": i64::MAX, "minimum": 1e3}})), Same),
        (schema(json!({"items": {"maxLength": 9.5}})), Same),
        (schema(json!({"items": {"maxLength": 1e300}})), Same),
        (schema(json!({"default": {"a": 1.0, "b": [1e3, 9_223_372_036_854_775_808_u64, 1e-9], "c": i64::MAX}})), Same),
    ]
}

#[rustfmt::skip]
fn amounts() -> Vec<(Value, Expected)> {
    vec![
        (limits(json!(1)), Same), (limits(json!(0)), Same), (limits(json!(0.5)), Same), (limits(json!(1000)), Same),
        (limits(json!(1.0)), Same), (limits(json!(1e21)), Same), (limits(json!(1e-7)), Same), (limits(json!(2.5e22)), Same),
        (limits(json!(-3)), Same), (limits(json!(i64::MAX)), Same), (limits(json!(0.1)), Same), (limits(json!(1e9)), Same),
        (limits(json!(1_073_741_824)), Same), (limits(json!(1.2345678901234)), Same), (limits(json!(123_456.789)), Same),
        (limits(json!(true)), Same), (limits(json!({})), Same), (limits(json!([])), Same), (limits(json!("")), Same),
        (limits(json!("1 Gi")), Same), (limits(json!("1gb")), Same), (limits(json!(" 1Gi ")), Same), (limits(json!("\t1")), Same),
    ]
}

#[rustfmt::skip]
fn integers_or_strings() -> Vec<(Value, Expected)> {
    vec![
        (deployment(json!({"strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1.0}}})), Same),
        (deployment(json!({"strategy": {"rollingUpdate": {"maxSurge": "", "maxUnavailable": 0}}})), Same),
        (deployment(json!({"strategy": {"rollingUpdate": {"maxSurge": 1.5}}})), Same),
        (deployment(json!({"strategy": {"rollingUpdate": {"maxSurge": true}}})), Same),
        (deployment(json!({"strategy": {"rollingUpdate": {"maxSurge": 3_000_000_000_i64}}})), Same),
    ]
}

#[rustfmt::skip]
fn schemas() -> Vec<(Value, Expected)> {
    vec![
        (schema(json!({"additionalProperties": true, "additionalItems": false})), Same),
        (schema(json!({"additionalProperties": {}, "items": {}, "not": {}, "externalDocs": {}})), Same),
        (schema(json!({"additionalProperties": "true"})), Same),
        (schema(json!({"additionalProperties": []})), Same),
        (schema(json!({"items": true})), Same),
        (schema(json!({"items": "x"})), Same),
        (schema(json!({"items": []})), Same),
        (schema(json!({"items": [{"type": "string"}, null, {}]})), Same),
        (schema(json!({"items": [1]})), Same),
        (schema(json!({"dependencies": {"a": ["b", null], "c": {"type": "object"}, "d": [], "e": null, "f": 1, "g": {}}})), Same),
        (schema(json!({"dependencies": {"a": [1]}})), Same),
        (schema(json!({"properties": {}, "required": [], "enum": [], "allOf": [{}], "description": "", "$ref": "", "nullable": false, "x-kubernetes-preserve-unknown-fields": false})), Same),
        (schema(json!({"default": {}, "example": "", "enum": [0, false, "", [], {}]})), Same),
        (schema(json!({"x-kubernetes-validations": [{"message": ""}, null, {"rule": "a", "reason": ""}], "x-kubernetes-list-map-keys": []})), Same),
        (schema(json!({"patternProperties": {"a": {"items": {"items": {"additionalProperties": {"properties": {"b": {}}}}}}}, "definitions": {"a": {}}})), Same),
    ]
}

#[rustfmt::skip]
fn versions_times_bytes() -> Vec<(Value, Expected)> {
    vec![
        (csv(json!({"version": "1.0.00-a+01"})), Same), (csv(json!({"version": "v1.2"})), Same), (csv(json!({"version": " 01.02.03 "})), Same), (csv(json!({"version": "1.2.3-rc.1+b.01"})), Same),
        (csv(json!({"version": ""})), Same), (csv(json!({"version": "1.2-rc"})), Same), (csv(json!({"version": "1.2.3-01"})), Same),
        (csv(json!({"version": "vv1"})), Same), (csv(json!({"version": 1.2})), Same), (csv(json!({"version": "1.2.x"})), Same),
        (csv(json!({"version": "18446744073709551616.0.0"})), Same), (csv(json!({"version": "1.0.00"})), Same), (csv(json!({"version": "1..3"})), Same),
        (csv(json!({"version": "0.0.0"})), Same), (csv(json!({"version": "1.2.3.4"})), Same), (csv(json!({"version": "1.2.3-a..b"})), Same),
        (csv(json!({"version": "1.0.0-18446744073709551616"})), Same), (csv(json!({"version": "1.0.0-18446744073709551615"})), Same),
        (csv(json!({"release": "1.a"})), Same), (csv(json!({"release": ""})), Same), (csv(json!({"release": "01"})), Same), (csv(json!({"release": 1})), Same),
        (csv(json!({"release": "99999999999999999999"})), Same),
        (metadata(json!({"creationTimestamp": "2020-01-02T03:04:05Z"})), Same),
        (metadata(json!({"creationTimestamp": "2020-01-02T03:04:05.678+02:30"})), Same),
        (metadata(json!({"creationTimestamp": "0001-01-01T00:00:00Z", "deletionTimestamp": "0001-01-01T00:00:00Z"})), Same),
        (metadata(json!({"creationTimestamp": "2020-01-02"})), Same), (metadata(json!({"creationTimestamp": "2020-02-30T00:00:00Z"})), Same),
        (metadata(json!({"creationTimestamp": "2020-01-02t03:04:05z"})), Same), (metadata(json!({"creationTimestamp": "2020-01-02 03:04:05Z"})), Same),
        (metadata(json!({"creationTimestamp": "2020-01-02T03:04:60Z"})), Same), (metadata(json!({"creationTimestamp": ""})), Same),
        (metadata(json!({"creationTimestamp": "2020-01-02T24:00:00Z"})), Same), (metadata(json!({"creationTimestamp": "2020-01-02T03:04:05,5Z"})), Same),
        (metadata(json!({"creationTimestamp": "2020-01-02T03:04:05.Z"})), Same), (metadata(json!({"creationTimestamp": "0000-01-01T00:00:00Z"})), Same),
        (metadata(json!({"creationTimestamp": 1_577_934_245})), Same),
        (metadata(json!({"managedFields": [{"time": "2020-01-02T03:04:05Z", "fieldsV1": {"f:a": {".": {}}}}], "generation": 0, "finalizers": []})), Same),
        (ca_bundle(json!("YWJj")), Same), (ca_bundle(json!("YWJj\nYWI=\r\n")), Same), (ca_bundle(json!("YWI")), Same), (ca_bundle(json!("YW=Jj")), Same),
        (ca_bundle(json!("YWJ=")), Same), (ca_bundle(json!(" YWJj")), Same), (ca_bundle(json!("-_-_")), Same), (ca_bundle(json!(7)), Same),
        (ca_bundle(json!([97])), OnlyGoAccepts),
    ]
}

fn container(container: Value) -> Value {
    pod(json!({"containers": [container]}))
}

fn pod(pod: Value) -> Value {
    deployment(json!({"template": {"spec": pod}}))
}

fn deployment(deployment: Value) -> Value {
    csv(json!({"install": {"spec": {"deployments": [{"name": "d", "spec": deployment}]}}}))
}

fn csv(spec: Value) -> Value {
    json!({"kind": "ClusterServiceVersion", "spec": spec})
}

fn metadata(metadata: Value) -> Value {
    json!({"kind": "ClusterServiceVersion", "metadata": metadata})
}

fn crd(spec: Value) -> Value {
    json!({"kind": "CustomResourceDefinition", "spec": spec})
}

fn schema(schema: Value) -> Value {
    crd(json!({"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}))
}

pub(crate) fn limits(amount: Value) -> Value {
    container(json!({"resources": {"limits": {"cpu": amount}}}))
}

fn config(mut config: Value) -> Value {
    config["kind"] = json!("SubscriptionConfig");
    config
}

fn ca_bundle(text: Value) -> Value {
    crd(json!({"conversion": {"webhook": {"clientConfig": {"caBundle": text}}}}))
}

/// Quantities in all spellings that a few signs, digits and units make.
pub(crate) fn quantities() -> Vec<Value> {
    let signs = ["", "-", "+"];
    let digits = [
        "",
        "0",
        "1",
        "8",
        "05",
        "10",
        "100",
        "1000",
        "1024",
        "1025",
        "2048",
        "999999999999999999",
        "1000000000000000000",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "0.5",
        "0.1",
        "1.5",
        "1.50",
        "1.500",
        "0.000000001",
        "0.0000000001",
        "123.456",
        "1.",
        ".5",
        ".",
        "0.0",
        "123456789.123456789",
        "1.2345678901234567",
        "1.2.3",
        "12345678901234567890.5",
    ];
    let units = [
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e",
        "e0", "e3", "E3", "e+3", "e-3", "e-9", "e-10", "e1", "e2", "e18", "e21", "e100", "e-400",
        "mm", "K", "ki", "B", "e3m", "i", " ", "e3.5",
    ];
    let mut all = Vec::new();
    for sign in signs {
        for number in digits {
            all.extend(units.map(|unit| json!(format!("{sign}{number}{unit}"))));
        }
    }
    all.retain(|text| !beyond_exa(text.as_str().unwrap_or_default()));
    all
}

/// Whether Go prints an amount without its unit, having none for 10^21 and more: `1000E` becomes `1`.
fn beyond_exa(text: &str) -> bool {
    let unsigned = text.trim_start_matches(['-', '+']);
    let unit = unsigned.trim_start_matches(|c: char| c.is_ascii_digit());
    let zeros = unsigned.matches('0').count();
    unsigned.starts_with("1000")
        && (zeros == 3 && unit == "E" || zeros == 18 && "kMGTPE".contains(unit) && !unit.is_empty())
}
