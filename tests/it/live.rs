//! What is printed is taken by a real API server through a real kubectl, in one go and in the order printed; and kubectl
//! finds the program as its plugin.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rayon::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

use super::{
    cases,
    cluster::{Cluster, cluster},
    corpus::corpus,
    program::{Run, program, root, run, tool},
    real_installs::packages,
};

/// How often an install is applied again until nothing changes. Only the API server's own writes may need more than
/// one: it reports on a CustomResourceDefinition in its status, some time after it has taken it.
const AGAIN: usize = 5;

/// What kubectl is to print of each object that it applied.
const VERSIONS: &str = r#"jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} is at version {.metadata.resourceVersion}{"\n"}{end}"#;

/// An install to apply.
struct Install<'c> {
    cluster: &'c Cluster,
    bundle: PathBuf,
    namespace: String,
    certificates: &'static str,
}

#[test]
fn a_bundle_applies_whoever_makes_its_certificates() {
    cluster().define("cert-manager.yaml");
    for certificates in ["cert-manager", "service-ca", "none"] {
        let bundle = root().join("testdata/bundles/queue-operator");
        let install = Install {
            cluster: cluster(),
            bundle,
            namespace: format!("queues-{certificates}"),
            certificates,
        };
        let applied = install
            .apply()
            .and_then(|versions| install.apply_until_unchanged(versions));
        applied.unwrap_or_else(|reason| panic!("with {certificates}: {reason}"));
    }
}

#[test]
fn what_a_bundle_deploys_becomes_available() {
    let namespace = cluster().namespace("available");
    let install = Install {
        cluster: cluster(),
        bundle: root().join("testdata/bundles/minimal"),
        namespace: namespace.clone(),
        certificates: "none",
    };
    install.apply().unwrap_or_else(|reason| panic!("{reason}"));
    let available = ["wait", "--for=condition=available", "--timeout=60s"];
    let deployments = ["deployment/manager", "-n", &namespace];
    cluster().get(&[&available[..], &deployments].concat());
}

#[test]
fn installs_of_manifests_apply_with_the_pull_secrets_of_their_catalog() {
    let render = || {
        let mut program = program();
        program.args(["render", "-f", "testdata/manifests/queues"]);
        program.args(["--kube-version", "1.31.2", "--certs", "none"]);
        program.args(["--catalog", "team=testdata/catalogs/example"]);
        program.args(["--image-source", "example.com/=testdata/bundles"]);
        program
    };
    for _ in 0..2 {
        let (rendered, applied) = cluster().apply(&mut render(), &["-o", "name"]);
        assert_eq!(
            (rendered.code, applied.code),
            (0, 0),
            "{}{}",
            rendered.stderr,
            applied.stderr
        );
    }
    let get = |arguments: &[&str]| {
        let mut kubectl = cluster().kubectl();
        kubectl.arg("get").args(arguments);
        let got = Run::from(kubectl.output().expect("kubectl starts"));
        assert_eq!(got.code, 0, "{}", got.stderr);
        got.stdout
    };
    for (namespace, account) in [("queues", "queue-operator"), ("mail", "mail-operator")] {
        let secrets = ["-o", "jsonpath={.imagePullSecrets[*].name}"];
        let of_account =
            get(&[&["serviceaccount", account, "-n", namespace], &secrets[..]].concat());
        assert_eq!(of_account, "registry-pull");
        let kind = get(&[
            "secret",
            &of_account,
            "-n",
            namespace,
            "-o",
            "jsonpath={.type}",
        ]);
        assert_eq!(kind, "kubernetes.io/dockerconfigjson");
    }
}

/// What the conversion from v1beta1 makes passes every rule that the API server has for v1.
#[test]
fn converted_definitions_are_valid() {
    let case = cases::build(&cases::read(
        &root().join("testdata/render/crd-v1beta1/case.yaml"),
    ));
    let validated = validate_definitions(cluster(), &case.path().join("bundle"));
    validated.unwrap_or_else(|reason| panic!("{reason}"));
}

