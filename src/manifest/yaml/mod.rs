//! YAML and JSON streams, read and written the way Kubernetes' own tools do.
//!
//! Reading follows `YAMLOrJSONDecoder` of k8s.io/apimachinery (`pkg/util/yaml/decoder.go`) and
//! `YAMLToJSON` of sigs.k8s.io/yaml, which stand on go-yaml v2, so that an object means here what it means to
//! `kubectl` and to OLM. Writing follows `Marshal` of sigs.k8s.io/yaml.
//!
//! Comments, key order and styles are not kept, and nothing is checked against a schema.
//!
//! | File | What it does |
//! | --- | --- |
//! | `read.rs` | splits a stream into documents and picks their reader |
//! | `fast.rs` | reads the everyday part of YAML quickly, and says so when it cannot |
//! | `events/` | reads all of YAML on top of libyaml's parser; its word counts for errors |
//! | `json.rs` | reads JSON |
//! | `edit/` | a text with other values in it, comments and layout kept |
//! | `locate.rs` | on which line a field stands, asked only when something is wrong with it |
//! | `scalar.rs` | what a plain scalar stands for |
//! | `timestamp.rs` | which texts go-yaml takes for a point in time |
//! | `write.rs`, `style.rs`, `order.rs` | the writer, its choice of quotes, its order of keys |

mod edit;
mod events;
mod fast;
mod json;
mod locate;
mod order;
mod read;
mod scalar;
mod style;
mod timestamp;
mod write;

pub use edit::edit;
pub use locate::{Lines, Step, way};
pub use read::{Via, read, read_via};
pub use write::write;

use std::fmt;

use serde_json::Value;

use self::scalar::Resolved;
use crate::{
    limits::Limits,
    problem::{Place, Problem},
};

/// The text that a plain scalar on one line stands for, where it begins with a letter or digit and stands for text.
#[must_use]
pub fn plain_text(scalar: &str) -> Option<&str> {
    let begins_plainly = scalar.starts_with(|first: char| first.is_ascii_alphanumeric());
    let is_text = matches!(
        scalar::resolve(scalar),
        Resolved::Text | Resolved::Timestamp
    );
    (begins_plainly && is_text).then_some(scalar)
}

/// One document of a stream. It may be a Secret, so that a debug print shows nothing of what it says.
#[derive(Clone, PartialEq)]
pub struct Document {
    /// What the document says. Integers are `i64` or `u64`, and so are floats without a fraction below 2^63.
    pub value: Value,
    /// The 1-based line of the file on which the document's content starts.
    pub line: usize,
    /// Keys that stand twice in one map, in the order in which they were found; the first hundred of them.
    pub duplicate_keys: Vec<DuplicateKey>,
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut document = f.debug_struct("Document");
        document.field("line", &self.line).finish_non_exhaustive()
    }
}

/// A key that stands twice in one map; the last one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The dotted path of the key, for example `spec.install.name` or `a.b[2].c`, control characters escaped.
    pub key: String,
    /// The 1-based line of the file on which the later one stands; in JSON, where a key is written with
    /// escapes, the line on which its document starts.
    pub line: usize,
}

/// Why a stream could not be read. Nothing of the text is in it, as that may be a Secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The text is not valid, or says something that an object cannot hold.
    #[error("{}{message}", place(*.line))]
    Invalid {
        /// The 1-based line of the file, where it is known.
        line: Option<usize>,
        /// What is wrong, in lower case and without a full stop.
        message: String,
    },
    /// A document costs more than the limits allow.
    #[error("{}{message}", place(*.line))]
    Limit {
        /// The 1-based line of the file, where it is known.
        line: Option<usize>,
        /// Which limit is broken, and how to lift it.
        message: String,
    },
}

impl ReadError {
    /// What is wrong, without the line.
    pub fn message(&self) -> &str {
        match self {
            ReadError::Invalid { message, .. } | ReadError::Limit { message, .. } => message,
        }
    }

    /// The 1-based line of the file on which the error stands, where it is known.
    pub fn line(&self) -> Option<usize> {
        match self {
            ReadError::Invalid { line, .. } | ReadError::Limit { line, .. } => *line,
        }
    }

    /// What is told of the file that cannot be read; `path` is what messages call it.
    #[must_use]
    pub fn in_file(&self, path: &str) -> Problem {
        let place = Place {
            path: path.to_owned(),
            line: self.line().unwrap_or_default(),
        };
        Problem::error("yaml", self.message()).at(place)
    }

    fn invalid(line: usize, message: impl Into<String>) -> ReadError {
        ReadError::Invalid {
            line: Some(line),
            message: message.into(),
        }
    }

    fn too_deep(line: usize, limits: &Limits) -> ReadError {
        // The last bound on depth is not one that a flag lifts.
        let way_out = if limits.depth < Limits::NONE.depth {
            WAY_OUT
        } else {
            ""
        };
        ReadError::Limit {
            line: Some(line),
            message: format!(
                "nesting is deeper than the limit of {}{way_out}",
                limits.depth
            ),
        }
    }

    fn too_many_documents(line: usize, limits: &Limits) -> ReadError {
        let limit = limits.file_objects;
        ReadError::Limit {
            line: Some(line),
            message: format!("the file has more documents than the limit of {limit}{WAY_OUT}"),
        }
    }

    fn too_many_nodes(line: usize, limits: &Limits) -> ReadError {
        let limit = limits.document_nodes;
        ReadError::Limit {
            line: Some(line),
            message: format!(
                "the document has more values, aliases expanded, than the limit of {limit}{WAY_OUT}"
            ),
        }
    }
}

const WAY_OUT: &str = " (--no-limits lifts it for content you trust)";

fn place(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

/// As many duplicate keys of a document are reported: their paths must not cost more than the document.
pub(crate) const REPORTED_DUPLICATES: usize = 100;

/// As many characters of a key are written into a path.
const KEY_CHARACTERS: usize = 80;

/// Appends `key` to a dotted path, escaping what could upset a terminal and cutting off what is too long.
fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    for character in key.chars().take(KEY_CHARACTERS) {
        if character.is_control() {
            path.extend(character.escape_default());
        } else {
            path.push(character);
        }
    }
}
