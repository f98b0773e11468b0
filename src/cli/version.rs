//! `kubectl olm version`.

use clap::{Args, ValueEnum};
use serde_json::json;

use super::{failure::Failure, output};

/// Print the version
#[derive(Debug, Args)]
pub(super) struct VersionArgs {
    /// Output
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Runs the command.
///
/// # Errors
/// When standard output cannot take it.
pub(super) fn run(args: &VersionArgs) -> Result<(), Failure> {
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    output::print_text(&match args.output {
        Format::Text => format!("kubectl-olm {version} {os}/{arch}\n"),
        Format::Json => format!(
            "{:#}\n",
            json!({"version": version, "platform": format!("{os}/{arch}")})
        ),
    })
}
