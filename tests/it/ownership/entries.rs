//! Copies of pull Secrets, and the entries of ServiceAccounts that name them.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use serde_json::json;

use super::{
    super::{
        cluster::{DockercfgController, NOTHING, cluster},
        faults::{Fault, Request, Rule},
        kill_matrix::Stage,
        two_actors::{V1, cleanup, done, olm, snapshot},
    },
    HELPER, apply_with_secret, cleanup_of, create, delete, live, patch, pull_secret, says, vault,
    whole,
};

fn entries(stage: &Stage, account: &str, list: &str) -> Vec<String> {
    let account = live(stage, &format!("serviceaccounts/{account}")).expect("the account");
    let entries = account[list].as_array().cloned().unwrap_or_default();
    entries
        .iter()
        .map(|entry| entry["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn a_copy_follows_its_source_by_whichever_install_and_outlives_it() {
    let vault = vault();
    let stage = Stage::new();
    let bundles = [V1, HELPER];
    let password = || {
        let copy = live(&stage, "secrets/pull").expect("the copy");
        copy["data"][".dockerconfigjson"].clone()
    };
    let is_content = |bundle: &str| {
        let mut diff = olm(&stage, &["diff", "-n", &stage.namespace, "--pull-secret"]);
        diff.arg(format!("{vault}/pull")).arg(stage.copy(bundle));
        done(diff, 0);
    };
    for bundle in bundles {
        done(apply_with_secret(&stage, bundle, &vault), 0);
    }
    let source = format!("/api/v1/namespaces/{vault}/secrets/pull");
    for (first, text) in [(bundles[1], "second"), (bundles[0], "third")] {
        let before = password();
        patch(
            &stage,
            &source,
            json!({"stringData": pull_secret(text)["stringData"]}),
        );
        let run = done(apply_with_secret(&stage, first, &vault), 0);
        says(&run.stdout, &["secret/pull"]);
        assert_ne!(password(), before);
        bundles.iter().for_each(|bundle| is_content(bundle));
    }
    let before = password();
    delete(&stage, &source);
    for bundle in bundles {
        done(apply_with_secret(&stage, bundle, &vault), 0);
    }
    assert_eq!(password(), before);
    done(cleanup_of(&stage, "twelve-helper"), 0);
    assert_eq!(password(), before);
    done(cleanup(&stage), 0);
    assert!(live(&stage, "secrets/pull").is_none());
}

#[test]
fn a_secret_of_the_user_is_used_when_it_is_the_same_and_never_deleted() {
    let (stage, vault) = (Stage::new(), vault());
    create(&stage.namespace, &pull_secret("first"));
    let before = live(&stage, "secrets/pull").expect("it is there");
    let run = done(apply_with_secret(&stage, V1, &vault), 0);
    says(&run.stdout, &["secret/pull used"]);
    done(apply_with_secret(&stage, V1, &vault), 0);
    done(cleanup(&stage), 0);
    assert_eq!(live(&stage, "secrets/pull"), Some(before));
}

#[test]
fn a_secret_of_the_user_with_other_data_refuses_the_install() {
    let (stage, vault) = (Stage::new(), vault());
    create(&stage.namespace, &pull_secret("of the user"));
    let before = snapshot(&stage);
    let run = done(apply_with_secret(&stage, V1, &vault), 5);
    let object = format!("secret/pull in {}", stage.namespace);
    says(
        &run.stderr,
        &[
            &object,
            "it is there with other data",
            "give the pull Secret another name, or --adopt secret/pull",
            "nothing was changed",
        ],
    );
    before
        .compare(&snapshot(&stage))
        .unwrap_or_else(|changed| panic!("{changed}"));
}

#[test]
fn an_account_gets_an_entry_once_and_keeps_those_of_others() {
    let (stage, vault) = (Stage::new(), vault());
    let version = || {
        let account = live(&stage, "serviceaccounts/shared").expect("the account");
        account["metadata"]["resourceVersion"].clone()
    };
    let install = || {
        let mut command = apply_with_secret(&stage, V1, &vault);
        command.args(["--also-service-account", "shared"]);
        done(command, 0)
    };
    install();
    let once = version();
    for _ in 1..50 {
        install();
    }
    assert_eq!(version(), once);
    assert_eq!(
        entries(&stage, "shared", "imagePullSecrets"),
        ["alice-pull", "bob-pull", "pull"]
    );
    assert_eq!(entries(&stage, "shared", "secrets"), ["alice-pull"]);
    // What is applied has no list, or it would be ours as a whole.
    let applied = stage.proxy.requests();
    let applied: Vec<_> = applied
        .iter()
        .filter(|request| {
            request.path.contains("/serviceaccounts/") && request.query.contains("fieldManager")
        })
        .collect();
    let is_applied = |request: &&&Request| request.body.contains("\"kind\":\"ServiceAccount\"");
    assert!(applied.iter().any(|request| is_applied(&request)));
    for request in applied.iter().filter(is_applied) {
        assert!(
            !request.body.contains("imagePullSecrets") && !request.body.contains("\"secrets\""),
            "{}",
            request.body
        );
    }
    done(cleanup(&stage), 0);
    let before = ["alice-pull", "bob-pull"];
    assert_eq!(entries(&stage, "shared", "imagePullSecrets"), before);
    assert_eq!(entries(&stage, "shared", "secrets"), ["alice-pull"]);
}

#[test]
fn no_entry_is_lost_when_nine_write_at_once() {
    const WRITERS: usize = 8;
    let (stage, vault) = (Stage::new(), vault());
    let delay = Rule::new(Fault::Delay(Duration::from_millis(50)));
    stage
        .proxy
        .set_rules([delay.writes().path("/serviceaccounts/shared")]);
    let path = whole(&stage, "serviceaccounts/shared");
    let append = |writer: usize| {
        loop {
            let (_, mut account) = cluster().send("GET", &path, NOTHING);
            let list = account["imagePullSecrets"].as_array_mut().expect("a list");
            list.push(json!({"name": format!("writer-{writer}")}));
            let text = account.to_string();
            let (code, answer) = cluster().send("PUT", &path, ("application/json", &text));
            match code {
                200 => break,
                409 => {}
                _ => panic!("{answer}"),
            }
        }
    };
    let mut command = apply_with_secret(&stage, V1, &vault);
    command.args(["--also-service-account", "shared"]);
    // Each writer begins with another one of our tries.
    let tries = || {
        let requests = stage.proxy.requests();
        let is_ours = |request: &&Request| request.method == "PATCH" && request.path == path;
        requests.iter().filter(is_ours).count()
    };
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            done(command, 0);
            is_done.store(true, Ordering::Relaxed);
        });
        for writer in 0..WRITERS {
            let (tries, is_done, append) = (&tries, &is_done, &append);
            scope.spawn(move || {
                while tries() <= writer / 2 && !is_done.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
                append(writer);
            });
        }
    });
    let mut found = entries(&stage, "shared", "imagePullSecrets");
    found.sort();
    let mut wanted: Vec<_> = (0..WRITERS)
        .map(|writer| format!("writer-{writer}"))
        .collect();
    wanted.extend(["alice-pull", "bob-pull", "pull"].map(str::to_owned));
    wanted.sort();
    assert_eq!(found, wanted);
}

