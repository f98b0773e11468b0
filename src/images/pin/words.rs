//! Places and texts as messages show them.

use crate::images::{ImageUse, Role};

/// Texts that a message names.
const MOST_NAMED: usize = 3;
/// Characters of a text that a message shows.
const LONGEST_SHOWN: usize = 300;

/// Where an image stands, in the words of operator-manifest.
pub(super) fn description(image: &ImageUse) -> String {
    let name = &image.name;
    match image.role {
        Role::Container => format!("container {name}"),
        Role::InitContainer => format!("initContainer {name}"),
        Role::ImageVolume => format!("volume {name}"),
        Role::RelatedImageVariable | Role::Variable | Role::VariablePart => format!("{name} var"),
        Role::RelatedImage => format!("relatedImage {name}"),
        Role::Annotation => format!("{name} annotation"),
        Role::Argument | Role::ArgumentPart | Role::Text | Role::Catalog | Role::Bundle => {
            image.pointer.to_string()
        }
    }
}

/// Texts with commas between them, the first few.
pub(super) fn first_of(texts: &[&str]) -> String {
    let first: Vec<_> = texts
        .iter()
        .take(MOST_NAMED)
        .map(|text| shown(text))
        .collect();
    let more = texts.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", first.join(", "))
}

/// A text of a document as one line of a message, in quotes where it would not be told from the message.
pub(super) fn shown(text: &str) -> String {
    let is_plain = |character: char| character.is_ascii_graphic();
    if text.len() <= LONGEST_SHOWN && !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    quoted(text)
}

/// A text in quotes, cut where it is long.
pub(super) fn quoted(text: &str) -> String {
    let start: String = text.chars().take(LONGEST_SHOWN).collect();
    let dots = if start.len() < text.len() { "…" } else { "" };
    format!("{start:?}{dots}")
}
