//! Several installs that go into one cluster together: what two of them bring stands in the first only, and belongs to
//! both; where two want an object to be different, the later one stops.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    manifest::{Manifest, ObjectKey},
    problem::Problem,
};

/// The rule that two installs break which do not agree on an object.
const RULE: &str = "install-conflict";

/// What one install brings.
#[derive(Debug)]
pub struct Brought {
    /// Its name, for messages.
    pub name: String,
    /// Whom it is installed for, each a short word: the install itself, those that need it. None for the only install
    /// of a run.
    pub owners: BTreeSet<String>,
    /// Its objects.
    pub manifests: Vec<Manifest>,
}

/// An object, and whom it was rendered for.
#[derive(Debug, Clone)]
pub struct Owned {
    /// All that need it; none when there is only one install in a run.
    pub owners: BTreeSet<String>,
    /// The installs that bring it, by their positions; it stands in the first.
    pub brought_by: BTreeSet<usize>,
    /// The object.
    pub manifest: Manifest,
}

/// What several installs come to together.
#[derive(Debug, Default)]
pub struct Joined {
    /// The objects of each install, as many as installs were given and in their order; none for those that stopped.
    pub installs: Vec<Vec<Owned>>,
    /// The owners of the installs that stopped.
    pub stopped: BTreeSet<String>,
    /// Why they stopped: each object on which an install does not agree with an earlier one.
    pub problems: Vec<Problem>,
}

/// Leaves an object that several installs bring to the first of them, with the owners of all.
///
/// Of two installs that want an object to be different, the later one stops, and with it everything that is installed
/// for nobody but its owners. What they alone would have brought stands in nobody's way. The problems tell all of it,
/// so a caller for whom the installs are a whole refuses them all when there is one.
#[must_use]
pub fn join(installs: Vec<Brought>) -> Joined {
    let keys: Vec<Vec<_>> = installs
        .iter()
        .map(|install| install.manifests.iter().map(Manifest::key).collect())
        .collect();
    let mut stops = Stops::default();
    let mut problems = vec![];
    // When an install stops that was the first to bring an object, those that share it have not been compared yet.
    while stop_in_conflict(&installs, &keys, &mut stops, &mut problems) {}
    Joined {
        installs: shared(installs, keys, &stops),
        stopped: stops.owners,
        problems,
    }
}

/// The installs that do not go on.
#[derive(Default)]
struct Stops {
    at: BTreeSet<usize>,
    owners: BTreeSet<String>,
}

impl Stops {
    fn add(&mut self, at: usize, install: &Brought) {
        self.at.insert(at);
        self.owners.extend(install.owners.iter().cloned());
    }

    /// Whether anybody still needs the install.
    fn has(&self, at: usize, install: &Brought) -> bool {
        let is_for_nobody = !install.owners.is_empty() && install.owners.is_subset(&self.owners);
        self.at.contains(&at) || is_for_nobody
    }
}

/// Stops the installs that do not agree with one before them. One that stops is not compared with later ones. Gives
/// whether there was any.
fn stop_in_conflict(
    installs: &[Brought],
    keys: &[Vec<ObjectKey>],
    stops: &mut Stops,
    problems: &mut Vec<Problem>,
) -> bool {
    let mut before: BTreeMap<&ObjectKey, (usize, &Brought, &Manifest)> = BTreeMap::new();
    let mut is_any = false;
    for (at, (install, keys)) in installs.iter().zip(keys).enumerate() {
        if stops.has(at, install) {
            continue;
        }
        let told = problems.len();
        for (manifest, key) in install.manifests.iter().zip(keys) {
            let (first, other, known) = *before.entry(key).or_insert((at, install, manifest));
            if known.object() != manifest.object() {
                problems.push(conflict(&other.name, &install.name, first == at).on(key));
            }
        }
        if problems.len() > told {
            is_any = true;
            stops.add(at, install);
            before.retain(|_, (first, install, _)| !stops.has(*first, install));
        }
    }
    is_any
}

fn conflict(first: &str, second: &str, is_alone: bool) -> Problem {
    let message = if is_alone {
        format!("{second} brings it twice, and not the same")
    } else {
        format!(
            "{first} and {second} both bring it, and not the same; they cannot be installed together"
        )
    };
    Problem::error(RULE, message)
}

