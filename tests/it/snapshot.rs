//! What is in a cluster, as far as an install could have changed it: to compare what two ways lead to.
//!
//! Left out is what differs between two runs of the same: identities and times, what the API server chooses, status, and
//! what the controllers make of an object.

use std::{collections::BTreeSet, fs, path::Path};

use kubectl_olm::{limits::Limits, manifest::yaml};
use serde_json::{Value, json};
use similar::TextDiff;

use super::{
    cluster::{Cluster, NOTHING},
    program::root,
};

/// Kinds of namespaced objects that an install brings or changes: where their API is, and their plural.
const NAMESPACED: [(&str, &str); 17] = [
    ("/api/v1", "configmaps"),
    ("/api/v1", "persistentvolumeclaims"),
    ("/api/v1", "resourcequotas"),
    ("/api/v1", "secrets"),
    ("/api/v1", "serviceaccounts"),
    ("/api/v1", "services"),
    ("/apis/apps/v1", "daemonsets"),
    ("/apis/apps/v1", "deployments"),
    ("/apis/apps/v1", "statefulsets"),
    ("/apis/autoscaling/v2", "horizontalpodautoscalers"),
    ("/apis/batch/v1", "cronjobs"),
    ("/apis/batch/v1", "jobs"),
    ("/apis/coordination.k8s.io/v1", "leases"),
    ("/apis/networking.k8s.io/v1", "networkpolicies"),
    ("/apis/policy/v1", "poddisruptionbudgets"),
    ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    ("/apis/rbac.authorization.k8s.io/v1", "roles"),
];

/// Where the definitions of custom resources are.
const DEFINITIONS: (&str, &str) = ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions");

/// Kinds of cluster-wide objects that an install brings.
const CLUSTER_WIDE: [(&str, &str); 8] = [
    DEFINITIONS,
    ("/api/v1", "namespaces"),
    (
        "/apis/admissionregistration.k8s.io/v1",
        "mutatingwebhookconfigurations",
    ),
    (
        "/apis/admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
    ),
    ("/apis/apiregistration.k8s.io/v1", "apiservices"),
    ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    ("/apis/rbac.authorization.k8s.io/v1", "clusterroles"),
    ("/apis/scheduling.k8s.io/v1", "priorityclasses"),
];

/// What asks for lists without the objects' content.
const METADATA: (&str, &str) = (
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "",
);

/// Who writes to objects by itself.
const CONTROLLERS: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kwok"];

/// The least length of a hash in a name.
const HASH: usize = 40;

/// The label of objects that no install may touch.
const BYSTANDER: &str = "bystander";

/// What was in a cluster: the text of each object, under its kind and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeSet<String>);

impl Snapshot {
    /// Takes the objects in namespaces, and those cluster-wide ones whose name contains one of the names. Bystanders are
    /// left out.
    pub(crate) fn take(cluster: &Cluster, namespaces: &[&str], names: &[&str]) -> Self {
        let mut objects = vec![];
        let mut kinds: Vec<_> = NAMESPACED
            .map(|(api, plural)| (api.to_owned(), plural.to_owned()))
            .to_vec();
        for kind in CLUSTER_WIDE {
            for object in named(cluster, kind, names) {
                if kind == DEFINITIONS {
                    kinds.extend(defined(&object));
                }
                objects.push(object);
            }
        }
        for namespace in namespaces {
            for (api, plural) in &kinds {
                objects.extend(list(
                    cluster,
                    &format!("{api}/namespaces/{namespace}/{plural}"),
                ));
            }
        }
        objects.retain(|object| !is_bystander(object) && !is_made_by_controllers(object));
        Self(
            objects
                .into_iter()
                .map(|object| text(normalised(object)))
                .collect(),
        )
    }

    /// Takes the bystanders of a namespace, with all that the API server says of them.
    pub(crate) fn bystanders(cluster: &Cluster, namespace: &str) -> Self {
        let lists =
            NAMESPACED.map(|(api, plural)| format!("{api}/namespaces/{namespace}/{plural}"));
        let objects = lists.iter().flat_map(|path| list(cluster, path));
        Self(objects.filter(is_bystander).map(text).collect())
    }

    /// The same with other names, so that what has different names on purpose can be compared. The names of ClusterRoles
    /// end in a hash of what is in them, which is no longer told.
    pub(crate) fn renamed(&self, names: &[(&str, &str)]) -> Self {
        let rename = |text: &String| {
            let renamed = names
                .iter()
                .fold(text.clone(), |text, (from, to)| text.replace(from, to));
            without_hashes(&renamed)
        };
        Self(self.0.iter().map(rename).collect())
    }

    /// The same without the objects whose kind and name, as `Lease namespace/name`, this is true of.
    pub(crate) fn without(mut self, is_left_out: impl Fn(&str) -> bool) -> Self {
        self.0
            .retain(|text| !is_left_out(text.lines().next().unwrap_or_default()));
        self
    }

    /// Fails with the differences when the other is not the same.
    pub(crate) fn compare(&self, other: &Self) -> Result<(), String> {
        if self == other {
            return Ok(());
        }
        let all = |Self(texts): &Self| texts.iter().cloned().collect::<Vec<_>>().concat();
        let (wanted, got) = (all(self), all(other));
        let difference = TextDiff::from_lines(&wanted, &got);
        Err(difference
            .unified_diff()
            .context_radius(6)
            .header("wanted", "got")
            .to_string())
    }
}

