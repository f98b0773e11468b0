//! Asks how objects are now: one request for each, or one list where there are many of a kind in a namespace.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Sender, State};
use crate::{
    cluster::{
        AT_ONCE,
        answer::{ApiError, RefusalKind},
        request::Request,
        resource::{Resource, Scope},
    },
    concurrent::concurrently,
    manifest::ObjectKey,
};

/// From so many objects of a kind in a namespace on, a list costs less than they do one by one.
const LISTED_FROM: usize = 8;

/// What is asked for of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// All of it.
    Whole,
    /// Its metadata.
    Metadata,
}

/// What was seen of an object.
#[derive(Clone, PartialEq)]
pub(super) enum Seen {
    /// It is there; as it is, with its `apiVersion` and `kind`.
    There(Value),
    /// It is not there.
    Missing,
    /// It could not be seen: what that means for the waiting, and why.
    Not(State, String),
}

/// A request to be made.
enum Question {
    /// For the object at this position.
    One(usize),
    /// For all objects of the kind and in the namespace of those at these positions.
    List(Vec<usize>),
}

/// An object that is asked for.
pub(super) type Named<'o> = (&'o Resource, &'o ObjectKey);

/// How objects are now, in their order.
pub(super) fn look(send: &Sender<'_>, objects: &[Named<'_>], form: Form) -> Vec<Seen> {
    let questions = questions(objects, form);
    let answers = concurrently(&questions, AT_ONCE, |question| match question {
        Question::One(at) => vec![(*at, one(send, objects, *at, form))],
        Question::List(of) => list(send, objects, of, form),
    });
    let mut seen: Vec<_> = answers.into_iter().flatten().collect();
    seen.sort_by_key(|(at, _)| *at);
    seen.into_iter().map(|(_, seen)| seen).collect()
}

/// The fewest requests that are worth their bytes: whole objects in no namespace, such as definitions, may be large, and
/// most of them are not ours.
fn questions(objects: &[Named<'_>], form: Form) -> Vec<Question> {
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, (resource, key)) in objects.iter().enumerate() {
        groups
            .entry((*resource, key.namespace.as_str()))
            .or_default()
            .push(at);
    }
    let mut questions = vec![];
    for ((resource, _), of) in groups {
        let may_be_listed = resource.scope == Scope::Namespaced || form == Form::Metadata;
        if may_be_listed && of.len() >= LISTED_FROM {
            questions.push(Question::List(of));
        } else {
            questions.extend(of.into_iter().map(Question::One));
        }
    }
    questions
}

fn one(send: &Sender<'_>, objects: &[Named<'_>], at: usize, form: Form) -> Seen {
    let Some((resource, key)) = objects.get(at) else {
        return Seen::Missing;
    };
    let request = match form {
        Form::Whole => Request::get(resource, key),
        Form::Metadata => Request::get_metadata(resource, key),
    };
    match send(&request) {
        Ok(answer) => Seen::There(of_kind(answer.body, resource)),
        Err(error) => unseen(&error),
    }
}

/// The objects at some positions, by one list; what that does not tell is asked for one by one.
fn list(send: &Sender<'_>, objects: &[Named<'_>], of: &[usize], form: Form) -> Vec<(usize, Seen)> {
    let each = |at: &usize| (*at, one(send, objects, *at, form));
    let first = of.first().and_then(|at| objects.get(*at));
    let Some((resource, key)) = first else {
        return vec![];
    };
    let namespace = Some(key.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let request = match form {
        Form::Whole => Request::list(resource, namespace, ""),
        Form::Metadata => Request::list_metadata(resource, namespace, ""),
    };
    let Ok(answer) = send(&request) else {
        // Whoever may read objects may not list them, perhaps.
        return of.iter().map(each).collect();
    };
    let rest = answer
        .body
        .pointer("/metadata/continue")
        .and_then(Value::as_str);
    let is_whole = rest.unwrap_or_default().is_empty();
    let there = items(answer.body, resource).into_iter().filter_map(|item| {
        let name = item.pointer("/metadata/name").and_then(Value::as_str);
        Some((name?.to_owned(), item))
    });
    let mut there: BTreeMap<_, _> = there.collect();
    let find = |at: &usize| match objects
        .get(*at)
        .and_then(|(_, key)| there.remove(&key.name))
    {
        Some(live) => (*at, Seen::There(live)),
        None if is_whole => (*at, Seen::Missing),
        None => each(at),
    };
    of.iter().map(find).collect()
}

/// The items of a list, with their kind.
pub(super) fn items(mut list: Value, resource: &Resource) -> Vec<Value> {
    let items = match list.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => vec![],
    };
    let items = items.into_iter();
    items.map(|item| of_kind(item, resource)).collect()
}

/// The object with its kind: items of lists have none, and metadata alone has another.
fn of_kind(mut object: Value, resource: &Resource) -> Value {
    let version = match resource.group.as_str() {
        "" => resource.version.clone(),
        group => format!("{group}/{}", resource.version),
    };
    if let Value::Object(fields) = &mut object {
        fields.insert("apiVersion".to_owned(), version.into());
        fields.insert("kind".to_owned(), resource.kind.clone().into());
    }
    object
}

/// What it means that an object could not be read.
fn unseen(error: &ApiError) -> Seen {
    let state = match (error.kind(), error) {
        (Some(RefusalKind::NotFound), _) => return Seen::Missing,
        (Some(RefusalKind::Forbidden), _) => State::Unreadable,
        (Some(RefusalKind::Credentials), _) | (_, ApiError::Stopped { .. }) => State::Stopped,
        _ => State::Waiting,
    };
    Seen::Not(state, format!("it could not be read: {error}"))
}
