//! Inventories: what is written is read again, is an ApplySet for kubectl, and what was damaged or edited is refused.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read, Write},
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use kubectl_olm::{
    cluster::{
        accounts::{Entry, List},
        inventory::{Content, Hold, INVENTORY, InstallName, Inventory, Member, PARENTS, State},
        plan::{self, Fate, Found, Keeping, Others},
    },
    manifest::ObjectKey,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    cases::read,
    cluster::cluster,
    program::{Run, root},
};

fn key(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

fn member(plural: &str, uid: Option<&str>) -> Member {
    Member {
        version: "v1".to_owned(),
        plural: plural.to_owned(),
        uid: uid.map(str::to_owned),
        asked: String::new(),
        managed: String::new(),
        hold: Hold::Owned,
    }
}

fn of(namespace: &str, objects: impl IntoIterator<Item = (ObjectKey, Member)>) -> Inventory {
    Inventory {
        install: InstallName::new(namespace, "queues").expect("a name"),
        generation: 2,
        state: State::Running {
            what: "apply".to_owned(),
            who: "ann@here pid 4711".to_owned(),
        },
        content: Content {
            package: "queues".to_owned(),
            bundle: "queues.v1.2.0".to_owned(),
            version: "1.2.0".to_owned(),
            ..Content::default()
        },
        objects: objects.into_iter().collect(),
        entries: BTreeSet::from([Entry {
            namespace: "ops".to_owned(),
            account: "manager".to_owned(),
            list: List::ImagePullSecrets,
            secret: "pull".to_owned(),
        }]),
        required_by: BTreeSet::from([InstallName::new("ops", "tasks").expect("a name")]),
    }
}

fn small() -> Inventory {
    let deployment = (
        key("apps", "Deployment", "ops", "manager"),
        member("deployments", Some("u-1")),
    );
    of("ops", [deployment])
}

/// An inventory whose objects have names and hashes that no compression makes shorter.
fn large(objects: usize) -> Inventory {
    let mut random = fastrand::Rng::with_seed(7);
    let mut text = |digits: usize| -> String { (0..digits).map(|_| random.digit(16)).collect() };
    let objects: Vec<_> = (0..objects)
        .map(|_| {
            let key = key("", "ConfigMap", "ops", &text(32));
            let member = Member {
                uid: Some(text(32)),
                asked: text(64),
                managed: text(64),
                ..member("configmaps", None)
            };
            (key, member)
        })
        .collect();
    of("ops", objects)
}

fn unpacked(secret: &Value) -> Value {
    let text = secret["data"]["inventory"].as_str().expect("contents");
    let mut json = vec![];
    let bytes = STANDARD.decode(text).expect("base64");
    GzDecoder::new(bytes.as_slice())
        .read_to_end(&mut json)
        .expect("gzip");
    serde_json::from_slice(&json).expect("JSON")
}

fn packed(text: &[u8]) -> Value {
    let mut encoder = GzEncoder::new(vec![], Compression::default());
    encoder.write_all(text).expect("memory takes it");
    STANDARD
        .encode(encoder.finish().expect("memory takes it"))
        .into()
}

/// A JSON merge patch (RFC 7386).
fn merge(value: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object().filter(|_| value.is_object()) else {
        *value = patch.clone();
        return;
    };
    for (field, patch) in patch {
        if patch.is_null() {
            value.as_object_mut().expect("a map").remove(field);
        } else {
            merge(&mut value[field], patch);
        }
    }
}

/// Why the Secrets are refused. An inventory that is read all the same is too long to be shown.
fn read_error(first: &Value, others: &[Value]) -> String {
    Inventory::read(first, others)
        .map_or_else(|error| error.to_string(), |_| "it is read".to_owned())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default)]
    text: Option<Value>,
    #[serde(default)]
    add: BTreeMap<String, Vec<Value>>,
    #[serde(default)]
    secret: Option<Value>,
    error: String,
}

