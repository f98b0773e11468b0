//! What images are called in what was rendered: by their digests, and as their mirrors call them.
//!
//! Digests come first, from the names that everybody knows, and mirrors after, as atomic-reactor does it
//! (`plugins/pin_operator_digest.py`).

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{
        digests,
        failure::{Class, Failure},
        pin_args::Images,
    },
    Objects, Outcome, Run,
};
use crate::{
    image::{ImageReference, canonical},
    images::{
        self, ImageUse, Role,
        mirror::{MirrorRules, Mirrored},
        pin::{self, ListedImage, Pins, Unpinned},
    },
    manifest::Manifest,
    problem::Problem,
};

/// The rule of images that no mirror has.
const NO_MIRROR: &str = "no-mirror";

/// Images that have no digest yet, by their canonical texts: as each bundle names them, with its position.
type Missing = BTreeMap<String, Vec<(usize, Unpinned)>>;

/// Puts digests in the place of tags, where that is wanted: those of the map, else of the lock, else of the catalog, else
/// of the registry. What names an image that has none fails. Gives what was used.
pub(super) fn pin(rendered: &mut [Objects], run: Run<'_>, outcome: &mut Outcome) -> Pins {
    let mut pins = vec![];
    let mut missing = Missing::new();
    for (position, objects) in rendered.iter().enumerate() {
        if !is_wanted(objects, run) {
            pins.push(Pins::default());
            continue;
        }
        let wanted = pin::wanted(&objects.manifests);
        let known = known(objects, &wanted, run);
        for image in wanted {
            if known.get(&image.image).is_none() {
                let uses = missing.entry(canonical(&image.image)).or_default();
                uses.push((position, image));
            }
        }
        pins.push(known);
    }
    let from_registries = ask(&missing, run, (rendered, &mut pins), outcome);
    let mut used = Pins::default();
    for (objects, pins) in rendered.iter_mut().zip(&pins) {
        if is_wanted(objects, run) {
            put(objects, pins, &mut used, outcome);
        }
    }
    if used.iter().next().is_some() {
        let message = digests::counted(&used, from_registries);
        outcome.tell(None, [Problem::note("pinned", message)]);
    }
    used
}

/// Adds to the pins of each bundle what registries say, and gives how many images these are. An image without a digest is
/// told of every bundle that names it.
fn ask(
    missing: &Missing,
    run: Run<'_>,
    (rendered, pins): (&[Objects], &mut [Pins]),
    outcome: &mut Outcome,
) -> usize {
    let mut failed: BTreeMap<usize, Vec<Class>> = BTreeMap::new();
    let answers = answers(missing, run);
    let found = answers.iter().filter(|answer| answer.is_ok()).count();
    for (uses, answer) in missing.values().zip(&answers) {
        for (position, image) in uses {
            let (Some(objects), Some(pins)) = (rendered.get(*position), pins.get_mut(*position))
            else {
                continue;
            };
            match answer {
                Ok(pinned) => pins.insert(&image.image, pinned.clone()),
                Err(failure) => {
                    let problem = digests::missing(image, failure);
                    let class = problem.is_error().then_some(failure.class());
                    failed.entry(*position).or_default().extend(class);
                    let roots = objects.chosen.roots.iter().copied();
                    outcome.tell(roots, [objects.of_bundle(problem)]);
                }
            }
        }
    }
    for (position, classes) in failed {
        let objects = rendered.get(position);
        // Of all else that is wrong, the problems have it refused.
        if let (Some(objects), Some(Class::Network)) = (objects, Class::worst(classes)) {
            let message = "not all of its images have a digest";
            outcome.fail_all(&objects.chosen.roots, Failure::new(Class::Network, message));
        }
    }
    found
}

/// What registries say of what nothing knows; with `--locked`, the lock would have to.
fn answers(missing: &Missing, run: Run<'_>) -> Vec<digests::Answer> {
    let images = missing.values().filter_map(|uses| uses.first());
    let images: Vec<_> = images.map(|(_, image)| image.image.as_str()).collect();
    if run.package.locked {
        let unknown = || Failure::new(Class::Refused, "the lock does not have it");
        return images.iter().map(|_| Err(unknown())).collect();
    }
    digests::look_up(&images, run.sources)
}

