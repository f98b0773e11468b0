//! Lines `source=destination` for `oc image mirror -f`, which oc-mirror writes too (`mapping.txt`).
//!
//! Follows what openshift/oc takes (`pkg/cli/image/mirror/mappings.go`, `parseArgs`; `pkg/cli/image/imagesource/
//! reference.go`): a destination has no digest, and none stands twice, not even one without a tag, which is why every
//! destination gets a tag here.

use std::collections::{BTreeMap, btree_map::Entry};

use super::{Destination, Export, LeftOut, Needed, same_destination, sources};
use crate::{
    image::{ImageReference, LONGEST_TAG},
    problem::Problem,
};

/// Where each image is copied. One with a digest gets the tag that is known for it, so that it is found by both; where
/// none is, or another image has it, its digest with a dash, as oc-mirror does (`sha256-…`).
///
/// # Errors
/// Every two images that would become one.
pub fn mapping(needed: &[Needed], destination: &Destination<'_>) -> Result<Export, Vec<Problem>> {
    let sources = sources(needed);
    let mut export = Export::default();
    let mut copied: BTreeMap<String, &ImageReference> = BTreeMap::new();
    let mut problems = vec![];
    for (source, about) in &sources {
        let there = match destination.name_of(source) {
            Ok(there) => there,
            Err(why) => {
                let image = source.clone();
                export.left_out.push(LeftOut { image, why });
                continue;
            }
        };
        let tag = source
            .tag
            .as_deref()
            .or(about.tag)
            .map_or_else(|| tag_of_digest(source), str::to_owned);
        let mut name = format!("{there}:{tag}");
        if source.digest.is_some() && copied.contains_key(&name) {
            name = format!("{there}:{}", tag_of_digest(source));
        }
        match copied.entry(name) {
            // It is copied by its digest, with this tag.
            Entry::Occupied(taken) if taken.get().name() == source.name() => {}
            Entry::Occupied(taken) => {
                problems.push(same_destination(taken.get(), source, taken.key()));
            }
            Entry::Vacant(free) => {
                export.text += &format!("{source}={}\n", free.key());
                free.insert(source);
            }
        }
    }
    if problems.is_empty() {
        Ok(export)
    } else {
        Err(problems)
    }
}

/// The digest as a tag.
fn tag_of_digest(image: &ImageReference) -> String {
    let digest = image.digest.as_deref().unwrap_or_default();
    digest
        .replacen(':', "-", 1)
        .chars()
        .take(LONGEST_TAG)
        .collect()
}
