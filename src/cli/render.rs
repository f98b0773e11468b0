//! `kubectl olm render`: every object that an install results in.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use clap::Args;
use rayon::prelude::*;

use super::{
    failure::{Class, Failure},
    filename_args::FilenameArgs,
    inputs::Inputs,
    install_args::{InstallArgs, words},
    installs, locked,
    output::{self, Format, Output},
    package::PackageArgs,
    parts::{Parts, PartsArgs},
    secret_args::SecretArgs,
    threads,
};
use crate::{
    bundle,
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
    /// Bundle: a folder or tar archive with `manifests` and `metadata` in it, an image (docker://IMAGE, oci:DIR,
    /// oci-archive:FILE or docker-archive:FILE), or `-`; with --catalog, name of a package
    #[arg(value_name = "SOURCE|PACKAGE")]
    pub source: Option<PathBuf>,
    /// Render every bundle below a folder, on all cores; needs `-o dir:DIR` or `-o kustomize:DIR`
    #[arg(long, value_name = "DIR", conflicts_with_all = ["source", "filename", "catalog"])]
    each: Option<PathBuf>,
    #[command(flatten)]
    pub filename: FilenameArgs,
    /// Output: yaml, json, name, dir:DIR or kustomize:DIR
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", add = words(&["yaml", "json", "name", "dir:", "kustomize:"]))]
    output: Format,
    #[command(flatten)]
    pub parts: PartsArgs,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub install: InstallArgs,
    #[command(flatten)]
    pub package: PackageArgs,
}

/// Runs the command.
///
/// # Errors
/// When something is refused, or the output cannot be written.
pub(super) fn run(args: &RenderArgs) -> Result<(), Failure> {
    let parts = args.parts.parts()?;
    if let Some(each) = &args.each {
        return render_each(each, args, &parts);
    }
    let mut problems = vec![];
    let inputs = Inputs::read(args, &mut problems)?;
    let wanted = inputs.wanted(args, &parts, &mut problems)?;
    let sources = inputs.open_sources(&wanted, &args.install)?;
    if let (Some((folder, _)), Some(source)) = (args.output.folder(), &args.source) {
        stay_outside(folder, source)?;
    }
    let rendered = installs::render(&wanted, inputs.run(args, &sources, &parts))?;
    problems.extend(rendered.outcome.told());
    output::tell_problems(&problems, "");
    let mut written = Ok(());
    if !rendered.output.installs.is_empty() {
        written = output::write(rendered.output, &args.output, &parts);
        // Only now does it say what is there.
        if let (Ok(()), Some((path, text))) = (&written, &rendered.lock) {
            written = locked::write(path, text);
        }
    }
    let ended = rendered.outcome.end(&wanted.installs);
    if let (Err(_), Err(stopped)) = (&written, &ended) {
        output::tell(&stopped.text(""));
    }
    written.and(ended)
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
    let inputs = Inputs::read(args, &mut vec![])?;
    let sources = inputs.open_sources(&Wanted::default(), &args.install)?;
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
            .and_then(|(output, mut problems)| {
                let (output, note) = output::select(output, &args.output, parts);
                problems.extend(note);
                output::write_folder(&folder, layout, output).map(|_| problems)
            });
        if shows_progress {
            output::show_progress(done.fetch_add(1, Ordering::Relaxed) + 1, all);
        }
        rendered
    };
    threads::prepare(sources.limits());
    let rendered: Vec<_> = bundles.par_iter().map(render).collect();
    let (mut written, mut worst) = (0, None);
    for (source, rendered) in bundles.iter().zip(rendered) {
        let prefix = format!("{}: ", source.display());
        match rendered {
            Ok(problems) => {
                output::tell_problems(&problems, &prefix);
                written += 1;
            }
            Err(failure) => {
                output::tell(&failure.text(&prefix));
                worst = worst.max(Some(failure.class()));
            }
        }
    }
    let summary = format!("{written} of {all} bundles written to {}", target.display());
    match worst {
        Some(class) => Err(Failure::new(class, summary)),
        None => {
            output::tell(&summary);
            Ok(())
        }
    }
}

/// Renders one bundle of several, with what there is to say about it.
fn render_one(
    source: &Path,
    args: &RenderArgs,
    inputs: &Inputs,
    (sources, parts): (&Sources, &Parts),
) -> Result<(Output, Vec<Problem>), Failure> {
    let mut problems = vec![];
    let wanted = inputs.wanted_of(source, args, &mut problems)?;
    let rendered = installs::render(&wanted, inputs.run(args, sources, parts))?;
    problems.extend(rendered.outcome.told());
    rendered.outcome.end(&wanted.installs)?;
    Ok((rendered.output, problems))
}
