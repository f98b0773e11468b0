//! What a cluster tells before anything is rendered.

use super::{super::failure::Failure, failures::api_failure};
use std::collections::BTreeSet;

use crate::{
    cluster::{
        answer::RefusalKind, connection::Connection, desired::PART_OF, inventory::Inventory, live,
        request::Request, stored,
    },
    install::{SecretRef, Wanted},
    manifest::{Manifest, ObjectKey, Origin},
    problem::Problem,
};

/// Where objects are from that are no file's.
const PLACE: &str = "the cluster";

/// Inventories.
pub(super) struct Found {
    pub(super) inventories: Vec<Inventory>,
    /// Whether these are all of the cluster.
    pub(super) are_all: bool,
}

/// The inventories that may be of what is wanted: those of all namespaces, else of those that are named.
///
/// # Errors
/// When they cannot be listed.
pub(super) fn inventories(connection: &Connection, wanted: &Wanted) -> Result<Found, Failure> {
    let everywhere = stored::inventories(connection, None);
    let are_all = everywhere.is_ok();
    let found = match everywhere {
        Err(error) if error.kind() == Some(RefusalKind::Forbidden) => {
            let mut found = vec![];
            let named = wanted
                .installs
                .iter()
                .filter_map(|install| install.namespace.as_deref());
            for namespace in named.collect::<BTreeSet<_>>() {
                let listed = stored::inventories(connection, Some(namespace));
                found.extend(listed.map_err(|error| api_failure(&error))?.0);
            }
            found
        }
        listed => listed.map_err(|error| api_failure(&error))?.0,
    };
    let inventories = found.into_iter().map(|stored| stored.inventory);
    Ok(Found {
        inventories: inventories.collect(),
        are_all,
    })
}

/// All namespaces, for those that are selected by their labels.
///
/// # Errors
/// When they cannot be listed.
pub(super) fn namespaces(connection: &Connection) -> Result<Vec<Manifest>, Failure> {
    let listed = connection.list_all(&Request::list(&live::namespaces(), None, ""));
    let listed = listed.map_err(|error| api_failure(&error))?;
    Ok(listed
        .into_iter()
        .map(|object| manifest(object, "Namespace"))
        .collect())
}

/// The Secrets that are named.
pub(super) struct Secrets {
    pub(super) found: Vec<Manifest>,
    /// That some are not there.
    pub(super) absent: Vec<Problem>,
}

/// The Secrets that are named, as far as the cluster has them and they may be read.
///
/// What an install's namespace has in the place of a copy is not what is meant, be it our copy or the user's own Secret:
/// what it is a copy of is. Only when that is gone, the other stands for it, so that it stays.
///
/// # Errors
/// When the cluster does not answer.
pub(super) fn secrets(
    connection: &Connection,
    named: &[SecretRef],
    wanted: &Wanted,
) -> Result<Secrets, Failure> {
    let installs = wanted.installs.iter();
    let own: BTreeSet<_> = installs
        .filter_map(|install| install.namespace.as_deref())
        .collect();
    let mut places = BTreeSet::new();
    for secret in named {
        let namespaces = secret
            .namespace
            .as_deref()
            .into_iter()
            .chain(own.iter().copied());
        places.extend(namespaces.map(|namespace| (namespace, secret.name.as_str())));
    }
    let (mut found, mut copies, mut absent) = (vec![], vec![], vec![]);
    for (namespace, name) in places {
        let key = live::secret_key(namespace, name);
        let live = match live::get(connection, &live::secrets(), &key) {
            Err(error) if error.kind() == Some(RefusalKind::Forbidden) => None,
            Ok(None) => {
                let is_it = |secret: &&SecretRef| {
                    secret.name == name && secret.namespace.as_deref() == Some(namespace)
                };
                absent.extend(named.iter().find(is_it).map(|_| no_secret(&key)));
                None
            }
            read => read.map_err(|error| api_failure(&error))?,
        };
        let Some(mut live) = live.map(|live| manifest(live, "Secret")) else {
            continue;
        };
        let is_meant = named.iter().any(|secret| {
            let is_there = secret.namespace.as_deref().unwrap_or(namespace) == namespace;
            is_there && secret.name == name
        });
        let labels = live.metadata("labels");
        let is_ours = labels.is_some_and(|labels| labels.get(PART_OF).is_some());
        if is_ours || !is_meant {
            live.metadata_mut().remove("uid");
            copies.push(live);
        } else {
            found.push(live);
        }
    }
    copies.retain(|copy| !found.iter().any(|other| other.name() == copy.name()));
    found.extend(copies);
    Ok(Secrets { found, absent })
}

fn no_secret(key: &ObjectKey) -> Problem {
    let message = format!(
        "{key} is not in the namespace {}, so that it is not copied, and pods that need it cannot pull their images; \
         make it and apply again",
        key.namespace
    );
    Problem::warning("pull-secret", message)
}

/// An object of a list, which does not repeat its kind.
fn manifest(mut object: serde_json::Value, kind: &str) -> Manifest {
    object["apiVersion"] = "v1".into();
    object["kind"] = kind.into();
    let origin = Origin::File {
        path: PLACE.into(),
        line: 1,
    };
    Manifest::new(object, origin)
}
