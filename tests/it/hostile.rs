//! Bad input: one clear error with the file and the reason, exit code 3, bounded time and memory, nothing written.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{fs::PermissionsExt, fs::symlink, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    cases,
    image_builder::files_below,
    program::{Run, program, root},
};

/// Longer than any refusal may take, with room for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The address space that every run must do with.
const MEMORY_BYTES: u64 = 2 << 30;

/// A copy of a good bundle, to be spoilt.
fn bundle() -> (TempDir, PathBuf) {
    let folder = cases::minimal_bundle();
    let bundle = folder.path().join("bundle");
    (folder, bundle)
}

/// Renders into a folder, with the memory bounded, and asserts what holds for every refusal.
fn refused(source: &Path, expected: &[&str]) -> Run {
    let out = tempfile::tempdir().expect("a temporary folder");
    let target = out.path().join("out");
    let output = format!("dir:{}", target.display());
    let arguments = ["render".as_ref(), source.as_os_str()].into_iter();
    let run = bounded(arguments.chain(["-n", "ops", "-o", &output].map(OsStr::new)));
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_eq!(run.stdout, "");
    for text in expected {
        assert!(
            run.stderr.contains(text),
            "{text:?} is not in:\n{}",
            run.stderr
        );
    }
    assert!(!target.exists(), "something was written");
    run
}

/// Runs the program with time and memory bounded; whatever it tells, it does not steer the terminal.
pub(crate) fn bounded<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) -> Run {
    bounded_with(Path::new(env!("CARGO_TARGET_TMPDIR")), arguments)
}

/// The same with a cache of its own.
pub(crate) fn bounded_with<'a>(
    cache: &Path,
    arguments: impl IntoIterator<Item = &'a OsStr>,
) -> Run {
    let begun = Instant::now();
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!(
            "ulimit -v {} && exec \"$0\" \"$@\"",
            MEMORY_BYTES / 1024
        ))
        .arg(program().get_program())
        .args(arguments)
        .env("XDG_CACHE_HOME", cache)
        .current_dir(root())
        .output()
        .expect("the program starts");
    let run = Run::from(output);
    assert!(begun.elapsed() < PATIENCE, "took {:?}", begun.elapsed());
    for text in [&run.stdout, &run.stderr] {
        let steers = |character: char| character.is_control() && character != '\n';
        assert!(!text.chars().any(steers), "{text:?}");
    }
    run
}

#[test]
fn a_folder_that_is_missing() {
    refused(
        Path::new("no/such/folder"),
        &["cannot read no/such/folder", "No such file"],
    );
}

#[test]
fn a_file_instead_of_a_folder() {
    refused(
        Path::new("Cargo.toml"),
        &[
            "Cargo.toml is neither a folder with the folders `manifests` and `metadata`",
            "tar archive",
        ],
    );
}

#[test]
fn a_folder_without_a_bundle_says_where_one_is() {
    refused(
        Path::new("testdata/bundles"),
        &["is no bundle", "testdata/bundles/minimal"],
    );
}

#[test]
fn broken_yaml() {
    let (_folder, bundle) = bundle();
    fs::write(
        bundle.join("manifests/broken.yaml"),
        "kind: Service\nmetadata: [name\n",
    )
    .expect("a file");
    refused(&bundle, &["manifests/broken.yaml:2: did not find expected"]);
}

#[test]
fn a_binary_file() {
    let (_folder, bundle) = bundle();
    fs::write(
        bundle.join("manifests/logo.png"),
        [0x89, b'P', b'N', b'G', 0, 1, 2, 0xff, 0xfe],
    )
    .expect("a file");
    refused(&bundle, &["manifests/logo.png"]);
}

#[test]
fn a_file_over_the_limit() {
    let (_folder, bundle) = bundle();
    let file = fs::File::create(bundle.join("manifests/large.yaml")).expect("a file");
    file.set_len(100 << 20).expect("a sparse file");
    refused(
        &bundle,
        &[
            "manifests/large.yaml",
            "limit of 67108864 bytes a file",
            "--no-limits",
        ],
    );
}

