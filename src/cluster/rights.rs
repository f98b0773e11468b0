//! The rights that no dry run shows: to delete, and to create what cannot be asked about yet.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    answer::ApiError,
    connection::Connection,
    live::AT_ONCE,
    plan::{Fate, Plan},
    request::Request,
    resource::Resource,
};
use crate::{concurrent::concurrently, manifest::ObjectKey, problem::Problem};

/// Where reviews are asked for.
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Something that the user may have to be allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    verb: &'static str,
    group: String,
    plural: String,
    namespace: String,
    /// Empty for all objects.
    name: String,
}

/// Adds to a plan the rights that the user lacks for it: `unasked` are the objects that no dry run was made for.
///
/// # Errors
/// When the cluster does not tell.
pub fn check(
    connection: &Connection,
    plan: &mut Plan,
    unasked: &[(ObjectKey, Resource)],
) -> Result<(), ApiError> {
    let mut rights = BTreeSet::new();
    for (key, resource) in unasked {
        // Server-side apply takes both where there is nothing yet, and `create` knows no names.
        for verb in ["create", "patch"] {
            rights.insert(right(verb, key, resource, ""));
        }
    }
    for removal in &plan.removals {
        if let Fate::Delete { .. } = removal.fate {
            rights.insert(right(
                "delete",
                &removal.key,
                &removal.resource,
                &removal.key.name,
            ));
        }
    }
    let rights: Vec<_> = rights.into_iter().collect();
    let asked = concurrently(&rights, AT_ONCE, |right| {
        connection.send(&Request::ask(
            REVIEWS,
            review(right),
            "the rights of the user",
        ))
    });
    for (right, asked) in rights.iter().zip(asked) {
        if asked?.body.pointer("/status/allowed") != Some(&Value::Bool(true)) {
            plan.problems.push(lacking(right));
        }
    }
    Ok(())
}

fn right(verb: &'static str, key: &ObjectKey, resource: &Resource, name: &str) -> Right {
    Right {
        verb,
        group: resource.group.clone(),
        plural: resource.plural.clone(),
        namespace: key.namespace.clone(),
        name: name.to_owned(),
    }
}

fn review(right: &Right) -> Value {
    json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": right.verb,
            "group": right.group,
            "resource": right.plural,
            "namespace": right.namespace,
            "name": right.name,
        }},
    })
}

fn lacking(right: &Right) -> Problem {
    let what = match (right.plural.as_str(), right.group.as_str()) {
        (plural, "") => plural.to_owned(),
        (plural, group) => format!("{plural}.{group}"),
    };
    let named = match right.name.as_str() {
        "" => String::new(),
        name => format!(" {name}"),
    };
    let place = match right.namespace.as_str() {
        "" => "in the whole cluster".to_owned(),
        namespace => format!("in namespace {namespace}"),
    };
    let message = format!(
        "you may not {} {what}{named} {place}; `kubectl olm rbac` prints what an account needs",
        right.verb
    );
    Problem::error("rights", message)
}
