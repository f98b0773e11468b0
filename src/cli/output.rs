//! Standard output and standard error: data goes to the first, everything else to the second.

use std::{
    collections::BTreeSet,
    io::{self, BufWriter, IsTerminal, Write},
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::{
    failure::{Class, Failure},
    folder::{self, Layout, Summary, Wanted},
    parts::{Part, Parts},
    text::{printable, problem_lines, steers},
};
use crate::{
    manifest::{Manifest, file_name, yaml},
    problem::Problem,
    render::Owned,
    resolve::lock::LockedInstall,
};

/// Where rendered objects go, and in which form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Format {
    /// A YAML stream on standard output.
    Yaml,
    /// One JSON list on standard output.
    Json,
    /// A line for each object on standard output.
    Name,
    /// A file for each object in a folder.
    Folder(PathBuf),
    /// The same, with a `kustomization.yaml`.
    Kustomize(PathBuf),
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let folder = |path: &str| match path {
            "" => Err("name the folder after the colon".to_owned()),
            path => Ok(PathBuf::from(path)),
        };
        match text.split_once(':') {
            Some(("dir", path)) => folder(path).map(Self::Folder),
            Some(("kustomize", path)) => folder(path).map(Self::Kustomize),
            _ => match text {
                "yaml" => Ok(Self::Yaml),
                "json" => Ok(Self::Json),
                "name" => Ok(Self::Name),
                _ => Err("use yaml, json, name, dir:DIR or kustomize:DIR".to_owned()),
            },
        }
    }
}

impl Format {
    /// The folder to write to, and what is in it besides the files of objects; none for standard output.
    pub(super) fn folder(&self) -> Option<(&Path, Layout)> {
        match self {
            Self::Folder(folder) => Some((folder, Layout::Plain)),
            Self::Kustomize(folder) => Some((folder, Layout::Kustomize)),
            Self::Yaml | Self::Json | Self::Name => None,
        }
    }
}

/// What a run came to: what it rendered, and what of it has stopped.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// What goes on, in order.
    pub(super) installs: Vec<Install>,
    /// The owners that nothing is rendered for because something was wrong. What a folder has of theirs stays as it is.
    pub(super) stopped: BTreeSet<String>,
}

/// The objects of one install or catalog, and what to write above each of them, where there is something to say.
#[derive(Debug, Default)]
pub(super) struct Install {
    /// A line without its `#`; empty when there is none.
    pub(super) heading: String,
    /// What is installed, for whoever keeps track of it; nothing of catalogs.
    pub(super) about: Option<About>,
    /// The objects, no two of a run the same.
    pub(super) objects: Vec<Owned>,
}

/// What an install is of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct About {
    /// Its position among those that were rendered, as [`Owned::brought_by`] has it.
    pub(super) position: usize,
    /// What it is called: as its object, else as its package.
    pub(super) name: String,
    /// The namespace that it is installed into.
    pub(super) namespace: String,
    /// The bundle; its package, name, version and image are always known.
    pub(super) bundle: LockedInstall,
    /// What asked for it, as messages call it; nothing when others need it.
    pub(super) id: Option<String>,
}

impl Output {
    /// All objects, in order.
    pub(super) fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        let objects = self.installs.iter().flat_map(|install| &install.objects);
        objects.map(|owned| &owned.manifest)
    }

    /// Puts catalogs before everything that is installed from them.
    fn put_catalogs_first(&mut self) {
        let is_catalog = |owned: &mut Owned| Part::of(&owned.manifest) == Part::Catalogs;
        let catalogs = self.installs.iter_mut().map(|install| Install {
            heading: install.heading.clone(),
            about: None,
            objects: install.objects.extract_if(.., is_catalog).collect(),
        });
        let catalogs: Vec<_> = catalogs.collect();
        self.installs.splice(0..0, catalogs);
    }
}

impl Install {
    /// The text of each object, with its owners.
    fn texts(self) -> impl Iterator<Item = (BTreeSet<String>, String)> {
        let heading = match self.heading.as_str() {
            "" => String::new(),
            heading => format!("# {}\n", printable(heading)),
        };
        self.objects.into_iter().map(move |owned| {
            // So that they can be joined into one stream.
            let mut text = format!("---\n{heading}");
            yaml::write(&owned.manifest.into_value(), &mut text);
            (owned.owners, text)
        })
    }
}

