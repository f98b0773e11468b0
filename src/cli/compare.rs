//! `kubectl olm diff OLD NEW`: what an upgrade brings, without a cluster.

use std::{fmt::Write, path::Path};

use serde_json::{Value, json};

use super::{
    certificate_args::{Passing, Supplier},
    diff_output::{self, DiffOutputArgs, Differs},
    failure::{Class, Failure},
    inputs::Inputs,
    installs::{self, Purpose},
    output,
    parts::Parts,
    text::{printable, problem_lines},
    wanted_args::WantedArgs,
};
use crate::{
    cluster::diff::{self, Asked, Difference, Pair},
    install::{BundleSource, Content, Install},
    manifest::{Manifest, ObjectKey},
    resolve::{Rules, UpgradePolicy},
    review::{
        rights::Rule,
        upgrade::{self, Change, Comparison, May, Right},
    },
    versions::Constraint,
};

/// As many fields of an object are named in the list of objects.
const NAMED_FIELDS: usize = 3;

/// Renders two sources, or two versions of a package, each written PACKAGE@VERSION, and shows how they differ. `wanted` says
/// how, and names the old one.
///
/// # Errors
/// When one cannot be rendered, or standard output cannot take what there is to show.
pub(super) fn run(
    wanted: &WantedArgs,
    new: &Path,
    parts: &Parts,
    form: &DiffOutputArgs,
) -> Result<Differs, Failure> {
    let old = wanted.source.as_deref().unwrap_or_else(|| Path::new(""));
    let passing = Passing::default();
    let certificates = wanted.install.certificates.or(&passing);
    let old = render(wanted, old, parts, certificates)?;
    let new = render(wanted, new, parts, certificates)?;
    show(&old, &new, form)
}

/// The objects of a source or of a version of a package.
fn render(
    args: &WantedArgs,
    source: &Path,
    parts: &Parts,
    certificates: &dyn Supplier,
) -> Result<Vec<Manifest>, Failure> {
    let prefix = format!("{}: ", source.display());
    let mut problems = vec![];
    let inputs = Inputs::read(args, &mut problems)?;
    let mut wanted = inputs.wanted(args, parts, &mut problems)?;
    for install in &mut wanted.installs {
        install_from(install, source)?;
    }
    let sources = inputs.open_sources(&wanted, &args.install)?;
    let mut run = inputs.run(args, &sources, (Purpose::Install, parts));
    run.certificates = certificates;
    let rendered = installs::render(&wanted, run)?;
    problems.extend(rendered.outcome.told());
    output::tell_problems(&problems, &prefix);
    rendered.outcome.end(&wanted.installs)?;
    let (output, _) = output::select(rendered.output, &output::Format::Yaml, parts);
    Ok(output.manifests().cloned().collect())
}

/// Has an install that flags ask for come from a source.
fn install_from(install: &mut Install, source: &Path) -> Result<(), Failure> {
    if !install.is_of_flags() {
        return Ok(());
    }
    install.id = source.display().to_string();
    let Content::Package(wish) = &mut install.content else {
        install.content = Content::Bundle(BundleSource::Source(source.to_owned()));
        return Ok(());
    };
    let text = source.to_str().unwrap_or_default();
    let Some((package, version)) = text.split_once('@') else {
        text.clone_into(&mut wish.package);
        return Ok(());
    };
    let version = Constraint::parse(version).map_err(|reason| {
        let hint = "write PACKAGE@VERSION, as in queue-operator@1.2.0";
        Failure::new(Class::Usage, format!("{text}: {reason}")).with_hint(hint)
    })?;
    package.clone_into(&mut wish.package);
    let channels = match &wish.rules {
        Rules::ClusterExtension { channels, .. } => channels.clone(),
        Rules::Subscription { channel, .. } => channel.iter().cloned().collect(),
    };
    wish.rules = Rules::ClusterExtension {
        channels,
        version: Some(version),
        upgrades: UpgradePolicy::SelfCertified,
    };
    Ok(())
}

/// Shows how two versions of an install differ: first what a person reviews, then every object.
fn show(old: &[Manifest], new: &[Manifest], form: &DiffOutputArgs) -> Result<Differs, Failure> {
    let comparison = upgrade::compare(old, new);
    if form.is_json() {
        output::print_text(&output::json(&value(&comparison)))?;
    } else {
        output::print_text(&review(&comparison))?;
        if !form.is_summary() && !comparison.is_empty() {
            output::print_text("\n")?;
            let differences = comparison.objects.iter().filter_map(difference);
            diff_output::print(&differences.collect::<Vec<_>>(), form)?;
        }
    }
    Ok(if comparison.is_empty() {
        Differs::No
    } else {
        Differs::Yes
    })
}

fn difference(change: &Change<'_>) -> Option<Difference> {
    let value = |side: Option<&Manifest>| Some(Value::Object(side?.object().clone()));
    diff::difference(&Pair {
        key: change.after.or(change.before)?.key(),
        before: value(change.before),
        after: value(change.after),
        asked: Asked::Everything,
    })
}

