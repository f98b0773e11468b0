//! The text of an auth file becomes what can be looked up in it.
//!
//! Reads docker's `config.json` and podman's `auth.json` (`auths`, `credHelpers`, `credsStore`), the older
//! `.dockercfg`, which is `auths` alone, and nothing else of them. What is wrong is told by line or key and never by
//! content, because a file that is broken may hold a password where none is expected; so no message of a parser is
//! passed on.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value, error::Category, json};

use super::{
    Secret,
    login::Login,
    matching::{Key, ranked},
};

/// How a file is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `config.json` and `auth.json`: logins stand under `auths`.
    Config,
    /// `.dockercfg`: nothing but logins.
    Legacy,
    /// One or the other.
    Either,
}

/// What an auth file says.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuthFile {
    entries: Vec<Entry>,
    helpers: BTreeMap<String, String>,
    store: Option<String>,
}

/// One login, and what it is for.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    /// The key as it was written.
    text: String,
    pub(crate) login: Login,
}

/// Who keeps the logins of a registry, if not the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Helper<'a> {
    /// The one of that registry, asked before the file.
    Own(&'a str),
    /// The one of all registries, asked after it.
    Store(&'a str),
    /// There is none, or the registry is taken out of those that the store is for.
    None,
}

/// Why a text is no auth file: where, and the rule. Holds none of its content but keys that look like registries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadFile {
    /// Where, if it is not the whole of the file.
    place: Place,
    /// The rule.
    problem: &'static str,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Whole,
    Line(usize),
    Column(usize, usize),
    Key(String),
}

impl BadFile {
    pub(crate) fn whole(problem: &'static str) -> Self {
        let place = Place::Whole;
        Self { place, problem }
    }

    pub(crate) fn line(line: usize, problem: &'static str) -> Self {
        let place = Place::Line(line);
        Self { place, problem }
    }

    pub(crate) fn key(key: impl Into<String>, problem: &'static str) -> Self {
        let place = Place::Key(key.into());
        Self { place, problem }
    }
}

impl fmt::Display for BadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = self.problem;
        match &self.place {
            Place::Whole => write!(f, "it {problem}"),
            Place::Line(line) => write!(f, "line {line}: it {problem}"),
            Place::Column(line, column) => write!(f, "line {line}, column {column}: it {problem}"),
            Place::Key(key) => write!(f, "{key} {problem}"),
        }
    }
}

impl std::error::Error for BadFile {}

impl AuthFile {
    /// The logins for a repository, the closest first.
    pub(crate) fn logins(&self, registry: &str, repository: &str) -> Vec<&Entry> {
        ranked(&self.entries, |entry| &entry.key, registry, repository)
    }

    /// The helper to ask for a registry.
    pub(crate) fn helper(&self, registry: &str) -> Helper<'_> {
        let is_own = |key: &str| Key::parse(key).is_some_and(|key| key.is_registry(registry));
        let own = self.helpers.iter().find(|(key, _)| is_own(key));
        match (own, &self.store) {
            (Some((_, name)), _) if name.is_empty() => Helper::None,
            (Some((_, name)), _) => Helper::Own(name),
            (None, Some(name)) if !name.is_empty() => Helper::Store(name),
            (None, _) => Helper::None,
        }
    }

    /// A docker config with these logins and nothing else, the same for the same logins; nothing where there are none.
    pub(crate) fn docker_config(&self) -> Option<Secret> {
        let entries = self.entries.iter();
        let auths: BTreeMap<_, _> = entries
            .map(|entry| (&entry.text, entry.login.entry()))
            .collect();
        (!auths.is_empty()).then(|| Secret::from(json!({ "auths": auths }).to_string()))
    }

    /// The same file with nothing in it that would run a program.
    pub(crate) fn without_helpers(self) -> Self {
        Self {
            entries: self.entries,
            ..Self::default()
        }
    }
}

/// Reads a text as JSON.
///
/// # Errors
/// Where it is not; without any of its content.
pub(crate) fn json(text: &[u8]) -> Result<Value, BadFile> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    if text.trim_ascii().is_empty() {
        return Err(BadFile::whole("is empty"));
    }
    serde_json::from_slice(text).map_err(|error| BadFile {
        place: Place::Column(error.line(), error.column()),
        problem: match error.classify() {
            Category::Eof => "ends before the JSON does",
            _ => "is not valid JSON in UTF-8",
        },
    })
}

/// Reads what a JSON value says about logins.
///
/// # Errors
/// The first entry that cannot be understood, by its key.
pub(crate) fn auth_file(value: Value, layout: Layout) -> Result<AuthFile, BadFile> {
    let Value::Object(mut fields) = value else {
        return Err(BadFile::whole("is not an object in JSON"));
    };
    let is_config = ["auths", "credHelpers", "credsStore"]
        .iter()
        .any(|field| fields.contains_key(*field));
    if layout == Layout::Legacy || (layout == Layout::Either && !is_config) {
        return Ok(AuthFile {
            entries: entries(fields, "")?,
            ..AuthFile::default()
        });
    }
    Ok(AuthFile {
        entries: entries(take_object(&mut fields, "auths")?, "auths")?,
        helpers: take_object(&mut fields, "credHelpers")?
            .into_iter()
            .map(|(key, name)| match name {
                Value::String(name) => Ok((key, name)),
                _ => Err(BadFile::key(shown("credHelpers", &key), "is no text")),
            })
            .collect::<Result<_, _>>()?,
        store: match fields.remove("credsStore") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(name),
            Some(_) => return Err(BadFile::key("credsStore", "is no text")),
        },
    })
}

/// An object; an empty one if it is missing or null.
fn take_object(
    fields: &mut Map<String, Value>,
    field: &str,
) -> Result<Map<String, Value>, BadFile> {
    match fields.remove(field) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(object)) => Ok(object),
        Some(_) => Err(BadFile::key(field, "is not an object")),
    }
}

/// The logins of a map; entries without one, and those for no registry, are passed over as the kubelet does.
fn entries(map: Map<String, Value>, parent: &str) -> Result<Vec<Entry>, BadFile> {
    let mut entries = vec![];
    for (text, entry) in map {
        let entry = match entry {
            Value::Null => continue,
            Value::Object(entry) => entry,
            _ => return Err(BadFile::key(shown(parent, &text), "is not an object")),
        };
        let login = Login::take(entry).map_err(|bad| {
            let entry = shown(parent, &text);
            BadFile::key(format!("{} of {entry}", bad.field), bad.problem)
        })?;
        if let (Some(key), Some(login)) = (Key::parse(&text), login) {
            entries.push(Entry { key, text, login });
        }
    }
    Ok(entries)
}

/// A key for a message: one that looks like a registry; any other could be a password that slipped.
fn shown(parent: &str, key: &str) -> String {
    let parent = if parent.is_empty() {
        "the file"
    } else {
        parent
    };
    match Key::parse(key) {
        Some(key) if key.as_str().len() <= 255 => format!("{:?} in {parent}", key.as_str()),
        _ => format!("an entry in {parent} that is for no registry"),
    }
}