/// Writes objects to where the user wants them, as far as they are wanted, and tells what there is to say about it.
///
/// # Errors
/// When standard output cannot take them, or the folder cannot be written.
pub(super) fn write(output: Output, format: &Format, parts: &Parts) -> Result<(), Failure> {
    let (output, note) = select(output, format, parts);
    tell_problems(note.as_slice(), "");
    match format.folder() {
        None => print(output, format),
        Some((folder, layout)) => {
            let summary = write_folder(folder, layout, output)?;
            tell(&format!("{}: {summary}", folder.display()));
            Ok(())
        }
    }
}

/// Leaves what is wanted of it, in the order in which it is output, and gives what there is to say about that.
pub(super) fn select(
    mut output: Output,
    format: &Format,
    parts: &Parts,
) -> (Output, Option<Problem>) {
    let note = parts.select(&mut output, format);
    output.put_catalogs_first();
    (output, note)
}

/// Writes a file for each object, and removes those of objects that are not there any more, unless what they were
/// rendered for has stopped.
///
/// # Errors
/// When the folder is not ours to write, or cannot be written; it is as it was then.
pub(super) fn write_folder(
    folder: &Path,
    layout: Layout,
    output: Output,
) -> Result<Summary, Failure> {
    let keys: Vec<_> = output.manifests().map(Manifest::key).collect();
    let names = file_name::file_names(&keys);
    let mut wanted = Wanted::new(layout, &output.stopped);
    let texts = output.installs.into_iter().flat_map(Install::texts);
    for (name, (owners, text)) in names.into_iter().zip(texts) {
        wanted.add(name, &owners, text);
    }
    Ok(folder::write(folder, wanted)?)
}

/// Prints objects on standard output. A reader that has gone away is no error.
fn print(output: Output, format: &Format) -> Result<(), Failure> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let printed = match format {
        Format::Json => print_json(&mut out, output),
        Format::Name => output
            .manifests()
            .try_for_each(|manifest| writeln!(out, "{}", printable(&manifest.key().to_string()))),
        _ => output
            .installs
            .into_iter()
            .flat_map(Install::texts)
            .try_for_each(|(_, text)| out.write_all(text.as_bytes())),
    };
    finish(printed.and_then(|()| out.flush()))
}

/// Prints text on standard output.
///
/// # Errors
/// When standard output cannot take it; a reader that has gone away is no error.
pub(super) fn print_text(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    finish(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// The form in which a report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TextFormat {
    Text,
    Json,
    Yaml,
}

/// Prints a report on standard output, as text for people or as a value for programs.
///
/// # Errors
/// As [`print_text()`].
pub(super) fn print_as(
    format: TextFormat,
    text: impl FnOnce() -> String,
    value: impl FnOnce() -> Value,
) -> Result<(), Failure> {
    print_text(&match format {
        TextFormat::Text => text(),
        TextFormat::Json => json(&value()),
        TextFormat::Yaml => yaml(&value()),
    })
}

/// JSON as people read it. What could steer a terminal is escaped, which JSON allows for everything in a string.
pub(super) fn json(value: &Value) -> String {
    let mut text = String::new();
    for character in format!("{value:#}\n").chars() {
        if character != '\n' && steers(character) {
            let mut units = [0; 2];
            let units = character.encode_utf16(&mut units).iter();
            text.extend(units.map(|unit| format!("\\u{unit:04x}")));
        } else {
            text.push(character);
        }
    }
    text
}

/// The same in YAML.
pub(super) fn yaml(value: &Value) -> String {
    let mut text = String::new();
    yaml::write(value, &mut text);
    text
}

fn finish(printed: io::Result<()>) -> Result<(), Failure> {
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            let mut failure = Failure::of(Class::Output, &error);
            failure.prefix("cannot write to standard output");
            Err(failure)
        }
        Ok(()) => Ok(()),
    }
}

fn print_json(out: &mut impl Write, output: Output) -> io::Result<()> {
    let objects = output
        .installs
        .into_iter()
        .flat_map(|install| install.objects);
    let items: Vec<_> = objects.map(|owned| owned.manifest.into_value()).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    serde_json::to_writer_pretty(&mut *out, &list)?;
    writeln!(out)
}

/// Tells the user what is not data; what standard error cannot take is lost.
pub(super) fn tell(text: &str) {
    let lines: Vec<_> = text.lines().map(printable).collect();
    let _ = writeln!(io::stderr().lock(), "{}", lines.join("\n"));
}

