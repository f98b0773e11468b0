//! Which labels are meant: the `LabelSelector` of apimachinery (`meta/v1/types.go`), read from JSON and asked.
//!
//! Follows `LabelSelectorAsSelector` (`meta/v1/helpers.go`) and `Requirement.Matches` (`pkg/labels/selector.go`): an
//! empty selector matches everything, and `NotIn` matches what has no such label at all. Whether the absence of a
//! selector means everything or nothing is for its owner to know.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::names::{label_key_error, label_value_error};

/// What labels have to be like. All requirements must be met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    condition: Condition,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

impl LabelSelector {
    /// Reads a selector; null is an empty one.
    ///
    /// # Errors
    /// Everything that an API server would refuse, each beginning with the field: `matchExpressions[0].operator: …`.
    pub fn parse(value: &Value) -> Result<Self, Vec<String>> {
        let (mut requirements, mut errors) = (vec![], vec![]);
        let fields = match value {
            Value::Null => return Ok(Self::default()),
            Value::Object(fields) => fields,
            other => return Err(vec![format!("expected a label selector, found {other}")]),
        };
        for (field, value) in fields {
            match (field.as_str(), value) {
                (_, Value::Null) => {}
                ("matchLabels", Value::Object(labels)) => {
                    for (key, value) in labels {
                        match label(key, value) {
                            Ok(requirement) => requirements.push(requirement),
                            Err(error) => errors.push(format!("matchLabels.{key}: {error}")),
                        }
                    }
                }
                ("matchExpressions", Value::Array(expressions)) => {
                    for (at, value) in expressions.iter().enumerate() {
                        match expression(value) {
                            Ok(requirement) => requirements.push(requirement),
                            Err(error) => errors.push(format!("matchExpressions[{at}]{error}")),
                        }
                    }
                }
                ("matchLabels", other) => {
                    errors.push(format!("matchLabels: expected a map, found {other}"));
                }
                ("matchExpressions", other) => {
                    errors.push(format!("matchExpressions: expected a list, found {other}"));
                }
                (unknown, _) => errors.push(format!(
                    "unknown field `{unknown}`; there are matchLabels and matchExpressions"
                )),
            }
        }
        if errors.is_empty() {
            Ok(Self { requirements })
        } else {
            Err(errors)
        }
    }

    /// Whether labels are as the selector wants them.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.is_met_by(labels.get(&requirement.key)))
    }

    /// Whether it wants nothing, so that it matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl Requirement {
    fn is_met_by(&self, label: Option<&String>) -> bool {
        match &self.condition {
            Condition::In(values) => label.is_some_and(|label| values.contains(label)),
            Condition::NotIn(values) => label.is_none_or(|label| !values.contains(label)),
            Condition::Exists => label.is_some(),
            Condition::DoesNotExist => label.is_none(),
        }
    }
}

/// A label that must be there with this very value.
fn label(key: &str, value: &Value) -> Result<Requirement, String> {
    check_key(key)?;
    let value = label_value(value)?;
    Ok(Requirement {
        key: key.to_owned(),
        condition: Condition::In(vec![value]),
    })
}

/// An expression; what is wrong begins with the field below it.
fn expression(value: &Value) -> Result<Requirement, String> {
    let fields = value
        .as_object()
        .ok_or_else(|| format!(": expected a map, found {value}"))?;
    let known = ["key", "operator", "values"];
    if let Some(unknown) = fields.keys().find(|field| !known.contains(&field.as_str())) {
        let known = known.join(", ");
        return Err(format!(": unknown field `{unknown}`; there are {known}"));
    }
    let key = text(fields, "key")?;
    check_key(key).map_err(|error| format!(".key: {error}"))?;
    let values = values(fields)?;
    let condition = match text(fields, "operator")? {
        "In" if !values.is_empty() => Condition::In(values),
        "NotIn" if !values.is_empty() => Condition::NotIn(values),
        "Exists" if values.is_empty() => Condition::Exists,
        "DoesNotExist" if values.is_empty() => Condition::DoesNotExist,
        operator @ ("In" | "NotIn") => {
            return Err(format!(".values: {operator} needs at least one"));
        }
        operator @ ("Exists" | "DoesNotExist") => {
            return Err(format!(".values: {operator} takes none"));
        }
        other => {
            return Err(format!(
                ".operator: {other:?} is none; there are In, NotIn, Exists and DoesNotExist"
            ));
        }
    };
    Ok(Requirement {
        key: key.to_owned(),
        condition,
    })
}

fn check_key(key: &str) -> Result<(), String> {
    label_key_error(key).map_or(Ok(()), |reason| {
        Err(format!("{key:?} cannot be the key of a label: {reason}"))
    })
}

