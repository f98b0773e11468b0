//! Ranges of versions as OLM v0, and `skipRange` in both generations, write them: `>=1.2.0 <1.4.0 || 1.5.x`.
//!
//! Reproduces blang/semver v4.0.0, `ParseRange` in `range.go`, with what it does beyond its own documentation, because
//! a range of a real catalog must contain here what it contains in a cluster:
//!
//! - The parts stand between single spaces, of which a comparator may be followed by some. A part of one character is
//!   left out without a word: `1.0.0 - 2.0.0` and `1.0.0 | 2.0.0` ask for both versions at once, `! 1.0.0` for 1.0.0.
//! - `||` needs a space on both sides.
//! - `1.x.x` means `1.0.x`, and `!=1.2.x` asks for what is below 1.2.0 and above 1.3.0 at once, which nothing is.
//! - A version with an `x` anywhere, also in its pre-release, is taken for a wildcard: `>1.0.0-next` is refused, and a
//!   comparator that is not known is left out, so `~1.2.x` means `1.2.0` where `~1.2.3` is refused.
//! - Pre-releases are versions like others: `<1.4.0` contains 1.4.0-rc.1.
//!
//! Departs from it in two ways. `1.0.0 || || 2.0.0`, which crashes Go when a version is tested, is refused. A number in
//! a script other than ours before a wildcard is refused also where Go takes it for a part of the comparator (`½1.x`).

use std::cmp::Ordering;
use std::fmt;

use super::{Version, compare, parse, quoted};

/// A range of versions in the syntax of blang/semver v4.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    text: String,
    /// Contains a version if one of them does, of which all comparators must agree.
    alternatives: Vec<Vec<Comparator>>,
}

impl Range {
    /// Reads a range. Takes time and memory in proportion to the text.
    ///
    /// # Errors
    /// When blang refuses it; the text names the range, the part of it, and the reason.
    pub fn parse(text: &str) -> Result<Range, String> {
        let refused = |reason: String| format!("range {} is invalid: {reason}", quoted(text));
        let parts = parts(text);
        if parts.is_empty() {
            return Err(refused("it names no version".to_owned()));
        }
        let alternatives = parts.split(|part| part == "||").map(alternative);
        Ok(Range {
            alternatives: alternatives.collect::<Result<_, _>>().map_err(refused)?,
            text: text.to_owned(),
        })
    }

    /// Whether a version is in the range. Its build metadata makes no difference.
    pub fn contains(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|comparators| {
            comparators
                .iter()
                .all(|comparator| comparator.takes(version))
        })
    }
}

/// The range as it was written.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Comparator {
    operator: Operator,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Comparator {
    fn new(operator: Operator, version: &str) -> Result<Comparator, String> {
        let version = parse(version)?;
        Ok(Comparator { operator, version })
    }

    fn takes(&self, version: &Version) -> bool {
        let order = compare(version, &self.version);
        match self.operator {
            Operator::Equal => order == Ordering::Equal,
            Operator::NotEqual => order != Ordering::Equal,
            Operator::Greater => order == Ordering::Greater,
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::Less => order == Ordering::Less,
            Operator::LessOrEqual => order != Ordering::Greater,
        }
    }
}

impl Operator {
    fn parse(text: &str) -> Option<Operator> {
        Some(match text {
            "" | "=" | "==" => Operator::Equal,
            "!" | "!=" => Operator::NotEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            _ => return None,
        })
    }
}

/// Cuts a range at its spaces, but for those that follow a comparator, which are taken out.
fn parts(text: &str) -> Vec<String> {
    let mut ends = Vec::new();
    let mut start = 0;
    let mut before_space = None;
    for (at, byte) in text.bytes().enumerate() {
        if byte != b' ' {
            before_space = Some(byte);
        } else if !matches!(before_space, Some(b'>' | b'<' | b'=')) {
            ends.push(start..at);
            start = at + 1;
        }
    }
    ends.push(start..text.len());
    let parts = ends.into_iter().filter_map(|part| text.get(part));
    // Go's check for empty parts takes those of one byte for empty as well.
    parts
        .filter(|part| part.len() > 1)
        .map(|part| part.replace(' ', ""))
        .collect()
}

