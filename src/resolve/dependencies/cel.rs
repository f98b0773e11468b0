//! Rules in CEL on the properties of a bundle: operator-framework/api `pkg/constraints/cel.go`.
//!
//! A rule sees the list `properties`, each a map of `type` and `value`, and the function `semver_compare`. A rule that
//! fails on a bundle does not hold for it. Unlike OLM's CEL, types are not checked before a rule runs, so a rule that is
//! no condition holds for nothing instead of refusing everything; time stamps and durations are not known.
//!
//! Rules come with the catalog, so they are bounded: in length, in nesting (by the parser), and in what they can cost,
//! which is worked out from the rule and the size of the properties before it runs.

use std::{collections::HashMap, fmt, sync::Arc};

use cel::{Context, ExecutionError, Program, Value, objects::Key};
use serde_json::Value as Json;

use self::cost::Cost;
use crate::{
    catalog::{
        Property,
        package::{GVK_REQUIRED_PROPERTY, PACKAGE_REQUIRED_PROPERTY},
    },
    versions,
};

mod cost;

/// Bytes of one rule; the longest in a real catalog has a few hundred.
const MAX_RULE_BYTES: usize = 4096;

/// How much may still be spent on testing bundles; one is about a look at one value.
#[derive(Debug)]
pub(super) struct Work(u64);

/// That nothing is left to spend.
#[derive(Debug)]
pub(super) struct Exhausted;

/// A rule that can be run.
#[derive(Debug)]
pub(super) struct Rule {
    text: String,
    program: Program,
}

impl Work {
    /// What testing may cost until the whole is refused, a few seconds.
    pub(super) const LIMIT: Self = Self(50_000_000);

    /// Takes away what something costs.
    ///
    /// # Errors
    /// When less is left.
    pub(super) fn spend(&mut self, cost: u64) -> Result<(), Exhausted> {
        self.0 = self.0.checked_sub(cost).ok_or(Exhausted)?;
        Ok(())
    }
}

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    /// When it is too long, is no CEL, or names something that no rule knows.
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        if text.len() > MAX_RULE_BYTES {
            return Err(format!(
                "the CEL rule is longer than {MAX_RULE_BYTES} bytes"
            ));
        }
        let program = Program::compile(text).map_err(|error| {
            let error = error.to_string();
            format!("CEL: {}", error.lines().next().unwrap_or_default())
        })?;
        let text = text.to_owned();
        cost::of(program.expression(), Cost::of_properties(&[]))
            .map_err(|name| format!("CEL: undeclared reference to '{name}' (in container '')"))?;
        Ok(Self { text, program })
    }

    /// Whether it holds for the properties of a bundle.
    ///
    /// # Errors
    /// When no work is left to find out.
    pub(super) fn holds(
        &self,
        properties: &[Property],
        work: &mut Work,
    ) -> Result<bool, Exhausted> {
        let repeated = properties.iter().filter(|property| is_repeated(property));
        let properties: Vec<_> = properties.iter().chain(repeated).collect();
        let given = Cost::of_properties(&properties);
        let cost = cost::of(self.program.expression(), given);
        work.spend(cost.unwrap_or(u64::MAX).saturating_add(given.weight))?;
        let mut context = Context::default();
        let list = properties
            .into_iter()
            .map(value_of_property)
            .collect::<Vec<_>>();
        context.add_variable_from_value("properties", Value::List(Arc::new(list)));
        let added = context.add_function("semver_compare", semver_compare);
        let result = added
            .ok()
            .and_then(|()| self.program.execute(&context).ok());
        Ok(matches!(result, Some(Value::Bool(true))))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As it was written, so that it can be copied, but for what could forge a line.
        let text = self.text.chars().map(|character| {
            if character.is_control() {
                character.escape_default().to_string()
            } else {
                character.to_string()
            }
        });
        write!(f, "`{}`", text.collect::<String>())
    }
}

/// The registry tells OLM these once as properties and once as dependencies, and a rule sees both.
fn is_repeated(property: &Property) -> bool {
    matches!(
        property.kind.as_str(),
        GVK_REQUIRED_PROPERTY | PACKAGE_REQUIRED_PROPERTY
    )
}

/// -1, 0 or 1, as blang's `Compare` on what its `ParseTolerant` reads.
fn semver_compare(one: Value, other: Value) -> Result<Value, ExecutionError> {
    let order = versions::compare(&version_of(&one)?, &version_of(&other)?);
    Ok(Value::Int(order as i64))
}

