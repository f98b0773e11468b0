//! `kubectl olm render`: every object that an install results in.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use clap::Args;
use rayon::prelude::*;

use super::{
    STACK_BYTES,
    failure::{Class, Failure},
    folder,
    install_args::{InstallArgs, words},
    output::{self, Format},
};
use crate::{bundle, manifest::Manifest, problem::Problem, render, source};

/// Print or write every object that installing an operator results in
///
/// Reads a bundle and writes what the Operator Lifecycle Manager would create from it: service accounts, roles,
/// custom resource definitions, deployments, webhooks and their certificates. No cluster is contacted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Print the objects of a bundle, installed into namespace ops
  kubectl olm render ./bundle -n ops

  # Watch one namespace, and write one file for each object
  kubectl olm render ./bundle -n ops --watch-namespace team-a -o dir:out

  # Apply them
  kubectl olm render ./bundle -n ops --create-namespace | kubectl apply --server-side -f -

  # Render every bundle below a folder, each into a folder of its own
  kubectl olm render --each ./operators -n ops -o dir:out")]
pub(super) struct RenderArgs {
    /// Folder of the bundle, with `manifests` and `metadata` in it
    #[arg(value_name = "SOURCE", required_unless_present = "each")]
    source: Option<PathBuf>,
    /// Render every bundle below a folder, on all cores; needs `-o dir:DIR` or `-o kustomize:DIR`
    #[arg(long, value_name = "DIR", conflicts_with = "source")]
    each: Option<PathBuf>,
    /// Output: yaml, json, name, dir:DIR or kustomize:DIR
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", add = words(&["yaml", "json", "name", "dir:", "kustomize:"]))]
    output: Format,
    #[command(flatten)]
    install: InstallArgs,
}

/// Runs the command.
///
/// # Errors
/// When the bundle is refused or the output cannot be written.
pub(super) fn run(args: &RenderArgs) -> Result<(), Failure> {
    if let Some(each) = &args.each {
        return render_each(each, args);
    }
    let source = args.source.as_deref().unwrap_or(Path::new("."));
    let (manifests, problems) = render_one(source, args)?;
    output::tell_problems(&problems, "");
    match &args.output {
        Format::Folder(folder) => {
            write_folder(folder, manifests, false).map(|summary| output::tell(&summary))
        }
        Format::Kustomize(folder) => {
            write_folder(folder, manifests, true).map(|summary| output::tell(&summary))
        }
        format => output::print(manifests, format),
    }
}

fn render_one(source: &Path, args: &RenderArgs) -> Result<(Vec<Manifest>, Vec<Problem>), Failure> {
    let mut problems = vec![];
    let mut manifests = vec![];
    let read = &args.install.read;
    if let Some(bundle) = read.bundle(source, &mut problems)? {
        match args.install.options(&bundle) {
            Ok(options) => match render::render(bundle, &options) {
                Ok(rendered) => {
                    problems.extend(rendered.problems);
                    manifests = rendered.manifests;
                }
                Err(found) => problems.extend(found),
            },
            // What is wrong with the bundle comes before what is wrong with the flags.
            Err(failure) if !read.refuses(&problems) => return Err(failure),
            Err(_) => {}
        }
    }
    if read.refuses(&problems) {
        let message = format!("{} was not rendered", source.display());
        return Err(Failure::refused(problems, message));
    }
    Ok((manifests, problems))
}

fn write_folder(
    path: &Path,
    manifests: Vec<Manifest>,
    with_kustomization: bool,
) -> Result<String, Failure> {
    let files = output::files(manifests, with_kustomization);
    let summary = folder::write(path, &files)?;
    Ok(format!(
        "{}: {} written, {} unchanged, {} removed",
        path.display(),
        summary.written,
        summary.unchanged,
        summary.removed,
    ))
}

fn render_each(root: &Path, args: &RenderArgs) -> Result<(), Failure> {
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
        let relative = source.strip_prefix(root).unwrap_or(source);
        let rendered = render_one(source, args).and_then(|(manifests, problems)| {
            output::tell_problems(&problems, &format!("{}: ", relative.display()));
            write_folder(&target.join(relative), manifests, with_kustomization)
        });
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if shows_progress {
            output::show_progress(done, all);
        }
        rendered
            .map_err(|failure| output::tell(&failure.text()))
            .is_ok()
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .stack_size(STACK_BYTES)
        .build();
    let pool = pool.map_err(|error| Failure::of(Class::Bug, &error))?;
    let written = pool.install(|| {
        bundles
            .par_iter()
            .map(render)
            .filter(|written| *written)
            .count()
    });
    let summary = format!("{written} of {all} bundles written to {}", target.display());
    if written == all {
        output::tell(&summary);
        return Ok(());
    }
    Err(Failure::new(Class::Refused, summary))
}
