//! Reads kubeconfig files and makes one of several, as k8s.io/client-go `tools/clientcmd/loader.go` does: the first file
//! that names a cluster, user, context or the current context wins, missing ones of `KUBECONFIG` are passed over, and
//! paths in a file start at its folder.
//!
//! No message repeats a value of a file: it may be a token.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use kube::config::{AuthInfo, Cluster, Context};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ConnectionError;
use crate::{limits::Limits, manifest::yaml};

/// Bytes of one file. Files of people with hundreds of clusters have some hundred thousand.
const LARGEST: u64 = 16 << 20;

/// What the files say together.
#[derive(Debug, Default)]
pub(super) struct Kubeconfig {
    pub(super) clusters: BTreeMap<String, Cluster>,
    pub(super) users: BTreeMap<String, AuthInfo>,
    pub(super) contexts: BTreeMap<String, Context>,
    pub(super) current: Option<String>,
    /// Where they were looked for, for messages.
    pub(super) places: Vec<String>,
}

impl Kubeconfig {
    /// Reads the file of `--kubeconfig`, else those of `KUBECONFIG`, else `~/.kube/config`.
    ///
    /// # Errors
    /// When a file cannot be read, or is no kubeconfig.
    pub(super) fn read(explicit: Option<&Path>) -> Result<Self, ConnectionError> {
        let mut merged = Self::default();
        if let Some(path) = explicit {
            merged.add(path)?;
            merged.places.push(path.display().to_string());
            return Ok(merged);
        }
        for path in places() {
            let mut place = path.display().to_string();
            match merged.add(&path) {
                Err(ConnectionError::Unreadable { source, .. })
                    if source.kind() == io::ErrorKind::NotFound =>
                {
                    place += ", which is not there";
                }
                done => done?,
            }
            merged.places.push(place);
        }
        Ok(merged)
    }

    fn add(&mut self, path: &Path) -> Result<(), ConnectionError> {
        let text = read_file(path).map_err(|source| ConnectionError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let bad = |reason: String| ConnectionError::Kubeconfig {
            path: path.to_owned(),
            reason,
        };
        let documents = yaml::read(&text, &Limits::DEFAULT);
        let documents = documents.map_err(|error| bad(syntax(&error)))?;
        for document in documents {
            let mut file = parse(&document.value).map_err(bad)?;
            file.resolve_paths(path.parent().unwrap_or(Path::new("")));
            merge(&mut self.clusters, file.clusters);
            merge(&mut self.users, file.users);
            merge(&mut self.contexts, file.contexts);
            self.current = self.current.take().or(file.current);
        }
        Ok(())
    }

    /// Makes the paths in a file start at its folder.
    fn resolve_paths(&mut self, folder: &Path) {
        let resolve = |path: &mut Option<String>| {
            if let Some(path) = path.as_mut().filter(|path| !path.is_empty()) {
                *path = folder.join(&*path).to_string_lossy().into_owned();
            }
        };
        for cluster in self.clusters.values_mut() {
            resolve(&mut cluster.certificate_authority);
        }
        for user in self.users.values_mut() {
            resolve(&mut user.client_certificate);
            resolve(&mut user.client_key);
            resolve(&mut user.token_file);
            // A bare name is looked for in the folders of PATH.
            if let Some(exec) = &mut user.exec
                && exec.command.as_ref().is_some_and(|command| {
                    command.contains('/') || command.contains(std::path::MAIN_SEPARATOR)
                })
            {
                resolve(&mut exec.command);
            }
        }
    }
}

/// The files that are looked for when none is named.
fn places() -> Vec<PathBuf> {
    let listed = env::var_os("KUBECONFIG").unwrap_or_default();
    let mut listed: Vec<PathBuf> = env::split_paths(&listed)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    if listed.is_empty() {
        let home = etcetera::home_dir();
        listed.extend(home.map(|home| home.join(".kube").join("config")));
    }
    listed
}

/// Reads a file that the user named; it may be a pipe of a shell.
pub(super) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = vec![];
    let file = fs::File::open(path)?;
    file.take(LARGEST + 1).read_to_end(&mut content)?;
    if content.len() as u64 > LARGEST {
        return Err(io::Error::other(format!(
            "it is larger than {LARGEST} bytes"
        )));
    }
    Ok(content)
}

/// What is wrong with a text that is no YAML. The parser's own words may repeat what stands there.
fn syntax(error: &yaml::ReadError) -> String {
    match (error, error.line()) {
        (yaml::ReadError::Invalid { .. }, Some(line)) => format!("line {line} is no valid YAML"),
        (yaml::ReadError::Invalid { .. }, None) => "it is no valid YAML".to_owned(),
        (yaml::ReadError::Limit { .. }, _) => error.message().to_owned(),
    }
}

/// Adds entries that are not there yet.
fn merge<T>(all: &mut BTreeMap<String, T>, more: BTreeMap<String, T>) {
    for (name, entry) in more {
        all.entry(name).or_insert(entry);
    }
}

/// Reads one document.
fn parse(document: &Value) -> Result<Kubeconfig, String> {
    if document.is_null() {
        return Ok(Kubeconfig::default());
    }
    if !document.is_object() {
        return Err("it is no map of fields".to_owned());
    }
    match document.get("kind").and_then(Value::as_str) {
        None | Some("" | "Config") => {}
        Some(_) => return Err("its kind is not Config".to_owned()),
    }
    let current = match document.get("current-context") {
        None | Some(Value::Null) => None,
        Some(name) => Some(scalar(name).ok_or("its current-context is no text")?),
    };
    Ok(Kubeconfig {
        clusters: entries(document, "clusters", "cluster")?,
        users: entries(document, "users", "user")?,
        contexts: entries(document, "contexts", "context")?,
        current: current.filter(|name| !name.is_empty()),
        places: vec![],
    })
}

/// The entries of a list, by their names.
fn entries<T: DeserializeOwned>(
    document: &Value,
    list: &str,
    field: &str,
) -> Result<BTreeMap<String, T>, String> {
    let all = match document.get(list) {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Array(all)) => all,
        Some(_) => return Err(format!("its {list} are no list")),
    };
    let mut entries = BTreeMap::new();
    for (position, entry) in all.iter().enumerate() {
        let Some(name) = entry.get("name").and_then(scalar) else {
            return Err(format!("{list}[{position}] has no name"));
        };
        let value = match entry.get(field) {
            None | Some(Value::Null) => Value::Object(serde_json::Map::new()),
            Some(value) => value.clone(),
        };
        // The reason that is given would repeat the value.
        let value = T::deserialize(as_texts(value))
            .map_err(|_| format!("{field} {name:?} has a field that is not of its type"))?;
        if entries.insert(name.clone(), value).is_some() {
            return Err(format!("{field} {name:?} stands there twice"));
        }
    }
    Ok(entries)
}

/// Fields that are no text.
const SWITCHES: [&str; 3] = [
    "insecure-skip-tls-verify",
    "disable-compression",
    "provideClusterInfo",
];

/// Text, also where YAML takes what is not in quotes for a number or a boolean, as sigs.k8s.io/yaml does for fields that
/// are text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// The same with text in all fields but switches and extensions, and without those that are null, which stand for fields
/// that are not there. It goes as deep as the document, whose depth is limited.
fn as_texts(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            let fields = fields.map(|(name, value)| {
                let is_as_it_is = SWITCHES.contains(&name.as_str()) || name == "extensions";
                let value = if is_as_it_is { value } else { as_texts(value) };
                (name, value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(as_texts).collect()),
        scalar_or_null => scalar(&scalar_or_null).map_or(scalar_or_null, Value::String),
    }
}
