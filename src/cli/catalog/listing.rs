//! The output of commands that print rows: tables, JSON, YAML and names.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;

use super::super::{
    failure::Failure,
    output,
    table::{Table, terminal_width},
    text::visible,
};

/// How rows are printed.
#[derive(Debug, Args)]
pub(super) struct ListingArgs {
    /// Output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
    /// Leave out the headers of a table
    #[arg(long)]
    no_headers: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Wide,
    Json,
    Yaml,
    Name,
}

/// A column of a table.
pub(super) struct Column<T> {
    header: &'static str,
    shown: Shown,
    text: fn(&T) -> String,
}

/// When a column is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Always,
    Wide,
}

impl<T> Column<T> {
    /// A column that every table has.
    pub(super) fn new(header: &'static str, text: fn(&T) -> String) -> Self {
        let shown = Shown::Always;
        Self {
            header,
            shown,
            text,
        }
    }

    /// A column that only a wide table has.
    pub(super) fn wide(header: &'static str, text: fn(&T) -> String) -> Self {
        let shown = Shown::Wide;
        Self {
            header,
            shown,
            text,
        }
    }
}

/// A row about something in a catalog.
pub(super) trait Row: Serialize {
    /// What a list of such rows is called in JSON and YAML.
    const KIND: &'static str;
    /// How many of the columns come first and are names.
    const NAMES: usize;
    /// The name of the catalog.
    fn catalog(&self) -> &str;
    /// What `-o name` prints.
    fn name(&self) -> String;
    /// The columns of a table, after the one for the catalog.
    fn columns() -> Vec<Column<Self>>
    where
        Self: Sized;
}

impl ListingArgs {
    /// Prints the rows; with several catalogs, a table says which each is from.
    ///
    /// # Errors
    /// When standard output cannot take them.
    pub(super) fn print<T: Row>(&self, rows: &[T], catalogs: usize) -> Result<(), Failure> {
        let text = match self.output {
            Format::Table | Format::Wide => self.table(rows, catalogs),
            Format::Json => output::json(&json!({ T::KIND: rows })),
            Format::Yaml => output::yaml(&json!({ T::KIND: rows })),
            Format::Name => {
                // What is in several channels or catalogs has one name.
                let mut told = BTreeSet::new();
                let mut names: Vec<_> = rows.iter().map(Row::name).collect();
                names.retain(|name| told.insert(name.clone()));
                names.iter().map(|name| visible(name) + "\n").collect()
            }
        };
        output::print_text(&text)
    }

    fn table<T: Row>(&self, rows: &[T], catalogs: usize) -> String {
        let mut columns = T::columns();
        columns.retain(|column| column.shown == Shown::Always || self.output == Format::Wide);
        let mut names = T::NAMES;
        if catalogs > 1 {
            names += 1;
            columns.insert(0, Column::new("CATALOG", |row| row.catalog().to_owned()));
        }
        let mut table = Table::new(columns.iter().map(|column| column.header), names);
        for row in rows {
            table.push(columns.iter().map(|column| (column.text)(row)));
        }
        if rows.is_empty() || self.no_headers {
            table = table.without_headers();
        }
        table.text("", terminal_width())
    }
}