/// What a person reviews, in sections; those that are empty are left out.
fn review(comparison: &Comparison<'_>) -> String {
    let mut text = String::new();
    let objects = comparison.objects.iter().map(object_line);
    section("Objects", objects, &mut text);
    section(
        "Rights gained",
        comparison.gained.iter().map(right_line),
        &mut text,
    );
    section(
        "Rights lost",
        comparison.lost.iter().map(right_line),
        &mut text,
    );
    let images = comparison
        .images_new
        .iter()
        .map(|image| format!("+ {image}"));
    let gone = comparison
        .images_gone
        .iter()
        .map(|image| format!("- {image}"));
    section("Images", images.chain(gone), &mut text);
    let definitions = comparison.definitions.iter().flat_map(|change| {
        let problems = problem_lines(&change.problems, "");
        let problems: Vec<_> = problems.lines().map(str::to_owned).collect();
        let versions = change.versions.iter();
        let versions = versions.map(|line| format!("{}: {line}", change.key));
        versions.chain(problems).collect::<Vec<_>>()
    });
    section("Definitions", definitions, &mut text);
    let dangers = problem_lines(&comparison.dangers, "");
    section("New to know", dangers.lines().map(str::to_owned), &mut text);
    text
}

fn section(heading: &str, lines: impl Iterator<Item = String>, text: &mut String) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let _ = writeln!(text, "{heading}:");
    for line in lines {
        let _ = writeln!(text, "  {}", printable(&line));
    }
}

/// An object with its namespace.
fn named(key: &ObjectKey) -> String {
    match key.namespace.as_str() {
        "" => key.to_string(),
        namespace => format!("{key} in {namespace}"),
    }
}

fn object_line(change: &Change<'_>) -> String {
    match (change.before, change.after) {
        (Some(before), Some(after)) => {
            let was = match before.key() == after.key() {
                true => String::new(),
                false => format!(", which was {}", before.name()),
            };
            let fields = match change.fields.as_slice() {
                [] => String::new(),
                fields => {
                    let named = fields.iter().take(NAMED_FIELDS).cloned();
                    let more = fields.len().saturating_sub(NAMED_FIELDS);
                    let more = (more > 0).then(|| format!("{more} more"));
                    let named: Vec<_> = named.chain(more).collect();
                    format!(": {}", named.join(", "))
                }
            };
            format!("~ {}{was}{fields}", named(&after.key()))
        }
        (None, Some(after)) => format!("+ {}", named(&after.key())),
        (Some(before), None) => format!("- {}", named(&before.key())),
        (None, None) => String::new(),
    }
}

fn right_line(right: &Right) -> String {
    let place = match right.namespace.as_str() {
        "" => "in the whole cluster".to_owned(),
        namespace => format!("in {namespace}"),
    };
    let may = match &right.may {
        May::Rule(rule) => rule.words(),
        May::Role(kind, name) => format!("all that {kind} {name} allows"),
    };
    format!("{}: {may}, {place}", right.subject)
}

/// All of it, for programs.
fn value(comparison: &Comparison<'_>) -> Value {
    let key = |key: &ObjectKey| json!({"group": key.group, "kind": key.kind, "namespace": key.namespace, "name": key.name});
    let objects = comparison.objects.iter().map(|change| {
        let [before, after] = [change.before, change.after].map(|side| side.map(Manifest::key));
        json!({
            "before": before.as_ref().map(key),
            "after": after.as_ref().map(key),
            "fields": change.fields,
        })
    });
    let rights = |rights: &[Right]| -> Vec<Value> {
        let rights = rights.iter().map(|right| {
            let mut value = json!({
                "subject": subject(&right.subject),
                "namespace": right.namespace,
            });
            match &right.may {
                May::Rule(rule) => value["rule"] = Rule::to_value(rule),
                May::Role(kind, name) => value["role"] = json!({"kind": kind, "name": name}),
            }
            value
        });
        rights.collect()
    };
    let definitions = comparison.definitions.iter().map(|change| {
        json!({
            "name": change.key.name,
            "versions": change.versions,
            "problems": change.problems.iter().map(problem).collect::<Vec<_>>(),
        })
    });
    json!({
        "objects": objects.collect::<Vec<_>>(),
        "gained": rights(&comparison.gained),
        "lost": rights(&comparison.lost),
        "dangers": comparison.dangers.iter().map(problem).collect::<Vec<_>>(),
        "images": {"new": comparison.images_new, "gone": comparison.images_gone},
        "definitions": definitions.collect::<Vec<_>>(),
    })
}

fn problem(problem: &crate::problem::Problem) -> Value {
    json!({"rule": problem.rule, "object": problem.object, "message": problem.message})
}

/// Who has a right, for programs.
pub(super) fn subject(subject: &crate::review::rights::Subject) -> Value {
    json!({"kind": subject.kind, "namespace": subject.namespace, "name": subject.name})
}