/// Whether the images of a bundle get their digests: when it is asked for, and when the lock has them.
pub(super) fn is_wanted(objects: &Objects, run: Run<'_>) -> bool {
    run.images == Images::Pinned || !objects.chosen.locked.images.is_empty()
}

/// Names the images of a bundle by these digests, and writes down which were used.
fn put(objects: &mut Objects, pins: &Pins, used: &mut Pins, outcome: &mut Outcome) {
    match pin::pin(&mut objects.manifests, pins) {
        Ok(put) => {
            used.extend(&put);
            let images = put.iter();
            let images = images.map(|(image, pinned)| (image.to_owned(), pinned.to_owned()));
            objects.chosen.locked.images = images.collect();
            let left = pin::unreached(&objects.manifests).into_iter();
            let left: Vec<_> = left.map(|problem| objects.of_bundle(problem)).collect();
            outcome.tell(objects.chosen.roots.iter().copied(), left);
        }
        Err(problems) => {
            let problems: Vec<_> = problems
                .into_iter()
                .map(|problem| objects.of_bundle(problem))
                .collect();
            outcome.tell(objects.chosen.roots.iter().copied(), problems);
        }
    }
}

/// What is known of the images of all bundles without asking a registry.
pub(super) fn known_of_all(rendered: &[Objects], run: Run<'_>) -> Pins {
    let mut all = run.pins.clone();
    for objects in rendered {
        let wanted = pin::wanted(&objects.manifests);
        all.extend(&known(objects, &wanted, run));
    }
    all
}

/// What is known of the images of a bundle without asking a registry.
fn known(objects: &Objects, wanted: &[Unpinned], run: Run<'_>) -> Pins {
    let mut pins = run.pins.clone();
    for (image, pinned) in &objects.chosen.locked.images {
        pins.insert(image, pinned.clone());
    }
    let list = objects.listed.iter().map(|listed| ListedImage {
        name: &listed.name,
        image: &listed.image,
    });
    pins.extend(&pin::listed(wanted, &list.collect::<Vec<_>>()));
    pins
}

/// Names images as their mirrors do, adding which to `renamed`, and tells of those that have none.
pub(super) fn mirror(
    manifests: &mut [Manifest],
    rules: &MirrorRules,
    renamed: &mut BTreeSet<String>,
) -> Vec<Problem> {
    let mut left = BTreeSet::new();
    let mut problems = vec![];
    images::rewrite(manifests, &|_| false, &mut |found| {
        let image = ImageReference::parse(&found.text).ok()?;
        match rules.mirrored(&image) {
            Mirrored::At(there) => {
                renamed.insert(canonical(&found.text));
                Some(there.to_string())
            }
            other => {
                if left.insert(found.text.clone()) {
                    problems.push(unmirrored(found, &other));
                }
                None
            }
        }
    });
    problems
}

fn unmirrored(found: &ImageUse, mirrored: &Mirrored) -> Problem {
    let image = &found.text;
    let reason = match mirrored {
        Mirrored::OtherForm if image.contains('@') => {
            "the rules that speak of it are for tags, and it has a digest"
        }
        // A catalog is polled by its tag, and a part of a text is not pinned.
        Mirrored::OtherForm if found.role == Role::Catalog || found.role.is_part() => {
            "the rules that speak of it are for digests, and it has none; add an ImageTagMirrorSet"
        }
        Mirrored::OtherForm => {
            "the rules that speak of it are for digests, and it has none; --pin finds it"
        }
        _ => "no rule speaks of it; add one, or mirror it",
    };
    let message = format!("{image} stays as it is at {}: {reason}", found.pointer);
    let warning = Problem::warning(NO_MIRROR, message);
    warning.at(&found.origin).on(&found.object)
}
