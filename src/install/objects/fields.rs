//! The fields of one object: unknown ones, wrong types, and what its rules have against it.
//!
//! Of a Secret only the names of known fields are told, and what type stands where. A key that is not known is told
//! only where it is like a known one: text that went astray may stand there.

use serde_json::{Map, Value};

use super::{
    fault::Fault,
    kinds::{Kind, Version, listed},
    rules,
};
use crate::{
    manifest::{
        conform::{Field, Finding, Shape, Struct, conform},
        yaml::{Step, way},
    },
    near,
};

/// Whether values may be told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Privacy {
    /// What was found may be said.
    Open,
    /// It may hold a secret.
    Private,
}

/// As many fields are listed where none is like the one that was written.
const LISTED_FIELDS: usize = 12;

/// All that is wrong with the fields of an object.
pub(super) fn faults(
    object: &Map<String, Value>,
    kind: &Kind,
    version: &Version,
    privacy: Privacy,
) -> Vec<Fault> {
    let mut copy = Value::Object(object.clone());
    let findings = conform(&mut copy, version.shape);
    let types = findings
        .errors
        .iter()
        .map(|finding| wrong_type(finding, object, version.shape, privacy));
    let unknown = findings
        .dropped
        .iter()
        .filter(|path| !is_excused(kind, path))
        .map(|path| unknown_field(path, kind, version.shape, privacy));
    let broken = version
        .rules
        .iter()
        .flat_map(|rule| rules::broken(rule, object));
    let explained = |fault: &Fault| {
        fault.breaks("required-field")
            && findings
                .dropped
                .iter()
                .any(|path| is_typo_of(path, &fault.path, version.shape))
    };
    let broken = broken.filter(|fault| !explained(fault));
    let mut faults: Vec<_> = types.chain(unknown).chain(broken).collect();
    if findings.unlisted > 0 {
        let message = format!("{} more fields are wrong", findings.unlisted);
        faults.push(Fault::error("too-many", "", message));
    }
    faults
}

/// Whether an unknown field is what was meant by one that is missing.
fn is_typo_of(unknown: &str, missing: &str, shape: &'static Struct) -> bool {
    let (mut written, mut wanted) = (way(unknown), way(missing));
    let (Some(Step::Key(written_name)), Some(Step::Key(name))) = (written.pop(), wanted.pop())
    else {
        return false;
    };
    let fields = descend(shape, &way(missing)).holder.fields;
    let similar = near::names(&written_name, fields.iter().map(|field| field.name));
    written == wanted && similar.first() == Some(&name.as_str())
}

/// A status is the cluster's, of whatever version that is; a rule speaks of the other one.
fn is_excused(kind: &Kind, path: &str) -> bool {
    let in_status = path.starts_with("status.") || path.starts_with("status[");
    in_status || kind.name == "CatalogSource" && path == "spec.runAsRoot"
}

fn wrong_type(
    finding: &Finding,
    object: &Map<String, Value>,
    shape: &'static Struct,
    privacy: Privacy,
) -> Fault {
    if privacy == Privacy::Open {
        return Fault::error("type", &finding.path, finding.to_string());
    }
    let way = way(&finding.path);
    let at = descend(shape, &way);
    let expected = at.shape.map_or("another type", expected);
    let found = found(object, &way).map_or("something else", type_of);
    let message = format!("{}: expected {expected}, found {found}", at.shown);
    Fault::error("type", &finding.path, message)
}

