//! Another text in place of one, in the same style.
//!
//! The gentlest way that reads right is taken: only the pieces that differ, then the whole in its style, then in double
//! quotes, which can hold everything.

use std::collections::HashMap;

use memchr::memmem;
use serde_json::Value;

use super::written::{Around, double_quoted, escaped, folded, literal, scalar, single_quoted};
use crate::{
    limits::Limits,
    manifest::yaml::{
        events::{self, spans::Form},
        style::{self, Style},
    },
};

/// A scalar, and where it stands.
pub(super) struct Place<'t> {
    /// Its text, quotes and all, without its anchor and its tag.
    pub(super) raw: &'t str,
    pub(super) form: Form,
    pub(super) around: Around,
    /// The column of the keys or items that it is one of.
    pub(super) column: usize,
}

/// What takes the place of a scalar that says `old` so that it says `new`; none where nothing is read so.
pub(super) fn replaced(place: &Place, old: &str, new: &str, limits: &Limits) -> Option<String> {
    let ways: [&dyn Fn() -> Option<String>; 3] =
        [&|| pieces(place, old, new), &|| anew(place, new), &|| {
            Some(double_quoted(new) + line_end(place))
        }];
    let mut written = ways.iter().filter_map(|way| way());
    written.find(|raw| reads_as(raw, place, new, limits))
}

/// What ends the line of a scalar of lines, which takes it along.
fn line_end(place: &Place) -> &'static str {
    if place.raw.ends_with('\n') { "\n" } else { "" }
}

/// Whether a scalar says a text, where it stands.
fn reads_as(raw: &str, place: &Place, text: &str, limits: &Limits) -> bool {
    let indent = " ".repeat(place.column);
    let end = if raw.ends_with('\n') { "" } else { "\n" };
    let document = match place.around {
        Around::Brackets => format!("[{raw}]\n"),
        Around::Lines => format!("{indent}k: {raw}{end}{indent}l: 1\n"),
    };
    let Ok(read) = events::parse(&document, 1, limits) else {
        return false;
    };
    let value = match place.around {
        Around::Brackets => read.value.get(0),
        Around::Lines => read.value.get("k"),
    };
    value.and_then(Value::as_str) == Some(text)
}

/// The whole in the same style, or with quotes where a plain text needs them.
fn anew(place: &Place, new: &str) -> Option<String> {
    match place.form {
        Form::SingleQuoted => Some(single_quoted(new)),
        Form::DoubleQuoted => Some(double_quoted(new)),
        Form::Literal => {
            let column = content_column(place);
            Some(literal(new, column, column.checked_sub(place.column)?))
        }
        Form::Folded => {
            let column = content_column(place);
            let step = column.checked_sub(place.column)?;
            Some(folded(new, column, step).unwrap_or_else(|| literal(new, column, step)))
        }
        _ if style::of_value(new) == Style::Literal => None,
        _ => Some(scalar(new, place.around)),
    }
}

/// The column of the lines of a text.
fn content_column(place: &Place) -> usize {
    let mut lines = place.raw.lines().skip(1);
    let first = lines.find(|line| !line.trim().is_empty());
    let column = first.map(|line| line.len() - line.trim_start_matches(' ').len());
    column.unwrap_or(place.column + 2)
}

/// A piece of the old text that becomes another.
struct Piece<'t> {
    at: usize,
    old: &'t str,
    new: &'t str,
}

/// So much may be looked through for pieces, in bytes.
const SEARCHED: usize = 1 << 28;

/// The scalar with other pieces. Each is looked for as it is read: where it stands as often as it is read, it is the same
/// one in turn.
fn pieces(place: &Place, old: &str, new: &str) -> Option<String> {
    let is_of_lines = matches!(place.form, Form::Literal | Form::Folded);
    let head = match is_of_lines {
        true => place.raw.find('\n')? + 1,
        false => 0,
    };
    let (head, body) = place.raw.split_at_checked(head)?;
    let mut found: HashMap<&str, (Vec<usize>, Vec<usize>)> = HashMap::new();
    let mut left = SEARCHED;
    let mut out = String::from(head);
    let mut from = 0;
    for piece in differing(old, new)? {
        if !found.contains_key(piece.old) {
            left = left.checked_sub(old.len() + body.len())?;
            let places = |text: &str| memmem::find_iter(text.as_bytes(), piece.old).collect();
            found.insert(piece.old, (places(old), places(body)));
        }
        let (read, written) = found.get(piece.old)?;
        let turn = read.binary_search(&piece.at).ok()?;
        let at = *written.get(turn).filter(|_| read.len() == written.len())?;
        out.push_str(body.get(from..at)?);
        out.push_str(&quoted_piece(piece.new, place.form));
        from = at + piece.old.len();
    }
    out.push_str(body.get(from..)?);
    Some(out)
}

fn quoted_piece(text: &str, form: Form) -> String {
    match form {
        Form::SingleQuoted => text.replace('\'', "''"),
        Form::DoubleQuoted => escaped(text),
        _ => text.to_owned(),
    }
}

/// The pieces that differ: words, when everything between them stayed; else what lies between an equal start and an
/// equal end.
fn differing<'t>(old: &'t str, new: &'t str) -> Option<Vec<Piece<'t>>> {
    words_that_differ(old, new).or_else(|| middle(old, new).map(|piece| vec![piece]))
}

fn words_that_differ<'t>(old: &'t str, new: &'t str) -> Option<Vec<Piece<'t>>> {
    let (mut olds, mut news) = (runs(old), runs(new));
    let mut pieces = vec![];
    let mut at = 0;
    loop {
        match (olds.next(), news.next()) {
            (None, None) => return Some(pieces),
            (Some(old), Some(new)) => {
                if old != new {
                    let are_words = old.starts_with(is_of_word) && new.starts_with(is_of_word);
                    are_words.then(|| pieces.push(Piece { at, old, new }))?;
                }
                at += old.len();
            }
            _ => return None,
        }
    }
}

/// The characters of the name of an image.
fn is_of_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '/' | '-' | '.' | '_' | '@' | ':')
}

/// A text in parts: words, and what lies between them.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_word = rest.starts_with(is_of_word);
        let end = rest.find(|character| is_of_word(character) != is_word);
        let (run, behind) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
        rest = behind;
        (!run.is_empty()).then_some(run)
    })
}

/// What lies between an equal start and an equal end, widened to whole words.
fn middle<'t>(old: &'t str, new: &'t str) -> Option<Piece<'t>> {
    let pairs = old.char_indices().zip(new.chars());
    let start = pairs
        .take_while(|((_, a), b)| a == b)
        .last()
        .map_or(0, |((at, a), _)| at + a.len_utf8());
    let word_start = old.get(..start)?.trim_end_matches(is_of_word).len();
    let (old_rest, new_rest) = (old.get(word_start..)?, new.get(word_start..)?);
    let pairs = old_rest.chars().rev().zip(new_rest.chars().rev());
    let same = pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8());
    let same: usize = same.sum();
    let tail = old_rest.get(old_rest.len() - same..)?;
    let tail = tail.trim_start_matches(is_of_word).len();
    let piece = Piece {
        at: word_start,
        old: old_rest.get(..old_rest.len() - tail)?,
        new: new_rest.get(..new_rest.len() - tail)?,
    };
    (!piece.old.is_empty()).then_some(piece)
}
