//! The three kinds of OpenShift that say where images are mirrored, read field by field.
//!
//! Sources: openshift/api `config/v1/types_image_digest_mirror_set.go`, `types_image_tag_mirror_set.go` and
//! `operator/v1alpha1/types_image_content_source_policy.go`. What the Machine Config Operator would refuse is a fault
//! (`validateRegistriesConfScopes`), but for one thing: it gives up when objects do not agree whether a source may be
//! contacted, where it is never contacted here.

use serde_json::{Map, Value};

use super::{
    Form,
    names::{self, Use, said},
};

/// The rule that what cannot be said to a node breaks.
pub const RULE: &str = "mirror-rule";

/// Policies, and whether the source is never contacted.
const POLICIES: [(&str, bool); 3] = [
    ("", false),
    ("AllowContactingSource", false),
    ("NeverContactSource", true),
];

/// A kind of mirror rules.
pub(super) struct Kind {
    group: &'static str,
    version: &'static str,
    name: &'static str,
    /// The field of `spec` that has the rules.
    list: &'static str,
    /// The fields of a rule.
    fields: &'static [&'static str],
    /// Which references the rules are about.
    pub(super) form: Form,
}

static KINDS: [Kind; 3] = [
    Kind {
        group: "config.openshift.io",
        version: "v1",
        name: "ImageDigestMirrorSet",
        list: "imageDigestMirrors",
        fields: &["source", "mirrors", "mirrorSourcePolicy"],
        form: Form::Digest,
    },
    Kind {
        group: "config.openshift.io",
        version: "v1",
        name: "ImageTagMirrorSet",
        list: "imageTagMirrors",
        fields: &["source", "mirrors", "mirrorSourcePolicy"],
        form: Form::Tag,
    },
    Kind {
        group: "operator.openshift.io",
        version: "v1alpha1",
        name: "ImageContentSourcePolicy",
        list: "repositoryDigestMirrors",
        fields: &["source", "mirrors"],
        form: Form::Digest,
    },
];

/// One rule.
pub(super) struct Entry {
    pub(super) source: String,
    pub(super) mirrors: Vec<String>,
    pub(super) never_contact_source: bool,
}

/// What is wrong with a field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The field, as in `spec.imageDigestMirrors[2].source`.
    pub path: String,
    /// The rule it breaks; [`RULE`] if the types of the fields are right.
    pub rule: &'static str,
    /// What is wrong, with the field.
    pub message: String,
}

impl Fault {
    fn new(rule: &'static str, path: &str, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            rule,
            message: message.into(),
        }
    }
}

/// The kind of an object; nothing if it has no rules.
///
/// # Errors
/// When it is of a version that nobody knows.
pub(super) fn kind(object: &Map<String, Value>) -> Result<Option<&'static Kind>, Fault> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or_default();
    let mut kinds = KINDS.iter();
    let Some(kind) = kinds.find(|kind| kind.group == group && kind.name == text("kind")) else {
        return Ok(None);
    };
    if kind.version == version {
        return Ok(Some(kind));
    }
    let (name, known) = (kind.name, kind.version);
    let message = format!(
        "version {} of {name} in {group} is not known, known is {known}",
        said(version)
    );
    Err(Fault::new("api-version", "apiVersion", message))
}

/// The rules of an object, and everything that is wrong with them.
pub(super) fn entries(object: &Map<String, Value>, kind: &Kind) -> (Vec<Entry>, Vec<Fault>) {
    let (mut entries, mut faults) = (vec![], vec![]);
    let path = format!("spec.{}", kind.list);
    let spec = match object.get("spec") {
        None | Some(Value::Null) => None,
        Some(Value::Object(spec)) => Some(spec),
        Some(_) => {
            let fault = Fault::new("type", "spec", "spec: expected an object");
            return (entries, vec![fault]);
        }
    };
    for name in spec.into_iter().flat_map(Map::keys) {
        if name != kind.list {
            faults.push(unknown("spec", name, &[kind.list]));
        }
    }
    match spec.and_then(|spec| spec.get(kind.list)) {
        Some(Value::Array(list)) => {
            for (index, entry) in list.iter().enumerate() {
                let path = format!("{path}[{index}]");
                entries.extend(rule(entry, &path, kind, &mut faults));
            }
        }
        None | Some(Value::Null) => {
            let message = format!("`{path}` is missing: the mirrors of each source");
            faults.push(Fault::new("required-field", &path, message));
        }
        Some(_) => {
            let message = format!("{path}: expected a list");
            faults.push(Fault::new("type", &path, message));
        }
    }
    (entries, faults)
}

