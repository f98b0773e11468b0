//! Inventories that are damaged, edited, gone, or left in parts.

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use kubectl_olm::cluster::inventory::applyset_id;
use serde_json::{Value, json};

use super::{
    super::{
        cluster::{NOTHING, cluster},
        kill_matrix::Stage,
    },
    UNCHANGED, applied, bundle, changes, cleanup, expect, get, is_there, path, send,
};

/// The Secret of the inventory of a stage.
fn inventory(stage: &Stage) -> String {
    path(stage, "secrets", "kubectl-olm.twelve-operator")
}

/// Changes the text of an inventory.
fn edit_inventory(stage: &Stage, edit: impl FnOnce(&mut Value)) {
    let (_, mut secret) = get(&inventory(stage));
    let packed = secret["data"]["inventory"].as_str().expect("an inventory");
    let packed = STANDARD.decode(packed).expect("base64");
    let mut text: Value = serde_json::from_reader(GzDecoder::new(&packed[..])).expect("JSON");
    edit(&mut text);
    let mut encoder = GzEncoder::new(vec![], Compression::default());
    serde_json::to_writer(&mut encoder, &text).expect("memory");
    secret["data"]["inventory"] = json!(STANDARD.encode(encoder.finish().expect("memory")));
    send("PUT", &inventory(stage), &secret);
}

#[test]
fn an_inventory_that_cannot_be_understood_stops_everything() {
    let stage = applied();
    let (_, good) = get(&inventory(&stage));
    let packed = good["data"]["inventory"].as_str().expect("an inventory");
    let cases = [
        (
            json!(packed[..packed.len() / 8 * 4].to_owned()),
            "cannot be decompressed",
        ),
        (
            json!(STANDARD.encode("no inventory")),
            "cannot be decompressed",
        ),
        (Value::Null, "neither data.inventory"),
    ];
    let check = |said: &str| {
        stage.proxy.settle();
        for run in [bundle(&stage, "apply", "v2", &["--yes"]), cleanup(&stage)] {
            let secret = stage.rename("secret/kubectl-olm.twelve-operator");
            expect(&run, 5, &[&secret, said, "hint: ", "othing was changed"]);
        }
        assert!(changes(&stage).is_empty(), "{:?}", changes(&stage));
    };
    for (data, said) in cases {
        send(
            "PATCH",
            &inventory(&stage),
            &json!({"data": {"inventory": data}}),
        );
        check(said);
    }
    send(
        "PATCH",
        &inventory(&stage),
        &json!({"data": {"inventory": packed}}),
    );
    edit_inventory(&stage, |text| text["form"] = json!(99));
    check("a later version of kubectl-olm");
    send(
        "PATCH",
        &inventory(&stage),
        &json!({"data": {"inventory": packed}}),
    );
    edit_inventory(&stage, |text| text["objects"] = json!("all"));
    check("not as they are written");
    send(
        "PATCH",
        &inventory(&stage),
        &json!({"data": {"inventory": packed}}),
    );
    expect(&cleanup(&stage), 0, &[]);
}

/// Makes a Secret that says it is a part of the inventory of the install of a stage.
fn part(stage: &Stage, name: &str) {
    let install = stage.rename("twelve-operator");
    let id = applyset_id(&stage.namespace, &format!("kubectl-olm.{install}"));
    let secret = json!({
        "metadata": {"name": stage.rename(name), "labels": {"kubectl-olm/inventory": id}},
        "data": {"inventory": "eA=="},
    });
    let path = path(stage, "secrets", name);
    let (folder, _) = path.rsplit_once('/').expect("a path");
    send("POST", folder, &secret);
}

/// A run that was killed between the parts of an inventory and the Secret that names them left them.
#[test]
fn parts_that_no_inventory_names_go_with_the_next_run() {
    let stage = applied();
    let part_of = |number| format!("kubectl-olm.twelve-operator.g1.0123456789ab.{number}");
    part(&stage, "somebody-elses");
    for (number, command) in [(1, "apply"), (2, "cleanup")] {
        part(&stage, &part_of(number));
        let run = match command {
            "apply" => bundle(&stage, "apply", "v2", &["--yes"]),
            _ => cleanup(&stage),
        };
        expect(&run, 0, &[]);
        assert!(!is_there(&stage, "secrets", &part_of(number)), "{command}");
    }
    assert!(is_there(&stage, "secrets", "somebody-elses"));
}

#[test]
fn objects_without_their_inventory_are_taken_back_only_on_request() {
    let stage = applied();
    cluster().send("DELETE", &inventory(&stage), NOTHING);
    let run = bundle(&stage, "apply", "v1", &[]);
    let settings = stage.rename("configmap/twelve-settings");
    expect(
        &run,
        5,
        &[
            &settings,
            "whose inventory does not list it",
            "--adopt",
            UNCHANGED,
        ],
    );
    assert!(changes(&stage).is_empty(), "{:?}", changes(&stage));
    expect(&bundle(&stage, "apply", "v1", &["--adopt", "all"]), 0, &[]);
    expect(&cleanup(&stage), 0, &[]);
    assert!(!is_there(&stage, "configmaps", "twelve-settings"));
}

/// Whoever may write Secrets in a namespace may list there what is not the install's, and anybody may copy a label.
#[test]
fn what_is_only_said_to_be_ours_is_never_deleted() {
    let stage = applied();
    let system = "/api/v1/namespaces/kube-system/secrets";
    let name = stage.rename("twelve-crown-jewels");
    let copy = stage.rename("twelve-copied-label");
    let label = get(&path(&stage, "configmaps", "twelve-settings")).1["metadata"]["labels"].clone();
    send(
        "POST",
        system,
        &json!({"metadata": {"name": name}, "stringData": {"keep": "this"}}),
    );
    let maps = format!("/api/v1/namespaces/{}/configmaps", stage.namespace);
    send(
        "POST",
        &maps,
        &json!({"metadata": {"name": copy, "labels": label}}),
    );
    let jewels = format!("{system}/{name}");
    let (_, before) = get(&jewels);
    edit_inventory(&stage, |text| {
        let listed = json!({
            "group": "", "version": "v1", "kind": "Secret", "plural": "secrets", "namespace": "kube-system",
            "name": name, "uid": before["metadata"]["uid"], "asked": "", "managed": "", "hold": "owned",
        });
        text["objects"].as_array_mut().expect("a list").push(listed);
    });
    let upgrade = bundle(&stage, "apply", "v2", &["--yes"]);
    let foreign = format!("secret/{name}: the inventory lists it in kube-system");
    expect(&upgrade, 6, &[&foreign, "it never was this install's"]);
    expect(&cleanup(&stage), 0, &[]);
    assert_eq!(get(&jewels).1, before);
    assert_eq!(get(&format!("{maps}/{copy}")).0, 200);
    cluster().send("DELETE", &jewels, NOTHING);
}
