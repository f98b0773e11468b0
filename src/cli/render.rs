//! `kubectl olm render`: every object that an install results in.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use clap::Args;
use rayon::prelude::*;

use super::{
    failure::{Class, Failure},
    folder,
    install_args::{InstallArgs, words},
    locked,
    output::{self, Format, Install},
    package::PackageArgs,
    source_args::tell_notices,
    threads,
};
use crate::{
    bundle,
    manifest::{Manifest, names},
    problem::Problem,
    render,
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
    #[arg(value_name = "SOURCE|PACKAGE", required_unless_present = "each")]
    source: Option<PathBuf>,
    /// Render every bundle below a folder, on all cores; needs `-o dir:DIR` or `-o kustomize:DIR`
    #[arg(long, value_name = "DIR", conflicts_with = "source")]
    each: Option<PathBuf>,
    /// Output: yaml, json, name, dir:DIR or kustomize:DIR
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", add = words(&["yaml", "json", "name", "dir:", "kustomize:"]))]
    output: Format,
    #[command(flatten)]
    install: InstallArgs,
    #[command(flatten)]
    package: PackageArgs,
}

/// Runs the command.
///
/// # Errors
/// When the bundle is refused or the output cannot be written.
pub(super) fn run(args: &RenderArgs) -> Result<(), Failure> {
    if let Some(each) = &args.each {
        return render_each(each, args, &args.install.open_sources()?);
    }
    let sources = args.install.open_sources()?;
    let source = args.source.as_deref().unwrap_or(Path::new("."));
    if args.package.choice.catalogs.is_given() {
        let package = args.package.render(source, &args.install, &sources)?;
        output::tell_problems(&package.problems, "");
        write(package.installs, &args.output)?;
        // Only now does it say what is there.
        return match package.lock {
            Some((path, text)) => locked::write(&path, &text),
            None => Ok(()),
        };
    }
    if let Format::Folder(folder) | Format::Kustomize(folder) = &args.output {
        stay_outside(folder, source)?;
    }
    let (manifests, problems) = render_one(source, args, &sources)?;
    tell_notices(&sources);
    output::tell_problems(&problems, "");
    write(vec![manifests.into()], &args.output)
}

/// Writes objects to where the user wants them.
fn write(installs: Vec<Install>, format: &Format) -> Result<(), Failure> {
    match format {
        Format::Folder(folder) => {
            write_folder(folder, installs, false).map(|summary| output::tell(&summary))
        }
        Format::Kustomize(folder) => {
            write_folder(folder, installs, true).map(|summary| output::tell(&summary))
        }
        format => output::print(installs, format),
    }
}

fn render_one(
    source: &Path,
    args: &RenderArgs,
    sources: &Sources,
) -> Result<(Vec<Manifest>, Vec<Problem>), Failure> {
    let mut problems = vec![];
    let mut manifests = vec![];
    let read = &args.install.read;
    let bundle = read.bundle(source, sources, &mut problems);
    let bundle = bundle.map_err(|failure| {
        // What is not there may be meant as the name of a package.
        let is_name = |text: &str| names::label_error(text).is_none();
        if source.to_str().is_some_and(is_name) && !source.exists() {
            failure.with_hint("for a package of a catalog, name the catalog with --catalog")
        } else {
            failure
        }
    })?;
    if let Some(bundle) = bundle {
        let mut of_flags = vec![];
        match args.install.options(&bundle, &mut of_flags) {
            Ok(options) => {
                problems.extend(of_flags);
                match render::render(bundle, &options) {
                    Ok(rendered) => {
                        problems.extend(rendered.problems);
                        manifests = rendered.manifests;
                    }
                    Err(found) => problems.extend(found),
                }
            }
            // What is wrong with the bundle comes before what is wrong with the flags.
            Err(failure) if !read.refuses(&problems) => return Err(failure),
            Err(_) => {}
        }
    }
    let problems = read.accept(problems, &source.display().to_string())?;
    Ok((manifests, problems))
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

/// Writes the files of objects; tells what was done.
fn write_folder(
    path: &Path,
    installs: Vec<Install>,
    with_kustomization: bool,
) -> Result<String, Failure> {
    let files = output::files(installs, with_kustomization);
    let summary = folder::write(path, &files)?;
    Ok(format!(
        "{}: {} written, {} unchanged, {} removed",
        path.display(),
        summary.written,
        summary.unchanged,
        summary.removed,
    ))
}

fn render_each(root: &Path, args: &RenderArgs, sources: &Sources) -> Result<(), Failure> {
    let (target, with_kustomization) = match &args.output {
        Format::Folder(folder) => (folder, false),
        Format::Kustomize(folder) => (folder, true),
        _ => {
            let message = "--each needs a folder to write to";
            return Err(
                Failure::new(Class::Usage, message).with_hint("use -o dir:DIR or -o kustomize:DIR")
            );
        }
    };
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
            .and_then(|()| render_one(source, args, sources))
            .and_then(|(manifests, problems)| {
                write_folder(&folder, vec![manifests.into()], with_kustomization).map(|_| problems)
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
