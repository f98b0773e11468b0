//! `kubectl olm explain`: why this version of a package, and why not another.

use std::fmt::Write;

use clap::{Args, builder::NonEmptyStringValueParser};
use serde_json::{Value, json};

use super::{
    catalog::{self, completion},
    choice_args::ChoiceArgs,
    failure::{Class, Failure},
    installs,
    output::{self, TextFormat},
    source_args::SourceArgs,
    table::{Table, terminal_width},
    text::visible,
};
use crate::{
    catalog::{Catalog, Package},
    problem::Problem,
    resolve::{
        self, Chosen, Request, Resolution,
        explain::Explanation,
        upgrade_graph::UpgradeGraph,
        upgrade_path::{Path, Walk},
    },
    versions,
};

/// Tell why a version of a package is chosen, and why not another
///
/// Chooses as `render` does with the same flags, and gives one verdict on each version in each channel. With --to, shows
/// every step from the installed version to another one.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Which version would be installed, and why not the others
  kubectl olm explain queue-operator --catalog ./catalog

  # By the rules of OLM v1
  kubectl olm explain queue-operator --catalog ./catalog --version '>=1.2 <1.4'

  # Every step of an upgrade
  kubectl olm explain my-operator --catalog ./catalog --installed my-operator.v1.2.0 --to 1.4.0")]
pub(super) struct ExplainArgs {
    /// Package to explain
    #[arg(value_name = "PACKAGE", value_parser = NonEmptyStringValueParser::new(), add = completion::packages())]
    package: String,
    #[command(flatten)]
    choice: ChoiceArgs,
    /// Version or bundle to show the steps to
    #[arg(long, value_name = "VERSION|BUNDLE", requires = "installed")]
    to: Option<String>,
    /// Output
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: TextFormat,
    #[command(flatten)]
    sources: SourceArgs,
}

/// Runs the command.
///
/// # Errors
/// When nothing can be chosen, or no way leads to what is asked for; the explanation is printed before.
pub(super) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let catalogs = args.choice.catalogs.open_required(&args.sources.open()?)?;
    let opened: Vec<_> = catalogs.iter().collect();
    let wish = args.choice.wish(&args.package, vec![])?;
    let request = installs::request(&[&wish], &opened)?;
    if let Some(to) = &args.to {
        let package = catalog::preferred(&catalogs, &args.package)?;
        return steps(args, &request, to, &package);
    }
    let (explanations, resolution) = resolve::explain(&opened, &request);
    let text = || {
        let mut text = String::new();
        if let Ok(resolution) = &resolution {
            text += &choice_text(resolution, &request, &opened);
        }
        for explanation in &explanations {
            text += &explanation_text(explanation);
        }
        text
    };
    let value = || {
        let explanations: Vec<_> = explanations.iter().map(explanation_json).collect();
        json!({"explanations": explanations})
    };
    output::print_as(args.output, text, value)?;
    let resolution = resolution?;
    let mut problems = vec![];
    for chosen in &resolution.chosen {
        let name = &chosen.candidate.package.name;
        let found = installs::judge(&chosen.candidate, &opened, Some(&wish.rules));
        problems.extend(found.map_err(|problems| {
            Failure::refused(problems, format!("package {name} cannot be read"))
        })?);
    }
    if problems.iter().any(Problem::is_error) {
        let message = format!("{} would not be rendered", args.package);
        return Err(Failure::refused(problems, message));
    }
    output::tell_problems(&problems, "");
    Ok(())
}

/// What is installed, each with what asks for it.
fn choice_text(resolution: &Resolution, request: &Request, catalogs: &[&Catalog]) -> String {
    let mut table = Table::new(["INSTALL", "VERSION", "CATALOG", "CHANNEL", "WHY"], 5);
    for chosen in &resolution.chosen {
        let Chosen {
            candidate,
            required_by,
        } = chosen;
        let bundle = candidate.bundle();
        let is_wanted = request
            .wanted
            .iter()
            .any(|wanted| wanted.package == candidate.package.name);
        let needs = required_by
            .iter()
            .map(|(bundle, what)| format!("{bundle} requires {what}"));
        let asked = is_wanted.then(|| "asked for".to_owned());
        let why: Vec<_> = asked.into_iter().chain(needs).collect();
        table.push([
            bundle.map_or_else(String::new, |bundle| bundle.name.clone()),
            bundle
                .and_then(|bundle| bundle.version())
                .unwrap_or_default()
                .to_owned(),
            catalogs
                .get(candidate.catalog)
                .map_or_else(String::new, |catalog| catalog.name.clone()),
            candidate.channel.clone(),
            why.join(", "),
        ]);
    }
    let mut text = table.text("", terminal_width());
    for reason in &resolution.passed_over {
        let _ = writeln!(text, "{}", visible(&reason.to_string()));
    }
    text.push('\n');
    text
}