/// One rule; nothing if a fault was found in it.
fn rule(value: &Value, path: &str, kind: &Kind, faults: &mut Vec<Fault>) -> Option<Entry> {
    let before = faults.len();
    let Value::Object(fields) = value else {
        faults.push(Fault::new(
            "type",
            path,
            format!("{path}: expected an object"),
        ));
        return None;
    };
    let unknown = fields
        .keys()
        .filter(|name| !kind.fields.contains(&name.as_str()))
        .map(|name| unknown(path, name, kind.fields));
    faults.extend(unknown);
    let source_path = format!("{path}.source");
    let source = name(fields.get("source"), &source_path, Use::Source, faults);
    let mirrors = mirrors(fields.get("mirrors"), &format!("{path}.mirrors"), faults);
    let never_contact_source = policy(
        fields.get("mirrorSourcePolicy"),
        &format!("{path}.mirrorSourcePolicy"),
        faults,
    );
    let source = source?.to_owned();
    if never_contact_source && mirrors.contains(&source) {
        let message = format!(
            "`{path}.mirrors` names {} and it must never be contacted; take it out of the mirrors, or set `mirrorSourcePolicy: AllowContactingSource`",
            said(&source)
        );
        faults.push(Fault::new(RULE, &format!("{path}.mirrors"), message));
    }
    (faults.len() == before).then_some(Entry {
        source,
        mirrors,
        never_contact_source,
    })
}

fn mirrors(value: Option<&Value>, path: &str, faults: &mut Vec<Fault>) -> Vec<String> {
    match value {
        None | Some(Value::Null) => vec![],
        Some(Value::Array(list)) => {
            let names = list.iter().enumerate().filter_map(|(index, value)| {
                let path = format!("{path}[{index}]");
                name(Some(value), &path, Use::Mirror, faults)
            });
            names.map(str::to_owned).collect()
        }
        Some(_) => {
            let message = format!("{path}: expected a list of strings");
            faults.push(Fault::new("type", path, message));
            vec![]
        }
    }
}

fn policy(value: Option<&Value>, path: &str, faults: &mut Vec<Fault>) -> bool {
    let policy = match value {
        None | Some(Value::Null) => "",
        Some(Value::String(policy)) => policy,
        Some(_) => {
            let message = format!("{path}: expected a string");
            faults.push(Fault::new("type", path, message));
            return false;
        }
    };
    let known = POLICIES.iter().find(|(name, _)| *name == policy);
    if known.is_none() {
        let message = format!(
            "`{path}` is {}, it must be AllowContactingSource or NeverContactSource",
            said(policy)
        );
        faults.push(Fault::new(RULE, path, message));
    }
    known.is_some_and(|(_, never)| *never)
}

fn name<'v>(
    value: Option<&'v Value>,
    path: &str,
    purpose: Use,
    faults: &mut Vec<Fault>,
) -> Option<&'v str> {
    match value {
        None | Some(Value::Null) => {
            let message = format!("`{path}` is missing: a registry or a repository");
            faults.push(Fault::new("required-field", path, message));
            None
        }
        Some(Value::String(name)) => match names::fault(name, purpose) {
            None => Some(name),
            Some(fault) => {
                faults.push(Fault::new(RULE, path, format!("`{path}` {fault}")));
                None
            }
        },
        Some(_) => {
            let message = format!("{path}: expected a string");
            faults.push(Fault::new("type", path, message));
            None
        }
    }
}

fn unknown(path: &str, name: &str, known: &[&str]) -> Fault {
    let known = known.join(", ");
    let name = said(name);
    let message = format!("`{path}` has no field {name}; known are {known}");
    Fault::new("unknown-field", path, message)
}
