//! `kubectl olm catalog show`: all that catalogs say of one package.

use std::fmt::Write;

use clap::{Args, builder::NonEmptyStringValueParser};
use serde_json::json;

use super::{
    super::{
        catalog_args::RequiredCatalogArgs,
        failure::Failure,
        output::{self, TextFormat},
        table::{Table, terminal_width},
        text::visible,
    },
    completion, each_package,
    list::deprecated,
};
use crate::catalog::{
    facts::{BundleFacts, ChannelFacts},
    show::{self, ShownPackage},
};

/// Show all that catalogs say of a package
///
/// What it offers and needs is what the head of its default channel does. Versions are listed for each channel, the
/// newest first, with what they can be installed over. When several catalogs have the package, each is shown.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Channels, versions, APIs and dependencies of a package
  kubectl olm catalog show queue-operator --catalog ./catalog

  # The versions of its default channel
  kubectl olm catalog show queue-operator --catalog ./catalog -o json |
    jq -r '.packages[0].channels[] | select(.default) | .bundles[].version'")]
pub(super) struct ShowArgs {
    /// Package to show
    #[arg(value_name = "PACKAGE", value_parser = NonEmptyStringValueParser::new(), add = completion::packages())]
    package: String,
    #[command(flatten)]
    catalogs: RequiredCatalogArgs,
    /// Output
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: TextFormat,
}

/// Runs the command.
///
/// # Errors
/// When a catalog or the package cannot be read, or there is no such package.
pub(super) fn run(args: &ShowArgs) -> Result<(), Failure> {
    let catalogs = args.catalogs.open()?;
    let asked = [args.package.clone()];
    let found = each_package(&catalogs, &asked, |catalog, name| {
        show::package(catalog, name).map(Vec::from_iter)
    })?;
    let text = || {
        let width = terminal_width();
        let texts: Vec<_> = found.rows.iter().map(|row| text(row, width)).collect();
        texts.join("\n")
    };
    output::print_as(args.output, text, || json!({"packages": found.rows}))?;
    found.conclude()
}

/// What there is to say, in the manner of `kubectl describe`.
fn text(shown: &ShownPackage, width: Option<usize>) -> String {
    let package = &shown.package;
    let joined = |texts: Vec<String>| texts.join(", ");
    let each = |items: Vec<String>| {
        if items.is_empty() {
            vec![String::new()]
        } else {
            items
        }
    };
    let one = |text: &str| vec![text.to_owned()];
    let fields = [
        ("Name", one(&package.name)),
        ("Catalog", one(&package.catalog)),
        ("Display name", one(&package.display_name)),
        ("Provider", one(&package.provider)),
        ("Summary", one(&package.summary)),
        ("Keywords", vec![joined(shown.keywords.clone())]),
        ("Deprecated", one(&deprecated(package.deprecation.as_ref()))),
        ("Default channel", one(&package.default_channel)),
        ("Version", one(&package.version)),
        ("Kubernetes", one(&at_least(&shown.min_kube_version))),
        ("Install modes", vec![joined(shown.install_modes.clone())]),
        (
            "Provides",
            each(shown.provides.iter().map(ToString::to_string).collect()),
        ),
        (
            "Requires",
            each(shown.requires.iter().map(ToString::to_string).collect()),
        ),
    ];
    let labels = fields.iter().map(|(label, _)| label.len() + 1).max();
    let indent = labels.unwrap_or_default() + 3;
    let mut text = String::new();
    for (label, values) in fields {
        let mut label = format!("{label}:");
        for value in values {
            let value = if value.is_empty() {
                "<none>".to_owned()
            } else {
                visible(&value)
            };
            let _ = writeln!(text, "{label:indent$}{value}");
            label.clear();
        }
    }
    text.push_str("Channels:\n");
    for channel in &shown.channels {
        text.push_str(&channel_text(&channel.channel));
        text.push_str(&bundles_text(&channel.bundles, width));
    }
    text
}

fn at_least(version: &str) -> String {
    if version.is_empty() {
        String::new()
    } else {
        format!("{version} or later")
    }
}

/// The lines about a channel: its name, its head or why it has none, and why it should not be used.
fn channel_text(channel: &ChannelFacts) -> String {
    let default = if channel.default { " (default)" } else { "" };
    let mut text = format!("  {}{default}\n", visible(&channel.name));
    let _ = match channel.error.as_str() {
        "" => writeln!(text, "    Head: {}", visible(&channel.head)),
        error => writeln!(text, "    Error: {}", visible(error)),
    };
    if channel.deprecation.is_some() {
        let message = deprecated(channel.deprecation.as_ref());
        let _ = writeln!(text, "    Deprecated: {}", visible(&message));
    }
    text
}

/// The bundles of a channel. Columns that would be empty are left out.
fn bundles_text(bundles: &[BundleFacts], width: Option<usize>) -> String {
    type Text = fn(&BundleFacts) -> String;
    let columns: [(&str, Text); 6] = [
        ("VERSION", |bundle| bundle.version.clone()),
        ("BUNDLE", |bundle| bundle.name.clone()),
        ("REPLACES", |bundle| bundle.replaces.clone()),
        ("SKIPS", |bundle| bundle.skips.join(",")),
        ("SKIP RANGE", |bundle| bundle.skip_range.clone()),
        ("DEPRECATED", |bundle| {
            deprecated(bundle.deprecation.as_ref())
        }),
    ];
    let is_used = |text: &Text| bundles.iter().any(|bundle| !text(bundle).is_empty());
    let columns: Vec<_> = columns.iter().filter(|(_, text)| is_used(text)).collect();
    let mut table = Table::new(columns.iter().map(|(header, _)| *header), 2);
    for bundle in bundles {
        table.push(columns.iter().map(|(_, text)| text(bundle)));
    }
    table.text("    ", width)
}