fn unknown_field(path: &str, kind: &Kind, shape: &'static Struct, privacy: Privacy) -> Fault {
    let way = way(path);
    let at = descend(shape, &way);
    let name = match way.last() {
        Some(Step::Key(name)) => name.as_str(),
        _ => "",
    };
    let fields = at.holder.fields.iter().map(|field| field.name);
    let mut similar = near::names(name, fields.clone());
    if privacy == Privacy::Private {
        // A longer one may be a field and its value, run together.
        similar.retain(|known| name.len() <= known.len() + 1);
    }
    let mut message = if privacy == Privacy::Open || !similar.is_empty() {
        format!("there is no field `{path}`")
    } else if at.shown.is_empty() {
        format!("{} has a field that is not known", kind.name)
    } else {
        format!("`{}` has a field that is not known", at.shown)
    };
    if let Some(hint) = near::hint(&similar) {
        message.push_str(&format!(", {hint}"));
    } else if let Some(home) = home(shape, name) {
        message.push_str(&format!(", `{name}` is a field of {home}"));
    } else if at.holder.fields.len() <= LISTED_FIELDS {
        message.push_str(&format!("; known are {}", listed(fields, "and")));
    }
    // What is installed already is a fact, whatever else stands in it.
    let of = match kind.name {
        "ClusterServiceVersion" => Fault::warning,
        _ => Fault::error,
    };
    of("unknown-field", path, message)
}

/// Where a field of this name belongs that stands in a wrong place: in the object itself or in one of its parts.
fn home(shape: &'static Struct, name: &str) -> Option<String> {
    let has = |to: &Struct| to.fields.iter().any(|field| field.name == name);
    if has(shape) {
        return Some("the object itself".to_owned());
    }
    let mut parts = shape.fields.iter().filter_map(|field| match &field.shape {
        Shape::Struct(to) if field.name != "status" => Some((field.name, *to)),
        _ => None,
    });
    let (part, _) = parts.find(|(_, to)| has(to))?;
    Some(format!("`{part}`"))
}

/// The end of a way into an object.
struct At {
    /// The way, without what is not known from the types.
    shown: String,
    /// The last struct on the way.
    holder: &'static Struct,
    /// What stands at the end; none where the types know nothing of it.
    shape: Option<&'static Shape>,
}

fn descend(root: &'static Struct, way: &[Step]) -> At {
    let mut at = At {
        shown: String::new(),
        holder: root,
        shape: None,
    };
    let mut structure = Some(root);
    for step in way {
        let inner = match (structure, at.shape, step) {
            (Some(holder), _, Step::Key(name)) => {
                at.holder = holder;
                let Some(field) = field(holder, name) else {
                    at.shape = None;
                    return at;
                };
                if !at.shown.is_empty() {
                    at.shown.push('.');
                }
                at.shown.push_str(field.name);
                &field.shape
            }
            (None, Some(Shape::List(of)), Step::Item(index)) => {
                at.shown.push_str(&format!("[{index}]"));
                of
            }
            (None, Some(Shape::Map(of)), Step::Key(_)) => {
                at.shown.push_str("[*]");
                of
            }
            _ => return At { shape: None, ..at },
        };
        at.shape = Some(inner);
        structure = match inner {
            Shape::Struct(to) => Some(*to),
            _ => None,
        };
    }
    at
}

fn field(holder: &'static Struct, name: &str) -> Option<&'static Field> {
    holder.fields.iter().find(|field| field.name == name)
}

fn found<'o>(object: &'o Map<String, Value>, way: &[Step]) -> Option<&'o Value> {
    let (first, rest) = way.split_first()?;
    let Step::Key(first) = first else {
        return None;
    };
    rest.iter()
        .try_fold(object.get(first)?, |at, step| match step {
            Step::Key(key) => at.get(key),
            Step::Item(index) => at.get(index),
        })
}

fn expected(shape: &Shape) -> &'static str {
    match shape {
        Shape::Bool => "a boolean",
        Shape::Int32 | Shape::Int64 => "an integer",
        Shape::Float => "a number",
        Shape::String => "a string",
        Shape::Bytes => "base64 text (plain text belongs into `stringData`)",
        Shape::Time => "a time",
        Shape::List(_) => "a list",
        Shape::Map(_) | Shape::Struct(_) => "an object",
        _ => "another type",
    }
}

/// The type of a value in words, without the value.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
