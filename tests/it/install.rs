//! Installs that are said in OLM's own objects.
//!
//! `testdata/install/<situation>.yaml` is as `command_lines.rs` says.

use std::{fs, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;
use tempfile::TempDir;

use super::{
    command_lines,
    image_builder::{Compression, Image},
    program::{Run, program, root, run},
    random::Random,
    registry::{self, PASSWORD, USER, basic_auth},
};

#[test]
fn each_case_prints_what_it_expects() {
    command_lines::check("testdata/install");
}

/// A folder with manifests.
fn manifests(text: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("install.yaml"), text).expect("a file");
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

const SUBSCRIPTION: &str = "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: example, namespace: olm}
spec: {sourceType: grpc, image: 'registry.example.com/catalog:v1'}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: ops, namespace: ops}
spec: {targetNamespaces: [team-a]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: queue, namespace: ops}
spec:
  name: queue-operator
  source: example
  sourceNamespace: olm
  config: {env: [{name: LOG, value: debug}], nodeSelector: {disk: ssd}}
";

const CLUSTER_EXTENSION: &str = "
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: example}
spec: {source: {type: Image, image: {ref: 'registry.example.com/catalog:v1'}}}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: queue}
spec:
  namespace: ops
  source: {sourceType: Catalog, catalog: {packageName: queue-operator}}
  config:
    configType: Inline
    inline:
      watchNamespace: team-a
      deploymentConfig: {env: [{name: LOG, value: debug}], nodeSelector: {disk: ssd}}
";

#[test]
fn an_install_is_the_same_in_objects_of_both_generations_and_in_flags() {
    const CONFIG: &str = "{env: [{name: LOG, value: debug}], nodeSelector: {disk: ssd}}";
    let folder = manifests(CONFIG);
    let config = folder.path().join("install.yaml");
    let flags = [
        "-n",
        "ops",
        "--watch-namespace",
        "team-a",
        "--config",
        text(&config),
    ];
    let catalog = ["--catalog", "example=testdata/catalogs/example"];
    let images = ["--image-source", "example.com/=testdata/bundles"];
    let stands = [
        "--image-source",
        "registry.example.com/catalog=testdata/catalogs/example",
    ];
    let csv = ["--parts", "pull-secrets,service-accounts,bundle,csv"];
    let rendered = |arguments: &[&[&str]]| {
        let run = run([&["render"], arguments.concat().as_slice()].concat());
        assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
        run.stdout
    };
    let of_flags = rendered(&[&["queue-operator"], &catalog, &images, &flags, &csv]);
    assert!(of_flags.contains("olm.targetNamespaces: team-a") && of_flags.contains("disk: ssd"));
    for objects in [SUBSCRIPTION, CLUSTER_EXTENSION] {
        let folder = manifests(objects);
        let of_objects = rendered(&[&["-f", text(folder.path())], &stands, &images, &csv]);
        assert_eq!(of_objects, of_flags, "{objects}");
    }
    let by_range = [
        &["queue-operator", "--version", "1.x"][..],
        &catalog,
        &images,
        &flags,
        &csv,
    ];
    assert_eq!(rendered(&by_range), of_flags);
    let of_bundle = rendered(&[&["testdata/bundles/queue-operator"], &flags]);
    assert_eq!(
        of_bundle,
        rendered(&[&["queue-operator"], &catalog, &images, &flags])
    );
}

