//! `kubectl olm catalog list`: the packages, channels or bundles of catalogs.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::{
    super::{catalog_args::RequiredCatalogArgs, failure::Failure},
    Made, completion, each_package,
    listing::{Column, ListingArgs, Row},
};
use crate::catalog::{
    Catalog,
    list::{self, ListedBundle, ListedChannel, ListedPackage},
};

/// List the packages, channels or bundles of catalogs
///
/// What a package says of itself is taken from the head of its default channel. Bundles are listed for each channel that
/// they are in, the newest version first. A package that cannot be read is left out and told of; then the exit code
/// is 3.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Packages of a catalog
  kubectl olm catalog list --catalog ./catalog

  # Packages of a catalog in a registry
  kubectl olm catalog list --catalog docker://quay.io/operatorhubio/catalog:latest

  # Channels of one package, with their heads
  kubectl olm catalog list queue-operator --channels --catalog ./catalog

  # Every bundle of two catalogs, for a script
  kubectl olm catalog list --bundles --catalog ours=./catalog --catalog ./community -o json")]
pub(super) struct ListArgs {
    /// Packages to list (default: all)
    #[arg(value_name = "PACKAGE", value_parser = NonEmptyStringValueParser::new(), add = completion::packages())]
    packages: Vec<String>,
    /// List channels
    #[arg(long)]
    channels: bool,
    /// List bundles
    #[arg(long, conflicts_with = "channels")]
    bundles: bool,
    #[command(flatten)]
    catalogs: RequiredCatalogArgs,
    #[command(flatten)]
    listing: ListingArgs,
}

/// Runs the command.
///
/// # Errors
/// When a catalog or a package cannot be read, or there is no package of a name.
pub(super) fn run(args: &ListArgs) -> Result<(), Failure> {
    match (args.channels, args.bundles) {
        (true, _) => print(args, list::channels),
        (_, true) => print(args, list::bundles),
        _ => print(args, list::packages),
    }
}

fn print<T: Row + Send>(
    args: &ListArgs,
    rows: fn(&Catalog, &str) -> Made<T>,
) -> Result<(), Failure> {
    let catalogs = args.catalogs.open()?;
    let found = each_package(&catalogs, &args.packages, rows)?;
    args.listing.print(&found.rows, catalogs.len())?;
    found.conclude()
}

impl Row for ListedPackage {
    const KIND: &'static str = "packages";
    const NAMES: usize = 1;

    fn catalog(&self) -> &str {
        &self.catalog
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("NAME", |row| row.name.clone()),
            Column::new("DISPLAY NAME", |row| row.display_name.clone()),
            Column::new("DEFAULT CHANNEL", |row| row.default_channel.clone()),
            Column::new("VERSION", |row| row.version.clone()),
            Column::wide("PROVIDER", |row| row.provider.clone()),
            Column::wide("DEPRECATED", |row| deprecated(row.deprecation.as_ref())),
            Column::wide("SUMMARY", |row| row.summary.clone()),
        ]
    }
}

impl Row for ListedChannel {
    const KIND: &'static str = "channels";
    const NAMES: usize = 3;

    fn catalog(&self) -> &str {
        &self.catalog
    }

    fn name(&self) -> String {
        format!("{}/{}", self.package, self.channel.name)
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("PACKAGE", |row| row.package.clone()),
            Column::new("CHANNEL", |row| row.channel.name.clone()),
            Column::new("HEAD", |row| match row.channel.error.as_str() {
                "" => row.channel.head.clone(),
                error => format!("ERROR: {error}"),
            }),
            Column::new("DEFAULT", |row| row.channel.default.to_string()),
            Column::wide("VERSION", |row| row.channel.version.clone()),
            Column::wide("DEPRECATED", |row| {
                deprecated(row.channel.deprecation.as_ref())
            }),
        ]
    }
}

impl Row for ListedBundle {
    const KIND: &'static str = "bundles";
    const NAMES: usize = 3;

    fn catalog(&self) -> &str {
        &self.catalog
    }

    fn name(&self) -> String {
        self.bundle.name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("PACKAGE", |row| row.package.clone()),
            Column::new("CHANNEL", |row| row.channel.clone()),
            Column::new("BUNDLE", |row| row.bundle.name.clone()),
            Column::new("VERSION", |row| row.bundle.version.clone()),
            Column::new("REPLACES", |row| row.bundle.replaces.clone()),
            Column::wide("SKIPS", |row| row.bundle.skips.join(",")),
            Column::wide("SKIP RANGE", |row| row.bundle.skip_range.clone()),
            Column::wide("IMAGE", |row| row.bundle.image.clone()),
            Column::wide("DEPRECATED", |row| {
                deprecated(row.bundle.deprecation.as_ref())
            }),
        ]
    }
}

/// Why something is deprecated; also when nobody says why.
pub(super) fn deprecated(message: Option<&String>) -> String {
    match message {
        None => String::new(),
        Some(message) if message.is_empty() => "yes".to_owned(),
        Some(message) => message.clone(),
    }
}
