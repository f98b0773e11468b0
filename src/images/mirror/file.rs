//! A file of mirror rules: a stream of objects, or lines. Which of the two, its content says and not its name.
//!
//! Objects of other kinds are passed over, since oc-mirror writes CatalogSources into the same folder.

use serde_json::{Map, Value};

use super::{
    Form,
    lines::{self, Line},
    objects::{self, Entry, Fault},
};
use crate::{
    limits::Limits,
    manifest::{
        Manifest, ObjectKey, Origin,
        yaml::{self, Document, DuplicateKey, Lines},
    },
    problem::{Place, Problem},
};

/// As many problems of a file are told; the others are counted.
const TOLD: usize = 1000;

/// What a file says.
#[derive(Default)]
pub(super) struct Content {
    pub(super) entries: Vec<(Form, Entry)>,
    pub(super) lines: Vec<Line>,
    /// How many objects were passed over.
    passed_over: usize,
    /// How many objects have rules, or could have.
    sets: usize,
}

/// Adds what a file says.
///
/// # Errors
/// Everything in it that is no rule, with its line.
pub(super) fn read(
    path: &str,
    text: &[u8],
    limits: &Limits,
    content: &mut Content,
) -> Result<(), Vec<Problem>> {
    let read = if lines::is_lines(text) {
        lines::read(path, text, limits).map(|lines| content.lines.extend(lines))
    } else {
        read_objects(path, text, limits, content)
    };
    read.map_err(cut)
}

/// Why there is no rule in all that was read; nothing if there is one. `path` is what the user named.
pub(super) fn without_rule(path: &str, content: &Content) -> Option<Problem> {
    if !content.entries.is_empty() || !content.lines.is_empty() {
        return None;
    }
    let what = if content.sets > 0 {
        "its objects list no source at all"
    } else if content.passed_over > 0 {
        "none of its objects is an ImageDigestMirrorSet, ImageTagMirrorSet or ImageContentSourcePolicy"
    } else {
        "it must hold an ImageDigestMirrorSet, ImageTagMirrorSet or ImageContentSourcePolicy, or lines `source=destination`"
    };
    let message = format!("there is no mirror rule in it: {what}");
    Some(Problem::error("no-mirror-rule", message).at(path))
}

/// The first problems, and how many more there are.
fn cut(mut problems: Vec<Problem>) -> Vec<Problem> {
    if let Some(more) = problems.len().checked_sub(TOLD).filter(|more| *more > 0) {
        problems.truncate(TOLD);
        let place = problems.first().map(|problem| problem.place.path.clone());
        let place = place.unwrap_or_default();
        problems.push(more_problems(more).at(place.as_str()));
    }
    problems
}

fn read_objects(
    path: &str,
    text: &[u8],
    limits: &Limits,
    content: &mut Content,
) -> Result<(), Vec<Problem>> {
    let place = |line| Place {
        path: path.to_owned(),
        line,
    };
    let documents = yaml::read(text, limits).map_err(|error| vec![error.in_file(path)])?;
    let mut lines = Lines::new(text, &documents, limits);
    let (mut problems, mut left) = (vec![], 0);
    let mut budget = limits.file_objects;
    for document in documents {
        if let Some(told) = duplicates(&document, path) {
            problems.extend(told);
            continue;
        }
        let start = document.line;
        let Some(objects) = objects_of(document, &mut budget) else {
            let limit = limits.file_objects;
            let message = format!(
                "the file has more objects than the limit of {limit} (--no-limits lifts it for content you trust)"
            );
            problems.push(Problem::error("limit", message).at(place(0)));
            break;
        };
        for (at, object) in objects {
            let faults = take(&object, content);
            // Beyond the bound nobody sees more than their number.
            let told = TOLD.saturating_sub(problems.len()).min(faults.len());
            left += faults.len() - told;
            if told == 0 {
                continue;
            }
            let object = Manifest::new(Value::Object(object), Origin::Generated(""));
            let key = object.key();
            for fault in faults.into_iter().take(told) {
                let line = lines.line(start, &format!("{at}{}", fault.path));
                problems.push(problem(fault, &key, place(line)));
            }
        }
    }
    if left > 0 {
        problems.push(more_problems(left).at(place(0)));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

fn more_problems(count: usize) -> Problem {
    let message = format!("{count} more problems of this file are not shown");
    Problem::error("too-many", message)
}

/// The keys that stand twice in a document, of which nobody knows what it says then; nothing if there are none. Two
/// objects in one document are one problem.
fn duplicates(document: &Document, path: &str) -> Option<Vec<Problem>> {
    let keys = &document.duplicate_keys;
    let told = |duplicate: &DuplicateKey, message: String| {
        let place = Place {
            path: path.to_owned(),
            line: duplicate.line,
        };
        Problem::error("duplicate-key", message).at(place)
    };
    let is_head = |key: &&DuplicateKey| ["apiVersion", "kind"].contains(&key.key.as_str());
    if let Some(head) = keys.iter().find(is_head) {
        let message = format!(
            "`{}` stands twice in one object; there may be a line `---` missing before the second one",
            head.key
        );
        return Some(vec![told(head, message)]);
    }
    let twice = keys.iter().map(|duplicate| {
        let key = &duplicate.key;
        let message = format!("`{key}` stands twice in one map; leave one of them");
        told(duplicate, message)
    });
    (!keys.is_empty()).then(|| twice.collect())
}

/// What is wrong with a field, as it is told.
pub(super) fn problem(fault: Fault, object: &ObjectKey, place: Place) -> Problem {
    let problem = Problem::error(fault.rule, fault.message).at(place);
    problem.on(object)
}

/// Takes the rules of an object in, and gives what is wrong with them.
fn take(object: &Map<String, Value>, content: &mut Content) -> Vec<Fault> {
    let kind = match objects::kind(object) {
        Ok(Some(kind)) => kind,
        Ok(None) => {
            content.passed_over += 1;
            return vec![];
        }
        Err(fault) => return vec![fault],
    };
    content.sets += 1;
    let (entries, faults) = objects::entries(object, kind);
    let entries = entries.into_iter().map(|entry| (kind.form, entry));
    content.entries.extend(entries);
    faults
}

/// The objects of a document, with what stands before the paths of their fields: itself, or the items of a list.
/// Nothing if there are more than the budget.
fn objects_of(document: Document, budget: &mut usize) -> Option<Vec<(String, Map<String, Value>)>> {
    let Value::Object(mut object) = document.value else {
        return Some(vec![]);
    };
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let of_items = text("kind").and_then(|kind| kind.strip_suffix("List").map(str::to_owned));
    let api_version = text("apiVersion").unwrap_or_default();
    let items = match (&of_items, object.get_mut("items")) {
        (Some(_), Some(Value::Array(items))) => std::mem::take(items),
        _ => {
            *budget = budget.checked_sub(1)?;
            return Some(vec![(String::new(), object)]);
        }
    };
    *budget = budget.checked_sub(items.len())?;
    let kind = of_items.unwrap_or_default();
    let item = |(index, item)| {
        let Value::Object(mut item) = item else {
            return None;
        };
        // A list of one kind says the kind of its items, as an API server sends it.
        if !kind.is_empty() && !item.contains_key("kind") {
            item.insert("kind".to_owned(), kind.as_str().into());
            item.insert("apiVersion".to_owned(), api_version.as_str().into());
        }
        Some((format!("items[{index}]."), item))
    };
    Some(items.into_iter().enumerate().filter_map(item).collect())
}
