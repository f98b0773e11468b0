//! The flags that say where bundles are, and what is written down of those that were chosen.

use std::path::PathBuf;

use clap::Args;

use super::choice_args::ChoiceArgs;
use crate::source::ImageSource;

/// Which package is installed, in which version, and where its bundle comes from.
#[derive(Debug, Args)]
pub(super) struct PackageArgs {
    #[command(flatten)]
    pub choice: ChoiceArgs,
    /// What stands for an image of a catalog or bundle: a folder, an archive or another image; with a PREFIX/, a folder
    /// with one for each image below it; repeat for several
    #[arg(long, value_name = "IMAGE|PREFIX/=SOURCE")]
    pub image_source: Vec<ImageSource>,
    /// Write down in FILE what was chosen; with --locked, install what it says
    #[arg(long, value_name = "FILE")]
    pub lock: Option<PathBuf>,
    /// Choose nothing: install what the file of --lock says, and refuse anything else
    #[arg(long, requires = "lock")]
    pub locked: bool,
}

impl PackageArgs {
    /// The flags that only mean something to a package of a catalog or to an image, and are given.
    pub(super) fn of_packages(&self) -> Vec<&'static str> {
        let mut given = self.choice.of_packages();
        given.extend((!self.image_source.is_empty()).then_some("--image-source"));
        given.extend(self.lock.is_some().then_some("--lock"));
        given
    }
}
