//! What a bundle needs: its properties `olm.gvk.required`, `olm.package.required`, `olm.label.required` and
//! `olm.constraint`, in order of appearance; properties of other types require nothing.
//!
//! They are read as OLM's resolver reads them (`resolver.go` `predicateForProperty`, operator-framework/api
//! `pkg/constraints`): names of fields in any case, unknown fields an error in `olm.constraint` only, and one that
//! cannot be read an error for everything that could lead to the bundle. Of several members that a constraint sets, the
//! first of gvk, package, all, any, not and cel counts. Unlike OLM's, constraints may not nest deeper than
//! [`MAX_NESTING`].

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{cel::Rule, predicate::Predicate};
use crate::{
    catalog::{
        Gvk, Property,
        package::{
            CONSTRAINT_PROPERTY, GVK_REQUIRED_PROPERTY, LABEL_REQUIRED_PROPERTY,
            PACKAGE_REQUIRED_PROPERTY, field,
        },
    },
    versions::Range,
};

/// Bytes of one `olm.constraint`, OLM's own bound.
const MAX_CONSTRAINT_BYTES: usize = 2 << 16;
/// Constraints within constraints.
const MAX_NESTING: usize = 32;
/// Characters of a requirement in words.
const MAX_WORDS: usize = 400;

/// Something that a bundle needs.
#[derive(Debug)]
pub(super) struct Requirement {
    /// What one bundle must be.
    pub(super) predicate: Predicate,
    /// What is needed, as the object of "needs".
    pub(super) words: String,
}

/// Whether a property is a requirement.
pub(super) fn is_requirement(property: &Property) -> bool {
    matches!(
        property.kind.as_str(),
        GVK_REQUIRED_PROPERTY
            | PACKAGE_REQUIRED_PROPERTY
            | LABEL_REQUIRED_PROPERTY
            | CONSTRAINT_PROPERTY
    )
}

/// Reads a property for which [`is_requirement`] holds.
///
/// # Errors
/// When OLM could not read it either; the text names the type of the property.
pub(super) fn parse(property: &Property) -> Result<Requirement, String> {
    let mut note = String::new();
    let value = &property.value;
    let predicate = match property.kind.as_str() {
        GVK_REQUIRED_PROPERTY => fields_of(value).and_then(|fields| api(&fields)),
        PACKAGE_REQUIRED_PROPERTY => fields_of(value).and_then(|fields| package(&fields)),
        LABEL_REQUIRED_PROPERTY => {
            fields_of(value).and_then(|fields| Ok(Predicate::Label(text(&fields, "label")?)))
        }
        _ => constraint(value, 0, &mut note),
    };
    let predicate = predicate.map_err(|error| format!("{}: {error}", property.kind))?;
    let mut words = predicate.words();
    if !note.is_empty() {
        words.push_str(&format!(" ({note:?})"));
    }
    let words = shortened(words);
    Ok(Requirement { predicate, words })
}

/// One constraint; `note` becomes its failure message.
fn constraint(value: &Value, nesting: usize, note: &mut String) -> Result<Predicate, String> {
    if nesting == 0 && value.to_string().len() > MAX_CONSTRAINT_BYTES {
        return Err(format!(
            "olm.constraint value is greater than max constraint size {MAX_CONSTRAINT_BYTES} bytes"
        ));
    }
    if nesting > MAX_NESTING {
        return Err(format!("constraints are nested deeper than {MAX_NESTING}"));
    }
    let members = ["gvk", "package", "all", "any", "not", "cel"];
    let known = ["failureMessage"].into_iter().chain(members);
    let fields = known_fields(value, &known.collect::<Vec<_>>())?;
    *note = text(&fields, "failureMessage")?;
    let mut read = vec![];
    for member in members {
        if let Some(value) = field(&fields, member) {
            read.push(self::member(member, value, nesting)?);
        }
    }
    // Every member must be readable, but only the first counts.
    let first = read.into_iter().next();
    first.ok_or_else(|| "constraint is empty".to_owned())
}

fn member(name: &str, value: &Value, nesting: usize) -> Result<Predicate, String> {
    let parts = || -> Result<Vec<Predicate>, String> {
        let fields = known_fields(value, &["constraints"])?;
        let list = match field(&fields, "constraints") {
            None => return Ok(vec![]),
            Some(Value::Array(list)) => list,
            Some(_) => return Err("constraints is not a list".to_owned()),
        };
        let part = |value| constraint(value, nesting + 1, &mut String::new());
        list.iter().map(part).collect()
    };
    match name {
        "gvk" => api(&*known_fields(value, &["group", "version", "kind"])?),
        "package" => package(&*known_fields(value, &["packageName", "versionRange"])?),
        "all" => Ok(Predicate::All(parts()?)),
        "any" => Ok(Predicate::Any(parts()?)),
        "not" => Ok(Predicate::Not(parts()?)),
        _ => {
            let rule = text(&*known_fields(value, &["rule"])?, "rule")?;
            Ok(Predicate::Cel(Rule::compile(&rule)?))
        }
    }
}

