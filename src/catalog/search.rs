//! Finds packages by words, the best match first.
//!
//! Every word must be found; a package ranks by the places where its words are found. Nothing is stemmed or guessed.

use serde::Serialize;

use super::{
    Catalog,
    list::{self, ListedPackage},
    package::Detail,
};
use crate::problem::Problem;

/// Where a word is found, the best place first: the earlier, the higher a package ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// It is the name.
    Name,
    /// The name starts with it.
    NamePrefix,
    /// The name holds it.
    NamePart,
    /// A word of the display name starts with it.
    DisplayName,
    /// A word of a keyword starts with it.
    Keyword,
    /// A word of the provider's name starts with it.
    Provider,
    /// A word of the description of the bundle or the package starts with it.
    Description,
}

/// A package that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The package.
    #[serde(flatten)]
    pub package: ListedPackage,
    /// For each word in order, the best place where it was found.
    pub matches: Vec<Place>,
}

/// The package of this name, when it holds every word. Upper and lower case are the same.
///
/// # Errors
/// As [`Catalog::package`].
pub fn find(
    catalog: &Catalog,
    name: &str,
    words: &[String],
) -> Result<Option<Found>, Vec<Problem>> {
    let Some(read) = catalog.package(name, Detail::Outline)? else {
        return Ok(None);
    };
    let (package, about) = list::package(catalog, &read)?;
    let mut descriptions = vec![about.summary, about.description];
    let definitions = read.definitions.into_iter();
    descriptions.extend(definitions.map(|definition| definition.description));
    let texts = Texts {
        name: name.to_lowercase(),
        others: [
            (Place::DisplayName, vec![about.display_name]),
            (Place::Keyword, about.keywords),
            (Place::Provider, vec![about.provider]),
            (Place::Description, descriptions),
        ]
        .map(|(place, texts)| (place, texts.join("\n").to_lowercase())),
    };
    let matches: Option<_> = words.iter().map(|word| texts.place(word)).collect();
    Ok(matches.map(|matches| Found { package, matches }))
}

/// Sorts what was found: the one with the better sum of places first, then by name; what is equal keeps its order, so
/// that the catalog that counts more comes first.
pub fn rank(found: &mut [Found]) {
    let sum = |found: &Found| -> usize { found.matches.iter().map(|place| *place as usize).sum() };
    found.sort_by(|a, b| {
        let by_sum = sum(a).cmp(&sum(b));
        by_sum.then_with(|| a.package.name.cmp(&b.package.name))
    });
}

/// What is searched in, in lower case.
struct Texts {
    name: String,
    others: [(Place, String); 4],
}

impl Texts {
    fn place(&self, word: &str) -> Option<Place> {
        let word = word.to_lowercase();
        let by_name = match () {
            () if self.name == word => Some(Place::Name),
            () if self.name.starts_with(&word) => Some(Place::NamePrefix),
            () if self.name.contains(&word) => Some(Place::NamePart),
            () => None,
        };
        let mut others = self.others.iter();
        by_name
            .or_else(|| others.find_map(|(place, text)| starts_word(text, &word).then_some(*place)))
    }
}

/// Whether a word of the text starts so. A search within words would find "rain" in "training".
fn starts_word(text: &str, start: &str) -> bool {
    text.match_indices(start).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        !before.is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_where_it_counts_most() {
        let texts = Texts {
            name: "queue-operator".to_owned(),
            others: [
                (
                    Place::DisplayName,
                    "the queue operator, training".to_owned(),
                ),
                (Place::Keyword, "messaging\nmq".to_owned()),
                (Place::Provider, "example inc".to_owned()),
                (Place::Description, "runs message queues in öfen".to_owned()),
            ],
        };
        for (word, place) in [
            ("queue-operator", Some(Place::Name)),
            ("QUEUE", Some(Place::NamePrefix)),
            ("operator", Some(Place::NamePart)),
            ("the", Some(Place::DisplayName)),
            ("messag", Some(Place::Keyword)),
            ("inc", Some(Place::Provider)),
            ("message", Some(Place::Description)),
            ("ÖFEN", Some(Place::Description)),
            ("rain", None),
            ("fen", None),
        ] {
            assert_eq!(texts.place(word), place, "{word}");
        }
    }
}