#[test]
fn nesting_of_any_kind() {
    let deep = 100_000;
    let flow = "[".repeat(deep);
    let json = format!("{{\"kind\":{}", "[".repeat(deep));
    let block: String = (0..2_000)
        .map(|depth| format!("{}a:\n", " ".repeat(depth)))
        .collect();
    let dashes = "- ".repeat(deep);
    for (name, text) in [
        ("flow", flow),
        ("json", json),
        ("block", block),
        ("dashes", dashes),
    ] {
        let (_folder, bundle) = bundle();
        fs::write(bundle.join(format!("manifests/{name}.yaml")), text).expect("a file");
        refused(
            &bundle,
            &[&format!("manifests/{name}.yaml"), "limit of 128"],
        );
    }
}

#[test]
fn an_alias_bomb() {
    let (_folder, bundle) = bundle();
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}", level - 1);
        text.push_str(&format!(
            "a{level}: &a{level} [{}]\n",
            [below.as_str(); 10].join(", ")
        ));
    }
    fs::write(bundle.join("manifests/bomb.yaml"), text).expect("a file");
    refused(&bundle, &["manifests/bomb.yaml", "limit of 1000000"]);
}

#[test]
fn documents_without_end() {
    let (_folder, bundle) = bundle();
    fs::write(
        bundle.join("manifests/many.yaml"),
        "---\n{}\n".repeat(1_000_000),
    )
    .expect("a file");
    refused(&bundle, &["manifests/many.yaml", "limit of 10000"]);
}

#[test]
fn problems_without_end() {
    let (_folder, bundle) = bundle();
    for name in ["a", "b", "c", "d"] {
        let text = "title: no object\n---\n".repeat(6_000);
        fs::write(bundle.join(format!("manifests/{name}.yaml")), text).expect("a file");
    }
    let run = refused(
        &bundle,
        &[
            "[no-kind]: manifests/a.yaml:3:",
            "[too-many]: too many problems; the files after manifests/b.yaml were not read",
        ],
    );
    assert!(
        run.stderr.lines().count() < 1_100,
        "nobody reads {} lines",
        run.stderr.lines().count()
    );
}

/// Each of these is small, and was expensive once.
#[test]
fn small_bundles_that_ask_for_much() {
    let crd = |name: &str, spec: &str| {
        format!(
            "---\napiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {{name: {name}}}\nspec: {spec}\n"
        )
    };
    let aliases = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(1 << 20),
        "*a,".repeat(5_000)
    );
    let name = format!(
        "kind: ConfigMap\nmetadata: {{name: {}}}\n",
        "n".repeat(2 << 20)
    );
    let fields: String = (0..20_000)
        .map(|at| format!("f{at}: {{items: [{{}}]}},"))
        .collect();
    let long_key = format!(
        "? {}\n: {{properties: {{{fields}}}}}\n",
        "k".repeat(1 << 20)
    );
    let schema = format!(
        "\n  version: v1\n  validation:\n    openAPIV3Schema:\n      properties:\n        {}",
        long_key.replace('\n', "\n        ")
    );
    let twice: String = (0..9_000)
        .map(|at| crd(&format!("c{}", at / 2), "{version: v1}"))
        .collect();
    let keys = format!(
        "{{\"{}\": {{{}}}}}",
        "k".repeat(20 << 20),
        "\"a\":1,".repeat(200) + "\"a\":1"
    );
    for text in [aliases, name, crd("c", &schema), twice, keys] {
        let (_folder, bundle) = bundle();
        fs::write(bundle.join("manifests/object.yaml"), text).expect("a file");
        refused(&bundle, &["error"]);
    }
}

#[test]
fn nodes_without_end() {
    for text in [
        format!("[{}]", "1,".repeat(5_000_000)),
        format!("{{\"kind\":[{}1]}}", "[],".repeat(5_000_000)),
    ] {
        let (_folder, bundle) = bundle();
        fs::write(bundle.join("manifests/wide.yaml"), text).expect("a file");
        refused(&bundle, &["manifests/wide.yaml", "limit of 1000000"]);
    }
}

#[test]
fn a_link_that_leads_out() {
    let (folder, bundle) = bundle();
    let secret = folder.path().join("secret.yaml");
    fs::write(&secret, "password: canary").expect("a file");
    symlink(&secret, bundle.join("manifests/link.yaml")).expect("a link");
    let run = refused(&bundle, &["manifests/link.yaml", "leads out of"]);
    assert!(!run.stderr.contains("canary"));
}

