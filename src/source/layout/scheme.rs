//! How an image on disk is named: where its path ends and its reference begins, and which form what is there has.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{Form, archive::ImageArchive};
use crate::{
    archive::{self, Bound, Members, Packing},
    limits::Limits,
    oci::digest::Digest,
    source::{
        STDIN,
        plain_file::{self, Links},
    },
};

/// As much of a compressed archive is looked at, to say what it may be.
const LOOKED_AT: u64 = 1 << 20;

/// Splits what follows `oci:`, `oci-archive:` or `docker-archive:` into the path, which may hold colons itself, and the
/// reference, with an `@` in front if it is a digest. The longest path that is there is meant.
#[must_use]
pub fn split(text: &str) -> (PathBuf, Option<String>) {
    let colons = text.rmatch_indices(':').map(|(at, _)| (at, at + 1));
    let digests = text.rmatch_indices('@').map(|(at, _)| (at, at));
    let mut ends: Vec<_> = colons
        .chain(digests.filter(|(at, _)| text.get(at + 1..).is_some_and(is_digest)))
        .collect();
    ends.sort_unstable();
    let parts = |(end, start): (usize, usize)| {
        let reference = text.get(start..).unwrap_or_default();
        let reference = Some(reference.to_owned()).filter(|reference| !reference.is_empty());
        (
            PathBuf::from(text.get(..end).unwrap_or_default()),
            reference,
        )
    };
    let whole = (PathBuf::from(text), None);
    let is_there = |path: &Path| path == Path::new(STDIN) || path.symlink_metadata().is_ok();
    if is_there(&whole.0) {
        return whole;
    }
    let mut longest_first = ends.iter().rev().map(|end| parts(*end));
    let found = longest_first.find(|(path, _)| is_there(path));
    // What is not there is told by its shortest path, as skopeo reads it.
    found.unwrap_or_else(|| ends.first().map_or(whole, |end| parts(*end)))
}

fn is_digest(text: &str) -> bool {
    Digest::parse(text).is_ok()
}

/// The form of the image at a path, when one seems to be there. For the message to somebody who wrote no scheme; what it
/// looks at may still be no image.
#[must_use]
pub fn form_at(path: &Path) -> Option<Form> {
    if path.is_dir() {
        let is_layout = plain_file::open(&path.join("oci-layout"), Links::Refuse).is_ok();
        return is_layout.then_some(Form::Layout);
    }
    let (file, _) = plain_file::open(path, Links::Follow).ok()?;
    let (packing, reader) = archive::packing(file).ok()?;
    match packing? {
        Packing::Tar => {
            let archive = ImageArchive::open(path, &Limits::DEFAULT).ok()?;
            if archive.find("oci-layout").is_some() {
                Some(Form::OciArchive)
            } else {
                let is_docker = archive.find("manifest.json").is_some()
                    && archive.has(|name| name.ends_with(".tar"));
                is_docker.then_some(Form::DockerArchive)
            }
        }
        _ => by_first_entry(reader).ok().flatten(),
    }
}

/// What the first entry of a compressed archive tells; the rest of it would have to be decompressed.
fn by_first_entry(reader: impl Read) -> io::Result<Option<Form>> {
    let bound = Bound {
        bytes: LOOKED_AT,
        growth: None,
    };
    let mut members = Members::new(archive::decompressed(reader, bound)?, 1);
    let first = members.next_entry()?;
    let name = first.map(|found| String::from_utf8_lossy(&found.path).into_owned());
    let name = name.unwrap_or_default();
    let name = name.trim_start_matches("./");
    let (first, _) = name.split_once(['/', '.']).unwrap_or((name, ""));
    let is_hex = first.len() == 64 && first.bytes().all(|byte| byte.is_ascii_hexdigit());
    Ok(match name {
        "blobs/" | "oci-layout" | "index.json" => Some(Form::OciArchive),
        name if name.starts_with("blobs/sha256/") => Some(Form::OciArchive),
        _ => is_hex.then_some(Form::DockerArchive),
    })
}
