//! `kubectl olm cache`: what is kept between runs, and its removal.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use clap::{Args, Subcommand};
use indicatif::{HumanBytes, HumanDuration};
use jiff::{Span, SpanRelativeTo, Timestamp};
use serde_json::{Value, json};

use super::{
    failure::{Class, Failure},
    output::{self, TextFormat},
    table::{Table, terminal_width},
};
use crate::source::cache::{self, Kept, Listing, Prune};

/// Show or remove what is kept between runs
///
/// What was read of images is kept in `$XDG_CACHE_HOME/kubectl-olm` (default: `~/.cache/kubectl-olm`), and is verified
/// whenever it is used. Nothing is lost by removing it but the time to fetch it again.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  # What is kept, and how large it is
  kubectl olm cache

  # Remove what was not used for a week
  kubectl olm cache prune --older-than 7d"
)]
pub(super) struct CacheCommand {
    #[command(subcommand)]
    command: Option<Subcommands>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    List(ListArgs),
    Prune(PruneArgs),
}

/// Show what is kept, how large it is, and when it was used last
#[derive(Debug, Args)]
struct ListArgs {
    /// Output
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: TextFormat,
}

/// Remove what was not used for long
///
/// What killed runs left behind is removed in any case. Other runs may use the cache meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Remove what was not used for 30 days
  kubectl olm cache prune

  # Tell how much there is, and remove nothing
  kubectl olm cache prune --all --dry-run")]
struct PruneArgs {
    /// Remove what was not used for this long, such as 12h, 7d or 4w
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = age)]
    older_than: Duration,
    /// Remove everything
    #[arg(long, conflicts_with = "older_than")]
    all: bool,
    /// Only tell what would be removed
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: ListArgs,
}

/// Runs the command.
///
/// # Errors
/// When there can be no cache, or standard output cannot take what is printed.
pub(super) fn run(command: &CacheCommand) -> Result<(), Failure> {
    let folder = folder()?;
    let now = SystemTime::now();
    match &command.command {
        None => list(&command.list, folder, now),
        Some(Subcommands::List(args)) => list(args, folder, now),
        Some(Subcommands::Prune(args)) => prune(args, folder, now),
    }
}

fn list(args: &ListArgs, folder: PathBuf, now: SystemTime) -> Result<(), Failure> {
    let listing = cache::list(&folder).map_err(unusable)?;
    let end = format!("{} in {}", total(&listing), listing.folder.display());
    print(args, &listing, &end, now)
}

fn prune(args: &PruneArgs, folder: PathBuf, now: SystemTime) -> Result<(), Failure> {
    let unused = (!args.all).then_some(args.older_than);
    let mode = if args.dry_run {
        Prune::DryRun
    } else {
        Prune::Remove
    };
    let listing = cache::prune(&folder, unused, mode).map_err(unusable)?;
    let verb = match mode {
        Prune::DryRun => "would be",
        Prune::Remove => "were",
    };
    let folder = listing.folder.display();
    let end = format!("{} {verb} removed from {folder}", total(&listing));
    print(&args.output, &listing, &end, now)
}

fn folder() -> Result<PathBuf, Failure> {
    cache::default_folder().map_err(unusable)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is what becomes of an error"
)]
fn unusable(error: cache::Unusable) -> Failure {
    Failure::of(Class::Usage, &error)
}

/// Reads how long ago something is, in days and parts of them.
fn age(text: &str) -> Result<Duration, String> {
    let wrong = || "use a number of hours, days or weeks, such as 12h, 7d or 4w".to_owned();
    let span: Span = text.parse().map_err(|_| wrong())?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours());
    Duration::try_from(duration.map_err(|_| wrong())?).map_err(|_| wrong())
}

fn bytes(listing: &Listing) -> u64 {
    listing.kept.iter().map(|kept| kept.bytes).sum()
}

fn total(listing: &Listing) -> String {
    let count = listing.kept.len();
    let noun = if count == 1 { "entry" } else { "entries" };
    format!("{count} {noun} of {}", HumanBytes(bytes(listing)))
}

fn print(args: &ListArgs, listing: &Listing, end: &str, now: SystemTime) -> Result<(), Failure> {
    let text = || {
        let mut table = Table::new(["KIND", "SIZE", "LAST USED", "WHAT", "ABOUT"], 4);
        for kept in &listing.kept {
            table.push([
                kept.kind.name().to_owned(),
                HumanBytes(kept.bytes).to_string(),
                kept.last_used
                    .map_or_else(String::new, |used| ago(used, now)),
                kept.name.clone(),
                kept.about.clone(),
            ]);
        }
        if listing.kept.is_empty() {
            table = table.without_headers();
        }
        format!("{}{end}\n", table.text("", terminal_width()))
    };
    output::print_as(args.output, text, || value(listing))
}

/// How long ago something was; a time to come is of a clock that was set back.
fn ago(time: SystemTime, now: SystemTime) -> String {
    let age = now.duration_since(time).unwrap_or_default();
    format!("{} ago", HumanDuration(age))
}

fn value(listing: &Listing) -> Value {
    let entries: Vec<_> = listing.kept.iter().map(entry).collect();
    json!({
        "folder": listing.folder.display().to_string(),
        "bytes": bytes(listing),
        "entries": entries,
    })
}

fn entry(kept: &Kept) -> Value {
    let last_used = kept
        .last_used
        .and_then(|used| Timestamp::try_from(used).ok());
    json!({
        "kind": kept.kind.name(),
        "name": kept.name,
        "about": kept.about,
        "bytes": kept.bytes,
        "lastUsed": last_used.map(|used| used.to_string()),
    })
}
