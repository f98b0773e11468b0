//! `olm.catalogImageTemplate`: the image of a catalog, by the version of Kubernetes.
//!
//! Follows operator-lifecycle-manager `pkg/lib/catalogsource/image_template.go`: three variables, replaced wherever they
//! stand, and what comes of it must be a reference to an image. Stricter on purpose: OLM writes the word `missing`
//! where a variable has no value, and tells one that it does not know as bad syntax; here both are unresolved, and
//! nothing comes of the template.

use minijinja::{Environment, UndefinedBehavior, Value, syntax::SyntaxConfig};

use crate::{
    image::{ImageReference, ReferenceError},
    kube_version::KubeVersion,
};

/// The annotation of a CatalogSource that holds a template.
pub const ANNOTATION: &str = "olm.catalogImageTemplate";

const MAJOR: &str = "kube_major_version";
const MINOR: &str = "kube_minor_version";
const PATCH: &str = "kube_patch_version";
const NAMES: [&str; 3] = [MAJOR, MINOR, PATCH];

/// Bytes of a template. No reference to an image is longer than a few hundred.
const LONGEST: usize = 4096;

/// Characters of a piece of a template that a message quotes.
const LONGEST_QUOTE: usize = 80;

/// Why a template gives no image.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// Names that have no value. The text is what OLM's users know from the status of their CatalogSources.
    #[error("{}", sentences(.names))]
    Unresolved {
        /// The names, in the order in which they stand, each once.
        names: Vec<String>,
        /// The version that was given, as far as it goes.
        kube_version: Option<KubeVersion>,
    },
    /// Braces around something else than a name, or without their other half: all such pieces, as they stand.
    #[error("the template holds {}, but only {} may stand in braces", quoted(.0), variables())]
    Braces(Vec<String>),
    /// It is longer than any image.
    #[error("the template has {0} bytes, more than the limit of {LONGEST}")]
    TooLong(usize),
    /// It holds line breaks or the like, as no image does.
    #[error("the template holds control characters, such as line breaks: {0:?}")]
    ControlCharacters(String),
    /// It resolves to something that is no image.
    #[error("the template resolves to {image:?}, which is no reference to an image")]
    NoImage {
        /// What came of the template.
        image: String,
        /// Why it is no image.
        source: ReferenceError,
    },
    /// The template engine refuses it, for a reason that the checks before do not know.
    #[error("the template cannot be read")]
    Engine(#[from] minijinja::Error),
}

impl TemplateError {
    /// What would help, where something would: a flag, or the names that there are.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let Self::Unresolved {
            names,
            kube_version,
        } = self
        else {
            return None;
        };
        let mut hints = vec![];
        if names.iter().any(|name| NAMES.contains(&name.as_str())) {
            hints.push(match kube_version {
                None => "say which version of Kubernetes it is for: --kube-version 1.31.2".to_owned(),
                Some(version) => {
                    let (major, minor) = (version.major, version.minor);
                    format!("give the third number of the version too, as in --kube-version {major}.{minor}.2")
                }
            });
        }
        if names.iter().any(|name| !NAMES.contains(&name.as_str())) {
            hints.push(format!("the variables are {}", variables()));
        }
        (!hints.is_empty()).then(|| hints.join("; "))
    }
}

/// The image that a template stands for. Without a version the names of its parts have no value, and without its third
/// number that one's has none.
///
/// # Errors
/// When a name in it has no value, it is no template, or what comes of it is no reference to an image.
pub fn resolve(
    template: &str,
    kube_version: Option<&KubeVersion>,
) -> Result<String, TemplateError> {
    if template.len() > LONGEST {
        return Err(TemplateError::TooLong(template.len()));
    }
    // Besides, they are the engine's other delimiters, of which there may be none.
    if template.contains(char::is_control) {
        return Err(TemplateError::ControlCharacters(clipped(template)));
    }
    let mut unresolved: Vec<String> = vec![];
    for name in names(template)? {
        if value(name, kube_version).is_none() && !unresolved.iter().any(|known| known == name) {
            unresolved.push(name.to_owned());
        }
    }
    if !unresolved.is_empty() {
        return Err(TemplateError::Unresolved {
            names: unresolved,
            kube_version: kube_version.cloned(),
        });
    }
    let image = fill(template, kube_version)?;
    match ImageReference::parse(&image) {
        Ok(_) => Ok(image),
        Err(source) => Err(TemplateError::NoImage { image, source }),
    }
}

fn value(name: &str, kube_version: Option<&KubeVersion>) -> Option<u64> {
    let version = kube_version?;
    match name {
        MAJOR => Some(version.major),
        MINOR => Some(version.minor),
        PATCH => version.patch,
        _ => None,
    }
}

/// The names in braces, in the order in which they stand. The engine alone would take whole expressions.
fn names(template: &str) -> Result<Vec<&str>, TemplateError> {
    let (mut names, mut wrong, mut rest) = (vec![], vec![], template);
    while let Some(start) = rest.find(['{', '}']) {
        let (_, piece) = rest.split_at(start);
        let end = piece.find('}').map_or(piece.len(), |end| end + 1);
        // A second brace that opens begins a piece of its own.
        let next = piece.get(1..).and_then(|inner| inner.find('{'));
        let (piece, after) = piece.split_at(next.map_or(end, |next| end.min(next + 1)));
        rest = after;
        let inner = piece
            .strip_prefix('{')
            .and_then(|piece| piece.strip_suffix('}'));
        match inner {
            Some(name) if is_name(name) => names.push(name),
            _ => wrong.push(clipped(piece)),
        }
    }
    if wrong.is_empty() {
        Ok(names)
    } else {
        Err(TemplateError::Braces(wrong))
    }
}

fn is_name(text: &str) -> bool {
    let starts = |first: char| first.is_ascii_alphabetic() || first == '_';
    let continues = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.starts_with(starts) && text.bytes().all(continues)
}

/// Has the engine put in the values of a template whose names all have one.
fn fill(template: &str, kube_version: Option<&KubeVersion>) -> Result<String, TemplateError> {
    let mut environment = Environment::empty();
    environment.set_syntax(
        SyntaxConfig::builder()
            .variable_delimiters("{", "}")
            .block_delimiters("\u{1}", "\u{2}")
            .comment_delimiters("\u{3}", "\u{4}")
            .build()?,
    );
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let values = NAMES
        .into_iter()
        .filter_map(|name| Some((name, value(name, kube_version)?)));
    Ok(environment.render_str(template, Value::from_iter(values))?)
}

fn sentences(names: &[String]) -> String {
    let sentence = |name: &String| {
        format!(
            "Cannot construct catalog image reference, variable \"{name}\" couldn't be resolved."
        )
    };
    names.iter().map(sentence).collect::<Vec<_>>().join(" ")
}

fn variables() -> String {
    let [major, minor, patch] = NAMES;
    format!("{{{major}}}, {{{minor}}} and {{{patch}}}")
}

fn quoted(pieces: &[String]) -> String {
    let quoted = pieces.iter().map(|piece| format!("{piece:?}"));
    quoted.collect::<Vec<_>>().join(", ")
}

fn clipped(piece: &str) -> String {
    match piece.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{}…", piece.get(..end).unwrap_or_default()),
        None => piece.to_owned(),
    }
}