/// Tells the user of problems.
pub(super) fn tell_problems(problems: &[Problem], prefix: &str) {
    let text = problem_lines(problems, prefix);
    if !text.is_empty() {
        tell(&text);
    }
}

/// Whether standard error is a terminal, where a line may be written over.
#[must_use]
pub(super) fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Shows how far long work is, on the terminal's last line.
pub(super) fn show_progress(done: usize, all: usize) {
    let mut err = io::stderr().lock();
    let end = if done == all { "\n" } else { "" };
    let _ = write!(err, "\r{done} of {all} bundles{end}");
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::{super::parts::Secrets, *};
    use crate::render::{Brought, join};

    fn object(kind: &str, name: &str, origin: &'static str) -> Manifest {
        let group = if kind == "CatalogSource" {
            "operators.coreos.com/"
        } else {
            ""
        };
        let metadata = json!({"name": name, "namespace": "ops"});
        let object =
            json!({"apiVersion": format!("{group}v1"), "kind": kind, "metadata": metadata});
        Manifest::generated(object, origin)
    }

    fn brought(owner: &str, manifests: Vec<Manifest>) -> Brought {
        Brought {
            name: owner.to_owned(),
            owners: [owner.to_owned()].into(),
            manifests,
        }
    }

    /// What installs come to together.
    fn output(installs: Vec<Brought>) -> Output {
        let joined = join(installs);
        let install = |objects| Install {
            heading: String::new(),
            about: None,
            objects,
        };
        Output {
            installs: joined.installs.into_iter().map(install).collect(),
            stopped: joined.stopped,
        }
    }

    fn parts(secrets: Option<Secrets>) -> Parts {
        Parts::all(secrets)
    }

    #[test]
    fn catalogs_come_first_and_installs_as_given() {
        let output = output(vec![
            brought(
                "ops/b",
                vec![
                    object("ConfigMap", "b", "a test"),
                    object("CatalogSource", "second", "a test"),
                ],
            ),
            brought("ops/a", vec![object("ConfigMap", "a", "a test")]),
            brought(
                "olm/first",
                vec![object("CatalogSource", "first", "a test")],
            ),
        ]);
        let (output, _) = select(output, &Format::Yaml, &parts(None));
        let names: Vec<_> = output.manifests().map(Manifest::name).collect();
        assert_eq!(names, ["second", "first", "b", "a"]);
    }

    #[test]
    fn an_install_in_conflict_keeps_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let write = |shared: &str| {
            let mut other = object("ConfigMap", "shared", "a test");
            other.annotate("a", shared);
            let mut first = object("ConfigMap", "shared", "a test");
            first.annotate("a", "1");
            let output = output(vec![
                brought("ops/a", vec![first]),
                brought("ops/b", vec![other, object("ConfigMap", "b", "a test")]),
                brought("ops/c", vec![object("ConfigMap", "c", "a test")]),
            ]);
            write_folder(folder.path(), Layout::Plain, output)
                .unwrap()
                .to_string()
        };
        assert_eq!(write("1"), "3 written, 0 unchanged, 0 removed");
        assert_eq!(write("2"), "0 written, 1 unchanged, 0 removed, 2 kept");
        let list = fs::read_to_string(folder.path().join(".kubectl-olm-files")).unwrap();
        let lines: Vec<_> = list.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "configmap-b_ops.yaml ops/b",
                "configmap-c_ops.yaml ops/c",
                "configmap-shared_ops.yaml ops/a,ops/b"
            ]
        );
    }

    #[test]
    fn copies_of_pull_secrets_come_and_go_with_the_flag() {
        let folder = tempfile::tempdir().unwrap();
        let format = Format::Folder(folder.path().to_owned());
        let secret = folder.path().join("secret-pull_ops.yaml");
        let run = |secrets| {
            let copy = object("Secret", "pull", "a pull Secret");
            let install = brought("ops/a", vec![copy, object("ConfigMap", "a", "a test")]);
            write(output(vec![install]), &format, &parts(secrets)).unwrap();
        };
        for (secrets, is_there) in [
            (None, false),
            (Some(Secrets::Include), true),
            (Some(Secrets::Omit), false),
        ] {
            run(secrets);
            assert_eq!(secret.exists(), is_there, "{secrets:?}");
        }
        // Of one that has stopped, it stays.
        run(Some(Secrets::Include));
        let mut stopped = Output::default();
        stopped.stopped.insert("ops/a".to_owned());
        write(stopped, &format, &parts(None)).unwrap();
        assert!(secret.exists());
    }
}
