//! `kubectl olm catalog check`: every problem of a catalog, for its author.

use clap::Args;

use super::super::{
    catalog_args::CatalogSource,
    check::{self, Format},
    failure::Failure,
    source_args::SourceArgs,
};
use crate::catalog;

/// Show every problem of a catalog
///
/// Keeps the rules that the Operator Lifecycle Manager and `opm validate` keep. Exits 3 when the catalog would be
/// refused.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Everything that is wrong with a catalog
  kubectl olm catalog check ./catalog

  # For a pipeline
  kubectl olm catalog check ./catalog --strict -o json")]
pub(super) struct CheckArgs {
    /// Catalog to check: a folder of YAML and JSON files, a file, a tar archive, an image (docker://IMAGE, oci:DIR,
    /// oci-archive:FILE or docker-archive:FILE) or `-`
    #[arg(value_name = "SOURCE")]
    source: CatalogSource,
    /// Output
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    sources: SourceArgs,
}

/// Runs the command.
///
/// # Errors
/// When there is no catalog to read, or it has problems that refuse it.
pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let sources = args.sources.open()?;
    let problems = match args.source.open(&sources) {
        Ok(catalog) => catalog::check::check_all(&catalog),
        // What cannot be read is a problem like others.
        Err(failure) => failure.into_problems()?,
    };
    check::conclude(args.source.text(), problems, args.output, args.strict)
}