#[test]
fn a_link_that_stays_inside_is_read() {
    let (_folder, bundle) = bundle();
    fs::rename(bundle.join("manifests/csv.yaml"), bundle.join("csv.yaml")).expect("a move");
    symlink("../csv.yaml", bundle.join("manifests/csv.yaml")).expect("a link");
    let output = program()
        .arg("render")
        .arg(&bundle)
        .args(["-n", "ops"])
        .output()
        .expect("the program starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_pipe_does_not_hang() {
    let (_folder, bundle) = bundle();
    let made = Command::new("mkfifo")
        .arg(bundle.join("manifests/pipe.yaml"))
        .status()
        .expect("mkfifo starts");
    assert!(made.success());
    refused(&bundle, &["manifests/pipe.yaml", "is not a plain file"]);
}

#[test]
fn a_file_name_with_control_characters() {
    let (_folder, bundle) = bundle();
    fs::write(bundle.join("manifests/a\u{1b}[31m.yaml"), "kind: Service").expect("a file");
    refused(&bundle, &["control characters"]);
}

#[test]
fn object_names_that_are_paths_or_steer_a_terminal() {
    for name in [
        "../../etc/passwd",
        "a/b",
        "..",
        "\\e]0;owned\\a",
        "\\u202egnp",
    ] {
        let (_folder, bundle) = bundle();
        let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: \"{name}\"}}\n");
        fs::write(bundle.join("manifests/object.yaml"), text).expect("a file");
        refused(&bundle, &["manifests/object.yaml", "metadata.name"]);
    }
}

/// The tests may run as root, who may read everything; so another user runs the program.
#[test]
fn a_file_that_another_user_may_not_read() {
    let (folder, bundle) = bundle();
    let copy = folder.path().join("kubectl-olm");
    // By another process: while this one has a program open for writing, no other of its threads can start it.
    let copied = Command::new("cp")
        .arg(program().get_program())
        .arg(&copy)
        .status();
    assert!(copied.expect("cp starts").success());
    for open in [folder.path(), &bundle, &copy] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    let csv = bundle.join("manifests/csv.yaml");
    fs::set_permissions(&csv, fs::Permissions::from_mode(0o000)).expect("permissions");
    let mut command = Command::new(&copy);
    command.arg("render").arg(&bundle).args(["-n", "ops"]);
    if fs::read(&csv).is_ok() {
        command.uid(65_534).gid(65_534);
    }
    let run = Run::from(command.output().expect("the program starts"));
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(
        run.stderr.contains("manifests/csv.yaml") && run.stderr.contains("Permission denied"),
        "{}",
        run.stderr
    );
}

#[test]
fn limits_can_be_lifted_for_content_one_trusts() {
    let (_folder, bundle) = bundle();
    let deep = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: deep}}\ndeep: {}{}\n",
        "[".repeat(500),
        "]".repeat(500)
    );
    fs::write(bundle.join("manifests/deep.yaml"), deep).expect("a file");
    refused(
        &bundle,
        &["manifests/deep.yaml", "limit of 128", "--no-limits"],
    );
    let output = program()
        .arg("render")
        .arg(&bundle)
        .args(["-n", "ops", "--no-limits"])
        .output()
        .expect("the program starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn objects_are_never_written_into_their_bundle() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for part in ["manifests", "metadata"] {
        fs::create_dir(folder.path().join(part)).expect("a folder");
        let bundle = root().join("testdata/bundles/minimal").join(part);
        for (path, content) in files_below(&bundle, part) {
            fs::write(folder.path().join(path), content).expect("a file");
        }
    }
    for (from, source, target) in [
        ("", ".", "dir:manifests/out"),
        ("manifests", "..", "dir:out"),
    ] {
        let mut command = program();
        command.current_dir(folder.path().join(from));
        command.args(["render", source, "-n", "ops", "-o", target]);
        let run = Run::from(command.output().expect("the program starts"));
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(
            run.stderr.contains("is part of the bundle"),
            "{}",
            run.stderr
        );
    }
}
