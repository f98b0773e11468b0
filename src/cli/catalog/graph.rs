//! `kubectl olm catalog graph`: the upgrades of a package, for tools that draw.

use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};

use super::{
    super::{catalog_args::RequiredCatalogArgs, failure::Failure, output},
    completion, no_channel, preferred,
};
use crate::catalog::graph::{self, Graph};

/// Draw the upgrades of a package
///
/// An arrow leads from what is installed to what it can be upgraded to: a solid one for `replaces`, a dashed one for
/// `skips`, a dotted one from a range of versions for `skipRange`. Heads, the default channel and what is deprecated
/// are marked. When several catalogs have the package, that of the preferred one is drawn.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # For Markdown
  kubectl olm catalog graph queue-operator --catalog ./catalog

  # As a picture
  kubectl olm catalog graph queue-operator --catalog ./catalog -o dot | dot -Tsvg > queue.svg")]
pub(super) struct GraphArgs {
    /// Package to draw
    #[arg(value_name = "PACKAGE", value_parser = NonEmptyStringValueParser::new(), add = completion::packages())]
    package: String,
    /// Channel to draw (default: all)
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    channel: Option<String>,
    #[command(flatten)]
    catalogs: RequiredCatalogArgs,
    /// Language of the graph
    #[arg(short, long, value_name = "FORMAT", default_value = "mermaid")]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Mermaid,
    Dot,
}

/// Runs the command.
///
/// # Errors
/// When a catalog or the package cannot be read, or there is no such package or channel.
pub(super) fn run(args: &GraphArgs) -> Result<(), Failure> {
    let catalogs = args.catalogs.open()?;
    let package = preferred(&catalogs, &args.package)?;
    if let Some(channel) = &args.channel
        && package.channel(channel).is_none()
    {
        return Err(no_channel(&package, channel));
    }
    let graph = Graph::of(&package, args.channel.as_deref());
    output::print_text(&match args.output {
        Format::Mermaid => graph::mermaid(&graph),
        Format::Dot => graph::dot(&graph),
    })
}