/// Puts objects into a namespace that nobody may change, and an account `shared` of which others have a part.
pub(crate) fn add_bystanders(cluster: &Cluster, namespace: &str) {
    let path = root().join("testdata/cluster/bystanders.yaml");
    for (manager, document) in documents(&path) {
        let kind = document["kind"].as_str().expect("a kind").to_lowercase();
        let name = document["metadata"]["name"].as_str().expect("a name");
        let path = format!("/api/v1/namespaces/{namespace}/{kind}s/{name}?fieldManager={manager}");
        let content = document.to_string();
        let (code, answer) =
            cluster.send("PATCH", &path, ("application/apply-patch+yaml", &content));
        assert!(code < 300, "{path}: {answer}");
    }
}

/// The documents of a file of bystanders, and who applies each.
fn documents(path: &Path) -> Vec<(String, Value)> {
    let text = fs::read_to_string(path).expect("the bystanders");
    let documents = text.split("---\n").skip(1).map(|document| {
        let (manager, document) = document.split_once('\n').expect("a first line");
        let manager = manager.trim_start_matches("# by ").to_owned();
        let mut documents = yaml::read(document.as_bytes(), &Limits::DEFAULT).expect("YAML");
        let value = documents.pop().expect("a document").value;
        (manager, value)
    });
    documents.collect()
}

/// The objects of a kind whose name contains one of the names. Real definitions are large, so only these are read.
fn named(cluster: &Cluster, (api, plural): (&str, &str), names: &[&str]) -> Vec<Value> {
    let (code, found) = cluster.send("GET", &format!("{api}/{plural}"), METADATA);
    assert_eq!(code, 200, "{api}/{plural}: {found}");
    // The items of an empty list of metadata are null.
    let items = found["items"].as_array().into_iter().flatten();
    let found = items.filter_map(|item| item["metadata"]["name"].as_str());
    let found = found.filter(|found| names.iter().any(|name| found.contains(name)));
    let objects = found.map(|name| cluster.send("GET", &format!("{api}/{plural}/{name}"), NOTHING));
    // One that has gone meanwhile is not there.
    objects
        .filter(|(code, _)| *code == 200)
        .map(|(_, object)| object)
        .collect()
}

/// The objects of a list, each with its kind, which lists leave out.
fn list(cluster: &Cluster, path: &str) -> Vec<Value> {
    let (code, mut list) = cluster.send("GET", path, NOTHING);
    if code == 404 {
        return vec![];
    }
    assert_eq!(code, 200, "{path}: {list}");
    let kind = list["kind"]
        .as_str()
        .expect("a kind")
        .trim_end_matches("List")
        .to_owned();
    let items = list["items"]
        .as_array_mut()
        .map(std::mem::take)
        .unwrap_or_default();
    let with_kind = |mut item: Value| {
        item["kind"] = json!(kind);
        item
    };
    items.into_iter().map(with_kind).collect()
}

/// Where the objects of a definition are.
fn defined(definition: &Value) -> Option<(String, String)> {
    let spec = &definition["spec"];
    let version = spec["versions"]
        .as_array()?
        .iter()
        .find(|version| version["storage"] == true)?;
    let (group, version) = (spec["group"].as_str()?, version["name"].as_str()?);
    let plural = spec["names"]["plural"].as_str()?;
    Some((format!("/apis/{group}/{version}"), plural.to_owned()))
}

fn is_bystander(object: &Value) -> bool {
    object["metadata"]["labels"].get(BYSTANDER).is_some()
}

fn is_made_by_controllers(object: &Value) -> bool {
    object["kind"] == "ConfigMap" && object["metadata"]["name"] == "kube-root-ca.crt"
}

/// An object without what differs from run to run.
fn normalised(mut object: Value) -> Value {
    let remove = |value: &mut Value, keys: &[&str]| {
        if let Some(map) = value.as_object_mut() {
            map.retain(|key, _| !keys.contains(&key.as_str()));
        }
    };
    remove(&mut object, &["status"]);
    if object["kind"] == "Service" {
        remove(&mut object["spec"], &["clusterIP", "clusterIPs"]);
    }
    let metadata = &mut object["metadata"];
    remove(
        metadata,
        &["creationTimestamp", "generation", "resourceVersion", "uid"],
    );
    if let Some(entries) = metadata["managedFields"].as_array_mut() {
        let is_ours_to_tell = |entry: &Value| {
            let manager = entry["manager"].as_str().unwrap_or_default();
            entry["subresource"].is_null() && !CONTROLLERS.contains(&manager)
        };
        entries.retain(is_ours_to_tell);
        entries
            .iter_mut()
            .for_each(|entry| remove(entry, &["time"]));
        entries.sort_by_key(Value::to_string);
    }
    object
}

/// An object's text, which begins with its kind and name.
fn text(object: Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let (namespace, name) = (word(&metadata["namespace"]), word(&metadata["name"]));
    format!("{} {namespace}/{name}\n{object:#}\n", word(&object["kind"]))
}

/// A text without the hashes at the end of names: words of so many small letters and digits are nothing else. What a
/// hash leaves of the version in front of it depends on its length.
fn without_hashes(text: &str) -> String {
    let is_of_hash = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit();
    let mut result = String::new();
    for part in text.split_inclusive(|char| !is_of_hash(char)) {
        let word = part.trim_end_matches(|char| !is_of_hash(char));
        if word.len() >= HASH {
            let name = result
                .trim_end_matches('-')
                .trim_end_matches(|char: char| char == '.' || char == 'v' || char.is_ascii_digit());
            result.truncate(name.len());
            result.push_str("-HASH");
            result.push_str(&part[word.len()..]);
        } else {
            result.push_str(part);
        }
    }
    result
}
