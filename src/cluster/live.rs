//! Reads what there is of an install, and asks what would become of its objects. Nothing is written here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    AT_ONCE,
    accounts::Entry,
    answer::{ApiError, RefusalKind},
    asked,
    connection::Connection,
    defaulted::{self, Release},
    desired::{Desired, PART_OF},
    inventory::{self, InstallName},
    metadata,
    plan::{Found, Observed},
    request::{Force, Mode, Request},
    resource::{Resource, Resources, Scope, Served},
    served,
};
use crate::{concurrent::concurrently, manifest::ObjectKey};

/// How objects are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// By dry runs; where these are forbidden, that is an answer.
    DryRun(Force),
    /// By dry runs where they are allowed, else by comparing what is asked for with what is there.
    DryRunOrRead(Force),
    /// By comparing what is asked for with what is there.
    Read,
}

/// The kind of Secrets.
#[must_use]
pub fn secrets() -> Resource {
    core("Secret", "secrets", Scope::Namespaced)
}

/// The kind of Namespaces.
#[must_use]
pub fn namespaces() -> Resource {
    core("Namespace", "namespaces", Scope::Cluster)
}

/// The kind of ServiceAccounts.
#[must_use]
pub fn service_accounts() -> Resource {
    core("ServiceAccount", "serviceaccounts", Scope::Namespaced)
}

fn core(kind: &str, plural: &str, scope: Scope) -> Resource {
    Resource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        scope,
    }
}

/// A Secret's key.
#[must_use]
pub fn secret_key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: "Secret".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// A namespace's key.
#[must_use]
pub fn namespace_key(name: &str) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: "Namespace".to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    }
}

