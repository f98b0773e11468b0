//! Annotations on the object that asks for an install, for what OLM's API has no field for: each stands for the flag of
//! the same name. Nothing but this program reads them.

use std::str::FromStr;

use serde_json::Value;

use super::{Asker, CertificateSource, SecretRef};
use crate::{
    manifest::{Manifest, names},
    near,
    problem::Problem,
    resolve::{InstalledBundle, Provided},
};

/// What the annotations begin with.
pub(super) const PREFIX: &str = "kubectl-olm/";

/// The flags that can be said by annotation.
const FLAGS: [&str; 7] = [
    "also-service-account",
    "certs",
    "installed",
    "no-dependencies",
    "provided",
    "pull-secret",
    "watch-namespace",
];

const RULE: &str = "annotation";

/// What the annotations say.
#[derive(Debug, Default)]
pub(super) struct Annotations {
    pub(super) also_service_accounts: Vec<String>,
    pub(super) certificates: Option<CertificateSource>,
    pub(super) installed: Option<InstalledBundle>,
    pub(super) without_dependencies: bool,
    pub(super) provided: Vec<Provided>,
    pub(super) pull_secrets: Vec<SecretRef>,
    pub(super) watched: Vec<String>,
}

impl Annotations {
    /// Reads the annotations of an object.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(super) fn of(manifest: &Manifest) -> Result<Self, Vec<Problem>> {
        let mut annotations = Self::default();
        let mut problems = vec![];
        let given = manifest.metadata("annotations").and_then(Value::as_object);
        for (key, value) in given.into_iter().flatten() {
            let Some(flag) = key.strip_prefix(PREFIX) else {
                continue;
            };
            let value = value.as_str().unwrap_or_default();
            if let Err(reason) = annotations.set(flag, value, manifest) {
                let message = format!("annotation {key}: {reason}");
                let problem = Problem::error(RULE, message);
                problems.push(problem.at(&manifest.origin).on(manifest.key()));
            }
        }
        if problems.is_empty() {
            Ok(annotations)
        } else {
            Err(problems)
        }
    }

    fn set(&mut self, flag: &str, value: &str, manifest: &Manifest) -> Result<(), String> {
        match flag {
            "also-service-account" => {
                self.also_service_accounts = named(value, names::subdomain_error)?
            }
            "certs" => self.certificates = Some(value.parse()?),
            "installed" => self.installed = Some(value.parse()?),
            "no-dependencies" => {
                self.without_dependencies = bool::from_str(value)
                    .map_err(|_| format!("{value:?} is neither true nor false"))?;
            }
            "provided" => self.provided = list(value).map(str::parse).collect::<Result<_, _>>()?,
            "pull-secret" => {
                let named_by = named_by(&Asker::from(manifest));
                let secrets = list(value).map(|text| SecretRef::parse(text, &named_by));
                self.pull_secrets = secrets.collect::<Result<_, _>>()?;
            }
            "watch-namespace" => self.watched = named(value, names::label_error)?,
            _ => {
                let near = near::names(flag, FLAGS.into_iter());
                let known = FLAGS.map(|flag| format!("{PREFIX}{flag}")).join(", ");
                return Err(match near.first() {
                    Some(near) => format!("there is none; did you mean {PREFIX}{near}?"),
                    None => format!("there is none; there are {known}"),
                });
            }
        }
        Ok(())
    }
}

impl SecretRef {
    /// Reads `[NAMESPACE/]NAME`.
    ///
    /// # Errors
    /// When one of the two is none that an object can have.
    pub fn parse(text: &str, named_by: &str) -> Result<Self, String> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        if let Some((namespace, reason)) =
            namespace.and_then(|name| Some((name, names::label_error(name)?)))
        {
            return Err(format!(
                "no namespace can be called {namespace:?}: {reason}"
            ));
        }
        if let Some(reason) = names::subdomain_error(name) {
            return Err(format!("no Secret can be called {name:?}: {reason}"));
        }
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            named_by: named_by.to_owned(),
        })
    }
}

/// An object as one that names others, for messages: `subscription.operators.coreos.com/queue in ops`.
pub(super) fn named_by(asker: &Asker) -> String {
    match asker.key.namespace.as_str() {
        "" => asker.key.to_string(),
        namespace => format!("{} in {namespace}", asker.key),
    }
}

/// Texts between commas.
fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

/// Names between commas, each as `error` wants them.
fn named(text: &str, error: fn(&str) -> Option<String>) -> Result<Vec<String>, String> {
    let name = |name: &str| match error(name) {
        None => Ok(name.to_owned()),
        Some(reason) => Err(format!("{name:?} cannot be a name: {reason}")),
    };
    list(text).map(name).collect()
}
