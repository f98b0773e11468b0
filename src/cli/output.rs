//! Standard output and standard error: data goes to the first, everything else to the second.

use std::{
    collections::BTreeMap,
    io::{self, BufWriter, IsTerminal, Write},
    path::PathBuf,
    str::FromStr,
};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::{
    failure::{Class, Failure},
    text::{printable, problem_lines, steers},
};
use crate::{
    manifest::{Manifest, file_name, kustomization, yaml},
    problem::Problem,
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

/// The objects of one install, and what to write above each of them, where there is something to say.
pub(super) struct Install {
    /// A line without its `#`; empty when there is none.
    pub(super) heading: String,
    /// The objects.
    pub(super) manifests: Vec<Manifest>,
}

impl From<Vec<Manifest>> for Install {
    fn from(manifests: Vec<Manifest>) -> Self {
        let heading = String::new();
        Self { heading, manifests }
    }
}

impl Install {
    fn texts(self) -> impl Iterator<Item = String> {
        let heading = match self.heading.as_str() {
            "" => String::new(),
            heading => format!("# {}\n", printable(heading)),
        };
        self.manifests.into_iter().map(move |manifest| {
            // So that they can be joined into one stream.
            let mut text = format!("---\n{heading}");
            yaml::write(&manifest.into_value(), &mut text);
            text
        })
    }
}

/// Prints objects on standard output.
///
/// # Errors
/// When standard output cannot take them; a reader that has gone away is no error.
pub(super) fn print(installs: Vec<Install>, format: &Format) -> Result<(), Failure> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let printed = match format {
        Format::Json => print_json(&mut out, installs),
        Format::Name => installs
            .iter()
            .flat_map(|install| &install.manifests)
            .try_for_each(|manifest| writeln!(out, "{}", printable(&manifest.key().to_string()))),
        _ => installs
            .into_iter()
            .flat_map(Install::texts)
            .try_for_each(|text| out.write_all(text.as_bytes())),
    };
    finish(printed.and_then(|()| out.flush()))
}

/// Prints text on standard output.
///
/// # Errors
/// As [`print()`].
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
/// As [`print()`].
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

fn print_json(out: &mut impl Write, installs: Vec<Install>) -> io::Result<()> {
    let manifests = installs.into_iter().flat_map(|install| install.manifests);
    let items: Vec<_> = manifests.map(Manifest::into_value).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    serde_json::to_writer_pretty(&mut *out, &list)?;
    writeln!(out)
}

/// The files of a folder that holds the objects, by name.
pub(super) fn files(installs: Vec<Install>, with_kustomization: bool) -> BTreeMap<String, String> {
    let manifests = installs.iter().flat_map(|install| &install.manifests);
    let keys: Vec<_> = manifests.map(Manifest::key).collect();
    let names = file_name::file_names(&keys);
    let kustomization = with_kustomization.then(|| kustomization::kustomization(&names));
    let texts = installs.into_iter().flat_map(Install::texts);
    let mut files: BTreeMap<_, _> = names.into_iter().zip(texts).collect();
    files.extend(kustomization.map(|text| (kustomization::FILE_NAME.to_owned(), text)));
    files
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
