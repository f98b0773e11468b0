//! The kinds that an API server serves.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::manifest::ObjectKey;

/// A kind, as it is served.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// Its group, empty for the core group.
    pub group: String,
    /// The version that requests name.
    pub version: String,
    /// The kind: `Deployment`.
    pub kind: String,
    /// What paths name: `deployments`.
    pub plural: String,
    /// Whether its objects are in namespaces.
    pub scope: Scope,
}

/// Where objects of a kind are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In a namespace each.
    Namespaced,
    /// In none.
    Cluster,
}

/// Everything that a server serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    /// By group and kind, the preferred version first.
    served: BTreeMap<(String, String), Vec<Resource>>,
    /// Groups that are there and whose server does not answer, so that nothing is known of their kinds.
    stale: BTreeSet<String>,
    /// Kinds whose objects can be listed, in their preferred versions.
    listed: Vec<Resource>,
}

/// Whether a kind is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served<'r> {
    /// It is, like this.
    As(&'r Resource),
    /// It is not.
    Missing,
    /// The server of its group does not answer.
    Unknown,
}

/// What a server says of all that it serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discovery {
    /// Everything, at once.
    Whole(Resources),
    /// Only its groups and their versions, in the order in which it prefers them: an old server. The kinds of each have to
    /// be asked for.
    Versions(Vec<(String, String)>),
}

impl Discovery {
    /// Reads the answers for `/api` and `/apis`, in the aggregated form (k8s.io/api `apidiscovery/v2`) or the old one
    /// (k8s.io/apimachinery `pkg/apis/meta/v1`, APIVersions and APIGroupList). Nothing when they are neither.
    #[must_use]
    pub fn read(core: &Value, groups: &Value) -> Option<Self> {
        let kind = |value: &Value| text(value, "kind").to_owned();
        match (kind(core).as_str(), kind(groups).as_str()) {
            ("APIGroupDiscoveryList", "APIGroupDiscoveryList") => {
                Some(Self::Whole(Resources::parse(&[core, groups])))
            }
            ("APIVersions", "APIGroupList") => {
                let versions = items(core, "versions").iter();
                let core = versions
                    .filter_map(Value::as_str)
                    .map(|version| (String::new(), version.to_owned()));
                let others = items(groups, "groups").iter().flat_map(versions_of);
                Some(Self::Versions(core.chain(others).take(MOST).collect()))
            }
            _ => None,
        }
    }
}

/// As many kinds, or versions of groups, are looked at: far more than any cluster serves.
const MOST: usize = 100_000;

/// The versions of an APIGroup, the preferred one first.
fn versions_of(group: &Value) -> Vec<(String, String)> {
    let preferred = group.get("preferredVersion").into_iter();
    let all = preferred.chain(items(group, "versions"));
    let mut versions: Vec<(String, String)> = vec![];
    for version in all {
        let version = (
            text(group, "name").to_owned(),
            text(version, "version").to_owned(),
        );
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    versions
}

impl Resources {
    /// Reads lists of the aggregated form (APIGroupDiscoveryList). What is not of that form is passed over.
    #[must_use]
    pub fn parse(lists: &[&Value]) -> Self {
        let mut resources = Self::default();
        let groups = lists.iter().flat_map(|list| items(list, "items"));
        for group in groups {
            let name = group.pointer("/metadata/name");
            let name = name.and_then(Value::as_str).unwrap_or_default();
            for version in items(group, "versions") {
                if text(version, "freshness") == "Stale" {
                    resources.add_stale(name);
                }
                for resource in items(version, "resources").iter().take(MOST) {
                    let response = resource.get("responseKind").unwrap_or(&Value::Null);
                    let found = Resource {
                        group: name.to_owned(),
                        version: text(version, "version").to_owned(),
                        kind: text(response, "kind").to_owned(),
                        plural: text(resource, "resource").to_owned(),
                        scope: match text(resource, "scope") {
                            "Namespaced" => Scope::Namespaced,
                            _ => Scope::Cluster,
                        },
                    };
                    resources.add(found, items(resource, "verbs"));
                }
            }
        }
        resources
    }

    /// Adds the kinds of a version of a group, as the old form has them (APIResourceList).
    pub fn add_list(&mut self, group: &str, version: &str, list: &Value) {
        for resource in items(list, "resources").iter().take(MOST) {
            let namespaced = resource.get("namespaced").and_then(Value::as_bool);
            let found = Resource {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: text(resource, "kind").to_owned(),
                plural: text(resource, "name").to_owned(),
                scope: match namespaced {
                    Some(true) => Scope::Namespaced,
                    _ => Scope::Cluster,
                },
            };
            // Parts of objects, such as `deployments/scale`.
            if !found.plural.contains('/') {
                self.add(found, items(resource, "verbs"));
            }
        }
    }

    /// Remembers that the server of a group does not answer.
    pub fn add_stale(&mut self, group: &str) {
        self.stale.insert(group.to_owned());
    }

    /// What is known of a kind, in the version of an `apiVersion`, else in the preferred one.
    #[must_use]
    pub fn find(&self, key: &ObjectKey, version: &str) -> Served<'_> {
        let served = self.served.get(&(key.group.clone(), key.kind.clone()));
        let served = served.map(Vec::as_slice).unwrap_or_default();
        // An `apiVersion` is a version, or a group and a version.
        let version = version.rsplit_once('/').map_or(version, |(_, only)| only);
        let exact = served.iter().find(|resource| resource.version == version);
        match exact.or(served.first()) {
            Some(resource) => Served::As(resource),
            None if self.stale.contains(&key.group) => Served::Unknown,
            None => Served::Missing,
        }
    }

    /// All kinds whose objects can be listed, each in its preferred version.
    #[must_use]
    pub fn listed(&self) -> &[Resource] {
        &self.listed
    }

    /// The kinds whose objects are in namespaces and can be listed.
    pub fn namespaced(&self) -> impl Iterator<Item = &Resource> {
        let listed = self.listed().iter();
        listed.filter(|resource| resource.scope == Scope::Namespaced)
    }

    /// The groups whose server does not answer.
    #[must_use]
    pub fn stale(&self) -> &BTreeSet<String> {
        &self.stale
    }

    fn add(&mut self, resource: Resource, verbs: &[Value]) {
        if resource.kind.is_empty() || resource.plural.is_empty() || resource.version.is_empty() {
            return;
        }
        let kind = (resource.group.clone(), resource.kind.clone());
        let versions = self.served.entry(kind).or_default();
        if versions
            .iter()
            .any(|other| other.version == resource.version)
        {
            return;
        }
        if versions.is_empty() && verbs.iter().any(|verb| verb == "list") {
            self.listed.push(resource.clone());
        }
        versions.push(resource);
    }
}

