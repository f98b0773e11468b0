//! The files of an image as they stand after some layers, by path; and how a path is followed through its links.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use super::Place;
use crate::oci::paths::{Standing, join, standing};

/// What a whiteout hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hidden {
    /// A path and all below it.
    Whole,
    /// All below a path.
    Content,
}

/// As many links may be on the way to a path, as on Linux.
const LINKS: usize = 40;

/// As long as a path may come to be, as on Linux.
pub(super) const PATH: usize = 4_096;

/// As many parts of paths may be followed, those of links counted each time: a real image comes to some millions.
const STEPS: u64 = 30_000_000;

/// As many notes are kept.
const NOTES: usize = 20;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    File(Place),
    Folder,
    Link(String),
    Special,
    /// A hard link to a path of which nothing was read.
    Unread(String),
    /// A hard link that leads nowhere, and why.
    Broken(String),
}

/// What is at a path, and the layer that put it there last.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) layer: usize,
    /// Whether an entry put it there, and not only something below it.
    pub(super) is_told: bool,
}

/// Files by path; the root has none.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) notes: Vec<String>,
    /// Links to folders that were read, or may be: at any time, in any layer.
    pub(super) ways_in: BTreeSet<String>,
    /// Where the layer that is laid over the others has hidden what they have: its number, and the paths.
    pub(super) hidden: (usize, BTreeSet<(String, Hidden)>),
    /// As many parts of paths were followed so far.
    steps: Cell<u64>,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// To this path, which is no link. There may be nothing.
    At(String),
    /// To this path or something below it, of which nothing was read.
    Unread(String),
}

/// What is to be done where nothing was read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Beyond<'w> {
    /// It is taken for empty.
    Empty,
    /// It is told; these paths were read.
    Told(&'w [String]),
}

impl Tree {
    /// Follows a path, and the links on it, from the root; `..` stays at the root, as in a container.
    pub(super) fn follow(&self, path: &str, beyond: Beyond<'_>) -> Result<End, String> {
        let mut at = String::new();
        let mut links = 0;
        let mut left: Vec<String> = parts(path);
        while let Some(part) = left.pop() {
            self.steps.set(self.steps.get() + 1);
            if self.steps.get() > STEPS {
                return Err("its links lead over too many others".to_owned());
            }
            if part == ".." {
                at.truncate(at.rfind('/').unwrap_or(0));
                continue;
            }
            let next = join(&at, &part);
            if next.len() > PATH {
                return Err(format!(
                    "{} leads to a path of over {PATH} bytes",
                    shown(path)
                ));
            }
            if let Beyond::Told(wanted) = beyond
                && standing(next.as_bytes(), wanted) == Standing::Apart
            {
                return Ok(End::Unread(rest_of(next, &left)));
            }
            match self.nodes.get(&next).map(|node| &node.kind) {
                Some(Kind::Link(text)) => {
                    links += 1;
                    if links > LINKS {
                        return Err(format!(
                            "{} leads over more than {LINKS} links, or in a circle, by way of {}",
                            shown(path),
                            shown(&next)
                        ));
                    }
                    if text.starts_with('/') {
                        at.clear();
                    }
                    left.extend(parts(text));
                }
                _ => at = next,
            }
        }
        Ok(End::At(at))
    }

    /// The nodes below a folder, and their paths.
    pub(super) fn below(&self, folder: &str) -> impl Iterator<Item = (&String, &Node)> {
        let prefix = match folder {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        let from = self.nodes.range(prefix.clone()..);
        from.take_while(move |(path, _)| path.starts_with(&prefix))
    }

    pub(super) fn note(&mut self, note: String) {
        if self.notes.len() < NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// The parts of a path, the last one first.
fn parts(path: &str) -> Vec<String> {
    let parts = path.rsplit('/').filter(|part| !matches!(*part, "" | "."));
    parts.map(str::to_owned).collect()
}

/// A path and what was to follow it, up to where it would lead up again.
fn rest_of(mut path: String, left: &[String]) -> String {
    for part in left.iter().rev().take_while(|part| *part != "..") {
        if path.len() + part.len() >= PATH {
            break;
        }
        path = join(&path, part);
    }
    path
}

/// A path for a sentence.
pub(super) fn shown(path: &str) -> String {
    let start: String = path.chars().take(200).collect();
    format!("{start:?}")
}
