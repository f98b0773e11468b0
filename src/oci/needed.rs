//! Which layers of an image can hold anything of some folders, going by what its configuration says was done. This saves
//! downloads, and nothing else.
//!
//! A step that copies files makes a layer of what it copied, the folders that it is in, and nothing else. So a layer is
//! left out when its step copies to a place that is neither a folder that is wanted, nor above nor below one. And where a
//! step copies right into such a folder, the folder was made for that: layers below the first step that so much as
//! mentions its name are those of the base image, which knows nothing of it. Layers of steps that run commands, or that
//! are not understood, are never left out for what they do.
//!
//! Nobody vouches for the history: a step that copies through a link of the base image into a wanted folder goes unseen,
//! and an image may tell lies about how it was made. What such a layer has in the folder is then missing. Where the steps
//! and the layers are not of the same number, as after squashing, all layers count.

use super::{
    config::Config,
    paths::{Standing, split, standing, tidy},
};

/// The layers, of `count`, that can hold anything of these folders, by their position, lowest first.
#[must_use]
pub fn layers_with(config: &Config, count: usize, folders: &[String]) -> Vec<usize> {
    let steps: Vec<&str> = config
        .history
        .iter()
        .map(|step| step.created_by.as_str())
        .collect();
    let made: Vec<usize> = config
        .history
        .iter()
        .enumerate()
        .filter_map(|(position, step)| (!step.is_empty).then_some(position))
        .collect();
    if made.len() != count {
        return (0..count).collect();
    }
    let places = places(&steps);
    let can_hold = |step: usize| {
        folders.iter().any(|folder| {
            let folder = tidy(folder);
            step >= base(&steps, &places, &folder)
                && match places.get(step) {
                    Some(Place::Copied(place) | Place::Folder(place)) => {
                        standing(place.as_bytes(), &[folder]) != Standing::Apart
                    }
                    _ => true,
                }
        })
    };
    let layers = made.iter().enumerate();
    let layers = layers.filter_map(|(layer, step)| can_hold(*step).then_some(layer));
    layers.collect()
}

/// The first step that can know of a folder, when one copies into it: the steps before are the base image's.
fn base(steps: &[&str], places: &[Place], folder: &str) -> usize {
    let is_copied_to = |place: &Place| {
        let Place::Copied(place) = place else {
            return false;
        };
        !folder.is_empty() && standing(place.as_bytes(), &[folder]) == Standing::Within
    };
    let Some(copied) = places.iter().position(is_copied_to) else {
        return 0;
    };
    // The folders above it may be those of a WORKDIR.
    let (_, name) = split(folder);
    let mentioned = steps.iter().position(|step| step.contains(name));
    mentioned.map_or(copied, |mentioned| mentioned.min(copied))
}

/// Where a step puts what it makes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// What it copies, into this folder or at this path.
    Copied(String),
    /// This folder.
    Folder(String),
    /// Anywhere.
    Anywhere,
}

/// Where each step puts what it makes, one by one, as a step may change the folder that the next is relative to.
fn places(steps: &[&str]) -> Vec<Place> {
    // A base image that says nothing of it may have any.
    let mut folder: Option<String> = None;
    let place_of = |step: &&str| {
        let (verb, arguments) = verb_of(step);
        match verb {
            "WORKDIR" => {
                folder = resolved(arguments.trim(), folder.as_deref());
                folder.clone().map_or(Place::Anywhere, Place::Folder)
            }
            "COPY" | "ADD" => destination(arguments)
                .and_then(|path| resolved(&path, folder.as_deref()))
                .map_or(Place::Anywhere, Place::Copied),
            _ => cache_of_opm(step)
                .and_then(|path| resolved(&path, None))
                .map_or(Place::Anywhere, Place::Copied),
        }
    };
    steps.iter().map(place_of).collect()
}

/// The verb of a step and what follows it, without what tools put around them.
fn verb_of(step: &str) -> (&str, &str) {
    let step = step.trim();
    let step = step.strip_suffix("# buildkit").unwrap_or(step);
    let step = match step.split_once("#(nop)") {
        Some((shell, step)) if shell.trim() == "/bin/sh -c" => step,
        _ => step,
    };
    let step = step.trim();
    step.split_once(char::is_whitespace).unwrap_or((step, ""))
}

/// The folder that `opm serve --cache-only` fills, when that is all that a step does. `opm generate dockerfile` has it
/// in the image itself, and the cache is larger than the catalog.
fn cache_of_opm(step: &str) -> Option<String> {
    let words = step.replace(['[', ']', '"', ','], " ");
    let words: Vec<&str> = words.split_whitespace().collect();
    let is_one_command = !step.contains([';', '|', '&', '>', '$', '`']);
    let is_opm = |pair: &[&str]| matches!(pair, [opm, "serve"] if opm.ends_with("/opm"));
    let does_no_more = words.contains(&"--cache-only") || words.contains(&"--cache-only=true");
    if !is_one_command || !does_no_more || !words.windows(2).any(is_opm) {
        return None;
    }
    let folder = words
        .iter()
        .find_map(|word| word.strip_prefix("--cache-dir="));
    let behind = |pair: &[&str]| match pair {
        ["--cache-dir", folder] => Some((*folder).to_owned()),
        _ => None,
    };
    folder
        .map(str::to_owned)
        .or_else(|| words.windows(2).find_map(behind))
}

/// A path as the step means it; nothing when it is relative to a folder that is not known, or holds what only the
/// builder knew.
fn resolved(path: &str, folder: Option<&str>) -> Option<String> {
    if path.is_empty() || path.contains('$') || path.split('/').any(|part| part == "..") {
        return None;
    }
    if path.starts_with('/') {
        return Some(tidy(path));
    }
    folder.map(|folder| tidy(&format!("{folder}/{path}")))
}

/// Where a step copies to, as it writes it; nothing when that is in doubt.
fn destination(arguments: &str) -> Option<String> {
    let arguments = arguments.trim();
    let mut rest = arguments;
    while let Some(flag) = rest.strip_prefix("--") {
        rest = flag.split_once(char::is_whitespace)?.1.trim_start();
    }
    if rest.starts_with('[') {
        let paths: Vec<String> = serde_json::from_str(rest).ok()?;
        return paths.last().cloned();
    }
    // The classic builder and buildah name what they copied by a digest.
    if let Some((_, path)) = rest.split_once(" in ")
        && ["file:", "dir:", "multi:"]
            .iter()
            .any(|kind| rest.starts_with(kind))
    {
        return Some(path.trim().to_owned());
    }
    let paths: Vec<&str> = rest.split_whitespace().collect();
    match paths.as_slice() {
        [_, path] => Some((*path).to_owned()),
        // With several, one of them may have a space in its name.
        [_, _, .., path] if path.starts_with('/') => Some((*path).to_owned()),
        _ => None,
    }
}
