//! All texts of an object, one after the other, with their JSON pointers.
//!
//! Keys are no texts, and neither is what names the object or says what it is: `apiVersion`, `kind`, and all of `metadata`
//! but the annotations, wherever an object stands within another.

use std::{iter::Enumerate, slice};

use serde_json::{Map, Value, map};

/// Bytes of the longest JSON pointer that is followed. The longest of real objects have 700; memory for very many
/// long ones must not be content's to ask for.
const LONGEST_POINTER: usize = 1024;

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place<'a> {
    /// The value of the annotation with this key.
    Annotation(&'a str),
    /// Any other value.
    Value,
}

/// A walk over the texts of an object. It keeps its own stack, so that deep nesting costs no more than memory.
pub(super) struct Strings<'a> {
    /// The lists and maps around the text that was given last, outermost first.
    levels: Vec<Level<'a>>,
}

/// A list or map that is being walked.
struct Level<'a> {
    children: Children<'a>,
    /// Where in it the walk is.
    step: Step<'a>,
    within: Within,
}

enum Children<'a> {
    Map(map::Iter<'a>),
    List(Enumerate<slice::Iter<'a, Value>>),
}

#[derive(Clone, Copy, PartialEq)]
enum Step<'a> {
    Key(&'a str),
    Position(usize),
}

/// What a list or map belongs to.
#[derive(Clone, Copy)]
enum Within {
    Object,
    Metadata,
    Annotations,
}

impl<'a> Strings<'a> {
    /// Starts at the top of an object.
    pub(super) fn of(object: &'a Map<String, Value>) -> Self {
        let top = Level {
            children: Children::Map(object.iter()),
            step: Step::Position(0),
            within: Within::Object,
        };
        Self { levels: vec![top] }
    }

    /// The JSON pointer of the text that was given last, unless it is longer than any that is followed.
    pub(super) fn pointer(&self) -> Option<String> {
        let mut pointer = String::new();
        for level in &self.levels {
            pointer.push('/');
            match level.step {
                Step::Key(key) if key.len() > LONGEST_POINTER => return None,
                Step::Key(key) => pointer += &key.replace('~', "~0").replace('/', "~1"),
                Step::Position(position) => pointer += &position.to_string(),
            }
            if pointer.len() > LONGEST_POINTER {
                return None;
            }
        }
        Some(pointer)
    }
}

/// Each text, and what it is.
impl<'a> Iterator for Strings<'a> {
    type Item = (Place<'a>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let level = self.levels.last_mut()?;
            let Some((step, value)) = level.children.next() else {
                self.levels.pop();
                continue;
            };
            level.step = step;
            if let Value::String(text) = value {
                match level.place() {
                    Some(place) => return Some((place, text)),
                    None => continue,
                }
            }
            if let Some(children) = Children::of(value)
                && let Some(within) = level.within_child()
            {
                self.levels.push(Level {
                    children,
                    step,
                    within,
                });
            }
        }
    }
}

impl<'a> Level<'a> {
    /// What the text is that the walk is at; nothing where no text is looked at.
    fn place(&self) -> Option<Place<'a>> {
        match (self.within, self.step) {
            (Within::Annotations, Step::Key(key)) => Some(Place::Annotation(key)),
            (Within::Metadata | Within::Annotations, _)
            | (Within::Object, Step::Key("apiVersion" | "kind")) => None,
            (Within::Object, _) => Some(Place::Value),
        }
    }

    /// What the list or map belongs to that the walk is at; nothing where it is not looked into.
    fn within_child(&self) -> Option<Within> {
        match (self.within, self.step) {
            (Within::Object, Step::Key("metadata")) => Some(Within::Metadata),
            (Within::Object, _) => Some(Within::Object),
            (Within::Metadata, Step::Key("annotations")) => Some(Within::Annotations),
            (Within::Metadata | Within::Annotations, _) => None,
        }
    }
}

impl<'a> Children<'a> {
    fn of(value: &'a Value) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self::Map(map.iter())),
            Value::Array(list) => Some(Self::List(list.iter().enumerate())),
            _ => None,
        }
    }

    fn next(&mut self) -> Option<(Step<'a>, &'a Value)> {
        match self {
            Self::Map(map) => map.next().map(|(key, value)| (Step::Key(key), value)),
            Self::List(list) => list
                .next()
                .map(|(position, value)| (Step::Position(position), value)),
        }
    }
}