/// Reads the parts between two `||`.
fn alternative(parts: &[String]) -> Result<Vec<Comparator>, String> {
    if parts.is_empty() {
        return Err("a version is missing before or after \"||\"".to_owned());
    }
    let mut comparators = Vec::with_capacity(parts.len());
    for part in parts {
        let (operator, version) = split_at_version(part)?;
        if part.contains('x') {
            comparators.extend(wildcard(operator, version)?);
            continue;
        }
        let known = Operator::parse(operator).ok_or_else(|| {
            format!(
                "could not parse comparator {} in {}; it must be one of =, !=, >, >=, <, <=",
                quoted(operator),
                quoted(part)
            )
        })?;
        comparators.push(Comparator::new(known, version)?);
    }
    Ok(comparators)
}

/// The version of a part begins with its first digit.
fn split_at_version(part: &str) -> Result<(&str, &str), String> {
    let is_digit = |c: char| c.is_ascii_digit() || !c.is_ascii() && c.is_numeric();
    part.find(is_digit)
        .and_then(|at| part.split_at_checked(at))
        .map(|(operator, version)| (operator.trim(), version))
        .ok_or_else(|| format!("could not get version from {}", quoted(part)))
}

/// What a part with a wildcard stands for.
fn wildcard(operator: &str, version: &str) -> Result<Vec<Comparator>, String> {
    use Operator::{Equal, GreaterOrEqual, Less};

    let first = first_of(version);
    let first = first.as_str();
    let at = |operator| Comparator::new(operator, first);
    let after = |operator| Comparator::new(operator, &first_after(version, first)?);
    Ok(match Operator::parse(operator) {
        Some(Operator::Greater) => vec![after(GreaterOrEqual)?],
        Some(Operator::GreaterOrEqual) => vec![at(GreaterOrEqual)?],
        Some(Operator::Less) => vec![at(Less)?],
        Some(Operator::LessOrEqual) => vec![after(Less)?],
        Some(Operator::Equal) => vec![at(GreaterOrEqual)?, after(Less)?],
        Some(Operator::NotEqual) => vec![at(Less)?, after(GreaterOrEqual)?],
        None => vec![at(Equal)?],
    })
}

/// The first version of a wildcard: `1.2.x` gives 1.2.0, `1.x` gives 1.0.0.
fn first_of(version: &str) -> String {
    let mut first = version.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    if first.matches('.').count() == 1 {
        first.push_str(".0");
    }
    first
}

/// The first version after those of a wildcard: `1.2.x` gives 1.3.0, `1.x` gives 2.0.0.
fn first_after(version: &str, first: &str) -> Result<String, String> {
    let refused = || {
        let version = quoted(version);
        format!("{version} has an x, but is not a wildcard like 1.2.x or 1.x")
    };
    let raised = match version.matches('.').count() {
        _ if !version.ends_with(".x") => return Err(refused()),
        1 => 0,
        2 => 1,
        _ => return Err(refused()),
    };
    let mut numbers: Vec<String> = first.split('.').map(str::to_owned).collect();
    let number = numbers.get_mut(raised).ok_or_else(refused)?;
    // An int, as in Go, and with a sign as there; `parse` refuses what is still below zero.
    let value: i64 = number.parse().map_err(|_| refused())?;
    *number = value.checked_add(1).ok_or_else(refused)?.to_string();
    Ok(numbers.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_range_and_the_part() {
        for (text, expected) in [
            ("", "range \"\" is invalid: it names no version"),
            (
                ">=1.0.0 ||",
                "range \">=1.0.0 ||\" is invalid: a version is missing before or after \"||\"",
            ),
            (
                ">=1.0.0 ~1.2.3",
                "range \">=1.0.0 ~1.2.3\" is invalid: could not parse comparator \"~\" in \"~1.2.3\"; it must be one of \
                 =, !=, >, >=, <, <=",
            ),
            (
                ">1.0.0-next",
                "range \">1.0.0-next\" is invalid: \"1.0.0-next\" has an x, but is not a wildcard like 1.2.x or 1.x",
            ),
        ] {
            assert_eq!(Range::parse(text), Err(expected.to_owned()));
        }
    }

    #[test]
    fn what_departs_from_go_is_refused() {
        for text in ["1.0.0 || || 2.0.0", "½1.x"] {
            assert!(Range::parse(text).is_err(), "{text}");
        }
    }
}
