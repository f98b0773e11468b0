//! `kubectl olm catalog search`: packages by words.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::{
    super::{catalog_args::RequiredCatalogArgs, failure::Failure, output},
    each_package,
    listing::{Column, ListingArgs, Row},
};
use crate::catalog::search::{self, Found};

/// Find packages by words, the best match first
///
/// Every word must be found. The places, from best to worst: the name is the word; the name starts with it; the name
/// holds it; a word of the display name starts with it; a keyword does; the provider's name does; the description of
/// the package, or of the head of its default channel, does. With several words, their places are added up. What
/// matches equally well is sorted by name. Case does not matter. Finding nothing is no error.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Packages about queues
  kubectl olm catalog search queue --catalog ./catalog

  # Both words, only the names
  kubectl olm catalog search message queue --catalog ./catalog -o name")]
pub(super) struct SearchArgs {
    /// Words to find, or their beginnings
    #[arg(value_name = "WORD", required = true, value_parser = NonEmptyStringValueParser::new())]
    words: Vec<String>,
    #[command(flatten)]
    catalogs: RequiredCatalogArgs,
    #[command(flatten)]
    listing: ListingArgs,
}

/// Runs the command.
///
/// # Errors
/// When a catalog or a package cannot be read.
pub(super) fn run(args: &SearchArgs) -> Result<(), Failure> {
    let catalogs = args.catalogs.open()?;
    let words = args.words.iter().flat_map(|words| words.split_whitespace());
    let words: Vec<_> = words.map(str::to_owned).collect();
    let mut found = each_package(&catalogs, &[], |catalog, name| {
        search::find(catalog, name, &words).map(Vec::from_iter)
    })?;
    search::rank(&mut found.rows);
    args.listing.print(&found.rows, catalogs.len())?;
    if found.rows.is_empty() {
        output::tell(&format!("no packages found for {}", words.join(" ")));
    }
    found.conclude()
}

impl Row for Found {
    const KIND: &'static str = "packages";
    const NAMES: usize = 1;

    fn catalog(&self) -> &str {
        &self.package.catalog
    }

    fn name(&self) -> String {
        self.package.name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("NAME", |row| row.package.name.clone()),
            Column::new("DISPLAY NAME", |row| row.package.display_name.clone()),
            Column::wide("PROVIDER", |row| row.package.provider.clone()),
            Column::wide("DEFAULT CHANNEL", |row| row.package.default_channel.clone()),
            Column::new("VERSION", |row| row.package.version.clone()),
            Column::new("SUMMARY", |row| row.package.summary.clone()),
        ]
    }
}