fn values(fields: &Map<String, Value>) -> Result<Vec<String>, String> {
    let values = match fields.get("values") {
        None | Some(Value::Null) => return Ok(vec![]),
        Some(Value::Array(values)) => values.iter().enumerate(),
        Some(other) => return Err(format!(".values: expected a list, found {other}")),
    };
    values
        .map(|(at, value)| label_value(value).map_err(|error| format!(".values[{at}]: {error}")))
        .collect()
}

fn label_value(value: &Value) -> Result<String, String> {
    let Some(text) = value.as_str() else {
        return Err(format!("expected a text, found {value}; quote it"));
    };
    match label_value_error(text) {
        Some(reason) => Err(format!("{text:?} cannot be the value of a label: {reason}")),
        None => Ok(text.to_owned()),
    }
}

fn text<'a>(fields: &'a Map<String, Value>, field: &str) -> Result<&'a str, String> {
    match fields.get(field) {
        None | Some(Value::Null) => Err(format!(".{field}: it is missing")),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(format!(".{field}: expected a text, found {other}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(text: &str) -> BTreeMap<String, String> {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn requirements_are_met_as_in_a_cluster() {
        let expression = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]});
        for (selector, on, matches) in [
            (json!({}), "", true),
            (json!(null), "tier=web", true),
            (
                json!({"matchLabels": {}, "matchExpressions": null}),
                "tier=web",
                true,
            ),
            (
                json!({"matchLabels": {"tier": "web"}}),
                "tier=web,a=b",
                true,
            ),
            (json!({"matchLabels": {"tier": "web"}}), "tier=db", false),
            (json!({"matchLabels": {"tier": "web"}}), "a=b", false),
            (json!({"matchLabels": {"tier": ""}}), "tier=", true),
            (
                json!({"matchLabels": {"tier": "web", "a": "b"}}),
                "tier=web",
                false,
            ),
            (expression("In", &["web", "db"]), "tier=db", true),
            (expression("In", &["web"]), "tier=db", false),
            (expression("In", &["web"]), "", false),
            (expression("NotIn", &["web"]), "tier=db", true),
            (expression("NotIn", &["web"]), "tier=web", false),
            (expression("NotIn", &["web"]), "", true),
            (expression("Exists", &[]), "tier=", true),
            (expression("Exists", &[]), "", false),
            (expression("DoesNotExist", &[]), "a=b", true),
            (expression("DoesNotExist", &[]), "tier=web", false),
        ] {
            let parsed = LabelSelector::parse(&selector).expect("a selector");
            assert_eq!(parsed.matches(&labels(on)), matches, "{selector} on {on:?}");
        }
    }

    #[test]
    fn an_empty_selector_is_told_from_one_that_wants_something() {
        let is_empty = |value| LabelSelector::parse(&value).map(|selector| selector.is_empty());
        assert_eq!(is_empty(json!({"matchLabels": {}})), Ok(true));
        assert_eq!(is_empty(json!({"matchLabels": {"a": "b"}})), Ok(false));
    }

    #[test]
    fn what_an_api_server_refuses_is_refused_by_its_field() {
        for (selector, begins) in [
            (json!("a=b"), "expected a label selector"),
            (json!({"matchLabel": {}}), "unknown field `matchLabel`"),
            (json!({"matchLabels": []}), "matchLabels: expected a map"),
            (
                json!({"matchLabels": {"a": 1}}),
                "matchLabels.a: expected a text, found 1; quote it",
            ),
            (
                json!({"matchLabels": {"a b": "c"}}),
                "matchLabels.a b: \"a b\" cannot be the key",
            ),
            (
                json!({"matchLabels": {"a": "-"}}),
                "matchLabels.a: \"-\" cannot be the value",
            ),
            (
                json!({"matchLabels": {"A/b": "c"}}),
                "matchLabels.A/b: \"A/b\" cannot be the key",
            ),
            (
                json!({"matchExpressions": {}}),
                "matchExpressions: expected a list",
            ),
            (
                json!({"matchExpressions": ["a"]}),
                "matchExpressions[0]: expected a map",
            ),
            (
                json!({"matchExpressions": [{"operator": "Exists"}]}),
                "matchExpressions[0].key: it is missing",
            ),
            (
                json!({"matchExpressions": [{"key": "a"}]}),
                "matchExpressions[0].operator: it is missing",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "in"}]}),
                "matchExpressions[0].operator: \"in\" is none",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
                "matchExpressions[0].values: In needs at least one",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
                "matchExpressions[0].values: Exists takes none",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", 2]}]}),
                "matchExpressions[0].values[1]: expected a text",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists", "value": "b"}]}),
                "matchExpressions[0]: unknown field `value`",
            ),
        ] {
            let errors = LabelSelector::parse(&selector).expect_err("no selector");
            assert!(
                errors.len() == 1 && errors[0].starts_with(begins),
                "{selector}: {errors:?}"
            );
        }
        let two = json!({"matchLabels": {"a": 1, "b": 2}});
        assert_eq!(
            LabelSelector::parse(&two).map_err(|errors| errors.len()),
            Err(2)
        );
    }
}
