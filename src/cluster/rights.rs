//! The rights that no dry run shows: to delete, and to create what cannot be asked about yet.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    AT_ONCE,
    answer::ApiError,
    connection::Connection,
    inventory::InstallName,
    live,
    plan::{Fate, Plan, Removal, account_key},
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

/// Adds to a plan the rights that the user lacks to carry it out: `unasked` are the objects that no dry run was made for.
///
/// # Errors
/// When the cluster does not tell.
pub fn to_apply(
    connection: &Connection,
    plan: &mut Plan,
    unasked: &[(ObjectKey, Resource)],
) -> Result<(), ApiError> {
    let mut rights = of_plan(plan);
    for (key, resource) in unasked {
        // Server-side apply takes both where there is nothing yet, and `create` knows no names.
        for verb in ["create", "patch"] {
            rights.insert(right(verb, key, resource, ""));
        }
    }
    check(connection, plan, rights)
}

/// Adds to the plan of a cleanup the rights that the user lacks to carry it out after `first` is gone, and to remove the
/// inventory in the end.
///
/// # Errors
/// When the cluster does not tell.
pub fn to_clean(
    connection: &Connection,
    plan: &mut Plan,
    first: &[Removal],
    install: &InstallName,
) -> Result<(), ApiError> {
    let mut rights = of_plan(plan);
    rights.extend(first.iter().filter_map(to_delete));
    let inventory = live::secret_key(&install.namespace, &install.secret());
    for verb in ["delete", "update"] {
        rights.insert(right(verb, &inventory, &live::secrets(), &inventory.name));
    }
    check(connection, plan, rights)
}

/// What a plan takes whose objects were asked about.
fn of_plan(plan: &Plan) -> BTreeSet<Right> {
    let mut rights: BTreeSet<_> = plan.removals.iter().filter_map(to_delete).collect();
    for entry in plan.adding.iter().chain(&plan.removing) {
        let key = account_key(entry);
        rights.insert(right("patch", &key, &live::service_accounts(), &key.name));
    }
    rights
}

fn to_delete(removal: &Removal) -> Option<Right> {
    let Removal { key, resource, .. } = removal;
    // What may not even be read would have to go too.
    let goes = matches!(removal.fate, Fate::Delete { .. } | Fate::Unverifiable(_));
    goes.then(|| right("delete", key, resource, &key.name))
}

/// Adds what is lacking of some rights. Who may do something to all objects of a kind is not asked about each.
fn check(
    connection: &Connection,
    plan: &mut Plan,
    rights: BTreeSet<Right>,
) -> Result<(), ApiError> {
    let of_kinds = rights.iter().map(Right::to_all).collect();
    let denied = lacking(connection, of_kinds)?;
    let (to_all, named): (BTreeSet<_>, BTreeSet<_>) = rights
        .into_iter()
        .filter(|right| denied.contains(&right.to_all()))
        .partition(|right| right.name.is_empty());
    let lacking = lacking(connection, named)?;
    let problems = to_all.iter().chain(&lacking).map(Right::problem);
    plan.problems.extend(problems);
    Ok(())
}

/// Those of some rights that the user does not have.
fn lacking(connection: &Connection, rights: BTreeSet<Right>) -> Result<BTreeSet<Right>, ApiError> {
    let rights: Vec<_> = rights.into_iter().collect();
    let asked = concurrently(&rights, AT_ONCE, |right| {
        let review = Request::ask(REVIEWS, right.review(), "the rights of the user");
        let answer = connection.send(&review)?;
        Ok(answer.body.pointer("/status/allowed") == Some(&Value::Bool(true)))
    });
    let mut lacking = BTreeSet::new();
    for (right, is_allowed) in rights.into_iter().zip(asked) {
        if !is_allowed? {
            lacking.insert(right);
        }
    }
    Ok(lacking)
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

impl Right {
    /// The same right to all objects of the kind.
    fn to_all(&self) -> Self {
        Self {
            name: String::new(),
            ..self.clone()
        }
    }

    fn review(&self) -> Value {
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": self.verb,
                "group": self.group,
                "resource": self.plural,
                "namespace": self.namespace,
                "name": self.name,
            }},
        })
    }

    /// That it is lacking.
    fn problem(&self) -> Problem {
        let what = match (self.plural.as_str(), self.group.as_str()) {
            (plural, "") => plural.to_owned(),
            (plural, group) => format!("{plural}.{group}"),
        };
        let named = match self.name.as_str() {
            "" => String::new(),
            name => format!(" {name}"),
        };
        let place = match self.namespace.as_str() {
            "" => "in the whole cluster".to_owned(),
            namespace => format!("in namespace {namespace}"),
        };
        Problem::error(
            "rights",
            format!("you may not {} {what}{named} {place}", self.verb),
        )
    }
}
