//! What a user meets before any content is read: help, completion, exit codes, pipes, folders of output.

use std::{
    fs,
    process::{Command, Stdio},
};

use super::program::{program, root, run};

const BUNDLE: &str = "testdata/bundles/queue-operator";

#[test]
fn every_help_text() {
    let mut text = String::new();
    for command in [
        &[][..],
        &["render"],
        &["catalog"],
        &["catalog", "list"],
        &["diff"],
        &["apply"],
        &["cleanup"],
        &["status"],
        &["rbac"],
        &["images"],
        &["pin"],
        &["catalog", "search"],
        &["catalog", "show"],
        &["catalog", "graph"],
        &["catalog", "check"],
        &["check"],
        &["cache"],
        &["cache", "list"],
        &["cache", "prune"],
        &["completion"],
        &["version"],
    ] {
        let help = run(command.iter().copied().chain(["--help"]));
        assert_eq!(help.code, 0);
        text.push_str(&format!(
            "$ kubectl olm {}--help\n{}\n",
            command
                .iter()
                .map(|word| format!("{word} "))
                .collect::<String>(),
            help.stdout
        ));
    }
    insta::assert_snapshot!("help", text);
}

#[test]
fn alone_it_prints_the_main_verbs_and_examples() {
    let alone = run::<&str>([]);
    assert_eq!((alone.code, alone.stderr.as_str()), (0, ""));
    for text in [
        "render",
        "check",
        "Examples:",
        "kubectl olm render ./bundle -n ops",
    ] {
        assert!(alone.stdout.contains(text), "{}", alone.stdout);
    }
}

#[test]
fn version_names_the_program_and_the_platform() {
    let version = run(["version", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&version.stdout).expect("JSON");
    assert_eq!(json["version"], concat!("v", env!("CARGO_PKG_VERSION")));
    assert!(
        run(["version"])
            .stdout
            .starts_with(concat!("kubectl-olm v", env!("CARGO_PKG_VERSION")))
    );
}

#[test]
fn a_shell_accepts_its_completion_script() {
    let script = run(["completion", "bash"]);
    assert_eq!(script.code, 0);
    let checked = Command::new("bash")
        .args(["-n", "-c", &script.stdout])
        .status()
        .expect("bash starts");
    assert!(checked.success());
    for shell in ["zsh", "fish", "powershell", "elvish"] {
        assert!(
            run(["completion", shell]).stdout.contains("kubectl-olm"),
            "{shell}"
        );
    }
}

#[test]
fn completion_offers_words_as_cobra_does() {
    let offered = |words: &[&str]| run(["__complete"].iter().chain(words)).stdout;
    assert_eq!(
        offered(&["ch"]),
        "check\tShow every problem of a bundle, without rendering it\n:4\n"
    );
    assert!(offered(&["render", "--watch"]).starts_with("--watch-namespace\t"));
    assert!(
        offered(&["render", "./b", "--certs", "se"])
            .starts_with("service-ca\nself-signed\nsecret:\n")
    );
    assert!(offered(&["check", "./b", "-o", ""]).contains("json\n"));
    assert!(
        offered(&["render", ""]) == ":0\n",
        "files are offered for the source"
    );
}

#[test]
fn a_command_line_that_makes_no_sense_exits_2() {
    for arguments in [
        &["reindeer"][..],
        &["render"],
        &["render", BUNDLE, "-o", "table"],
        &["render", BUNDLE, "-o", "dir:"],
        &["render", BUNDLE, "--certs", "secret:"],
        &["render", BUNDLE, "--certs", "secret:tls"],
        &["render", BUNDLE, "--ca-file", "registry.example.com="],
        &["render", BUNDLE, "--platform", "linux"],
        &["render", BUNDLE, "--request-timeout", "-1"],
        &["render", BUNDLE, "--offline", "--no-cache"],
        &["render", "docker://Not/An/Image"],
        &["render", "oci-archive:"],
        &[
            "render",
            "a",
            "--catalog",
            "testdata/catalogs/example",
            "--image-source",
            "example.com/=docker://mirror.example.com/",
        ],
        &["render", BUNDLE, "--kube-version", "new"],
        &["render", BUNDLE, "-n", "Not_A_Namespace"],
        &["render", "testdata/bundles/minimal"],
        &["render", BUNDLE, "-n", ""],
        &["render", BUNDLE, "--watch-namespace", ""],
        &[
            "render",
            BUNDLE,
            "-o",
            "dir:testdata/bundles/queue-operator/manifests/out",
        ],
        &["render", "--each", "testdata/bundles", "-n", "ops"],
    ] {
        let refused = run(arguments);
        assert_eq!(refused.code, 2, "{arguments:?}\n{}", refused.stderr);
        assert_eq!(refused.stdout, "", "{arguments:?}");
        assert!(
            refused.stderr.starts_with("error: "),
            "{arguments:?}\n{}",
            refused.stderr
        );
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = program()
        .args(["render", BUNDLE])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_full_disk_is_told() {
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let output = program()
        .args(["render", BUNDLE])
        .stdout(full)
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(8));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr
            .contains("error: cannot write to standard output\ncaused by: No space left on device"),
        "{stderr}"
    );
}

#[test]
fn json_and_names_hold_the_objects_of_the_yaml() {
    let names = run(["render", BUNDLE, "-o", "name"]).stdout;
    let json = run(["render", BUNDLE, "-o", "json"]).stdout;
    let list: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(list["kind"], "List");
    let items = list["items"].as_array().expect("items");
    assert_eq!(items.len(), names.lines().count());
    assert_eq!(
        items.len(),
        run(["render", BUNDLE]).stdout.matches("\nkind: ").count()
    );
    assert!(names.starts_with("customresourcedefinition.apiextensions.k8s.io/queues.queues.example.com\nserviceaccount/queue-operator\n"), "{names}");
    assert!(names.ends_with("validatingwebhookconfiguration.admissionregistration.k8s.io/validate.queues.example.com\n"), "{names}");
}

#[test]
fn a_folder_holds_one_file_for_each_object_and_is_kept_up() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let render = |more: &[&str]| {
        let out = format!("kustomize:{}", folder.path().join("out").display());
        let run = run(["render", BUNDLE, "-o", &out].iter().chain(more));
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(run.stdout, "");
        run.stderr
    };
    assert!(
        render(&[]).contains("14 written, 0 unchanged, 0 removed"),
        "{}",
        render(&[])
    );
    assert!(render(&[]).contains("0 written, 14 unchanged, 0 removed"));
    // Without cert-manager there is no Issuer and no Certificate.
    assert!(render(&["--certs", "none"]).contains("3 written, 9 unchanged, 2 removed"));
    let kustomization =
        fs::read_to_string(folder.path().join("out/kustomization.yaml")).expect("a kustomization");
    for line in kustomization
        .lines()
        .filter_map(|line| line.strip_prefix("- "))
    {
        assert!(folder.path().join("out").join(line).exists(), "{line}");
    }
}