fn version_of(value: &Value) -> Result<versions::Version, ExecutionError> {
    let text = match value {
        Value::String(text) => text.to_string(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        _ => String::new(),
    };
    versions::parse_tolerant(&text)
        .map_err(|error| ExecutionError::function_error("semver_compare", error))
}

fn value_of_property(property: &Property) -> Value {
    let kind = Value::String(Arc::new(property.kind.clone()));
    map([("type", kind), ("value", value_of(&property.value))])
}

/// Numbers are floating point, as Go's decoder makes them. The depth is that of the document, which its reader bounds.
fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Value::String(Arc::new(text.clone())),
        Json::Array(list) => Value::List(Arc::new(list.iter().map(value_of).collect())),
        Json::Object(fields) => map(fields.iter().map(|(key, value)| (key, value_of(value)))),
    }
}

fn map<K: Into<String>>(fields: impl IntoIterator<Item = (K, Value)>) -> Value {
    let keyed = |(key, value): (K, Value)| (Key::String(Arc::new(key.into())), value);
    let map: HashMap<_, _> = fields.into_iter().map(keyed).collect();
    Value::Map(cel::objects::Map { map: Arc::new(map) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(rule: &str, value: Json) -> bool {
        let kind = "example".to_owned();
        let rule = Rule::compile(rule).unwrap_or_else(|error| panic!("{error}"));
        let mut work = Work::LIMIT;
        rule.holds(&[Property { kind, value }], &mut work)
            .expect("work is left")
    }

    /// Each was run by operator-framework/api's `CelEnvironment` with the same answer.
    #[test]
    fn versions_are_compared_leniently_whatever_their_type() {
        let compares = |value: Json, rule: &str| {
            holds(
                &format!("semver_compare(properties[0].value, {rule}"),
                value,
            )
        };
        assert!(compares(json!("v1.2"), "'1.2.0') == 0"));
        assert!(compares(json!(1.5), "'1.5.0') == 0"));
        assert!(compares(json!(2), "'10') == -1"));
        assert!(compares(json!("1.0.0+b2"), "'1.0.0+b1') == 0"));
        assert!(!compares(json!("one"), "'1.0.0') < 2"));
    }

    #[test]
    fn a_rule_that_is_no_condition_holds_for_nothing() {
        assert!(!holds("properties[0].type", json!(true)));
        assert!(!holds("properties[7].value", json!(true)));
        assert!(holds("properties[0].value", json!(true)));
    }

    #[test]
    fn rules_name_only_what_there_is() {
        for (rule, name) in [
            ("other == 1", "other"),
            ("frob(properties)", "frob"),
            ("properties.all(p, q)", "q"),
            ("x.Type{}", "x.Type"),
        ] {
            let refused = Rule::compile(rule).unwrap_err();
            assert!(
                refused.contains(&format!("undeclared reference to '{name}'")),
                "{refused}"
            );
        }
    }

    /// None of these may end the program: the stack of a test is smaller than that of a program.
    #[test]
    fn deep_rules_are_refused_or_run() {
        for (open, inner, close) in [
            ("(", "true", ")"),
            ("[", "1", "]"),
            ("!", "true", ""),
            ("-", "1", ""),
            ("1+", "1", ""),
            ("true&&", "true", ""),
            ("true||", "true", ""),
            ("true?true:", "true", ""),
            ("", "properties", ".a"),
            ("", "properties", "[0]"),
            ("{1:", "1", "}"),
            ("int(", "1", ")"),
        ] {
            let times = (MAX_RULE_BYTES - inner.len()) / (open.len() + close.len());
            for times in [times, 90] {
                let rule = format!("{}{inner}{}", open.repeat(times), close.repeat(times));
                if let Ok(rule) = Rule::compile(&rule) {
                    let _ = rule.holds(&[], &mut Work(10_000_000));
                }
            }
        }
    }

    #[test]
    fn rules_that_cost_too_much_are_not_run() {
        let list = Property {
            kind: "list".to_owned(),
            value: json!(vec![1; 100]),
        };
        for rule in [
            format!("[properties]{}.size() > 0", ".map(a, a + a)".repeat(60)),
            format!(
                "{}true{}",
                "properties[0].value.all(x, ".repeat(8),
                ")".repeat(8)
            ),
            r"'a'.matches('(\\w{30}){30}')".to_owned(),
        ] {
            let rule = Rule::compile(&rule).unwrap_or_else(|error| panic!("{error}"));
            let held = rule.holds(std::slice::from_ref(&list), &mut Work(100_000));
            assert!(held.is_err(), "{rule}");
        }
    }
}
