//! The flags that say what to install, from what, and how: those of every command that renders.

use std::path::PathBuf;

use clap::Args;

use super::{
    filename_args::FilenameArgs, install_args::InstallArgs, package::PackageArgs,
    pin_args::PinArgs, secret_args::SecretArgs,
};

/// What to install, from what, and how.
#[derive(Debug, Args)]
pub(super) struct WantedArgs {
    /// Bundle: a folder or tar archive with `manifests` and `metadata` in it, an image (docker://IMAGE, oci:DIR,
    /// oci-archive:FILE or docker-archive:FILE), or `-`; with --catalog, name of a package
    #[arg(value_name = "SOURCE|PACKAGE")]
    pub source: Option<PathBuf>,
    #[command(flatten)]
    pub filename: FilenameArgs,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub install: InstallArgs,
    #[command(flatten)]
    pub package: PackageArgs,
    #[command(flatten)]
    pub pins: PinArgs,
}
