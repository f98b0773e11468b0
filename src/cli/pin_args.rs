//! The flags about digests, and the maps that they name.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{
    failure::{Class, Failure},
    locked,
    mirror_args::HEADING,
    whole_file,
};
use crate::{images::pin::Pins, limits::Limits, source};

/// Where digests come from, and what is written down of them.
#[derive(Debug, Args)]
pub(super) struct PinArgs {
    /// Name every image by its digest: by --pins, else as the lock or the catalog says, else as its registry does
    #[arg(long, visible_alias = "digests", help_heading = HEADING)]
    pin: bool,
    #[command(flatten)]
    pub files: PinFiles,
}

/// The files with digests, which `pin` takes as well.
#[derive(Debug, Args)]
pub(super) struct PinFiles {
    /// Digests of images: a replacements.json, as operator-manifest writes it, or an olm.lock; repeat for several, of
    /// which the first that knows an image counts
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pins: Vec<PathBuf>,
    /// Write the digests that were used into FILE, as a replacements.json
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub write_pins: Option<PathBuf>,
}

/// What becomes of the images of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Images {
    /// They stay as they were written.
    AsWritten,
    /// They get digests.
    Pinned,
}

impl PinArgs {
    /// What becomes of images.
    pub(super) fn images(&self) -> Images {
        match self.pin || !self.files.pins.is_empty() || self.files.write_pins.is_some() {
            true => Images::Pinned,
            false => Images::AsWritten,
        }
    }
}

impl PinFiles {
    /// Whether the map would be written over a file.
    pub(super) fn is_written_to(&self, file: Option<&Path>) -> bool {
        let real = |path: Option<&Path>| path.and_then(|path| path.canonicalize().ok());
        let map = real(self.write_pins.as_deref());
        map.is_some() && map == real(file)
    }

    /// What the files say.
    ///
    /// # Errors
    /// When one cannot be read, or is neither.
    pub(super) fn read(&self, limits: &Limits) -> Result<Pins, Failure> {
        let mut pins = Pins::default();
        for path in &self.pins {
            pins.extend(&read(path, limits)?);
        }
        Ok(pins)
    }

    /// Writes what was used, if that is wanted.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn write(&self, used: &Pins) -> Result<(), Failure> {
        match &self.write_pins {
            // What was written before is known to nobody else, once the tags are gone.
            Some(path) if used.iter().next().is_none() && path.is_file() => Ok(()),
            Some(path) => whole_file::write(path, &used.to_json()),
            None => Ok(()),
        }
    }
}

/// What a file says: a map is JSON, a lock is YAML that begins with a word or a comment.
fn read(path: &Path, limits: &Limits) -> Result<Pins, Failure> {
    let text = source::read_file(path, limits)?;
    let refused = |reason: &dyn std::fmt::Display| {
        let message = format!("{}: {reason}", path.display());
        let hint = "use a replacements.json, as operator-manifest and --write-pins write it, or an olm.lock";
        Failure::new(Class::Refused, message).with_hint(hint)
    };
    if let Some(b'{' | b'[') = text.trim_ascii_start().first() {
        return Pins::parse(&text).map_err(|reason| refused(&reason));
    }
    let lock = locked::parse(&text, limits).map_err(|reason| refused(&reason))?;
    let mut pins = Pins::default();
    for (image, pinned) in lock.installs.iter().flat_map(|install| &install.images) {
        pins.insert(image, pinned.clone());
    }
    Ok(pins)
}