/// The objects of the installs that go on, each in the first that brings it.
fn shared(installs: Vec<Brought>, keys: Vec<Vec<ObjectKey>>, stops: &Stops) -> Vec<Vec<Owned>> {
    let mut joined: Vec<Vec<Owned>> = vec![];
    let mut places: BTreeMap<ObjectKey, (usize, usize)> = BTreeMap::new();
    for (at, (install, keys)) in installs.into_iter().zip(keys).enumerate() {
        joined.push(vec![]);
        if stops.has(at, &install) {
            continue;
        }
        let owners: BTreeSet<_> = install.owners.difference(&stops.owners).cloned().collect();
        for (manifest, key) in install.manifests.into_iter().zip(keys) {
            let place = places.get(&key).copied();
            let before =
                place.and_then(|(first, position)| joined.get_mut(first)?.get_mut(position));
            if let Some(owned) = before {
                owned.owners.extend(owners.iter().cloned());
                owned.brought_by.insert(at);
                continue;
            }
            let Some(kept) = joined.last_mut() else {
                continue;
            };
            places.insert(key, (at, kept.len()));
            let owners = owners.clone();
            kept.push(Owned {
                owners,
                brought_by: BTreeSet::from([at]),
                manifest,
            });
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An install that brings a ConfigMap for each name, with this content.
    fn brought(owners: &str, objects: &[(&str, &str)]) -> Brought {
        let manifest = |(name, data): &(&str, &str)| {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": data},
            });
            Manifest::generated(object, "a test")
        };
        Brought {
            name: owners.to_owned(),
            owners: owners.split(',').map(str::to_owned).collect(),
            manifests: objects.iter().map(manifest).collect(),
        }
    }

    /// Each install's objects, as `name=owners`, and who stopped.
    fn joined(installs: Vec<Brought>) -> (Vec<Vec<String>>, String) {
        let joined = join(installs);
        let text = |owned: &Owned| {
            let owners: Vec<_> = owned.owners.iter().map(String::as_str).collect();
            format!("{}={}", owned.manifest.name(), owners.join(","))
        };
        let installs = joined.installs.iter();
        let installs = installs.map(|objects| objects.iter().map(text).collect());
        let stopped: Vec<_> = joined.stopped.into_iter().collect();
        (installs.collect(), stopped.join(","))
    }

    #[test]
    fn what_is_shared_stands_once_and_belongs_to_all() {
        let (installs, stopped) = joined(vec![
            brought("a", &[("shared", "1"), ("mine", "1")]),
            brought("b", &[("other", "1"), ("shared", "1")]),
        ]);
        assert_eq!(installs, [vec!["shared=a,b", "mine=a"], vec!["other=b"]]);
        assert_eq!(stopped, "");
    }

    #[test]
    fn the_later_one_of_a_conflict_stops_and_the_others_go_on() {
        let (installs, stopped) = joined(vec![
            brought("a", &[("x", "1")]),
            brought("b", &[("x", "2"), ("only-b", "1"), ("y", "2")]),
            brought("c", &[("x", "1"), ("y", "1")]),
        ]);
        assert_eq!(installs, [vec!["x=a,c"], vec![], vec!["y=c"]]);
        assert_eq!(stopped, "b");
    }

    #[test]
    fn all_objects_of_a_conflict_are_told_with_both_installs() {
        let problems = join(vec![
            brought("a", &[("x", "1"), ("y", "1")]),
            brought("b", &[("x", "2"), ("y", "2")]),
        ])
        .problems;
        let texts: Vec<_> = problems.iter().map(Problem::to_string).collect();
        let text = |object| {
            format!(
                "error[install-conflict]: configmap/{object}: a and b both bring it, and not the same; \
                 they cannot be installed together"
            )
        };
        assert_eq!(texts, [text("x"), text("y")]);
    }

    #[test]
    fn what_a_stopped_install_needs_stops_unless_another_needs_it_too() {
        let (installs, stopped) = joined(vec![
            brought("a,b", &[("needed-by-both", "1")]),
            brought("b", &[("needed-by-b", "1"), ("shared", "1")]),
            brought("a", &[("x", "1")]),
            brought("b", &[("x", "2")]),
            brought("c", &[("shared", "1")]),
        ]);
        assert_eq!(
            installs,
            [
                vec!["needed-by-both=a"],
                vec![],
                vec!["x=a"],
                vec![],
                vec!["shared=c"]
            ]
        );
        assert_eq!(stopped, "b");
    }

    #[test]
    fn installs_without_owners_stop_alone() {
        let without = |objects| Brought {
            owners: BTreeSet::new(),
            ..brought("", objects)
        };
        let (installs, _) = joined(vec![
            without(&[("x", "1")]),
            without(&[("x", "2")]),
            without(&[("y", "1")]),
        ]);
        assert_eq!(installs, [vec!["x="], vec![], vec!["y="]]);
    }

    #[test]
    fn an_install_may_not_contradict_itself() {
        let joined = join(vec![brought("a", &[("x", "1"), ("x", "1"), ("x", "2")])]);
        assert!(joined.problems[0].message.contains("a brings it twice"));
        let (installs, _) = self::joined(vec![brought("a", &[("x", "1"), ("x", "1")])]);
        assert_eq!(installs, [["x=a"]]);
    }
}