/// The newest bundle of each package that is installed in `real_installs.rs`, on a cluster that nothing else is in.
#[test]
fn real_bundles_apply() {
    let Some(corpus) = corpus() else { return };
    let empty = Cluster::private();
    // First, as a definition that is there already may not lose versions.
    let outdated = outdated_bundles(&corpus);
    assert!(
        outdated.len() > 20,
        "only {} bundles have v1beta1",
        outdated.len()
    );
    for bundle in outdated {
        validate_definitions(&empty, &bundle)
            .unwrap_or_else(|reason| panic!("{}: {reason}", bundle.display()));
    }
    empty.define("cert-manager.yaml");
    empty.define("monitoring.yaml");
    let packages = packages(&corpus).into_iter().enumerate();
    let installs = packages.filter_map(|(index, mut package)| {
        Some(Install {
            cluster: &empty,
            bundle: package.bundles.pop()?,
            namespace: format!("real-{index}"),
            certificates: "cert-manager",
        })
    });
    let installs: Vec<_> = installs.collect();
    assert!(installs.len() >= 50, "only {} bundles", installs.len());
    // All are applied before any is applied again, so that meanwhile the API server comes to rest.
    let applied: Vec<_> = installs.par_iter().map(|install| install.apply()).collect();
    let failures = installs
        .par_iter()
        .zip(applied)
        .filter_map(|(install, applied)| {
            let done = applied.and_then(|versions| install.apply_until_unchanged(versions));
            done.err()
                .map(|reason| format!("{}: {reason}", install.bundle.display()))
        });
    let failures: Vec<String> = failures.collect();
    println!("{} real bundles were applied", installs.len());
    assert!(
        failures.is_empty(),
        "{} do not apply:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn kubectl_runs_the_plugin_and_passes_its_exit_code_on() {
    let folder = on_path();
    let version = kubectl(&folder, &["olm", "version"]);
    assert_eq!((version.stdout, version.code), (run(["version"]).stdout, 0));
    let arguments = ["render", "/dev/null/bundle", "-n", "ops"];
    let refused = kubectl(&folder, &[&["olm"], &arguments[..]].concat());
    let directly = run(arguments);
    assert!(directly.code > 1, "kubectl's own failures are 1");
    assert_eq!(
        (refused.stdout, refused.stderr, refused.code),
        (directly.stdout, directly.stderr, directly.code)
    );
}

#[test]
fn kubectl_completes_by_a_link_to_the_program() {
    let folder = on_path();
    symlink(
        env!("CARGO_BIN_EXE_kubectl-olm"),
        folder.path().join("kubectl_complete-olm"),
    )
    .unwrap();
    completes(&folder);
}

#[test]
fn kubectl_completes_by_the_script_that_the_program_prints() {
    let folder = on_path();
    let script = folder.path().join("kubectl_complete-olm");
    fs::write(&script, run(["completion", "kubectl"]).stdout).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    completes(&folder);
}

impl Install<'_> {
    /// Applies it; gives the version of every object, or what is wrong.
    fn apply(&self) -> Result<String, String> {
        let mut program = program();
        program
            .arg("render")
            .arg(&self.bundle)
            .args(["-n", &self.namespace, "--create-namespace"]);
        program.args(["--certs", self.certificates]);
        let (rendered, applied) = self.cluster.apply(&mut program, &["-o", VERSIONS]);
        match (rendered.code, applied.code) {
            (0, 0) if applied.stdout.is_empty() => Err("kubectl names no object".to_owned()),
            (0, 0) => Ok(applied.stdout),
            (0, _) => Err(applied.stderr),
            (_, _) => Err(rendered.stderr),
        }
    }

    /// Applies it again until nothing changes; tells what does not stop changing.
    fn apply_until_unchanged(&self, mut versions: String) -> Result<(), String> {
        let mut changed = vec![];
        for _ in 0..AGAIN {
            let again = self.apply()?;
            if again == versions {
                return Ok(());
            }
            let before: BTreeSet<_> = versions.lines().collect();
            let differs = |object: &&str| !before.contains(object);
            changed = again.lines().filter(differs).map(str::to_owned).collect();
            versions = again;
        }
        Err(format!(
            "whenever it is applied, there changes {}",
            changed.join(", ")
        ))
    }
}

/// The bundles that bring definitions of v1beta1.
fn outdated_bundles(corpus: &Path) -> Vec<PathBuf> {
    let is_outdated = |bundle: &PathBuf| {
        let files = fs::read_dir(bundle.join("manifests"))
            .expect("a bundle")
            .flatten();
        let mut texts = files.map(|file| fs::read_to_string(file.path()).expect("text"));
        texts.any(|text| text.contains("apiVersion: apiextensions.k8s.io/v1beta1"))
    };
    let table = fs::read_to_string(corpus.join("cases.tsv")).expect("the corpus has cases.tsv");
    let bundles = table.lines().skip(1).map(|line| {
        let fields: Vec<_> = line.split('\t').collect();
        corpus.join("bundles").join(fields[0]).join(fields[1])
    });
    bundles.filter(is_outdated).collect()
}

/// Has the API server look at the definitions of a bundle, without keeping them.
fn validate_definitions(cluster: &Cluster, bundle: &Path) -> Result<(), String> {
    let rendered = run([
        Path::new("render"),
        bundle,
        "-n".as_ref(),
        "ops".as_ref(),
        "-o".as_ref(),
        "json".as_ref(),
    ]);
    let mut list: Value = serde_json::from_str(&rendered.stdout).map_err(|_| rendered.stderr)?;
    let items = list["items"].as_array_mut().expect("a list");
    items.retain(|item| item["kind"] == "CustomResourceDefinition");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("definitions.json");
    fs::write(&file, list.to_string()).expect("a file");
    let mut kubectl = cluster.kubectl();
    kubectl
        .args(["apply", "--server-side", "--dry-run=server", "-f"])
        .arg(file);
    let applied = Run::from(kubectl.output().expect("kubectl starts"));
    if applied.code == 0 {
        Ok(())
    } else {
        Err(applied.stderr)
    }
}

/// A folder with the program in it, to be kubectl's PATH.
fn on_path() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    symlink(
        env!("CARGO_BIN_EXE_kubectl-olm"),
        folder.path().join("kubectl-olm"),
    )
    .expect("a link can be made");
    folder
}

/// Runs kubectl, with nothing but a folder on its PATH.
fn kubectl(path: &TempDir, arguments: &[&str]) -> Run {
    let mut kubectl = Command::new(tool("kubectl"));
    kubectl
        .args(arguments)
        .env_clear()
        .env("PATH", path.path())
        .env("HOME", path.path());
    kubectl
        .stdin(Stdio::null())
        .current_dir(root())
        .output()
        .expect("kubectl starts")
        .into()
}

fn completes(path: &TempDir) {
    let completed = kubectl(path, &["__complete", "olm", "ren"]);
    let candidates: Vec<_> = completed
        .stdout
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(candidates, ["render", ":4"], "{}", completed.stderr);
}
