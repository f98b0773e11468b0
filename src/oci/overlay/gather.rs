//! Gathers what is below some folders, links and all, once all layers are laid over each other.

use std::collections::BTreeSet;

use super::{
    Overlay,
    tree::{Beyond, End, Kind, PATH, Tree, shown},
};
use crate::oci::paths::{Standing, is_at_or_below, join, standing};

/// As many files and folders may come of links: a few of them to folders with links to folders make billions.
const FOUND: usize = 1_000_000;

/// As many bytes the paths of all of them may have.
const TEXT: usize = 256 << 20;

/// A folder to be listed: where it is, under which path, and the links that were followed to it.
struct Todo {
    folder: String,
    path: String,
    links: Vec<String>,
}

struct Gathered<'t> {
    tree: &'t Tree,
    wanted: &'t [String],
    overlay: Overlay,
    folders: BTreeSet<String>,
    missing: BTreeSet<String>,
    found: usize,
    text: usize,
    todo: Vec<Todo>,
}

/// Gathers what is below the folders, if the layers could be laid over each other.
///
/// # Errors
/// A sentence about a path that cannot be had, unless something is missing that may yet explain it.
pub(super) fn gather(
    tree: Tree,
    laid: Result<(), String>,
    folders: &[String],
    wanted: &[String],
) -> Result<Overlay, String> {
    let mut gathered = Gathered {
        tree: &tree,
        wanted,
        overlay: Overlay::default(),
        folders: BTreeSet::new(),
        missing: BTreeSet::new(),
        found: 0,
        text: 0,
        todo: vec![],
    };
    let found = laid.and_then(|()| gathered.all(folders));
    for path in &tree.ways_in {
        gathered.way_in(path);
    }
    if gathered.missing.is_empty() {
        found?;
    }
    let mut overlay = gathered.overlay;
    overlay.folders = gathered.folders.into_iter().collect();
    overlay.missing = gathered.missing.into_iter().collect();
    overlay.notes = tree.notes;
    Ok(overlay)
}

impl Gathered<'_> {
    /// Takes all folders that were asked for.
    fn all(&mut self, folders: &[String]) -> Result<(), String> {
        for folder in folders {
            self.start(folder)?;
            while let Some(todo) = self.todo.pop() {
                self.list(&todo)?;
            }
        }
        Ok(())
    }

    /// A link that leads to what was read; it matters unless it leads to a file.
    fn way_in(&mut self, path: &str) {
        let end = self.tree.follow(path, Beyond::Empty);
        let is_file = |end: &String| {
            let node = self.tree.nodes.get(end);
            node.is_some_and(|node| node.kind != Kind::Folder)
        };
        if !matches!(end, Ok(End::At(end)) if is_file(&end)) {
            self.missing.insert(path.to_owned());
        }
    }

    /// Begins with a folder that was asked for.
    fn start(&mut self, folder: &str) -> Result<(), String> {
        match self.tree.follow(folder, Beyond::Told(self.wanted))? {
            End::Unread(path) => {
                self.missing.insert(path);
                Ok(())
            }
            End::At(end) if !end.is_empty() && !self.tree.nodes.contains_key(&end) => {
                if end == folder {
                    return Ok(());
                }
                Err(nowhere(folder, &end))
            }
            End::At(end) => self.take(&end, folder, &[]),
        }
    }

    /// Counts what is found.
    fn count(&mut self, path: &str) -> Result<(), String> {
        self.found += 1;
        self.text += path.len();
        if self.found > FOUND || self.text > TEXT || path.len() > PATH {
            return Err(format!(
                "{} comes, with its links, to too many files or too long a path",
                shown(path)
            ));
        }
        Ok(())
    }

    /// Takes what is at a path, under the same or another one.
    fn take(&mut self, place: &str, path: &str, links: &[String]) -> Result<(), String> {
        self.count(path)?;
        if standing(place.as_bytes(), self.wanted) != Standing::Within {
            self.missing.insert(place.to_owned());
            return Ok(());
        }
        let root = Kind::Folder;
        let kind = match self.tree.nodes.get(place) {
            Some(node) => &node.kind,
            None => &root,
        };
        match kind {
            Kind::File(file) => {
                self.overlay.files.insert(path.to_owned(), *file);
            }
            Kind::Folder => {
                self.folders.insert(path.to_owned());
                self.todo.push(Todo {
                    folder: place.to_owned(),
                    path: path.to_owned(),
                    links: links.to_vec(),
                });
            }
            Kind::Unread(target) => {
                self.missing.insert(target.clone());
            }
            Kind::Broken(why) => return Err(format!("{} {why}", shown(path))),
            Kind::Special => {
                return Err(format!(
                    "{} is a device or a pipe, which is no content",
                    shown(path)
                ));
            }
            Kind::Link(_) => return self.link(place, path, links),
        }
        Ok(())
    }

    /// Takes what a link leads to.
    fn link(&mut self, link: &str, path: &str, links: &[String]) -> Result<(), String> {
        let end = match self.tree.follow(link, Beyond::Told(self.wanted)) {
            Ok(End::At(end)) => end,
            Ok(End::Unread(target)) => {
                self.missing.insert(target);
                return Ok(());
            }
            Err(why) => return Err(why),
        };
        let node = self.tree.nodes.get(&end);
        if node.is_none() && !end.is_empty() {
            return Err(nowhere(path, &end));
        }
        let mut links = links.to_vec();
        links.push(link.to_owned());
        let is_folder = node.is_none_or(|node| node.kind == Kind::Folder);
        let goes_round = |link: &String| is_at_or_below(link.as_bytes(), end.as_bytes());
        if is_folder && links.iter().any(goes_round) {
            return Err(format!("{} is a link in a circle", shown(path)));
        }
        self.take(&end, path, &links)
    }

    /// Takes what is in a folder and below it.
    fn list(&mut self, todo: &Todo) -> Result<(), String> {
        let tree = self.tree;
        let start = if todo.folder.is_empty() {
            0
        } else {
            todo.folder.len() + 1
        };
        for (place, node) in tree.below(&todo.folder) {
            let path = join(&todo.path, place.get(start..).unwrap_or_default());
            if node.kind == Kind::Folder {
                self.count(&path)?;
                self.folders.insert(path);
            } else {
                self.take(place, &path, &todo.links)?;
            }
        }
        Ok(())
    }
}

fn nowhere(path: &str, end: &str) -> String {
    let (path, end) = (shown(path), shown(end));
    format!("{path} is a link to {end}, which is not there")
}
