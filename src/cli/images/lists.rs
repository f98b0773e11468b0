//! Lists of images for other programs, and what is told of those that are not in them.

use std::collections::BTreeSet;

use super::{Format, Listed};
use crate::{
    cli::failure::{Class, Failure},
    image::ImageReference,
    images::{
        export::{self, Destination, Export, Needed, Registry, WhyLeftOut},
        mirror::MirrorRules,
    },
    problem::Problem,
};

/// The rule of images that are not in a list.
const RULE: &str = "left-out";

/// A list, and what there is to tell about it.
///
/// # Errors
/// When a list needs a destination and there is none, or two images would become one there.
pub(super) fn list(
    format: Format,
    listed: &[Listed],
    to: Option<&Registry>,
    rules: &MirrorRules,
) -> Result<(String, Vec<Problem>), Failure> {
    let (mut needed, mut problems) = (vec![], vec![]);
    for image in listed {
        match self::needed(image) {
            Some(image) => needed.push(image),
            None => problems.push(left_out(&image.image, "it is no reference to an image")),
        }
    }
    let destination = || match to {
        Some(registry) => Ok(Destination::Registry(registry.clone())),
        None if !rules.is_empty() => Ok(Destination::Rules(rules)),
        None => {
            let message =
                "the list says where images are copied to, and nothing says where that is";
            let hint = "name the registry with --to, or rules with --mirror";
            Err(Failure::new(Class::Usage, message).with_hint(hint))
        }
    };
    let refused = |problems| Failure::refused(problems, "the images cannot be copied so");
    let export = match format {
        Format::Mapping => export::mapping(&needed, &destination()?).map_err(refused)?,
        Format::Itms => export::itms(&needed, &destination()?).map_err(refused)?,
        Format::Idms => export::idms(&needed, &destination()?),
        Format::Icsp => export::icsp(&needed, &destination()?),
        Format::Imageset => whole(export::imageset(&needed)),
        Format::Skopeo => whole(export::skopeo(&needed)),
        Format::Text | Format::Json => Export::default(),
    };
    for image in export.left_out {
        let name = image.image.to_string();
        problems.push(match image.why {
            WhyLeftOut::HasNoDigest => left_out(
                &name,
                "it has no digest; --digests finds it, and -o itms is for tags",
            ),
            why => left_out(&name, why),
        });
    }
    if export.text.is_empty() && !listed.is_empty() {
        return Err(Failure::refused(problems, "no image is in the list"));
    }
    Ok((export.text, problems))
}

fn whole(text: String) -> Export {
    Export {
        text,
        left_out: vec![],
    }
}

fn left_out(image: &str, why: impl std::fmt::Display) -> Problem {
    Problem::warning(RULE, format!("{image} is not in the list: {why}"))
}

/// What an image is to be copied as; nothing when it is no reference.
fn needed(listed: &Listed) -> Option<Needed> {
    let image = listed.pinned.as_ref().unwrap_or(&listed.image);
    let image = ImageReference::parse(image).ok()?;
    let uses = listed.uses.iter();
    // Of several spellings of one digest, any may have the tag.
    let tag = uses
        .clone()
        .find_map(|found| ImageReference::parse(&found.text).ok()?.tag);
    let roles: BTreeSet<_> = uses.map(|found| found.role).collect();
    Some(Needed { image, tag, roles })
}
