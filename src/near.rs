//! Names that are like one that was not found.

use std::collections::BTreeSet;

/// How many names are proposed.
const PROPOSED: usize = 3;

/// Names longer than this are not compared: that would take seconds where there are many, and real ones are shorter.
const LONGEST: usize = 100;

/// The known names that are most like `wanted`: few letters differ, or one holds the other. Best first.
#[must_use]
pub fn names<'n>(wanted: &str, known: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let known: BTreeSet<_> = known.filter(|name| name.len() <= LONGEST).collect();
    if wanted.is_empty() || wanted.len() > LONGEST {
        return vec![];
    }
    let mut near: Vec<_> = known
        .into_iter()
        .filter_map(|name| Some((distance(wanted, name)?, name)))
        .collect();
    near.sort_unstable();
    near.into_iter()
        .map(|(_, name)| name)
        .take(PROPOSED)
        .collect()
}

/// The hint that proposes names; none when there are none.
#[must_use]
pub fn hint(names: &[&str]) -> Option<String> {
    let (last, others) = names.split_last()?;
    Some(if others.is_empty() {
        format!("did you mean {last}?")
    } else {
        format!("did you mean {} or {last}?", others.join(", "))
    })
}

fn distance(wanted: &str, name: &str) -> Option<usize> {
    let (one, other) = (wanted.chars().count(), name.chars().count());
    let near = one.max(other).div_ceil(4);
    let holds = one.min(other) > 2 && (name.contains(wanted) || wanted.contains(name));
    // As many letters differ at least.
    if one.abs_diff(other) > near && !holds {
        return None;
    }
    let distance = strsim::osa_distance(wanted, name);
    (distance <= near || holds).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_are_alike_are_proposed() {
        let known = [
            "strimzi-kafka-operator",
            "kafka",
            "kettle",
            "akfka",
            "zebra",
        ];
        assert_eq!(names("kafak", known.into_iter()), ["kafka", "akfka"]);
        assert_eq!(
            names("strimzi", known.into_iter()),
            ["strimzi-kafka-operator"]
        );
        assert!(names("prometheus", known.into_iter()).is_empty());
    }
}