/// An object; nothing when it, its namespace or its kind is not there.
///
/// # Errors
/// When the server does not say.
pub fn get(
    connection: &Connection,
    resource: &Resource,
    key: &ObjectKey,
) -> Result<Option<Value>, ApiError> {
    match connection.send(&Request::get(resource, key)) {
        Ok(answer) => Ok(Some(answer.body)),
        Err(error) if error.kind() == Some(RefusalKind::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The metadata of live objects that carry the label of an install, by key: one list for each kind of the keys.
///
/// Kinds that cannot be listed are left out, so that their objects are asked about one by one.
#[must_use]
pub fn labelled<'k>(
    connection: &Connection,
    install: &InstallName,
    keys: impl IntoIterator<Item = (&'k ObjectKey, Resource)>,
) -> BTreeMap<ObjectKey, Value> {
    let mut kinds: BTreeMap<Resource, BTreeSet<&str>> = BTreeMap::new();
    for (key, resource) in keys {
        kinds.entry(resource).or_default().insert(&key.namespace);
    }
    let selector = format!("{PART_OF}={}", install.applyset_id());
    let lists: Vec<_> = kinds.into_iter().collect();
    let found = concurrently(&lists, AT_ONCE, |(resource, namespaces)| {
        let list = |namespace: Option<&str>| {
            connection.list_all(&Request::list_metadata(resource, namespace, &selector))
        };
        let mut namespaces = namespaces.iter().copied();
        let objects = match (namespaces.next(), namespaces.next()) {
            (Some(only), None) if !only.is_empty() => list(Some(only)),
            _ => list(None),
        };
        let of = |object: Value| (key_of(resource, &object), object);
        let objects = objects.unwrap_or_default().into_iter().map(of);
        objects.collect::<Vec<_>>()
    });
    found.into_iter().flatten().collect()
}

/// The key of a live object, whose list does not repeat its kind.
#[must_use]
pub fn key_of(resource: &Resource, object: &Value) -> ObjectKey {
    let text = |field: &str| metadata::text(object, field).unwrap_or_default().to_owned();
    ObjectKey {
        group: resource.group.clone(),
        kind: resource.kind.clone(),
        namespace: text("namespace"),
        name: text("name"),
    }
}

/// What becomes of an object: a dry run, and where it is there, what it is like now.
#[must_use]
pub fn observe(
    connection: &Connection,
    (desired, resource): (&Desired, &Resource),
    asking: Asking,
) -> Observed {
    let read = || get(connection, resource, &desired.key);
    let asked = desired.manifest.clone().into_value();
    let force = match asking {
        Asking::Read => return compared(&asked, read()),
        Asking::DryRun(force) | Asking::DryRunOrRead(force) => force,
    };
    let request = Request::apply(resource, &desired.key, asked.clone(), Mode::DryRun, force);
    match connection.send(&request) {
        Ok(answer) if answer.code == 201 => Observed::New(answer.body),
        Ok(answer) => match read() {
            Ok(Some(live)) => Observed::There {
                live,
                after: answer.body,
            },
            // It went meanwhile.
            Ok(None) => Observed::New(answer.body),
            Err(error) => refused(error),
        },
        Err(error)
            if error.kind() == Some(RefusalKind::Forbidden)
                && matches!(asking, Asking::DryRunOrRead(_)) =>
        {
            compared(&asked, read())
        }
        // There is nothing in a namespace that is not there.
        Err(error) if error.is_missing_namespace() => refused(error),
        Err(error) => {
            let live = read().unwrap_or_default();
            if let Some(released) = released(connection, (desired, resource), live.as_ref(), &error)
            {
                return released;
            }
            // What is only shown is shown as it would be.
            let is_shown = matches!(asking, Asking::DryRunOrRead(_))
                && error.kind() == Some(RefusalKind::FieldConflict);
            let forced = is_shown.then(|| {
                Request::apply(
                    resource,
                    &desired.key,
                    asked.clone(),
                    Mode::DryRun,
                    Force::Yes,
                )
            });
            let forced = forced.and_then(|request| connection.send(&request).ok());
            Observed::Refused {
                live,
                forced: forced.map(|answer| answer.body),
                error,
            }
        }
    }
}

/// What becomes of an object that is refused for what the server filled in itself.
fn released(
    connection: &Connection,
    (desired, resource): (&Desired, &Resource),
    live: Option<&Value>,
    error: &ApiError,
) -> Option<Observed> {
    let (ApiError::Refused(refusal), Some(live)) = (error, live) else {
        return None;
    };
    let asked = desired.manifest.clone().into_value();
    let Release { releasing, patch } = defaulted::release(refusal, live, &asked)?;
    let without = Request::merge(resource, &desired.key, patch, Mode::DryRun);
    let after = connection.send(&without).ok()?.body;
    Some(Observed::Released {
        live: live.clone(),
        after,
        releasing,
    })
}

fn compared(asked: &Value, read: Result<Option<Value>, ApiError>) -> Observed {
    match read {
        Ok(Some(live)) => Observed::Compared {
            fields: asked::differences(asked, &live),
            live,
        },
        Ok(None) => Observed::New(asked.clone()),
        Err(error) => refused(error),
    }
}

fn refused(error: ApiError) -> Observed {
    Observed::Refused {
        live: None,
        forced: None,
        error,
    }
}

/// What is where an object of the inventory should be: in the lists of labelled objects, else asked for.
#[must_use]
pub fn find(
    connection: &Connection,
    resources: &Resources,
    (key, resource): (&ObjectKey, &Resource),
    labelled: &BTreeMap<ObjectKey, Value>,
) -> Found {
    if let Some(live) = labelled.get(key) {
        return Found::Object(live.clone());
    }
    if resources.find(key, &resource.version) == Served::Unknown {
        return Found::Unknown(ApiError::Unreachable {
            about: key.to_string(),
            reason: format!("the server of the group {} does not answer", key.group),
        });
    }
    match served::get(connection, resource, key) {
        Ok(Some(live)) => Found::Object(live),
        Ok(None) => Found::Nothing,
        Err(error) => Found::Unknown(error),
    }
}

/// The accounts that entries are for, those that are there.
///
/// # Errors
/// When one cannot be read.
pub fn accounts<'e>(
    connection: &Connection,
    entries: impl IntoIterator<Item = &'e Entry>,
) -> Result<BTreeMap<(String, String), Value>, ApiError> {
    let names: BTreeSet<_> = entries
        .into_iter()
        .map(|entry| (entry.namespace.clone(), entry.account.clone()))
        .collect();
    let names: Vec<_> = names.into_iter().collect();
    let read = concurrently(&names, AT_ONCE, |(namespace, name)| {
        let key = ObjectKey {
            group: String::new(),
            kind: "ServiceAccount".to_owned(),
            namespace: namespace.clone(),
            name: name.clone(),
        };
        get(connection, &service_accounts(), &key)
    });
    let mut live = BTreeMap::new();
    for (name, read) in names.into_iter().zip(read) {
        if let Some(account) = read? {
            live.insert(name, account);
        }
    }
    Ok(live)
}

/// What goes, and so keeps nothing else.
#[derive(Debug, Default)]
pub struct Going<'g> {
    /// Objects.
    pub keys: BTreeSet<&'g ObjectKey>,
    /// The names of definitions whose custom resources go before.
    pub definitions: BTreeSet<&'g str>,
}

/// How many objects in a namespace are neither among those that go nor made by the cluster for every namespace.
///
/// What another object owns is not counted, as that one is; nor is what only tells of others. Of what we keep ourselves,
/// only the inventories that stay count, as their objects may be anywhere: parts belong to those, and a Lease is
/// nothing by itself, as what its run has not written down it has not made either.
///
/// # Errors
/// When a kind cannot be listed.
pub fn strangers(
    connection: &Connection,
    namespace: &str,
    Going { keys, definitions }: &Going<'_>,
) -> Result<usize, ApiError> {
    let resources = connection.resources()?;
    let kinds: Vec<_> = resources
        .namespaced()
        .filter(|resource| !REPORTS.contains(&(resource.group.as_str(), resource.kind.as_str())))
        .filter(|resource| {
            let definition = format!("{}.{}", resource.plural, resource.group);
            !definitions.contains(definition.as_str())
        })
        .cloned()
        .collect();
    let found = concurrently(&kinds, AT_ONCE, |resource| {
        let list = Request::list_metadata(resource, Some(namespace), "");
        let list = match connection.list_all(&list) {
            // Its definition went after the kinds were asked for, and all objects with it.
            Err(error) if error.kind() == Some(RefusalKind::NotFound) => vec![],
            list => list?,
        };
        let is_stranger = |object: &&Value| {
            let key = key_of(resource, object);
            let is_owned = object.pointer("/metadata/ownerReferences").is_some();
            let is_nothing = inventory::is_ours(&key) && !inventory::is_inventory(&key);
            let is_own = keys.contains(&key) || is_nothing;
            !is_owned && !is_own && !MADE_FOR_ALL.contains(&(key.kind.as_str(), key.name.as_str()))
        };
        Ok(list.iter().filter(is_stranger).count())
    });
    found.into_iter().sum()
}

/// Kinds that only tell of other objects, or are a second view of them.
const REPORTS: [(&str, &str); 6] = [
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("metrics.k8s.io", "PodMetrics"),
    ("packages.operators.coreos.com", "PackageManifest"),
];

/// What controllers put into every namespace.
const MADE_FOR_ALL: [(&str, &str); 5] = [
    ("ServiceAccount", "default"),
    ("ServiceAccount", "builder"),
    ("ServiceAccount", "deployer"),
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "openshift-service-ca.crt"),
];
