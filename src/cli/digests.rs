//! Digests of images that nothing says, looked up in their registries.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{
    failure::{Class, Failure},
    progress::Count,
};
use crate::{
    concurrent::concurrently,
    image::ImageReference,
    images::{
        Role,
        mirror::Mirrored,
        pin::{Pins, Unpinned},
    },
    problem::Problem,
    source::Sources,
};

/// Images that are asked for at the same time.
const AT_ONCE: usize = 32;
/// As many fields are named of one image.
const TOLD_USES: usize = 3;
/// The rule of images without a digest.
const RULE: &str = "digest";

/// What was found out about an image: what takes its place, or why nothing does.
pub(super) type Answer = Result<String, Failure>;

/// Looks up images, all at once; the answers are in their order.
pub(super) fn look_up(images: &[&str], sources: &Sources) -> Vec<Answer> {
    if images.is_empty() {
        return vec![];
    }
    let progress = Count::new(images.len(), "images looked up");
    let done = AtomicUsize::new(0);
    let answers = concurrently(images, AT_ONCE, |image| {
        let answer = digest(image, sources);
        progress.show(done.fetch_add(1, Ordering::Relaxed) + 1);
        answer
    });
    progress.end();
    answers
}

/// Adds to `pins` what registries say of images that it does not know, and gives how many these are. What there is to
/// tell goes into `problems`.
///
/// # Errors
/// When an image has no digest; that of one which may be no image can be missing.
pub(super) fn complete(
    pins: &mut Pins,
    wanted: &[Unpinned],
    sources: &Sources,
    problems: &mut Vec<Problem>,
) -> Result<usize, Failure> {
    let unknown = wanted
        .iter()
        .filter(|image| pins.get(&image.image).is_none());
    let unknown: Vec<_> = unknown.collect();
    let images: Vec<_> = unknown.iter().map(|image| image.image.as_str()).collect();
    let answers = look_up(&images, sources);
    let (mut failed, mut found) = (vec![], 0);
    for (image, answer) in unknown.iter().zip(answers) {
        match answer {
            Ok(pinned) => {
                pins.insert(&image.image, pinned);
                found += 1;
            }
            Err(failure) => {
                let problem = missing(image, &failure);
                failed.extend(problem.is_error().then_some(failure.class()));
                problems.push(problem);
            }
        }
    }
    match Class::worst(failed) {
        Some(class) => Err(Failure::new(class, "not all images have a digest")),
        None => Ok(found),
    }
}

/// The image with the digest that it has in its registry, in the spelling that it has.
fn digest(image: &str, sources: &Sources) -> Answer {
    let reference = ImageReference::parse(image).map_err(|error| {
        Failure::new(
            Class::Refused,
            format!("{image:?} is no reference: {error}"),
        )
    })?;
    let digest = sources.digest(&reference).map_err(|error| {
        let failure = Failure::from(error);
        match sources.mirrors().mirrored(&reference) {
            Mirrored::OtherForm => failure.with_hint(
                "the mirror rules for it are for digests, and a tag is looked up where rules for tags say",
            ),
            Mirrored::At(_) | Mirrored::Nowhere => failure,
        }
    })?;
    Ok(format!("{}@{digest}", reference.name()))
}

/// How many images have digests, and how many of these were looked up.
pub(super) fn counted(used: &Pins, from_registries: usize) -> String {
    let (all, have) = match used.iter().count() {
        0 => return "no tag was replaced".to_owned(),
        1 => ("1 image".to_owned(), "has"),
        all => (format!("{all} images"), "have"),
    };
    format!("{all} {have} a digest now, {from_registries} of them looked up")
}

/// What to tell of an image that has no digest: the image, the fields and the reason. It is a warning where every use may
/// be of something else: annotations hold examples, and a variable may only look as if it held an image.
pub(super) fn missing(image: &Unpinned, failure: &Failure) -> Problem {
    // One annotation may name the image several times.
    let fields = image
        .uses
        .iter()
        .map(|found| (&found.object, &found.pointer));
    let mut fields: Vec<_> = fields.collect();
    fields.dedup();
    // Fields of several objects would be told of the wrong one.
    let first = fields.first().map(|(object, _)| *object);
    let of_first = fields.iter().filter(|(object, _)| Some(*object) == first);
    let places = of_first
        .take(TOLD_USES)
        .map(|(_, pointer)| pointer.to_string());
    let mut places: Vec<_> = places.collect();
    match fields.len() - places.len() {
        0 => {}
        1 => places.push("1 more field".to_owned()),
        more => places.push(format!("{more} more fields")),
    }
    let next = match (failure.hint(), failure.class()) {
        // Another hint is about reading the image, of which only the digest is wanted.
        (Some(hint), Class::Network | Class::Usage) => {
            format!("{hint}; or give its digest with --pins")
        }
        (None, Class::Network) => {
            "push it if it never was, or give its digest with --pins".to_owned()
        }
        _ => "give its digest with --pins".to_owned(),
    };
    let message = format!(
        "no digest of {} at {}: {}; {next}",
        image.image,
        places.join(", "),
        failure.in_one_line()
    );
    let is_mentioned = image.uses.iter().all(|found| {
        let is_judged = matches!(
            found.role,
            Role::Annotation | Role::Variable | Role::Argument
        );
        is_judged || found.role.is_part()
    });
    let problem = match is_mentioned {
        true => Problem::warning(RULE, message),
        false => Problem::error(RULE, message),
    };
    match image.uses.first() {
        Some(first) => problem.at(&first.origin).on(&first.object),
        None => problem,
    }
}
