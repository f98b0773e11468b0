//! One comparator of a constraint, and which versions it takes.
//!
//! Reproduces `parseConstraint` and the functions from `constraintNotEqual` to `constraintCaret` of Masterminds/semver
//! v3.5.0 (`constraints.go`), and `Compare` (`version.go`). Whether an alternative takes pre-releases at all is settled
//! before, in `constraint.rs`.

use std::cmp::Ordering;

use semver::{BuildMetadata, Prerelease};

use super::Version;
use super::loose::LooseVersion;

/// The longest version in a constraint, in bytes (`MaxVersionLen`).
const LONGEST_VERSION: usize = 256;

/// What comparators are written as; of those that begin alike, the longer first.
const OPERATORS: &[(&str, Operator)] = &[
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterOrEqual),
    ("=>", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("=<", Operator::LessOrEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
];

/// A comparator and the version that it compares with: `~1.2`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Comparator {
    operator: Operator,
    /// With 0 for each number that is not given.
    version: Version,
    given: Given,
}

/// How a version is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Tilde,
    Caret,
}

/// How much of a version is given before it ends or becomes a wildcard.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Given {
    Nothing,
    Major,
    Minor,
    All,
}

impl Operator {
    /// Reads the comparator that a text begins with; none means "equal". Gives what follows it.
    pub(super) fn read(text: &str) -> (Operator, &str) {
        OPERATORS
            .iter()
            .find_map(|(written, operator)| Some((*operator, text.strip_prefix(written)?)))
            .unwrap_or((Operator::Equal, text))
    }
}

impl Comparator {
    /// Makes a comparator of a version as it is written.
    ///
    /// # Errors
    /// When what stands for a number is neither that nor a wildcard, or a part is too large or too long.
    pub(super) fn new(operator: Operator, written: LooseVersion<'_>) -> Result<Comparator, String> {
        let improper = |reason: &str| format!("improper constraint: {:?}: {reason}", written.text);
        let number = |text: &str| {
            text.parse::<u64>().map_err(|_| {
                improper(&format!(
                    "{text:?} is neither a wildcard nor a number below 2^64"
                ))
            })
        };
        let given = given(&written);
        // What is not given is checked no further than it is read: `1.x.9x9` is fine.
        let (major, minor, patch) = match (given, written.minor, written.patch) {
            (Given::Major, _, _) => (number(written.major)?, 0, 0),
            (Given::Minor, Some(minor), _) => (number(written.major)?, number(minor)?, 0),
            (Given::All, Some(minor), Some(patch)) => {
                (number(written.major)?, number(minor)?, number(patch)?)
            }
            _ => (0, 0, 0),
        };
        if length(&written, given) > LONGEST_VERSION {
            let reason = format!("version string is too long (max {LONGEST_VERSION} bytes)");
            return Err(improper(&reason));
        }
        let pre = Prerelease::new(written.pre);
        let version = Version {
            major,
            minor,
            patch,
            pre: pre.map_err(|error| improper(&error.to_string()))?,
            build: BuildMetadata::EMPTY,
        };
        Ok(Comparator {
            operator,
            version,
            given,
        })
    }

    /// Whether it names a pre-release, so that its alternative takes some.
    pub(super) fn names_pre_release(&self) -> bool {
        !self.version.pre.is_empty()
    }

    /// Whether it takes a version, once it is settled that pre-releases may be taken.
    pub(super) fn takes(&self, version: &Version) -> bool {
        let order = precedence(version, &self.version);
        match self.operator {
            Operator::Equal if self.given == Given::All => order == Ordering::Equal,
            Operator::Equal | Operator::Tilde => order != Ordering::Less && self.is_near(version),
            Operator::Caret => order != Ordering::Less && self.is_compatible(version),
            Operator::NotEqual => self.is_other(version, order),
            Operator::Greater => self.is_below(version, order),
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::Less => order == Ordering::Less,
            Operator::LessOrEqual => !self.is_passed_by(version, order),
        }
    }

