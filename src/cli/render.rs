//! `kubectl olm render`: every object that an install results in.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use clap::Args;
use rayon::prelude::*;

use super::{
    candidates::words,
    failure::{Class, Failure},
    inputs::Inputs,
    installs::{self, Purpose},
    output::{self, Format, Output},
    parts::{Parts, PartsArgs},
    threads,
    wanted_args::WantedArgs,
    whole_file,
};
use crate::{
    bundle,
    images::pin::Pins,
    install::Wanted,
    problem::Problem,
    source::{self, Sources},
};

/// Print or write every object that installing an operator results in
///
/// Reads a bundle, or with --catalog chooses the bundle of a package and those that it needs, and writes what the
/// Operator Lifecycle Manager would create from it: service accounts, roles, custom resource definitions, deployments,
/// webhooks and their certificates. No cluster is contacted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Print the objects of a bundle, installed into namespace ops
  kubectl olm render ./bundle -n ops

  # The same from a registry, or from an archive that `podman save --format oci-archive` wrote
  kubectl olm render docker://quay.io/example/bundle:v1.2.3 -n ops
  kubectl olm render oci-archive:bundle.tar -n ops

  # Watch one namespace, and write one file for each object
  kubectl olm render ./bundle -n ops --watch-namespace team-a -o dir:out

  # Apply them
  kubectl olm render ./bundle -n ops --create-namespace | kubectl apply --server-side -f -

  # Print the objects of a package and of the packages that it needs
  kubectl olm render my-operator --catalog ./catalog -n ops

  # Write down what was chosen; later, install exactly that
  kubectl olm render my-operator --catalog ./catalog --version 2.4 -n ops --lock olm.lock
  kubectl olm render my-operator --catalog ./catalog --version 2.4 -n ops --lock olm.lock --locked

  # Render every bundle below a folder, each into a folder of its own
  kubectl olm render --each ./operators -n ops -o dir:out")]
pub(super) struct RenderArgs {
    /// Render every bundle below a folder, on all cores; needs `-o dir:DIR` or `-o kustomize:DIR`
    #[arg(long, value_name = "DIR", conflicts_with_all = ["source", "filename", "catalog"])]
    each: Option<PathBuf>,
    /// Output: yaml, json, name, dir:DIR or kustomize:DIR
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", add = words(&["yaml", "json", "name", "dir:", "kustomize:"]))]
    output: Format,
    #[command(flatten)]
    pub parts: PartsArgs,
    #[command(flatten)]
    wanted: WantedArgs,
}

/// Runs the command.
///
/// # Errors
/// When something is refused, or the output cannot be written.
pub(super) fn run(args: &RenderArgs) -> Result<(), Failure> {
    let parts = args.parts.parts()?;
    args.wanted.install.certificates.has_folder()?;
    if let Some(each) = &args.each {
        return render_each(each, args, &parts);
    }
    let mut problems = vec![];
    let inputs = Inputs::read(&args.wanted, &mut problems)?;
    let wanted = inputs.wanted(&args.wanted, &parts, &mut problems)?;
    let sources = inputs.open_sources(&wanted, &args.wanted.install)?;
    if let (Some((folder, _)), Some(source)) = (args.output.folder(), &args.wanted.source) {
        stay_outside(folder, source)?;
    }
    let rendered = installs::render(
        &wanted,
        inputs.run(&args.wanted, &sources, (Purpose::Install, &parts)),
    )?;
    problems.extend(rendered.outcome.told());
    output::tell_problems(&problems, "");
    let mut written = Ok(());
    if !rendered.output.installs.is_empty() {
        written = output::write(rendered.output, &args.output, &parts);
        // Only now does it say what is there.
        if let (Ok(()), Some((path, text))) = (&written, &rendered.lock) {
            written = whole_file::write(path, text);
        }
        let pins = &args.wanted.pins.files;
        written = written.and_then(|()| pins.write(&rendered.pins));
    }
    rendered.outcome.end_after(written, &wanted.installs)
}

/// Refuses a folder for output that is part of the bundle itself.
fn stay_outside(path: &Path, source: &Path) -> Result<(), Failure> {
    if !source::is_inside(path, source, &bundle::FOLDERS) {
        return Ok(());
    }
    let message = format!(
        "{} is part of the bundle, which would no longer be one",
        path.display()
    );
    Err(Failure::new(Class::Usage, message).with_hint("write to another folder"))
}

fn render_each(root: &Path, args: &RenderArgs, parts: &Parts) -> Result<(), Failure> {
    let Some((target, layout)) = args.output.folder() else {
        let message = "--each needs a folder to write to";
        let hint = "use -o dir:DIR or -o kustomize:DIR";
        return Err(Failure::new(Class::Usage, message).with_hint(hint));
    };
    let inputs = Inputs::read(&args.wanted, &mut vec![])?;
    let sources = inputs.open_sources(&Wanted::default(), &args.wanted.install)?;
    let bundles = source::folders_with(root, bundle::FOLDERS[0])?;
    if bundles.is_empty() {
        let message = format!("there is no bundle below {}", root.display());
        return Err(Failure::new(Class::Refused, message));
    }
    let (done, all) = (AtomicUsize::new(0), bundles.len());
    let shows_progress = output::is_terminal();
    let render = |source: &PathBuf| {
        let folder = target.join(source.strip_prefix(root).unwrap_or(source));
        let outside = stay_outside(&folder, source);
        let rendered = outside
            .and_then(|()| render_one(source, args, &inputs, (&sources, parts)))
            .and_then(|(output, mut problems, pins)| {
                let (output, note) = output::select(output, &args.output, parts);
                problems.extend(note);
                output::write_folder(&folder, layout, output).map(|_| (problems, pins))
            });
        if shows_progress {
            output::show_progress(done.fetch_add(1, Ordering::Relaxed) + 1, all);
        }
        rendered
    };
    threads::prepare(sources.limits());
    let rendered: Vec<_> = bundles.par_iter().map(render).collect();
    let (mut written, mut failed, mut used) = (0, vec![], Pins::default());
    for (source, rendered) in bundles.iter().zip(rendered) {
        let prefix = format!("{}: ", source.display());
        match rendered {
            Ok((problems, pins)) => {
                output::tell_problems(&problems, &prefix);
                written += 1;
                used.extend(&pins);
            }
            Err(failure) => {
                output::tell(&failure.text(&prefix));
                failed.push(failure.class());
            }
        }
    }
    args.wanted.pins.files.write(&used)?;
    let summary = format!("{written} of {all} bundles written to {}", target.display());
    match Class::worst(failed) {
        Some(class) => Err(Failure::new(class, summary)),
        None => {
            output::tell(&summary);
            Ok(())
        }
    }
}

/// Renders one bundle of several, with what there is to say about it and the digests that were used.
fn render_one(
    source: &Path,
    args: &RenderArgs,
    inputs: &Inputs,
    (sources, parts): (&Sources, &Parts),
) -> Result<(Output, Vec<Problem>, Pins), Failure> {
    let mut problems = vec![];
    let wanted = inputs.wanted_of(source, &args.wanted, &mut problems)?;
    let rendered = installs::render(
        &wanted,
        inputs.run(&args.wanted, sources, (Purpose::Install, parts)),
    )?;
    problems.extend(rendered.outcome.told());
    rendered.outcome.end(&wanted.installs)?;
    Ok((rendered.output, problems, rendered.pins))
}