#[test]
fn the_pull_secret_of_a_catalog_opens_its_registry() {
    let example = root().join("testdata/catalogs/example");
    let catalog = Image::of_catalog(&example, Compression::Gzip).parts();
    registry::push(&catalog, "opened/catalog:v1");
    registry::push_bundle(
        &root().join("testdata/bundles/minimal"),
        "opened/minimal:v1",
    );
    let (image, address) = (
        basic_auth().image("opened/catalog:v1"),
        basic_auth().address(),
    );
    let image = image.trim_start_matches("docker://");
    let logins = json!({"auths": {&address: {"username": USER, "password": PASSWORD}}});
    let data = STANDARD.encode(logins.to_string());
    let objects = format!(
        "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: team, namespace: olm}}
spec: {{sourceType: grpc, image: '{image}', secrets: [registry-pull]}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {{name: mail, namespace: mail}}
spec: {{name: mail-operator, source: team, sourceNamespace: olm}}
---
apiVersion: core.rukpak.io/v1alpha2
kind: BundleDeployment
metadata: {{name: minimal}}
spec:
  installNamespace: ops
  provisionerClassName: core-rukpak-io-registry
  source: {{type: image, image: {{ref: '{address}/opened/minimal:v1', pullSecret: registry-pull}}}}
"
    );
    let secret = format!(
        "---
apiVersion: v1
kind: Secret
metadata: {{name: registry-pull, namespace: olm}}
type: kubernetes.io/dockerconfigjson
data: {{.dockerconfigjson: {data}}}
"
    );
    let names = |objects: &str| -> Run {
        let (folder, cache) = (manifests(objects), manifests(""));
        let mut program = program();
        program.env("XDG_CACHE_HOME", cache.path());
        program.args(["render", "-o", "name", "-f", text(folder.path())]);
        program.args(["--insecure-registry", &address]);
        let run: Run = program.output().expect("the program starts").into();
        assert!(
            !run.stderr.contains(PASSWORD) && !run.stderr.contains(&data),
            "{}",
            run.stderr
        );
        run
    };
    let opened = names(&format!("{objects}{secret}"));
    assert_eq!(opened.code, 0, "{}", opened.stderr);
    for object in [
        "deployment.apps/mail-operator",
        "deployment.apps/manager",
        "secret/registry-pull",
    ] {
        assert!(opened.stdout.contains(object), "{}", opened.stdout);
    }
    let closed = names(&objects);
    assert_eq!(
        (closed.code, closed.stdout.as_str()),
        (4, ""),
        "{}",
        closed.stderr
    );
}

/// What no message may show.
const CANARY: &str = "canary-5f1d9c";

#[test]
fn damaged_manifests_show_nothing_of_their_secrets() {
    let auth = STANDARD.encode(format!("robot:{CANARY}"));
    let logins = json!({"auths": {"registry.example.com": {"auth": auth}}}).to_string();
    let data = STANDARD.encode(&logins);
    let whole = format!(
        "{SUBSCRIPTION}---
apiVersion: v1
kind: Secret
metadata: {{name: pull, namespace: olm}}
type: kubernetes.io/dockerconfigjson
data:
  .dockerconfigjson: {data}
---
kind: Secret
apiVersion: v1
metadata: {{name: other, namespace: olm}}
type: kubernetes.io/dockerconfigjson
stringData:
  .dockerconfigjson: '{logins}'
"
    )
    .replace("catalog:v1'}", "catalog:v1', secrets: [pull, other]}");
    let secrets = whole.find("kind: Secret").expect("a Secret");
    let mut random = Random::new(6);
    for round in 0..150 {
        let mut damaged = whole.clone().into_bytes();
        // The first one is whole.
        for _ in 0..round % 4 {
            let at = secrets + random.below(damaged.len() - secrets);
            match random.below(3) {
                0 => drop(damaged.remove(at)),
                1 => damaged[at] = b" :-'\"{}[]\n&*!|#\\"[random.below(16)],
                _ => damaged.truncate(at),
            }
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("install.yaml"), &damaged).expect("a file");
        let login = folder.path().join("login.json");
        let cut = logins.len() - random.below(logins.len()) * (round % 2);
        fs::write(&login, &logins[..cut]).expect("a file");
        let run = run([
            "render",
            "-f",
            text(&folder.path().join("install.yaml")),
            "--image-source",
            "registry.example.com/catalog=testdata/catalogs/example",
            "--image-source",
            "example.com/=testdata/bundles",
            "--pull-secret",
            text(&login),
            "--secrets",
            "omit",
        ]);
        let shown = format!("{}{}", run.stdout, run.stderr);
        for secret in [CANARY, &auth, &data[..40], &logins[..40]] {
            assert!(
                !shown.contains(secret),
                "{}\n{shown}",
                String::from_utf8_lossy(&damaged)
            );
        }
        assert!([0, 2, 3].contains(&run.code), "{shown}");
        assert!(round > 0 || run.code == 0, "{shown}");
    }
}