#[test]
fn openshift_keeps_one_secret_for_an_account() {
    let (stage, vault) = (Stage::new(), vault());
    let openshift = DockercfgController::start(cluster(), &stage.namespace);
    for _ in 0..20 {
        done(apply_with_secret(&stage, V1, &vault), 0);
        openshift.settle();
    }
    // It deletes one that came too late for the account.
    let secrets = live(&stage, "secrets").expect("a list");
    let names = secrets["items"].as_array().expect("a list");
    let names = names
        .iter()
        .filter_map(|secret| secret["metadata"]["name"].as_str());
    let prefix = stage.rename("twelve-operator-dockercfg-");
    let minted: Vec<_> = names.filter(|name| name.starts_with(&prefix)).collect();
    assert_eq!(minted.len(), 1, "{minted:?}");
    let found = entries(&stage, "twelve-operator", "imagePullSecrets");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.contains(&"pull".to_owned()) && found.contains(&minted[0].to_owned()));
}

#[test]
fn an_entry_goes_with_the_last_install_that_needs_it() {
    let (stage, vault) = (Stage::new(), vault());
    let before = entries(&stage, "shared", "imagePullSecrets");
    for bundle in [V1, HELPER] {
        let mut command = apply_with_secret(&stage, bundle, &vault);
        command.args(["--also-service-account", "shared"]);
        done(command, 0);
    }
    done(cleanup(&stage), 0);
    let with_ours = ["alice-pull", "bob-pull", "pull"];
    assert_eq!(entries(&stage, "shared", "imagePullSecrets"), with_ours);
    done(cleanup_of(&stage, "twelve-helper"), 0);
    assert_eq!(entries(&stage, "shared", "imagePullSecrets"), before);
    assert_eq!(entries(&stage, "shared", "secrets"), ["alice-pull"]);
}
