//! Ranges of versions as users of OLM v1 write them: `~1.2`, `^1.2.3`, `1.2 - 1.4`, `>=1.2, <2 || 3.x`.
//!
//! Reproduces Masterminds/semver v3.5.0, `NewConstraint` and `Check` in `constraints.go`, which OLM v1 uses for
//! `spec.source.catalog.version`. Users meet the other dialect too, since catalogs hold it ([`super::Range`]):
//!
//! | Written                   | Here                                 | In a catalog (`skipRange`, `versionRange`)   |
//! | ------------------------- | ------------------------------------ | -------------------------------------------- |
//! | `1.2.3`, `=1.2.3`         | this version                         | this version                                 |
//! | `==1.2.3`, `!1.2.3`       | refused                              | this version; all but this one               |
//! | `v1.2.3`                  | 1.2.3                                | refused                                      |
//! | `1.2`, `>=1.2`            | 1.2.x; 1.2.0 and above               | refused                                      |
//! | `1.2.x`                   | 1.2.0 and above, below 1.3           | the same, and pre-releases up to 1.3.0-rc.1  |
//! | `1.x.x`                   | 1.0.0 and above, below 2             | 1.0.0 and above, below 1.1.0                 |
//! | `*`, `x`, `1.X`, `1.*`    | wildcards                            | refused                                      |
//! | `~1.2.3`                  | 1.2.3 and above, below 1.3           | refused (but `~1.2.x` is 1.2.0)              |
//! | `^1.2.3`, `^0.2.3`        | the same and above, below 2; 0.3     | refused                                      |
//! | `1.2.0 - 1.4.0`           | 1.2.0 up to and with 1.4.0           | both at once, so nothing                     |
//! | `>=1.2.0, <2.0.0`         | both                                 | refused; a space is the only "and"           |
//! | `<1.0.0\|\|>2.0.0`        | either                               | refused; `\|\|` needs spaces around it       |
//! | `=>1.2.0`, `=<1.2.0`      | `>=`, `<=`                           | refused                                      |
//! | `!=1.2.x`                 | all but 1.2.x                        | nothing                                      |
//! | `>1.2.x`                  | 1.3.0 and above                      | the same                                     |
//! | `>=1.2.0` of 1.3.0-rc.1   | no: it names no pre-release          | yes                                          |
//! | `>=1.2.0-0` of 1.3.0-rc.1 | yes                                  | yes                                          |
//! | longer than 512 bytes     | refused, as are more than 32 `\|\|`  | no limit                                     |
//!
//! A pre-release is taken only by an alternative of which one comparator, whichever, names a pre-release.
//! Some of upstream's answers surprise and are kept: `^*` takes nothing but 0.0.0, `~0.0.0` takes every release, and
//! `<=x` takes 0.0.1 but not 0.1.0.

use std::fmt;

use super::Version;
use super::comparator::{Comparator, Operator};
use super::loose::{LooseVersion, require_space, skip_space};

/// The longest constraint, in bytes (`MaxConstraintLen`).
const LONGEST: usize = 512;
/// The most alternatives (`MaxConstraintGroups`).
const MOST_ALTERNATIVES: usize = 32;

/// A range of versions in the syntax of Masterminds/semver v3.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    text: String,
    /// Takes a version if one of them does, of which all comparators must agree.
    alternatives: Vec<Vec<Comparator>>,
}

impl Constraint {
    /// Reads a constraint.
    ///
    /// # Errors
    /// When Masterminds refuses it; the text names the part of it that is wrong.
    pub fn parse(text: &str) -> Result<Constraint, String> {
        if text.len() > LONGEST {
            return Err(format!(
                "constraint string is too long (max {LONGEST} bytes)"
            ));
        }
        let spelled_out = without_hyphens(text);
        let groups: Vec<_> = spelled_out.split("||").collect();
        if groups.len() > MOST_ALTERNATIVES {
            return Err(format!(
                "too many constraint groups (max {MOST_ALTERNATIVES})"
            ));
        }
        Ok(Constraint {
            text: text.to_owned(),
            alternatives: groups
                .into_iter()
                .map(alternative)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Whether the constraint takes a version. Its build metadata makes no difference.
    pub fn matches(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|comparators| {
            let asks_for_pre_releases = comparators.iter().any(Comparator::names_pre_release);
            (version.pre.is_empty() || asks_for_pre_releases)
                && comparators
                    .iter()
                    .all(|comparator| comparator.takes(version))
        })
    }
}

/// The constraint as it was written.
impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Spells out every `1.2 - 1.4` as `>= 1.2, <= 1.4 ` (`rewriteRange`).
fn without_hyphens(text: &str) -> String {
    let mut spelled_out = text.to_owned();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some((low, high, after)) = hyphen_range(rest) {
            let whole = rest.strip_suffix(after).unwrap_or(rest);
            let bounds = format!(">= {}, <= {} ", low.text, high.text);
            // The first place with this text, even if it is another one: so does upstream.
            spelled_out = spelled_out.replacen(whole, &bounds, 1);
            rest = after;
        } else {
            let mut characters = rest.chars();
            characters.next();
            rest = characters.as_str();
        }
    }
    spelled_out
}

/// The hyphen range that a text begins with, and what follows it.
fn hyphen_range(text: &str) -> Option<(LooseVersion<'_>, LooseVersion<'_>, &str)> {
    let (low, rest) = LooseVersion::read(skip_space(text))?;
    let rest = require_space(rest)?.strip_prefix('-')?;
    let (high, rest) = LooseVersion::read(require_space(rest)?)?;
    Some((low, high, skip_space(rest)))
}

/// Reads what stands between two `||`: comparators with white space or one comma between them.
fn alternative(text: &str) -> Result<Vec<Comparator>, String> {
    let improper = || format!("improper constraint: {text:?}");
    let mut comparators = Vec::new();
    let mut rest = skip_space(text);
    loop {
        let (operator, after) = Operator::read(rest);
        let (version, after) = LooseVersion::read(skip_space(after)).ok_or_else(improper)?;
        comparators.push(Comparator::new(operator, version)?);
        let next = skip_space(after);
        rest = match next.strip_prefix(',') {
            _ if next.is_empty() => return Ok(comparators),
            Some(next) => skip_space(next),
            None => require_space(after).ok_or_else(improper)?,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::parse;

    #[test]
    fn a_refusal_names_what_is_wrong() {
        for (text, expected) in [
            ("foobar", r#"improper constraint: "foobar""#),
            ("1.2.3 || ", r#"improper constraint: " ""#),
            (">=1.2y, <2.x3", r#"improper constraint: ">=1.2y, <2.x3""#),
            (
                ">=1.2, <2.x3",
                r#"improper constraint: "2.x3": "x3" is neither a wildcard nor a number below 2^64"#,
            ),
            (
                "1.2.3-01",
                r#"improper constraint: "1.2.3-01": invalid leading zero in pre-release identifier"#,
            ),
        ] {
            assert_eq!(Constraint::parse(text), Err(expected.to_owned()));
        }
    }

    #[test]
    fn a_pre_release_is_taken_where_one_comparator_names_one() {
        let candidate = parse("1.3.0-rc.1").unwrap();
        for (text, expected) in [
            (">=1.2.0", false),
            (">=1.2.0-0", true),
            (">=1.2.0-0, <2.0.0", true),
            (">=1.2.0 || >=5.0.0-0", false),
            ("1.x-0", true),
        ] {
            let constraint = Constraint::parse(text).unwrap();
            assert_eq!(constraint.matches(&candidate), expected, "{text}");
            assert_eq!(constraint.to_string(), text);
        }
    }
}
