//! How differences of objects are shown: as text with colours, as a table, as JSON, or by a program of the user's.

mod external;

use std::{
    env,
    io::{self, IsTerminal},
};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{
    failure::Failure,
    output::{self, print_text},
    table::{Table, terminal_width},
    text::{printable, visible},
};
use crate::{
    cluster::diff::{Change, Difference, unified},
    manifest::ObjectKey,
};

/// How differences are shown
#[derive(Debug, Args)]
pub(super) struct DiffOutputArgs {
    /// Print a list of objects and fields instead of text; Secrets are masked in it too
    #[arg(short = 'o', long, value_name = "FORMAT", conflicts_with = "summary")]
    output: Option<DiffFormat>,
    /// Print one line for each object
    #[arg(long)]
    summary: bool,
    /// When to use colours; `auto` does on a terminal, unless NO_COLOR is set or TERM is `dumb`
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
}

impl DiffOutputArgs {
    /// Whether programs read it.
    pub(super) fn is_json(&self) -> bool {
        self.output == Some(DiffFormat::Json)
    }

    /// Whether the text of each object is left out.
    pub(super) fn is_summary(&self) -> bool {
        self.summary
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DiffFormat {
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// Whether anything differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Differs {
    /// Something does.
    Yes,
    /// Nothing does.
    No,
}

/// Shows differences on standard output, and says whether there are any. A program that `KUBECTL_EXTERNAL_DIFF` names has
/// its own opinion of that, as it has in kubectl.
///
/// # Errors
/// When standard output cannot take them, or the program of the user's fails.
pub(super) fn print(differences: &[Difference], args: &DiffOutputArgs) -> Result<Differs, Failure> {
    if args.output == Some(DiffFormat::Json) {
        let all: Vec<_> = differences.iter().map(value).collect();
        print_text(&output::json(&Value::Array(all)))?;
    } else if args.summary {
        print_text(&summary(differences, terminal_width()))?;
    } else if differences.is_empty() {
        return Ok(Differs::No);
    } else if let Some(program) = external::program() {
        return external::show(differences, &program);
    } else {
        let colors = colors(args.color);
        for difference in differences {
            print_text(&text(difference, colors))?;
        }
    }
    Ok(if differences.is_empty() {
        Differs::No
    } else {
        Differs::Yes
    })
}

/// Whether text has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colors {
    On,
    Off,
}

fn colors(choice: ColorChoice) -> Colors {
    let is_wanted = match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            io::stdout().is_terminal()
                && env::var_os("NO_COLOR").is_none()
                && env::var_os("TERM").is_none_or(|term| term != "dumb")
        }
    };
    if is_wanted { Colors::On } else { Colors::Off }
}

/// A heading, and below it the lines that differ with some around them.
fn text(difference: &Difference, colors: Colors) -> String {
    let (key, change) = (named(&difference.key), difference.change().word());
    let heading = printable(&format!("{key}: {change}"));
    let mut text = match colors {
        Colors::On => format!("{BOLD}{heading}{PLAIN}\n"),
        Colors::Off => format!("{heading}\n"),
    };
    let body = unified(difference);
    for line in body.lines() {
        let color = color_of(line).filter(|_| colors == Colors::On);
        text.push_str(color.unwrap_or_default());
        push_harmless(line, &mut text);
        text.push_str(if color.is_some() { PLAIN } else { "" });
        text.push('\n');
    }
    text
}

const PLAIN: &str = "\u{1b}[0m";
const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const CYAN: &str = "\u{1b}[36m";

/// The colour of a line of a unified diff; nothing for what is the same.
fn color_of(line: &str) -> Option<&'static str> {
    match line.as_bytes().first() {
        Some(b'-') => Some(RED),
        Some(b'+') => Some(GREEN),
        Some(b'@') => Some(CYAN),
        _ => None,
    }
}

/// Adds a line, with everything but tabs made visible that could steer a terminal.
fn push_harmless(line: &str, text: &mut String) {
    for (at, part) in line.split('\t').enumerate() {
        if at > 0 {
            text.push('\t');
        }
        text.push_str(&visible(part));
    }
}

/// A line for each object, and how many there are.
fn summary(differences: &[Difference], width: Option<usize>) -> String {
    if differences.is_empty() {
        return "no differences\n".to_owned();
    }
    let mut table = Table::new(["OBJECT", "CHANGE", "FIELDS"], 1);
    for difference in differences {
        let change = difference.change();
        let fields = match change {
            Change::Update => difference.fields.len().to_string(),
            Change::Create | Change::Delete => "all".to_owned(),
        };
        table.push([named(&difference.key), change.word().to_owned(), fields]);
    }
    let count = |change| {
        let alike = differences.iter().filter(|other| other.change() == change);
        alike.count()
    };
    format!(
        "{}{} to create, {} to update, {} to delete\n",
        table.text("", width),
        count(Change::Create),
        count(Change::Update),
        count(Change::Delete)
    )
}

/// A difference for programs.
fn value(difference: &Difference) -> Value {
    let key = &difference.key;
    json!({
        "object": {
            "group": key.group,
            "kind": key.kind,
            "namespace": key.namespace,
            "name": key.name,
        },
        "change": difference.change().word(),
        "fields": difference.fields,
        "before": difference.before,
        "after": difference.after,
    })
}

/// An object in words: `deployment.apps/manager in ops`.
fn named(key: &ObjectKey) -> String {
    match key.namespace.as_str() {
        "" => key.to_string(),
        namespace => format!("{key} in {namespace}"),
    }
}

#[cfg(test)]
mod tests;
