//! One layer: what of its entries concerns some folders. What they come to together with those of other layers is up
//! to [`super::overlay`].
//!
//! Whiteouts are those of the OCI image specification, `layer.md`; names are read as containerd does, `pkg/archive`,
//! function `applyNaive`, with which OLM v1 unpacks images. Names on which programs differ are refused.

use std::io::{self, BufRead, Read, Write};

use super::paths::{Standing, standing, target, tidy};
use serde::{Deserialize, Serialize};

use crate::{
    archive::{self, Bound, Found, Kind, Members},
    limits::{Limits, Over},
};

/// What a layer says of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerEntry {
    /// The path from the image's root, without a leading slash. Of a whiteout, the path that is hidden.
    pub path: String,
    /// What is there.
    pub kind: EntryKind,
}

impl LayerEntry {
    /// Bytes of memory that its name takes, with that of what it leads to and what comes with every name.
    #[must_use]
    pub fn name_bytes(&self) -> u64 {
        let link = match &self.kind {
            EntryKind::HardLink(link) | EntryKind::SymbolicLink(link) => link.len(),
            _ => 0,
        };
        (self.path.len() + link + size_of::<Self>()) as u64
    }
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A file, whose content was written to the sink when the path is a wanted one or below one.
    File {
        /// Where its content begins in what the sink took.
        position: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// A folder.
    Folder,
    /// Another name of what is at a path from the image's root.
    HardLink(String),
    /// A link, with its text.
    SymbolicLink(String),
    /// Something that is no content: a device, a pipe or a socket.
    Special,
    /// What lower layers have at the path is gone.
    Whiteout,
    /// What lower layers have below the path is gone.
    OpaqueWhiteout,
}

/// Reads a layer, compressed or not, to its end. Entries at, below and above the `wanted` paths are given in the order
/// of the layer, and links elsewhere that lead there; the content of files at and below the paths goes to `sink`, at
/// most `limits.catalog_bytes` of it, in the same order.
///
/// # Errors
/// When it cannot be read, holds what no layer should, or reaches a limit.
pub fn read(
    layer: impl Read,
    wanted: &[String],
    limits: &Limits,
    sink: &mut dyn Write,
) -> io::Result<Vec<LayerEntry>> {
    let wanted: Vec<String> = wanted.iter().map(|path| tidy(path)).collect();
    let bound = Bound {
        bytes: limits.layer_bytes,
        growth: limits.layer_growth,
    };
    let plain = archive::decompressed(layer, bound)?;
    let mut members = Members::new(plain, limits.layer_entries);
    let (mut entries, mut names) = (vec![], 0);
    let mut written = 0;
    while let Some(found) = members.next_entry()? {
        let Some(entry) = entry_of(found, &wanted, written)? else {
            continue;
        };
        names += entry.name_bytes();
        if names > limits.layer_names as u64 {
            let (limit, what) = (limits.layer_names as u64, "bytes of names");
            return Err(Over { limit, what }.into());
        }
        if let EntryKind::File { size, .. } = entry.kind
            && standing(entry.path.as_bytes(), &wanted) == Standing::Within
        {
            written = u64::saturating_add(written, size);
            if written > limits.catalog_bytes {
                let (limit, what) = (limits.catalog_bytes, "bytes of files");
                return Err(Over { limit, what }.into());
            }
            copy(&mut members, sink)?;
        }
        entries.push(entry);
    }
    members.drain()?;
    Ok(entries)
}

/// Writes the content of an entry, in the pieces in which it comes out of the decompressor.
fn copy(content: &mut impl BufRead, sink: &mut dyn Write) -> io::Result<()> {
    loop {
        let piece = content.fill_buf()?;
        if piece.is_empty() {
            return Ok(());
        }
        sink.write_all(piece)?;
        let length = piece.len();
        content.consume(length);
    }
}

/// What an entry of the archive says of a path, if that concerns the wanted ones.
fn entry_of(found: Found, wanted: &[String], position: u64) -> io::Result<Option<LayerEntry>> {
    let Some((path, whiteout)) = place_of(&found)? else {
        return Ok(None);
    };
    let standing = standing(&path, wanted);
    let link = match &found.kind {
        Kind::HardLink(link) | Kind::SymbolicLink(link) => str::from_utf8(link).ok(),
        _ => None,
    };
    let is_symbolic = matches!(found.kind, Kind::SymbolicLink(_)) && whiteout.is_none();
    if standing == Standing::Apart && !(is_symbolic && leads_there(&path, link, wanted)) {
        return Ok(None);
    }
    let refused = |reason| archive::bad(&found.path, reason);
    let path = String::from_utf8(path).map_err(|_| refused("its name is not Unicode"))?;
    if path.chars().any(char::is_control) {
        return Err(refused("its name holds control characters"));
    }
    let kind = match (whiteout, &found.kind) {
        (Some(whiteout), _) => whiteout,
        (None, Kind::File) => EntryKind::File {
            position,
            size: found.size,
        },
        (None, Kind::Folder) => EntryKind::Folder,
        (None, Kind::Special) => EntryKind::Special,
        (None, Kind::HardLink(_) | Kind::SymbolicLink(_)) => {
            let link = link.ok_or_else(|| refused("it leads to a name that is not Unicode"))?;
            if is_symbolic {
                EntryKind::SymbolicLink(link.to_owned())
            } else if link.split('/').any(|part| part == "..") {
                return Err(refused("it leads to a name with `..`"));
            } else {
                EntryKind::HardLink(tidy(link))
            }
        }
    };
    Ok(Some(LayerEntry { path, kind }))
}

/// The path that an entry speaks of, and what it hides, if it does; nothing for an entry that says nothing.
fn place_of(found: &Found) -> io::Result<Option<(Vec<u8>, Option<EntryKind>)>> {
    let refused = |reason| archive::bad(&found.path, reason);
    let mut parts: Vec<&[u8]> = vec![];
    for part in found.path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Err(refused("a part of its name is `..`")),
            part => parts.push(part),
        }
    }
    let Some(name) = parts.last().copied() else {
        // The root is there anyway, and stays a folder.
        return match found.kind {
            Kind::Folder => Ok(None),
            _ => Err(refused("it takes the place of the image's root")),
        };
    };
    let Some(hidden) = name.strip_prefix(WHITEOUT) else {
        return Ok(Some((parts.join(&b'/'), None)));
    };
    parts.pop();
    match hidden {
        b".wh..opq" => Ok(Some((parts.join(&b'/'), Some(EntryKind::OpaqueWhiteout)))),
        b"" | b"." | b".." => Err(refused("it hides no name that can be")),
        // Notes of an old storage driver to itself.
        hidden if hidden.starts_with(WHITEOUT) => Ok(None),
        hidden => {
            parts.push(hidden);
            Ok(Some((parts.join(&b'/'), Some(EntryKind::Whiteout))))
        }
    }
}

/// What the name of a whiteout begins with.
const WHITEOUT: &[u8] = b".wh.";

/// Whether a link elsewhere leads to, above or below a wanted path, going by its text: what upper layers have below the
/// link ends up there.
fn leads_there(path: &[u8], link: Option<&str>, wanted: &[String]) -> bool {
    let (Ok(path), Some(link)) = (str::from_utf8(path), link) else {
        return false;
    };
    standing(target(path, link).as_bytes(), wanted) != Standing::Apart
}