fn api(fields: &Fields) -> Result<Predicate, String> {
    Ok(Predicate::Api(Gvk {
        group: text(fields, "group")?,
        version: text(fields, "version")?,
        kind: text(fields, "kind")?,
    }))
}

fn package(fields: &Fields) -> Result<Predicate, String> {
    let name = text(fields, "packageName")?;
    let range = text(fields, "versionRange")?;
    let range = Range::parse(&range).map_err(|error| format!("package {name:?}: {error}"))?;
    Ok(Predicate::Package { name, range })
}

type Fields = Map<String, Value>;

/// The fields of a map; none of null, as in Go.
fn fields_of(value: &Value) -> Result<Cow<'_, Fields>, String> {
    match value {
        Value::Object(fields) => Ok(Cow::Borrowed(fields)),
        Value::Null => Ok(Cow::default()),
        _ => Err("the value is not a map".to_owned()),
    }
}

fn known_fields<'v>(value: &'v Value, known: &[&str]) -> Result<Cow<'v, Fields>, String> {
    let fields = fields_of(value)?;
    let is_known = |key: &str| known.iter().any(|known| known.eq_ignore_ascii_case(key));
    match fields.keys().find(|key| !is_known(key)) {
        Some(key) => Err(format!("unknown field {key:?}")),
        None => Ok(fields),
    }
}

/// A text; empty when it is missing.
fn text(fields: &Fields, name: &str) -> Result<String, String> {
    match field(fields, name) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("{name} is not text")),
    }
}

fn shortened(words: String) -> String {
    match words.char_indices().nth(MAX_WORDS) {
        Some((end, _)) => format!("{}…", words.get(..end).unwrap_or_default()),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(kind: &str, value: Value) -> Result<String, String> {
        let kind = kind.to_owned();
        parse(&Property { kind, value }).map(|requirement| requirement.words)
    }

    #[test]
    fn fields_are_read_as_go_reads_them() {
        let words = read(
            "olm.gvk.required",
            json!({"Group": "example.com", "VERSION": "v1", "kind": "Heater", "more": 1}),
        );
        assert_eq!(words.as_deref(), Ok("Heater (example.com/v1)"));
        let words = read("olm.gvk.required", json!({"kind": "Node", "version": null}));
        assert_eq!(words.as_deref(), Ok("Node (/)"));
        let refused = read("olm.gvk.required", json!({"kind": 1}));
        assert_eq!(
            refused,
            Err("olm.gvk.required: kind is not text".to_owned())
        );
        let refused = read("olm.label.required", json!("heats"));
        assert_eq!(
            refused,
            Err("olm.label.required: the value is not a map".to_owned())
        );
    }

    #[test]
    fn the_first_member_of_a_constraint_counts_but_all_are_read() {
        let both =
            json!({"any": {"constraints": []}, "gvk": {"kind": "A", "group": "b", "version": "c"}});
        assert_eq!(read("olm.constraint", both).as_deref(), Ok("A (b/c)"));
        let broken = json!({"any": {"constraints": {}}, "gvk": {"kind": "A"}});
        assert!(read("olm.constraint", broken).is_err());
        let unknown = json!({"gvk": {"kind": "A", "name": "b"}});
        let refused = Err("olm.constraint: unknown field \"name\"".to_owned());
        assert_eq!(read("olm.constraint", unknown), refused);
        let null = json!({"gvk": null});
        let refused = Err("olm.constraint: constraint is empty".to_owned());
        assert_eq!(read("olm.constraint", null), refused);
    }

    #[test]
    fn constraints_are_bounded() {
        let nested = |depth: usize| {
            let inner = json!({"gvk": {"kind": "A", "group": "b", "version": "c"}});
            (0..depth).fold(inner, |inner, _| json!({"all": {"constraints": [inner]}}))
        };
        assert!(read("olm.constraint", nested(MAX_NESTING)).is_ok());
        assert!(read("olm.constraint", nested(MAX_NESTING + 1)).is_err());
        let long = json!({"failureMessage": "x".repeat(MAX_CONSTRAINT_BYTES)});
        let refused = read("olm.constraint", long).unwrap_err();
        assert!(
            refused.contains("max constraint size 131072 bytes"),
            "{refused}"
        );
    }
}
