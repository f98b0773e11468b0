//! `kubectl olm pin`: digests in the place of tags, in the ClusterServiceVersion of a bundle.

use std::path::{Path, PathBuf};

use clap::Args;
use memchr::memmem;

use super::{
    check::{self, Format},
    digests,
    failure::{Class, Failure},
    output,
    pin_args::PinFiles,
    source_args::{SourceArgs, tell_notices, unread},
    whole_file,
};
use crate::{
    bundle,
    images::pin::{self, PinnedFile},
    manifest::Manifest,
    problem::Problem,
    source::{self, Depth, Sources},
};

/// What a file has to hold to be read.
const KIND: &str = "ClusterServiceVersion";

/// Put digests in the place of tags in the ClusterServiceVersion of a bundle
///
/// Names every image of deployments, of RELATED_IMAGE_ variables and of annotations by its digest, and lists all of them
/// in relatedImages, as clusters without the internet need it. Digests come from --pins, else from the images'
/// registries. Comments and layout stay as they are.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Print the ClusterServiceVersion with digests that registries tell
  kubectl olm pin ./bundle

  # Rewrite it with digests from a map; write down what was used
  kubectl olm pin ./bundle --pins replacements.json --in-place
  kubectl olm pin ./bundle --in-place --write-pins replacements.json

  # In a pipeline: fail when a pod would run an image by its tag
  kubectl olm pin ./bundle --check")]
pub(super) struct PinCommand {
    /// Bundle, or the file or a folder with its ClusterServiceVersion, or `-`, that file on standard input; of an archive
    /// or image it can only be printed
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// Rewrite the file, rather than print it
    #[arg(long)]
    in_place: bool,
    /// Change nothing: exit 3 when anything that a pod runs is named without a digest
    #[arg(long, conflicts_with_all = ["in_place", "pins", "write_pins"])]
    check: bool,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    files: PinFiles,
    #[command(flatten)]
    sources: SourceArgs,
}

/// The file with the ClusterServiceVersion.
struct CsvFile {
    /// Where it is on disk; nothing when it is in an archive or image.
    path: Option<PathBuf>,
    /// What messages call it.
    name: String,
    text: String,
    manifests: Vec<Manifest>,
}

/// Runs the command.
///
/// # Errors
/// When there is nothing to pin, an image has no digest, or the output cannot be written.
pub(super) fn run(args: &PinCommand) -> Result<(), Failure> {
    let limits = args.sources.limits();
    let mut pins = args.files.read(&limits)?;
    let sources = args.sources.open()?;
    let file = find(&args.source, &sources)?;
    tell_notices(&sources);
    if args.in_place && file.path.is_none() {
        let message = format!("{} is no file on disk, and cannot be rewritten", file.name);
        let hint = "leave out --in-place, and send the output to a file";
        return Err(Failure::new(Class::Usage, message).with_hint(hint));
    }
    if args.files.is_written_to(file.path.as_deref()) {
        let message = format!(
            "{} cannot be both the ClusterServiceVersion and --write-pins",
            file.name
        );
        return Err(Failure::new(Class::Usage, message).with_hint("name another file for the map"));
    }
    if args.check {
        return check_file(args, &file);
    }
    let mut problems = pin::lint(&file.manifests);
    let wanted = pin::wanted(&file.manifests);
    let found = digests::complete(&mut pins, &wanted, &sources, &mut problems);
    tell_notices(&sources);
    let found = match found {
        Ok(found) => found,
        Err(failure) => return Err(failure.with_problems(problems)),
    };
    let pinned = match pin::pin_file(&file.name, &file.text, &pins, &limits) {
        Ok(pinned) => pinned,
        Err(conflicts) => {
            problems.extend(conflicts);
            let message = format!("{} was not pinned", file.name);
            return Err(Failure::refused(problems, message));
        }
    };
    if !pinned.keeps_layout {
        let message = "its comments and its layout could not be kept";
        problems.push(Problem::warning("layout", message).at(file.name.as_str()));
    }
    let is_refused = args.strict && !problems.is_empty();
    let manifests = file.manifests.iter();
    problems.extend(manifests.flat_map(|csv| pin::listed_twice(csv, &pins)));
    if is_refused {
        let message = format!(
            "{} was not pinned, as --strict takes warnings as errors",
            file.name
        );
        return Err(Failure::refused(problems, message));
    }
    output::tell_problems(&problems, "");
    // Without the tags, the map could not be made again.
    args.files.write(&pinned.used)?;
    write(args, &file, &pinned, &digests::counted(&pinned.used, found))
}