/// A field that holds text; empty when it does not.
fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    let field = value.get(field).and_then(Value::as_str);
    field.unwrap_or_default()
}

/// A field that holds a list; empty when it does not.
fn items<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    let field = value.get(field).and_then(Value::as_array);
    field.map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find<'r>(resources: &'r Resources, group: &str, kind: &str, version: &str) -> Served<'r> {
        let key = ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: String::new(),
            name: String::new(),
        };
        resources.find(&key, version)
    }

    fn found(kind: Served<'_>) -> Option<(&str, Scope)> {
        match kind {
            Served::As(resource) => Some((resource.version.as_str(), resource.scope)),
            _ => None,
        }
    }

    fn aggregated() -> Value {
        let queue = |verbs: &[&str]| {
            json!({"resource": "queues", "responseKind": {"group": "", "version": "", "kind": "Queue"},
                "scope": "Namespaced", "verbs": verbs, "subresources": [{"subresource": "status"}]})
        };
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [
            {"metadata": {"name": "example.com"}, "versions": [
                {"version": "v2", "freshness": "Current", "resources": [queue(&["get", "list"])]},
                {"version": "v1", "freshness": "Current", "resources": [queue(&["get", "list"])]}]},
            {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1beta1", "freshness": "Stale"}]},
            {"metadata": {"name": 7}, "versions": [{"resources": [null, {"resource": 1}]}, "v1"]}]})
    }

    #[test]
    fn a_kind_is_found_in_its_version_or_the_preferred_one() {
        let resources = Resources::parse(&[&aggregated()]);
        for (version, expected) in [
            ("v1", "v1"),
            ("example.com/v1", "v1"),
            ("v7", "v2"),
            ("", "v2"),
        ] {
            let found = found(find(&resources, "example.com", "Queue", version));
            assert_eq!(found, Some((expected, Scope::Namespaced)), "{version}");
        }
        assert_eq!(resources.listed().len(), 1);
    }

    #[test]
    fn a_group_that_does_not_answer_is_not_a_kind_that_is_missing() {
        let resources = Resources::parse(&[&aggregated()]);
        let kind = |group| find(&resources, group, "PodMetrics", "v1");
        assert_eq!(kind("metrics.k8s.io"), Served::Unknown);
        assert_eq!(kind("example.com"), Served::Missing);
    }

    #[test]
    fn an_old_server_names_its_versions_first() {
        let core = json!({"kind": "APIVersions", "versions": ["v1"]});
        let groups = json!({"kind": "APIGroupList", "groups": [{"name": "example.com",
            "versions": [{"version": "v1"}, {"version": "v2"}], "preferredVersion": {"version": "v2"}}]});
        let versions = [("", "v1"), ("example.com", "v2"), ("example.com", "v1")];
        let versions = versions.map(|(group, version)| (group.to_owned(), version.to_owned()));
        let read = Discovery::read(&core, &groups);
        assert_eq!(read, Some(Discovery::Versions(versions.to_vec())));
        assert_eq!(Discovery::read(&core, &json!("<html>")), None);
        let mut resources = Resources::default();
        resources.add_list(
            "",
            "v1",
            &json!({"resources": [
            {"name": "pods/eviction", "kind": "Eviction", "namespaced": true, "verbs": ["create"]},
            {"name": "nodes", "kind": "Node", "namespaced": false, "verbs": ["list"]}]}),
        );
        assert_eq!(
            found(find(&resources, "", "Node", "v1")),
            Some(("v1", Scope::Cluster))
        );
        assert_eq!(find(&resources, "", "Eviction", "v1"), Served::Missing);
    }
}
