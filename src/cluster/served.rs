//! Asks for objects in the version in which their kind is served by now.
//!
//! A definition may end a version and keep the objects. For a moment after it changed, a server serves one thing and lists
//! another, so that a path that is not there says nothing of an object until both agree.

use std::{thread, time::Duration};

use serde_json::Value;

use super::{
    answer::{ApiError, RefusalKind},
    connection::Connection,
    metadata,
    request::Request,
    resource::{Resource, Scope, Served},
};
use crate::manifest::ObjectKey;

/// How often it is asked while a server lists what it does not serve.
const TRIES: usize = 30;
/// How long between two tries.
const PAUSE: Duration = Duration::from_millis(300);

/// Asks in the version in which a kind is served by now, and gives that kind too; nothing when the kind is gone, and its
/// objects with it.
///
/// # Errors
/// What was answered, or that the server does not say what it serves, or serves and lists different things for long.
pub fn as_served<T>(
    connection: &Connection,
    (key, resource): (&ObjectKey, &Resource),
    ask: impl Fn(&Resource) -> Result<T, ApiError>,
) -> Result<Option<(T, Resource)>, ApiError> {
    let mut resource = resource.clone();
    for _ in 0..TRIES {
        let missing = match ask(&resource) {
            Err(error) if error.is_missing_path() => error,
            answered => return answered.map(|answer| Some((answer, resource))),
        };
        let resources = connection.recent_resources(PAUSE)?;
        match resources.find(key, &resource.version) {
            Served::Missing if !is_established(connection, &resource)? => return Ok(None),
            Served::Unknown => return Err(missing),
            Served::Missing => {}
            Served::As(now) => resource = now.clone(),
        }
        if connection.is_at_odds() {
            return Err(missing);
        }
        thread::sleep(PAUSE);
    }
    connection.set_at_odds();
    ask(&resource).map(|answer| Some((answer, resource)))
}

/// An object, in whichever version its kind is served; nothing when it, its namespace or its kind is not there.
///
/// # Errors
/// As [`as_served`].
pub fn get(
    connection: &Connection,
    resource: &Resource,
    key: &ObjectKey,
) -> Result<Option<Value>, ApiError> {
    let read = |resource: &Resource| connection.send(&Request::get(resource, key));
    match as_served(connection, (key, resource), read) {
        Ok(found) => Ok(found.map(|(answer, _)| answer.body)),
        Err(error) if error.is_missing_object() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether there is a definition of a kind, by which it is to be served. Who may not look takes what is listed for true.
fn is_established(connection: &Connection, resource: &Resource) -> Result<bool, ApiError> {
    let definition = ObjectKey {
        group: "apiextensions.k8s.io".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        namespace: String::new(),
        name: format!("{}.{}", resource.plural, resource.group),
    };
    let definitions = Resource {
        group: definition.group.clone(),
        version: "v1".to_owned(),
        kind: definition.kind.clone(),
        plural: "customresourcedefinitions".to_owned(),
        scope: Scope::Cluster,
    };
    let live = match connection.send(&Request::get(&definitions, &definition)) {
        Ok(answer) => answer.body,
        Err(error) => {
            let kinds = [RefusalKind::NotFound, RefusalKind::Forbidden];
            let is_answer = error.kind().is_some_and(|kind| kinds.contains(&kind));
            return if is_answer { Ok(false) } else { Err(error) };
        }
    };
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
    let is_so = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    Ok(is_so && !metadata::is_going(&live))
}