    /// `~1.2.3`: whether a version that is not lower has the same numbers down to the minor one, as far as given.
    fn is_near(&self, version: &Version) -> bool {
        let own = &self.version;
        let zero = (own.major, own.minor, own.patch) == (0, 0, 0);
        match self.given {
            Given::Nothing | Given::All if zero => true,
            Given::Major => version.major == own.major,
            _ => major_minor(version) == major_minor(own),
        }
    }

    /// `^1.2.3`: whether a version that is not lower has the same numbers down to the first that is not 0.
    fn is_compatible(&self, version: &Version) -> bool {
        let own = &self.version;
        if own.major > 0 || self.given == Given::Major {
            version.major == own.major
        } else if own.minor > 0 || self.given == Given::Minor {
            major_minor(version) == major_minor(own)
        } else {
            major_minor(version) == (0, 0) && version.patch == own.patch
        }
    }

    /// `!=1.2.3`.
    fn is_other(&self, version: &Version, order: Ordering) -> bool {
        match self.given {
            Given::Nothing | Given::All => order != Ordering::Equal,
            Given::Major => version.major != self.version.major,
            Given::Minor => {
                major_minor(version) != major_minor(&self.version)
                    || version.pre != self.version.pre
            }
        }
    }

    /// `>1.2.3`; `>1.2` begins at 1.3.
    fn is_below(&self, version: &Version, order: Ordering) -> bool {
        match self.given {
            Given::Nothing | Given::All => order == Ordering::Greater,
            Given::Major => version.major > self.version.major,
            Given::Minor => major_minor(version) > major_minor(&self.version),
        }
    }

    /// What `<=1.2.3` does not take; `<=1.2` takes all of 1.2.
    fn is_passed_by(&self, version: &Version, order: Ordering) -> bool {
        match self.given {
            Given::All => order == Ordering::Greater,
            Given::Major => version.major > self.version.major,
            Given::Nothing | Given::Minor => major_minor(version) > major_minor(&self.version),
        }
    }
}

fn given(version: &LooseVersion<'_>) -> Given {
    let is_given = |number: &str| !matches!(number, "x" | "X" | "*");
    if !is_given(version.major) {
        Given::Nothing
    } else if !version.minor.is_some_and(is_given) {
        Given::Major
    } else if !version.patch.is_some_and(is_given) {
        Given::Minor
    } else {
        Given::All
    }
}

/// The bytes of a version once 0 stands for what is not given, which is what upstream bounds.
fn length(version: &LooseVersion<'_>, given: Given) -> usize {
    let pre = match version.pre.len() {
        0 => 0,
        length => length + "-".len(),
    };
    let minor = version.minor.map_or(0, str::len);
    match given {
        Given::Nothing => "0.0.0".len() + pre,
        Given::Major => version.major.len() + ".0.0".len() + pre,
        Given::Minor => version.major.len() + ".".len() + minor + ".0".len() + pre,
        Given::All => version.text.len(),
    }
}

fn major_minor(version: &Version) -> (u64, u64) {
    (version.major, version.minor)
}

/// Which of two versions comes first (`Compare` in `version.go`).
///
/// Differs from the semver crate for a number of a pre-release above 2^64 - 1, which upstream takes for a word.
fn precedence(a: &Version, b: &Version) -> Ordering {
    let numbers = |version: &Version| (version.major, version.minor, version.patch);
    numbers(a)
        .cmp(&numbers(b))
        .then_with(|| a.pre.is_empty().cmp(&b.pre.is_empty()))
        .then_with(|| identifiers(&a.pre).cmp(identifiers(&b.pre)))
}

/// A part of a pre-release; every number comes before every word.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Identifier<'a> {
    Number(u64),
    Word(&'a str),
}

fn identifiers(pre: &Prerelease) -> impl Iterator<Item = Identifier<'_>> {
    pre.split('.').map(|part| match part.parse() {
        Ok(number) => Identifier::Number(number),
        Err(_) => Identifier::Word(part),
    })
}
