//! The rights that somebody has in one of two versions only, by what rules mean and not by how they are written.

use std::collections::{BTreeMap, BTreeSet};

use super::super::rights::{Grant, Rule, Subject, granted};
use crate::manifest::Manifest;

/// As many single rights of a version are compared; real installs have thousands.
const MOST: usize = 200_000;

/// Something that somebody may do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// Who may do it.
    pub subject: Subject,
    /// The namespace where; empty for all of them and for what is in none.
    pub namespace: String,
    /// What.
    pub may: May,
}

/// What somebody may do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum May {
    /// What a rule allows.
    Rule(Rule),
    /// What a role allows that only the cluster knows: its kind and name.
    Role(String, String),
}

/// The rights that are gained and those that are lost.
pub(super) fn between(old: &[Manifest], new: &[Manifest]) -> (Vec<Right>, Vec<Right>) {
    let (old, new) = (granted(old), granted(new));
    (only_in(&new, &old), only_in(&old, &new))
}

/// One verb for one resource of one group, of one name where rules name some; or one verb for one URL, as a resource of no
/// group whose name starts with `/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Single<'g> {
    group: &'g str,
    resource: &'g str,
    name: &'g str,
    verb: &'g str,
}

/// The rights of one version that the other does not have.
fn only_in(these: &[Grant], others: &[Grant]) -> Vec<Right> {
    let mut others_of: BTreeMap<&Subject, Vec<&Grant>> = BTreeMap::new();
    for grant in others {
        others_of.entry(&grant.subject).or_default().push(grant);
    }
    let mut rights = BTreeSet::new();
    let mut left = MOST;
    let mut singles: BTreeMap<(&Subject, &str), BTreeSet<Single<'_>>> = BTreeMap::new();
    for grant in these {
        let others = others_of.get(&grant.subject).map_or(&[][..], Vec::as_slice);
        let others = others
            .iter()
            .filter(|other| other.namespace.is_empty() || other.namespace == grant.namespace);
        let others: Vec<_> = others.copied().collect();
        let Some(rules) = &grant.role.rules else {
            let is_there = others.iter().any(|other| {
                (&other.role.kind, &other.role.name) == (&grant.role.kind, &grant.role.name)
            });
            if !is_there {
                let may = May::Role(grant.role.kind.clone(), grant.role.name.clone());
                rights.insert(right(&grant.subject, &grant.namespace, may));
            }
            continue;
        };
        let theirs: Vec<_> = others
            .iter()
            .flat_map(|other| other.role.rules.iter().flatten())
            .collect();
        let found = rules.iter().flat_map(singles_of).take(left);
        let found = found.inspect(|_| left = left.saturating_sub(1));
        let found: Vec<_> = found
            .filter(|single| !theirs.iter().any(|rule| allows(rule, single)))
            .collect();
        singles
            .entry((&grant.subject, &grant.namespace))
            .or_default()
            .extend(found);
    }
    for ((subject, namespace), singles) in singles {
        for rule in joined(&singles) {
            rights.insert(right(subject, namespace, May::Rule(rule)));
        }
    }
    rights.into_iter().collect()
}

fn right(subject: &Subject, namespace: &str, may: May) -> Right {
    Right {
        subject: subject.clone(),
        namespace: namespace.to_owned(),
        may,
    }
}

/// What a rule allows, one by one.
fn singles_of(rule: &Rule) -> impl Iterator<Item = Single<'_>> {
    let urls = rule.verbs.iter().flat_map(|verb| {
        rule.urls.iter().map(move |url| Single {
            group: "",
            resource: url,
            name: "",
            verb,
        })
    });
    let any = std::iter::once("").filter(|_| rule.names.is_empty());
    let names: Vec<_> = any.chain(rule.names.iter().map(String::as_str)).collect();
    let resources = rule.groups.iter().flat_map(move |group| {
        let names = names.clone();
        rule.resources.iter().flat_map(move |resource| {
            let names = names.clone();
            rule.verbs.iter().flat_map(move |verb| {
                let names = names.clone().into_iter();
                names.map(move |name| Single {
                    group,
                    resource,
                    name,
                    verb,
                })
            })
        })
    });
    urls.chain(resources)
}

/// Whether a rule allows something, as RBAC reads rules (k8s.io/kubernetes `pkg/apis/rbac/v1/evaluation_helpers.go`).
fn allows(rule: &Rule, single: &Single<'_>) -> bool {
    let has = |list: &[String], word: &str| list.iter().any(|one| one == "*" || one == word);
    if !has(&rule.verbs, single.verb) {
        return false;
    }
    if single.resource.starts_with('/') {
        return rule.urls.iter().any(|url| {
            let start = url.strip_suffix('*');
            url == single.resource || start.is_some_and(|start| single.resource.starts_with(start))
        });
    }
    let part = single
        .resource
        .split_once('/')
        .map(|(_, part)| format!("*/{part}"));
    let of_resource = has(&rule.resources, single.resource)
        || part.is_some_and(|part| rule.resources.contains(&part));
    let of_name = rule.names.is_empty() || rule.names.iter().any(|name| name == single.name);
    has(&rule.groups, single.group) && of_resource && of_name
}

/// Single rights as few rules.
fn joined(singles: &BTreeSet<Single<'_>>) -> Vec<Rule> {
    let mut verbs: BTreeMap<(&str, &str, &str), BTreeSet<&str>> = BTreeMap::new();
    for single in singles {
        let of = (single.group, single.resource, single.name);
        verbs.entry(of).or_default().insert(single.verb);
    }
    let mut resources: BTreeMap<(&str, &str, BTreeSet<&str>), Vec<String>> = BTreeMap::new();
    for ((group, resource, name), verbs) in verbs {
        let of = (group, name, verbs);
        resources.entry(of).or_default().push(resource.to_owned());
    }
    let mut rules = vec![];
    for ((group, name, verbs), resources) in resources {
        let (urls, resources): (Vec<_>, Vec<_>) = resources
            .into_iter()
            .partition(|resource| resource.starts_with('/'));
        let rule = Rule {
            verbs: verbs.into_iter().map(str::to_owned).collect(),
            ..Rule::default()
        };
        if !urls.is_empty() {
            rules.push(Rule {
                urls,
                ..rule.clone()
            });
        }
        if !resources.is_empty() {
            rules.push(Rule {
                groups: vec![group.to_owned()],
                resources,
                names: std::iter::once(name)
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned)
                    .collect(),
                ..rule
            });
        }
    }
    rules
}
