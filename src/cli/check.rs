//! `kubectl olm check`: every problem of a bundle, for its author.

use std::{collections::BTreeSet, path::PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{
    failure::{Class, Failure},
    output,
    read_args::ReadArgs,
    source_args::tell_notices,
    text,
};
use crate::{
    problem::{Problem, Severity},
    render::{self, RenderOptions, certificates::CertManager, overrides::Overrides},
};

/// Show every problem of a bundle, without rendering it
///
/// Runs the validators of the Operator Lifecycle Manager and looks for what it would find only while installing.
/// Exits 3 when the bundle would be refused.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Everything that is wrong with a bundle
  kubectl olm check ./bundle

  # Also what OLM tolerates, and whether it runs on Kubernetes 1.31; for a pipeline
  kubectl olm check ./bundle --strict --kube-version 1.31 -o json")]
pub(super) struct CheckArgs {
    /// Bundle: a folder or tar archive with `manifests` and `metadata` in it, an image (docker://IMAGE, oci:DIR,
    /// oci-archive:FILE or docker-archive:FILE), or `-`
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// Output
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
    #[command(flatten)]
    read: ReadArgs,
}

/// How problems are printed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Format {
    Text,
    Json,
}

/// Runs the command.
///
/// # Errors
/// When the bundle has problems that refuse it.
pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let mut problems = vec![];
    let sources = args.read.sources.open()?;
    let bundle = args.read.bundle(&args.source, &sources, &mut problems)?;
    tell_notices(&sources);
    if let Some(bundle) = bundle {
        let options = any_options(&bundle.csv.install_modes);
        problems.extend(match render::render(bundle, &options) {
            Ok(rendered) => rendered.problems,
            Err(problems) => problems,
        });
    }
    conclude(
        &args.source.display().to_string(),
        problems,
        args.output,
        args.read.strict,
    )
}

/// Prints the problems of something and tells how many there are.
///
/// # Errors
/// When the problems refuse it.
pub(super) fn conclude(
    source: &str,
    mut problems: Vec<Problem>,
    format: Format,
    strict: bool,
) -> Result<(), Failure> {
    problems.retain(|problem| problem.severity != Severity::Note);
    problems.sort();
    problems.dedup();
    output::print_text(&report(&problems, format))?;
    let count = |severity| {
        problems
            .iter()
            .filter(|problem| problem.severity == severity)
            .count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let counted = |count, word| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let summary = format!(
        "{source}: {}, {}",
        counted(errors, "error"),
        counted(warnings, "warning"),
    );
    if errors > 0 || strict && warnings > 0 {
        return Err(Failure::new(Class::Refused, summary));
    }
    output::tell(&summary);
    Ok(())
}

/// Options that the bundle can be rendered with; what they are does not matter, as nothing of it is shown.
fn any_options(modes: &BTreeSet<String>) -> RenderOptions {
    RenderOptions {
        namespace: "operators".to_owned(),
        namespaces: vec![],
        watched: any_watched(modes),
        certificates: Box::new(CertManager),
        overrides: Overrides::default(),
        csv: None,
    }
}

/// Namespaces to watch that a bundle with these install modes takes; none where it chooses by itself.
pub(super) fn any_watched(modes: &BTreeSet<String>) -> Vec<String> {
    let supports = |mode: &str| modes.contains(mode);
    let watched: &[&str] = match () {
        () if supports("AllNamespaces") || supports("OwnNamespace") => &[],
        () if supports("SingleNamespace") => &["watched"],
        () if supports("MultiNamespace") => &["watched", "watched-too"],
        () => &[],
    };
    watched.iter().map(|name| (*name).to_owned()).collect()
}

fn report(problems: &[Problem], format: Format) -> String {
    match format {
        Format::Text => text::problem_lines(problems, ""),
        Format::Json => {
            let problems: Vec<_> = problems.iter().map(problem_json).collect();
            format!("{:#}\n", json!({"problems": problems}))
        }
    }
}

/// A problem, without the fields that it has nothing for.
fn problem_json(problem: &Problem) -> Value {
    let mut fields = json!({
        "severity": problem.severity.to_string(),
        "rule": problem.rule,
        "message": problem.message,
    });
    let place = &problem.place;
    let texts = [("file", &place.path), ("object", &problem.object)];
    for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        fields[name] = text.as_str().into();
    }
    if place.line > 0 {
        fields["line"] = place.line.into();
    }
    fields
}
