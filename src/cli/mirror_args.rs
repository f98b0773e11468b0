//! The flag that names rules for mirrors, and what they say.

use std::path::PathBuf;

use clap::Args;

use super::failure::Failure;
use crate::{
    images::mirror::MirrorRules,
    limits::Limits,
    source::{self, Depth},
};

/// The heading of the flags about what images are called.
pub(super) const HEADING: &str = "Digests and mirrors";

/// Where images are mirrored.
#[derive(Debug, Args)]
pub(super) struct MirrorArgs {
    /// Where images are mirrored: they are read from there, and `render` and `images` name them as they are called there.
    /// A file of ImageDigestMirrorSets, ImageTagMirrorSets or ImageContentSourcePolicies or of lines `source=mirror`, or a
    /// folder of such objects; repeat for several
    #[arg(long, value_name = "FILE|DIR", help_heading = HEADING)]
    mirror: Vec<PathBuf>,
}

impl MirrorArgs {
    /// The files and folders.
    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.mirror
    }

    /// The rules of all files.
    ///
    /// # Errors
    /// When one cannot be read, or something in one is no rule.
    pub(super) fn read(&self, limits: &Limits) -> Result<MirrorRules, Failure> {
        let mut rules = MirrorRules::default();
        let mut problems = vec![];
        for path in &self.mirror {
            let files = source::manifest_files(path, Depth::Flat, limits)?;
            let added = rules.add_files(&path.display().to_string(), &files, limits);
            problems.extend(added.err().into_iter().flatten());
        }
        if problems.is_empty() {
            return Ok(rules);
        }
        let failure = Failure::refused(problems, "the rules for mirrors were not read");
        Err(if self.mirror.iter().any(|path| path.is_dir()) {
            failure.with_hint(
                "of a folder, the .yaml, .yml and .json files right in it are read; name others, and folders below it",
            )
        } else {
            failure
        })
    }
}
