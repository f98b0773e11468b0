//! Asks what a server serves, and for lists that come in parts.

use serde_json::Value;

use super::{
    super::{
        AT_ONCE,
        answer::ApiError,
        request::{Accept, Request},
        resource::{Discovery, Resources},
    },
    Connection,
};
use crate::concurrent::concurrently;

/// What is asked for, for messages.
const SERVED: &str = "the kinds that the server serves";
/// As many parts a list may have: half a million objects.
const MOST_PARTS: usize = 1_000;
/// As many objects a list may have, in however many parts.
const MOST_OBJECTS: usize = 500_000;
/// Bytes of all parts of a list: 100,000 objects of five kilobytes each, and metadata has less.
const MOST_BYTES: usize = 512 << 20;
/// As often is a list asked for anew that got too old.
const MOST_STARTS: usize = 3;
/// Too old to be continued.
const GONE: u16 = 410;
/// The form of answer is not known.
const NOT_ACCEPTABLE: u16 = 406;

impl Connection {
    /// Asks for everything that is served: two requests, and more for servers before 1.26.
    pub(super) fn discover(&self) -> Result<Resources, ApiError> {
        let served = concurrently(&["/api", "/apis"], 2, |path| self.served(path));
        let served = served.into_iter().collect::<Result<Vec<_>, _>>()?;
        let read = match served.as_slice() {
            [core, groups] => Discovery::read(core, groups),
            _ => None,
        };
        match read {
            Some(Discovery::Whole(resources)) => Ok(resources),
            Some(Discovery::Versions(versions)) => self.discover_each(&versions),
            None => Err(ApiError::NotKubernetes {
                about: SERVED.to_owned(),
                reason: "it is no list of groups".to_owned(),
            }),
        }
    }

    fn served(&self, path: &str) -> Result<Value, ApiError> {
        match self.send(&Request::read(path, Accept::Discovery, SERVED)) {
            Err(ApiError::Refused(refusal)) if refusal.code == NOT_ACCEPTABLE => {
                let whole = self.send(&Request::read(path, Accept::Whole, SERVED));
                whole.map(|answer| answer.body)
            }
            answer => answer.map(|answer| answer.body),
        }
    }

    /// Asks for the kinds of each version. A group whose own server does not answer is remembered as such.
    fn discover_each(&self, versions: &[(String, String)]) -> Result<Resources, ApiError> {
        let lists = concurrently(versions, AT_ONCE, |(group, version)| {
            let path = match group.as_str() {
                "" => format!("/api/{}", super::super::request::escape(version)),
                group => {
                    let [group, version] = [group, version].map(super::super::request::escape);
                    format!("/apis/{group}/{version}")
                }
            };
            self.send(&Request::read(&path, Accept::Whole, SERVED))
        });
        let mut resources = Resources::default();
        for ((group, version), list) in versions.iter().zip(lists) {
            match list {
                Ok(list) => resources.add_list(group, version, &list.body),
                Err(ApiError::Refused(_)) => resources.add_stale(group),
                Err(error) => return Err(error),
            }
        }
        Ok(resources)
    }

    /// Asks for all parts of a list.
    pub(super) fn list_parts(&self, request: &Request) -> Result<Vec<Value>, ApiError> {
        for _ in 1..MOST_STARTS {
            match self.list_once(request) {
                Err(ApiError::Refused(refusal)) if refusal.code == GONE => {}
                done => return done,
            }
        }
        self.list_once(request)
    }

    fn list_once(&self, request: &Request) -> Result<Vec<Value>, ApiError> {
        let wrong = |reason: &str| ApiError::NotKubernetes {
            about: request.about.clone(),
            reason: reason.to_owned(),
        };
        let (mut objects, mut bytes) = (vec![], 0);
        let mut part = request.clone();
        for _ in 0..MOST_PARTS {
            let answer = self.send(&part)?;
            bytes += answer.bytes;
            let mut list = answer.body;
            let next = list.pointer("/metadata/continue").and_then(Value::as_str);
            let next = next.unwrap_or_default().to_owned();
            match list.get_mut("items").map(Value::take) {
                Some(Value::Array(items)) => objects.extend(named(items, &list)),
                None | Some(Value::Null) if list.get("metadata").is_some() => {}
                _ => return Err(wrong("it is no list")),
            }
            within_bounds(objects.len(), bytes).map_err(|reason| wrong(&reason))?;
            if next.is_empty() {
                return Ok(objects);
            }
            part.query = request.query.clone();
            part.query.push(("continue", next));
        }
        Err(wrong("the list does not end"))
    }
}

/// Refuses a list that would need more memory than any that a cluster is known to have.
fn within_bounds(objects: usize, bytes: usize) -> Result<(), String> {
    let most = if objects > MOST_OBJECTS {
        format!("{MOST_OBJECTS} objects")
    } else if bytes > MOST_BYTES {
        format!("{MOST_BYTES} bytes")
    } else {
        return Ok(());
    };
    Err(format!(
        "the list has more than {most}, and no more are read; see what fills it, and delete what nobody needs"
    ))
}

/// Objects with `apiVersion` and `kind`, which the items of a list need not have.
fn named(items: Vec<Value>, list: &Value) -> impl Iterator<Item = Value> {
    let version = list.get("apiVersion").cloned();
    let kind = list.get("kind").and_then(Value::as_str);
    let kind = kind.and_then(|kind| kind.strip_suffix("List"));
    let kind = kind.map(|kind| Value::String(kind.to_owned()));
    items.into_iter().map(move |mut item| {
        if let (Some(fields), Some(version), Some(kind)) = (item.as_object_mut(), &version, &kind) {
            fields
                .entry("apiVersion")
                .or_insert_with(|| version.clone());
            fields.entry("kind").or_insert_with(|| kind.clone());
        }
        item
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_cluster_is_within_bounds_and_what_is_larger_is_told() {
        assert_eq!(within_bounds(100_000, 100_000 * 5_000), Ok(()));
        for (objects, bytes, told) in [
            (100_000, 600 << 20, "536870912 bytes"),
            (600_000, 1 << 20, "500000 objects"),
        ] {
            let refused = within_bounds(objects, bytes).expect_err("refused");
            assert!(refused.contains(told), "{refused}");
        }
    }
}