#[test]
fn a_folder_with_files_of_others_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let foreign = folder
        .path()
        .join("deployment.apps-queue-operator_queue-system.yaml");
    fs::write(&foreign, "mine").expect("a file");
    let refused = run([
        "render",
        BUNDLE,
        "-o",
        &format!("dir:{}", folder.path().display()),
    ]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(
        refused
            .stderr
            .contains("deployment.apps-queue-operator_queue-system.yaml"),
        "{}",
        refused.stderr
    );
    assert_eq!(fs::read_to_string(&foreign).expect("still there"), "mine");
    assert_eq!(
        fs::read_dir(folder.path()).expect("the folder").count(),
        1,
        "something was written"
    );
}

#[test]
fn each_bundle_below_a_folder_gets_a_folder() {
    let count = || {
        let bundles = fs::read_dir(root().join("testdata/bundles"));
        bundles.expect("the bundles").count()
    };
    let all = count();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = format!("dir:{}", folder.path().display());
    let rendered = run([
        "render",
        "--each",
        "testdata/bundles",
        "-n",
        "ops",
        "-o",
        &out,
    ]);
    assert_eq!(rendered.code, 0, "{}", rendered.stderr);
    assert!(
        folder
            .path()
            .join("minimal/deployment.apps-manager_ops.yaml")
            .exists()
    );
    assert!(
        rendered
            .stderr
            .contains(&format!("{all} of {all} bundles written")),
        "{}",
        rendered.stderr
    );
    // One that is refused does not keep the others from being written.
    let refused = run([
        "render",
        "--each",
        "testdata/bundles",
        "-o",
        &format!("dir:{}", folder.path().join("more").display()),
    ]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused
            .stderr
            .contains(&format!("1 of {all} bundles written"))
            && refused.stderr.contains("name one with -n"),
        "{}",
        refused.stderr
    );
    assert!(folder.path().join("more/queue-operator").exists());
    assert_eq!(count(), all, "they are as they were");
}

/// What is rendered goes into Git; a key may not.
#[test]
fn only_certificates_are_taken_from_the_ca_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("ca.pem");
    let block =
        |tag: &str| format!("-----BEGIN {tag}-----\nbm90IGEgcmVhbCBvbmU=\n-----END {tag}-----\n");
    let render = |text: String| {
        fs::write(&file, text).expect("a file");
        let file = file.to_str().expect("Unicode");
        run(["render", BUNDLE, "--certs", "secret:tls", "--ca-file", file])
    };
    assert_eq!(render(block("CERTIFICATE")).code, 0);
    for text in [
        block("CERTIFICATE") + &block("EC PRIVATE KEY"),
        block("PUBLIC KEY"),
        "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n".to_owned(),
        String::new(),
    ] {
        let refused = render(text);
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (3, ""),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn problems_as_json_say_what_they_know() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bundle = folder.path().join("bundle");
    fs::create_dir_all(bundle.join("manifests")).expect("a folder");
    fs::write(bundle.join("manifests/a.yaml"), "a: [\n").expect("a file");
    let checked = run(["check", bundle.to_str().expect("Unicode"), "-o", "json"]);
    assert_eq!(checked.code, 3);
    let report: serde_json::Value = serde_json::from_str(&checked.stdout).expect("JSON");
    let layout = &report["problems"][0];
    assert_eq!(
        (&layout["rule"], &layout["severity"]),
        (&"layout".into(), &"error".into())
    );
    assert!(layout.get("file").is_none(), "{layout}");
    let yaml = &report["problems"][1];
    assert_eq!(
        (&yaml["file"], &yaml["line"]),
        (&"manifests/a.yaml".into(), &1.into())
    );
}