/// One verdict for each version, below the rule that chose.
fn explanation_text(explanation: &Explanation) -> String {
    let mut text = String::new();
    match &explanation.rule {
        Some(rule) => {
            let _ = writeln!(
                text,
                "{} is chosen as {}",
                visible(&explanation.package),
                visible(&rule.to_string())
            );
        }
        None => {
            let _ = writeln!(
                text,
                "nothing of {} is chosen",
                visible(&explanation.package)
            );
        }
    }
    for deprecation in &explanation.deprecations {
        let _ = writeln!(text, "deprecated: {}", visible(deprecation));
    }
    if explanation.considered.is_empty() {
        return text;
    }
    text.push('\n');
    let mut table = Table::new(["CATALOG", "CHANNEL", "BUNDLE", "VERSION", "VERDICT"], 5);
    for considered in &explanation.considered {
        table.push([
            considered.catalog.clone(),
            considered.channel.clone(),
            considered.bundle.clone(),
            considered.version.clone(),
            considered.verdict.to_string(),
        ]);
    }
    text + &table.text("", terminal_width())
}

fn explanation_json(explanation: &Explanation) -> Value {
    let considered = explanation.considered.iter().map(|considered| {
        json!({
            "catalog": considered.catalog,
            "channel": considered.channel,
            "bundle": considered.bundle,
            "version": considered.version,
            "verdict": considered.verdict.to_string(),
        })
    });
    json!({
        "package": explanation.package,
        "rule": explanation.rule.as_ref().map(ToString::to_string),
        "deprecations": explanation.deprecations,
        "considered": considered.collect::<Vec<_>>(),
    })
}

/// Shows the steps of an upgrade.
fn steps(
    args: &ExplainArgs,
    request: &Request,
    to: &str,
    package: &Package,
) -> Result<(), Failure> {
    let refuse = |message: String| Failure::new(Class::Refused, message);
    let installed = request
        .installed
        .iter()
        .find(|installed| installed.package == package.name);
    let Some(installed) = installed else {
        let message = format!("nothing of {} is said to be installed", package.name);
        return Err(refuse(message).with_hint("name its bundle with --installed"));
    };
    let channel = args.choice.channel.first();
    let channel = channel.map_or(package.default_channel(), String::as_str);
    let Some(graph) = UpgradeGraph::of(package, channel) else {
        return Err(catalog::no_channel(package, channel));
    };
    let target = target(package, to);
    let path = graph.path(&installed.name, installed.version.as_ref(), Some(&target));
    let path = path.map_err(|none| {
        let failure = refuse(format!(
            "there is no way from {} in channel {channel}: {none}",
            installed.name
        ));
        match &none.nearest {
            Some(nearest) => {
                failure.with_hint(format!("the nearest that can be reached is {nearest}"))
            }
            None => failure,
        }
    })?;
    let text = || path_text(&path, &installed.name, channel);
    output::print_as(args.output, text, || path_json(&path))
}

/// The bundle that is meant by its name or its version.
fn target(package: &Package, to: &str) -> String {
    let version = versions::parse_tolerant(to).ok();
    let is_meant = |text: &str| {
        versions::parse(text)
            .ok()
            .is_some_and(|found| version.as_ref() == Some(&found))
    };
    let mut bundles = package.bundles.iter();
    let meant = package
        .bundle(to)
        .or_else(|| bundles.find(|bundle| bundle.version().is_some_and(is_meant)));
    meant.map_or_else(|| to.to_owned(), |bundle| bundle.name.clone())
}

fn walk_text(walk: &Walk) -> String {
    match walk {
        Walk::Automatic => "OLM goes this way by itself, and stays at its end".to_owned(),
        Walk::StopsIfManual => {
            "OLM goes this way by itself, and then on; only manual approval stops it there"
                .to_owned()
        }
        Walk::PassedBy(Some(hop)) => format!(
            "OLM v0 goes from {} to {} instead; OLM v1 goes this way when it is told each version",
            hop.from, hop.to
        ),
        Walk::PassedBy(None) => {
            "OLM v0 does not go this way; OLM v1 does when it is told each version".to_owned()
        }
    }
}

fn path_text(path: &Path, from: &str, channel: &str) -> String {
    let mut table = Table::new(["STEP", "FROM", "TO", "BY"], 3);
    for (step, hop) in path.hops.iter().enumerate() {
        let step = (step + 1).to_string();
        table.push([step, hop.from.clone(), hop.to.clone(), hop.link.to_string()]);
    }
    if path.hops.is_empty() {
        return format!("{} is there already\n", visible(from));
    }
    let walk = format!("in channel {channel}: {}", walk_text(&path.walk));
    format!("{}\n{}\n", table.text("", terminal_width()), visible(&walk))
}

fn path_json(path: &Path) -> Value {
    let hops = path
        .hops
        .iter()
        .map(|hop| json!({"from": hop.from, "to": hop.to, "by": hop.link.to_string()}));
    json!({"hops": hops.collect::<Vec<_>>(), "walk": walk_text(&path.walk)})
}