/// Tells what is not pinned, as `check` does.
fn check_file(args: &PinCommand, file: &CsvFile) -> Result<(), Failure> {
    let mut problems = pin::lint(&file.manifests);
    problems.extend(pin::unpinned(&file.manifests));
    problems.extend(pin::claim_broken(&file.manifests));
    check::conclude(
        &args.source.display().to_string(),
        problems,
        Format::Text,
        args.strict,
    )
}

/// Prints the file or rewrites it, and tells how many images have digests.
fn write(
    args: &PinCommand,
    file: &CsvFile,
    pinned: &PinnedFile,
    counted: &str,
) -> Result<(), Failure> {
    match &file.path {
        Some(path) if args.in_place => {
            let is_same = pinned.text == file.text;
            whole_file::write(path, &pinned.text)?;
            let done = if is_same { "unchanged" } else { "rewritten" };
            output::tell(&format!("{}: {done}; {counted}", file.name));
        }
        _ => {
            output::print_text(&pinned.text)?;
            output::tell(counted);
        }
    }
    Ok(())
}

/// The only file with a ClusterServiceVersion.
///
/// # Errors
/// When it cannot be read, or there is none or more than one.
fn find(source: &Path, sources: &Sources) -> Result<CsvFile, Failure> {
    let limits = sources.limits();
    let mut found = vec![];
    for (path, name, text) in files(source, sources)? {
        if memmem::find(&text, KIND.as_bytes()).is_none() {
            continue;
        }
        let manifests = pin::csvs(&name, &text, limits)
            .map_err(|problem| Failure::refused(vec![problem], format!("{name} cannot be read")))?;
        if manifests.is_empty() {
            continue;
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        found.push(CsvFile {
            path,
            name,
            text,
            manifests,
        });
    }
    let names: Vec<_> = found.iter().map(|file| file.name.clone()).collect();
    let count: usize = found.iter().map(|file| file.manifests.len()).sum();
    match found.pop() {
        Some(only) if count == 1 => Ok(only),
        None => {
            let message = format!("there is no {KIND} in {}", source.display());
            Err(unread(Failure::new(Class::Refused, message), source))
        }
        Some(_) => {
            let message = format!(
                "a bundle has one {KIND}, and {} has {count}: {}",
                source.display(),
                names.join(", ")
            );
            let hint = "name the file that is meant";
            Err(Failure::new(Class::Refused, message).with_hint(hint))
        }
    }
}

/// A file's path where it is on disk, what messages call it, and what it holds.
type File = (Option<PathBuf>, String, Vec<u8>);

/// All files that may hold a ClusterServiceVersion.
fn files(source: &Path, sources: &Sources) -> Result<Vec<File>, Failure> {
    let limits = sources.limits();
    let is_bundle = source.join(bundle::FOLDERS[0]).is_dir();
    let is_manifest = source
        .extension()
        .is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|other| ending == *other));
    let is_stdin = source == Path::new(source::STDIN);
    if source.is_dir() || is_manifest || is_stdin {
        let folder = if is_bundle {
            source.join(bundle::FOLDERS[0])
        } else {
            source.to_owned()
        };
        let files = source::manifest_files(&folder, Depth::Recursive, limits)?;
        return Ok(files
            .into_iter()
            .map(|(name, text)| {
                let path = (!is_stdin).then(|| name.clone().into());
                (path, name, text)
            })
            .collect());
    }
    let mut tree = sources.files(source, &bundle::FOLDERS)?;
    let paths: Vec<_> = tree.paths().map(str::to_owned).collect();
    let files = paths.into_iter().filter_map(|path| {
        let text = tree.take(&path)?;
        Some((None, path, text))
    });
    Ok(files.collect())
}
