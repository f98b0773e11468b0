//! The flags that name manifests, and the objects in them.

use std::path::PathBuf;

use clap::Args;

use super::{
    failure::{Class, Failure},
    read_args::ReadArgs,
};
use crate::{
    install::Objects,
    problem::Problem,
    source::{self, Depth},
};

/// Manifests, as `kubectl apply` takes them.
#[derive(Debug, Args)]
pub(super) struct FilenameArgs {
    /// Manifests that say what to install: Subscriptions, ClusterExtensions and what belongs to them; a file, a folder, or
    /// `-` for standard input; repeat for several
    #[arg(short, long, value_name = "FILE|DIR", value_delimiter = ',')]
    filename: Vec<PathBuf>,
    /// Read folders in the folders of --filename as well
    #[arg(short = 'R', long, requires = "filename")]
    recursive: bool,
}

impl FilenameArgs {
    /// Whether any are named.
    pub(super) fn is_given(&self) -> bool {
        !self.filename.is_empty()
    }

    /// The files and folders.
    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.filename
    }

    /// The objects in them. What is only to be told is added to `problems`.
    ///
    /// # Errors
    /// When a file cannot be read, or something in one is wrong.
    pub(super) fn read(
        &self,
        read: &ReadArgs,
        problems: &mut Vec<Problem>,
    ) -> Result<Objects, Failure> {
        let limits = read.limits();
        let depth = if self.recursive {
            Depth::Recursive
        } else {
            Depth::Flat
        };
        let mut objects = Objects::default();
        let mut found = vec![];
        for path in &self.filename {
            let is_url = path.to_str().is_some_and(|path| path.contains("://"));
            if is_url {
                let message = format!("{} is not fetched", path.display());
                let hint = "fetch it first: curl -fsSL URL | kubectl olm render -f -";
                return Err(Failure::new(Class::Usage, message).with_hint(hint));
            }
            let files = source::manifest_files(path, depth, &limits)?;
            if files.is_empty() {
                let message = format!("{} holds no manifests", path.display());
                let hint = "files end in .yaml, .yml or .json; -R reads folders below as well";
                return Err(Failure::new(Class::Refused, message).with_hint(hint));
            }
            for (name, text) in files {
                objects.read(&name, &text, &limits, &mut found);
            }
        }
        if let Some(why) = read.why_refused(&found) {
            let message = format!("the manifests were not read{why}");
            return Err(Failure::refused(found, message));
        }
        problems.extend(found);
        problems.extend(objects.left_out());
        Ok(objects)
    }
}