#[test]
fn what_was_edited_is_refused() {
    let mut wrong = vec![];
    let entries = fs::read_dir(root().join("testdata/inventory")).expect("cases");
    let paths = entries.map(|entry| entry.expect("a case").path());
    let paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    assert!(paths.len() >= 20, "cases are missing");
    for path in paths {
        let case: Case = read(&path);
        let mut secret = small().secrets().swap_remove(0);
        let mut text = unpacked(&secret);
        merge(&mut text, &case.text.unwrap_or(json!({})));
        for (list, items) in case.add {
            text[list].as_array_mut().expect("a list").extend(items);
        }
        secret["data"]["inventory"] = packed(text.to_string().as_bytes());
        merge(&mut secret, &case.secret.unwrap_or(json!({})));
        let error = read_error(&secret, &[]);
        if !error.contains(&format!(": {}", case.error)) {
            wrong.push(format!("{}: {error}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ten_thousand_objects_are_written_and_read_in_parts() {
    let inventory = large(10_000);
    let begun = Instant::now();
    let secrets = inventory.secrets();
    assert!(secrets.len() > 2, "{} Secrets", secrets.len());
    for secret in &secrets {
        assert!(secret.to_string().len() < 3 << 19, "etcd takes it");
    }
    let (first, parts) = secrets.split_first().expect("a parent");
    let named = Inventory::parts(first).expect("parts");
    let names: Vec<_> = parts
        .iter()
        .map(|part| part["metadata"]["name"].clone())
        .collect();
    assert_eq!(json!(named), json!(names));
    let mut any_order = parts.to_vec();
    any_order.reverse();
    assert!(Inventory::read(first, &any_order) == Ok(inventory.clone()));
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert!(inventory.secrets() == secrets, "the same bytes each time");
}

/// A run that is killed between two Secrets leaves parts of two inventories, and the parent of the one before.
#[test]
fn a_set_that_is_half_written_is_never_taken_for_a_whole() {
    let before = large(9_000);
    let mut after = before.clone();
    after.state = State::Done;
    after.objects.pop_first();
    let (old, new) = (before.secrets(), after.secrets());
    let all: Vec<_> = old
        .iter()
        .chain(&new)
        .skip(1)
        .filter(|secret| secret["data"]["parts"].is_null())
        .cloned()
        .collect();
    let names: BTreeSet<_> = all
        .iter()
        .map(|part| part["metadata"]["name"].to_string())
        .collect();
    assert_eq!(names.len(), all.len(), "no part takes the place of another");
    assert!(Inventory::read(&old[0], &all) == Ok(before));
    assert!(Inventory::read(&new[0], &all) == Ok(after));
    let error = read_error(&new[0], &old[1..]);
    assert!(error.ends_with(" is missing"), "{error}");
    let mut torn = new[1].clone();
    torn["data"]["inventory"] = old[1]["data"]["inventory"].clone();
    let others: Vec<_> = [torn].into_iter().chain(new[2..].to_vec()).collect();
    let error = read_error(&new[0], &others);
    assert!(
        error.ends_with("has another checksum than it is listed with"),
        "{error}"
    );
}

#[test]
fn a_bomb_and_damage_are_errors() {
    let mut secret = small().secrets().swap_remove(0);
    let good = secret["data"]["inventory"].clone();
    secret["data"]["inventory"] = packed(&vec![b' '; 200 << 20]);
    let error = read_error(&secret, &[]);
    assert!(error.contains("over the limit"), "{error}");
    secret["data"]["inventory"] = packed("[".repeat(10_000_000).as_bytes());
    assert!(Inventory::read(&secret, &[]).is_err());
    let bytes = STANDARD
        .decode(good.as_str().expect("a text"))
        .expect("base64");
    let mut random = fastrand::Rng::with_seed(7);
    for length in 0..bytes.len() {
        secret["data"]["inventory"] = STANDARD.encode(&bytes[..length]).into();
        assert!(Inventory::read(&secret, &[]).is_err(), "cut at {length}");
        let mut turned = bytes.clone();
        turned[length] ^= 1 << random.u8(0..8);
        secret["data"]["inventory"] = STANDARD.encode(&turned).into();
        // What a flipped bit of the header changes is no content.
        if let Ok(read) = Inventory::read(&secret, &[]) {
            assert_eq!(read, small(), "turned at {length}");
        }
    }
}

#[test]
fn its_annotations_tell_people_what_is_installed() {
    let secret = small().secrets().swap_remove(0);
    let annotations = &secret["metadata"]["annotations"];
    for (key, text) in [
        ("package", "queues"),
        ("version", "1.2.0"),
        ("state", "running"),
        ("run", "apply"),
        ("run-by", "ann@here pid 4711"),
        ("objects", "1"),
        ("required-by", "ops/tasks"),
    ] {
        assert_eq!(annotations[format!("kubectl-olm/{key}")], text, "{key}");
    }
}

/// Names prove nothing: an object may have been deleted and made again by somebody else, a label may have been copied, and a
/// list may have been edited.
#[test]
fn only_the_object_that_is_listed_goes() {
    let install = InstallName::new("ops", "queues").expect("a name");
    let id = install.applyset_id();
    let ours = json!([{"manager": "kubectl-olm", "operation": "Apply"}]);
    let none = json!(null);
    let key = key("", "ConfigMap", "ops", "settings");
    let goes = |known: Option<&str>, uid: &str, label: &str, fields: &Value| {
        let live = json!({"metadata": {"uid": uid, "labels": {"applyset.kubernetes.io/part-of": label}, "managedFields": fields}});
        let member = member("configmaps", known);
        let fate = plan::fate(
            &install,
            (&key, &member),
            &Found::Object(live),
            &Others::default(),
            &Keeping::default(),
        );
        match fate {
            Fate::Delete { uid } => Some(uid),
            _ => None,
        }
    };
    assert_eq!(goes(Some("u-1"), "u-1", &id, &none), Some("u-1".to_owned()));
    assert_eq!(goes(Some("u-1"), "u-1", "other", &ours), None);
    assert_eq!(goes(Some("u-1"), "u-9", &id, &ours), None);
    // A run that was killed meant to make it, and only what it has written to is ours.
    assert_eq!(goes(None, "u-2", &id, &ours), Some("u-2".to_owned()));
    assert_eq!(goes(None, "u-2", &id, &none), None);
}

/// kubectl finds the members by their label, and takes the Secret for the parent of an ApplySet: it stops at another tool,
/// and prunes as its own what is not named to it once the Secret says that the tool is kubectl.
#[test]
fn kubectl_takes_it_for_an_applyset() {
    let cluster = cluster();
    let namespace = cluster.namespace("inventory");
    let object = (
        key("", "ConfigMap", &namespace, "one"),
        member("configmaps", None),
    );
    let inventory = of(&namespace, [object]);
    let id = inventory.install.applyset_id();
    let one = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": namespace, "labels": {"applyset.kubernetes.io/part-of": id}}});
    let secret = inventory.secrets().swap_remove(0);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("objects.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [one, secret]});
    fs::write(&file, list.to_string()).expect("a file");
    let path = file.to_str().expect("Unicode");
    cluster.get(&["create", "-f", path]);
    let names = cluster.get(&[
        "get",
        "configmaps",
        "-n",
        &namespace,
        "-o",
        "name",
        "-l",
        &format!("applyset.kubernetes.io/part-of={id}"),
    ]);
    assert_eq!(names, "configmap/one\n");
    let parents = cluster.get(&[
        "get", "secrets", "-n", &namespace, "-o", "name", "-l", PARENTS,
    ]);
    assert_eq!(parents, "secret/kubectl-olm.queues\n");
    let parts = cluster.get(&[
        "get", "secrets", "-n", &namespace, "-o", "name", "-l", INVENTORY,
    ]);
    assert_eq!(parts, "");
    let stored = cluster.get(&[
        "get",
        "secret",
        "kubectl-olm.queues",
        "-n",
        &namespace,
        "-o",
        "json",
    ]);
    let stored: Value = serde_json::from_str(&stored).expect("JSON");
    assert_eq!(
        Inventory::read(&stored, &[]).expect("an inventory"),
        inventory
    );
    let two = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two", "namespace": namespace}});
    fs::write(&file, two.to_string()).expect("a file");
    let prune = || {
        let mut kubectl = cluster.kubectl();
        kubectl.env("KUBECTL_APPLYSET", "true");
        kubectl.args([
            "apply",
            "-n",
            &namespace,
            "--prune",
            "--applyset=secrets/kubectl-olm.queues",
            "-f",
            path,
        ]);
        Run::from(kubectl.output().expect("kubectl"))
    };
    let stopped = prune();
    assert_ne!(stopped.code, 0);
    assert!(stopped.stderr.contains("kubectl-olm"), "{}", stopped.stderr);
    cluster.get(&[
        "annotate",
        "--overwrite",
        "-n",
        &namespace,
        "secret/kubectl-olm.queues",
        "applyset.kubernetes.io/tooling=kubectl/v1.34.2",
    ]);
    let pruned = prune();
    assert_eq!(pruned.code, 0, "{}", pruned.stderr);
    assert!(
        pruned.stdout.contains("configmap/one pruned"),
        "{}",
        pruned.stdout
    );
}
