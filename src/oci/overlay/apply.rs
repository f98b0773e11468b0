//! Lays one entry of a layer over what the entries before it made.

use std::collections::BTreeSet;

use super::{
    Place,
    tree::{Beyond, End, Hidden, Kind, Node, Tree, shown},
};
use crate::oci::{
    layer::{EntryKind, LayerEntry},
    paths::{Standing, join, split, standing, target},
};

/// Lays an entry over what is there.
///
/// # Errors
/// A sentence about a path that no container could have.
pub(super) fn entry(
    tree: &mut Tree,
    layer: usize,
    entry: &LayerEntry,
    wanted: &[String],
) -> Result<(), String> {
    if entry.kind == EntryKind::OpaqueWhiteout {
        let folder = place(tree, &entry.path)?;
        make_folders(tree, layer, &folder, &entry.path)?;
        return hide(tree, layer, &folder, Hidden::Content);
    }
    let (folder, name) = split(&entry.path);
    let folder = place(tree, folder)?;
    make_folders(tree, layer, &folder, &entry.path)?;
    let path = join(&folder, name);
    if entry.kind == EntryKind::Whiteout {
        return hide(tree, layer, &path, Hidden::Whole);
    }
    let is_folder = entry.kind == EntryKind::Folder;
    clear(tree, layer, &path, is_folder);
    let kind = match &entry.kind {
        EntryKind::File { position, size } => Kind::File(Place {
            layer,
            position: *position,
            size: *size,
        }),
        EntryKind::HardLink(other) => linked(tree, other, wanted)?,
        EntryKind::SymbolicLink(text) => {
            note_way_in(tree, &path, text, wanted);
            Kind::Link(text.clone())
        }
        EntryKind::Special => Kind::Special,
        EntryKind::Folder | EntryKind::Whiteout | EntryKind::OpaqueWhiteout => Kind::Folder,
    };
    let node = Node {
        kind,
        layer,
        is_told: true,
    };
    tree.nodes.insert(path, node);
    Ok(())
}

/// Where a folder of an entry is, after its links. Of what was not read nothing is known, and it is taken as it is
/// written; whoever reads there is told.
fn place(tree: &Tree, folder: &str) -> Result<String, String> {
    match tree.follow(folder, Beyond::Empty)? {
        End::At(path) | End::Unread(path) => Ok(path),
    }
}

/// Makes sure that a folder is there, with those above it.
fn make_folders(tree: &mut Tree, layer: usize, folder: &str, entry: &str) -> Result<(), String> {
    let ends = folder.match_indices('/').map(|(end, _)| end);
    for end in ends.chain([folder.len()]) {
        let path = folder.get(..end).unwrap_or_default();
        match tree.nodes.get(path).map(|node| &node.kind) {
            _ if path.is_empty() => {}
            Some(Kind::Folder) => {}
            Some(_) => {
                let (entry, path) = (shown(entry), shown(path));
                return Err(format!("{entry} is below {path}, which is no folder"));
            }
            None => {
                let node = Node {
                    kind: Kind::Folder,
                    layer,
                    is_told: false,
                };
                tree.nodes.insert(path.to_owned(), node);
            }
        }
    }
    Ok(())
}

/// Takes away what lower layers have at a path or below it; what this layer has stays, with the folders it is in.
fn hide(tree: &mut Tree, layer: usize, path: &str, hidden: Hidden) -> Result<(), String> {
    if tree.hidden.0 != layer {
        tree.hidden = (layer, BTreeSet::new());
    }
    // Nothing of lower layers comes back within a layer, and many marks must not cost as many looks at all that is there.
    let is_new = tree.hidden.1.insert((path.to_owned(), hidden));
    if !is_new {
        return Ok(());
    }
    let mut hit: Vec<String> = tree.below(path).map(|(path, _)| path.clone()).collect();
    if hidden == Hidden::Whole {
        hit.push(path.to_owned());
    }
    let is_of_layer = |path: &String| {
        let node = tree.nodes.get(path);
        node.is_some_and(|node| node.layer == layer)
    };
    let (kept, gone): (Vec<_>, Vec<_>) = hit.into_iter().partition(is_of_layer);
    for path in &gone {
        tree.nodes.remove(path);
    }
    for path in &kept {
        make_folders(tree, layer, split(path).0, path)?;
    }
    if hidden == Hidden::Whole && !kept.is_empty() {
        let path = shown(path);
        tree.note(format!(
            "{path} and a mark that hides it are in one layer; it stays, as the image specification says"
        ));
    }
    Ok(())
}

/// Makes room for an entry: only a folder does not replace a folder.
fn clear(tree: &mut Tree, layer: usize, path: &str, is_folder: bool) {
    let Some(node) = tree.nodes.get(path) else {
        return;
    };
    if is_folder && node.kind == Kind::Folder {
        return;
    }
    if node.layer == layer && node.is_told {
        let path = shown(path);
        tree.note(format!("{path} is twice in one layer; the last one counts"));
    }
    let below: Vec<String> = tree.below(path).map(|(path, _)| path.clone()).collect();
    for path in below {
        tree.nodes.remove(&path);
    }
    tree.nodes.remove(path);
}

/// What a hard link is: the same as at another path, now.
fn linked(tree: &Tree, other: &str, wanted: &[String]) -> Result<Kind, String> {
    let (folder, name) = split(other);
    let folder = match tree.follow(folder, Beyond::Told(wanted))? {
        End::At(folder) => folder,
        End::Unread(_) => return Ok(Kind::Unread(other.to_owned())),
    };
    let path = join(&folder, name);
    if standing(path.as_bytes(), wanted) != Standing::Within {
        return Ok(Kind::Unread(path));
    }
    let broken = |why: &str| Kind::Broken(format!("is a hard link to {}, {why}", shown(&path)));
    Ok(match tree.nodes.get(&path).map(|node| &node.kind) {
        None => broken("which is not there"),
        Some(Kind::Folder) => broken("which is a folder"),
        Some(kind) => kind.clone(),
    })
}

/// Notes a link through which upper layers may reach what was read: what they have below the link was not.
fn note_way_in(tree: &mut Tree, path: &str, text: &str, wanted: &[String]) {
    let is_read = standing(path.as_bytes(), wanted) == Standing::Within;
    let leads_there = standing(target(path, text).as_bytes(), wanted) != Standing::Apart;
    if !is_read && leads_there {
        tree.ways_in.insert(path.to_owned());
    }
}
