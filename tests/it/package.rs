//! What the project ships besides the program: the Argo CD plugin and the Krew manifest.

use std::{collections::BTreeSet, fs, process::Command};

use kubectl_olm::{limits::Limits, manifest::yaml};
use serde_json::Value;

use super::program::root;

/// The platforms that krew's own validator tries (krew `cmd/validate-krew-manifest/main.go`).
const KREW_PLATFORMS: [(&str, &str); 10] = [
    ("darwin", "386"),
    ("darwin", "amd64"),
    ("darwin", "arm64"),
    ("linux", "386"),
    ("linux", "amd64"),
    ("linux", "arm"),
    ("linux", "arm64"),
    ("windows", "386"),
    ("windows", "amd64"),
    ("windows", "arm64"),
];

fn document(text: &str) -> Value {
    let documents = yaml::read(text.as_bytes(), &Limits::DEFAULT).expect("YAML");
    assert_eq!(documents.len(), 1);
    documents.into_iter().next().expect("a document").value
}

/// Argo CD runs the command in the folder of the application, with these variables.
#[test]
fn the_argo_cd_plugin_renders_an_application() {
    let plugin = document(&fs::read_to_string(root().join("plugin.yaml")).expect("plugin.yaml"));
    assert_eq!(plugin["apiVersion"], "argoproj.io/v1alpha1");
    assert_eq!(plugin["kind"], "ConfigManagementPlugin");
    let application = root().join("testdata/bundles/queue-operator");
    let discovered = plugin["spec"]["discover"]["fileName"]
        .as_str()
        .expect("a file to discover by");
    assert!(
        application.join(discovered).exists(),
        "{discovered} is not in a bundle"
    );
    let command: Vec<_> = plugin["spec"]["generate"]["command"]
        .as_array()
        .expect("a command")
        .iter()
        .chain(
            plugin["spec"]["generate"]["args"]
                .as_array()
                .into_iter()
                .flatten(),
        )
        .map(|word| word.as_str().expect("a text"))
        .collect();
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_kubectl-olm"))
        .parent()
        .expect("a folder");
    let path = format!(
        "{}:{}",
        binary.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let generate = |parameters: &[(&str, &str)]| {
        let output = Command::new(command[0])
            .args(&command[1..])
            .current_dir(&application)
            .env_clear()
            .envs([
                ("PATH", path.as_str()),
                ("ARGOCD_APP_NAMESPACE", "queues"),
                ("KUBE_VERSION", "v1.31.2+k3s1"),
            ])
            .envs(parameters.iter().copied())
            .output()
            .expect("the plugin's command starts");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let plain = generate(&[]);
    assert!(
        plain.contains("kind: Deployment") && plain.contains("namespace: queues"),
        "{plain}"
    );
    let watching = generate(&[
        ("PARAM_WATCH_NAMESPACE", "team-a"),
        ("PARAM_CERTS", "service-ca"),
    ]);
    assert!(
        watching.contains("olm.targetNamespaces: team-a"),
        "{watching}"
    );
    assert!(
        watching.contains("service.beta.openshift.io/inject-cabundle"),
        "{watching}"
    );
}

/// The rules of krew `internal/index/validation/validate.go`, after the release has filled the template in.
#[test]
fn the_krew_manifest_is_valid_once_filled_in() {
    let template = fs::read_to_string(root().join("krew/olm.yaml")).expect("krew/olm.yaml");
    let filled = fill_in(&template);
    assert!(
        !filled.contains("{{"),
        "something is left of the template:\n{filled}"
    );
    let manifest = document(&filled);
    assert_eq!(
        manifest["apiVersion"],
        "krew.googlecontainertools.github.com/v1alpha2"
    );
    assert_eq!(manifest["kind"], "Plugin");
    assert_eq!(
        manifest["metadata"]["name"], "olm",
        "the name is that of the file"
    );
    let spec = &manifest["spec"];
    assert!(
        spec["version"]
            .as_str()
            .is_some_and(|version| version.starts_with('v'))
    );
    let short = spec["shortDescription"]
        .as_str()
        .expect("a short description");
    assert!(
        !short.is_empty() && short.len() <= 50 && !short.contains('\n'),
        "{short:?}"
    );
    assert!(
        spec["description"]
            .as_str()
            .expect("a description")
            .lines()
            .all(|line| line.len() <= 80)
    );
    let mut seen = BTreeSet::new();
    for platform in spec["platforms"].as_array().expect("platforms") {
        let labels = &platform["selector"]["matchLabels"];
        let (os, arch) = (
            labels["os"].as_str().expect("os"),
            labels["arch"].as_str().expect("arch"),
        );
        assert!(
            KREW_PLATFORMS.contains(&(os, arch)),
            "krew knows no {os}/{arch}"
        );
        assert!(
            seen.insert((os.to_owned(), arch.to_owned())),
            "{os}/{arch} stands twice"
        );
        let expected = if os == "windows" {
            "kubectl-olm.exe"
        } else {
            "kubectl-olm"
        };
        assert_eq!(platform["bin"], expected);
        let sha256 = platform["sha256"].as_str().expect("a checksum");
        assert!(
            sha256.len() == 64
                && sha256
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        );
        let uri = platform["uri"].as_str().expect("an address");
        assert!(
            uri.ends_with(&format!("kubectl-olm-{os}-{arch}.tar.gz")),
            "{uri}"
        );
    }
    assert!(seen.contains(&("linux".to_owned(), "amd64".to_owned())));
}

/// What krew-release-bot does with the two forms that the template uses.
fn fill_in(template: &str) -> String {
    let mut filled = String::new();
    for line in template.lines() {
        match line.split_once("{{addURIAndSha \"") {
            None => filled.push_str(&line.replace("{{ .TagName }}", "v1.2.3")),
            Some((indent, rest)) => {
                let (uri, end) = rest.split_once('"').expect("the address ends");
                assert_eq!(end, " .TagName }}", "{line}");
                let uri = uri.replace("{{ .TagName }}", "v1.2.3");
                filled.push_str(&format!(
                    "{indent}uri: {uri}\n{indent}sha256: {}",
                    "0123456789abcdef".repeat(4)
                ));
            }
        }
        filled.push('\n');
    }
    filled
}

/// Krew takes archives with regular files only, and wants a license among them.
#[test]
fn the_packed_archive_is_one_that_krew_installs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = folder.path().join("kubectl-olm-linux-amd64.tar.gz");
    let packed = Command::new(root().join("krew/pack"))
        .args([
            env!("CARGO_BIN_EXE_kubectl-olm").as_ref(),
            archive.as_os_str(),
        ])
        .output()
        .expect("krew/pack starts");
    assert!(
        packed.status.success(),
        "{}",
        String::from_utf8_lossy(&packed.stderr)
    );
    let listed = Command::new("tar")
        .arg("-tvzf")
        .arg(&archive)
        .output()
        .expect("tar starts");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names: Vec<_> = listed
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap_or_default())
        .collect();
    assert_eq!(names, ["LICENSE", "kubectl-olm"], "{listed}");
    assert!(
        listed.lines().all(|line| line.starts_with('-')),
        "only regular files: {listed}"
    );
}
