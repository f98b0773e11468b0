//! Which namespaces the operator watches, and whether the bundle supports that.
//!
//! Reproduces operator-controller `rukpak/render/render.go` (`validateTargetNamespaces`), with OLM v0's fourth mode,
//! MultiNamespace, open to everybody, and with the defaults of this program: all namespaces where the bundle can,
//! else its own.

use std::collections::BTreeSet;

use crate::problem::Problem;

const ALL: &str = "AllNamespaces";
const OWN: &str = "OwnNamespace";
const SINGLE: &str = "SingleNamespace";
const MULTI: &str = "MultiNamespace";
const RULE: &str = "install-mode";

/// The namespaces to watch, sorted; one empty name stands for all. `watched` is what the user asked for.
///
/// # Errors
/// When the bundle supports no install mode that fits; the message lists those it has.
pub(super) fn targets(
    supported: &BTreeSet<String>,
    install_namespace: &str,
    watched: &[String],
    problems: &mut Vec<Problem>,
) -> Option<Vec<String>> {
    let supports = |mode: &str| supported.contains(mode);
    let wanted: BTreeSet<_> = watched.iter().map(String::as_str).collect();
    let wanted: Vec<_> = wanted.into_iter().collect();
    let needs: &[&str] = match wanted.as_slice() {
        [] if supports(ALL) => return Some(vec![String::new()]),
        [] if supports(OWN) => {
            let message = format!(
                "the bundle does not support {ALL}; it will watch its own namespace {install_namespace:?} \
                 (--watch-namespace chooses another)"
            );
            problems.push(Problem::note(RULE, message));
            return Some(vec![install_namespace.to_owned()]);
        }
        [] => &[],
        [""] => &[ALL],
        [one] if *one == install_namespace => &[OWN],
        [_] => &[SINGLE],
        several if several.contains(&install_namespace) => &[MULTI, OWN],
        _ => &[MULTI],
    };
    let mixed = wanted.len() > 1 && wanted.contains(&"");
    if !needs.is_empty() && needs.iter().all(|mode| supports(mode)) && !mixed {
        return Some(wanted.into_iter().map(str::to_owned).collect());
    }
    problems.push(refusal(supported, &wanted, needs));
    None
}

fn refusal(supported: &BTreeSet<String>, wanted: &[&str], needs: &[&str]) -> Problem {
    let modes: Vec<_> = supported.iter().map(String::as_str).collect();
    let modes = modes.join(" ");
    let missing: Vec<_> = needs
        .iter()
        .copied()
        .filter(|mode| !supported.contains(*mode))
        .collect();
    let message = match wanted {
        [] if supported.is_empty() => "the bundle supports no install mode at all".to_owned(),
        [] => format!(
            "the bundle supports [{modes}], so it must be told what to watch: use --watch-namespace"
        ),
        _ if wanted.len() > 1 && wanted.contains(&"") => {
            "all namespaces (an empty --watch-namespace) cannot be watched together with named ones"
                .to_owned()
        }
        [""] => format!("the bundle supports [{modes}], so it cannot watch all namespaces"),
        _ => format!(
            "the bundle supports [{modes}]; to watch [{}] it would have to support {}",
            wanted.join(" "),
            missing.join(" and "),
        ),
    };
    Problem::error(RULE, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(supported: &[&str], watched: &[&str]) -> Option<Vec<String>> {
        let supported = supported.iter().map(|mode| (*mode).to_owned()).collect();
        let watched: Vec<_> = watched.iter().map(|name| (*name).to_owned()).collect();
        targets(&supported, "ops", &watched, &mut vec![])
    }

    #[test]
    fn what_is_watched_decides_which_mode_is_needed() {
        for (supported, watched, allowed) in [
            (&[ALL][..], &[][..], true),
            (&[OWN], &[], true),
            (&[SINGLE], &[], false),
            (&[MULTI], &[], false),
            (&[ALL], &["ops"], false),
            (&[OWN], &["ops"], true),
            (&[OWN], &["team-a"], false),
            (&[SINGLE], &["team-a"], true),
            (&[MULTI], &["team-a", "team-b"], true),
            (&[MULTI], &["team-a", "ops"], false),
            (&[MULTI, OWN], &["team-a", "ops"], true),
            (&[MULTI, ALL], &["team-a", ""], false),
        ] {
            assert_eq!(
                choose(supported, watched).is_some(),
                allowed,
                "{supported:?} {watched:?}"
            );
        }
    }

    #[test]
    fn the_order_of_the_flags_does_not_matter() {
        assert_eq!(
            choose(&[MULTI], &["b", "a", "b"]),
            choose(&[MULTI], &["a", "b"])
        );
    }
}
