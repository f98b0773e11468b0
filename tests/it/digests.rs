//! Digests and mirrors: command lines, and digests that a real registry tells.
//!
//! `testdata/digests/<situation>.yaml` is as `command_lines.rs` says.

use std::{fs, path::Path};

use tempfile::TempDir;

use super::{
    command_lines,
    image_builder::{Format, Image, index},
    program::{Run, program},
    registry::{self, PASSWORD, USER, authfile, basic_auth, plain},
};

#[test]
fn each_case_prints_what_it_expects() {
    command_lines::check("testdata/digests");
}

/// Runs the program in a folder, with a cache that stays with the folder.
fn run(folder: &Path, words: &[&str]) -> Run {
    program()
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .current_dir(folder)
        .args(words)
        .output()
        .expect("the program starts")
        .into()
}

/// A folder with a bundle whose only container runs `image`, and whose operand is `operand`.
fn bundle(image: &str, operand: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write(
        "bundle/metadata/annotations.yaml",
        "annotations:\n  operators.operatorframework.io.bundle.package.v1: pinned\n",
    );
    write(
        "bundle/manifests/csv.yaml",
        &format!(
            "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: pinned.v1.0.0
spec:
  version: 1.0.0
  installModes:
  - {{type: AllNamespaces, supported: true}}
  install:
    strategy: deployment
    spec:
      deployments:
      - name: manager
        spec:
          selector:
            matchLabels: {{app: manager}}
          template:
            metadata:
              labels: {{app: manager}}
            spec:
              containers:
              - name: manager
                image: {image} # the operator
                env:
                - name: RELATED_IMAGE_OPERAND
                  value: {operand}
"
        ),
    );
    folder
}

/// Pushes an image that nothing else pushes; gives its digest.
fn pushed(name: &str) -> String {
    let image = Image::scratch(Format::Oci).with_label("name", name);
    registry::push(&image.parts(), name)
}

#[test]
fn tags_get_the_digests_that_their_registry_tells() {
    let image = |architecture: &'static str| {
        let image = Image::scratch(Format::Oci).for_platform("linux", architecture);
        image.with_label("architecture", architecture)
    };
    let several = index(Format::Oci, &[image("amd64"), image("arm64")]);
    let several = registry::push(&several, "digests/told/operator:v1");
    let one = pushed("digests/told/operand:latest");
    let address = plain().address();
    let (operator, operand) = (
        format!("{address}/digests/told/operator"),
        format!("{address}/digests/told/operand"),
    );
    let folder = bundle(&format!("{operator}:v1"), &operand);
    let words = ["pin", "bundle", "--insecure-registry", &address];
    let told = run(folder.path(), &words);
    assert_eq!(told.code, 0, "{}", told.stderr);
    for line in [
        format!("                image: {operator}@{several} # the operator\n"),
        format!("                  value: {operand}@{one}\n"),
        format!("  - image: {operator}@{several}\n    name: manager\n"),
        format!("  - image: {operand}@{one}\n    name: operand\n"),
    ] {
        assert!(told.stdout.contains(&line), "{line}\n{}", told.stdout);
    }
    // Of an index its own digest counts, and nothing else of an image is fetched.
    assert_eq!(plain().log("digests/told/operator"), ["GET manifests/v1"]);
    assert_eq!(
        plain().log("digests/told/operand"),
        ["GET manifests/latest"]
    );

    let again = run(folder.path(), &["pin", "bundle", "--offline"]);
    assert_eq!(again.stdout, told.stdout, "{}", again.stderr);
    assert_eq!(plain().log("digests/told/operator").len(), 1);
}

#[test]
fn an_image_that_was_never_pushed_is_told_with_its_field() {
    let digest = pushed("digests/missing/operator:v1");
    let address = plain().address();
    let (there, gone) = (
        format!("{address}/digests/missing/operator:v1"),
        format!("{address}/digests/missing/operand:v1"),
    );
    let folder = bundle(&there, &gone);
    let path = folder.path().join("bundle/manifests/csv.yaml");
    let before = fs::read_to_string(&path).expect("a file");
    let flags = ["--in-place", "--insecure-registry", &address];
    let refused = run(folder.path(), &[&["pin", "bundle"][..], &flags].concat());
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    // What nobody can look up is refused, whatever else the network does not give.
    let broken = bundle("no/IMAGE", &gone);
    let words = [&["pin", "bundle"][..], &flags].concat();
    let broken = run(broken.path(), &words);
    assert_eq!(broken.code, 3, "{}", broken.stderr);
    for text in [
        &*gone,
        "/spec/install/spec/deployments/0/spec/template/spec/containers/0/env/0/value",
        "--pins",
    ] {
        assert!(refused.stderr.contains(text), "{text}: {}", refused.stderr);
    }
    assert!(!refused.stderr.contains(&there), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(&path).expect("a file"), before);

    // What the map says is not asked for.
    let pins = format!("{{\"{gone}\": \"{address}/elsewhere@{digest}\"}}");
    fs::write(folder.path().join("pins.json"), pins).expect("a file");
    let flags = [
        &flags[..],
        &["--pins", "pins.json", "--write-pins", "used.json"],
    ]
    .concat();
    let pinned = run(folder.path(), &[&["pin", "bundle"][..], &flags].concat());
    assert_eq!(pinned.code, 0, "{}", pinned.stderr);
    let used = fs::read_to_string(folder.path().join("used.json")).expect("a file");
    assert_eq!(
        used,
        format!(
            "{{\n  \"{gone}\": \"{address}/elsewhere@{digest}\",\n  \
             \"{there}\": \"{address}/digests/missing/operator@{digest}\"\n}}\n"
        )
    );
    let checked = run(folder.path(), &["pin", "bundle", "--check"]);
    assert_eq!(checked.code, 0, "{}{}", checked.stdout, checked.stderr);
}

#[test]
fn digests_are_asked_with_the_password_of_their_registry() {
    let digest = pushed("digests/password/operator:v1");
    let address = basic_auth().address();
    let image = format!("{address}/digests/password/operator");
    let folder = bundle(&format!("{image}:v1"), &format!("{image}@{digest}"));
    let file = authfile(&[(&address, USER, PASSWORD)]);
    let authfile = file.path().to_str().expect("a path");
    let flags = ["--insecure-registry", &address, "--authfile", authfile];
    let rendered = [&["render", "bundle", "-n", "ops", "--pin"][..], &flags].concat();
    let rendered = run(folder.path(), &rendered);
    assert_eq!(rendered.code, 0, "{}", rendered.stderr);
    let line = format!("image: {image}@{digest}\n");
    assert!(rendered.stdout.contains(&line), "{}", rendered.stdout);
}

#[test]
fn a_lock_has_the_digests_and_needs_no_registry() {
    let digest = pushed("digests/locked/operator:v1");
    let address = plain().address();
    let image = format!("{address}/digests/locked/operator");
    let folder = bundle(&format!("{image}:v1"), &format!("{image}@{digest}"));
    let bundle = registry::push_bundle(&folder.path().join("bundle"), "digests/locked/bundle:v1");
    let catalog = format!(
        "{{\"schema\": \"olm.package\", \"name\": \"pinned\", \"defaultChannel\": \"stable\"}}\n\
         {{\"schema\": \"olm.channel\", \"package\": \"pinned\", \"name\": \"stable\", \
           \"entries\": [{{\"name\": \"pinned.v1.0.0\"}}]}}\n\
         {{\"schema\": \"olm.bundle\", \"package\": \"pinned\", \"name\": \"pinned.v1.0.0\", \
           \"image\": \"{address}/digests/locked/bundle:v1\", \"properties\": [{{\"type\": \"olm.package\", \
           \"value\": {{\"packageName\": \"pinned\", \"version\": \"1.0.0\"}}}}]}}\n"
    );
    fs::create_dir(folder.path().join("catalog")).expect("a folder");
    fs::write(folder.path().join("catalog/catalog.json"), catalog).expect("a file");
    let render = [
        "render",
        "pinned",
        "--catalog",
        "catalog",
        "-n",
        "ops",
        "--lock",
        "olm.lock",
    ];
    let first = [&render[..], &["--pin", "--insecure-registry", &address]].concat();
    let first = run(folder.path(), &first);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let lock = fs::read_to_string(folder.path().join("olm.lock")).expect("a lock");
    let line = format!("    {image}:v1: {image}@{digest}\n");
    assert!(lock.contains(&line), "{lock}");
    // The tag moves, and what is installed does not.
    pushed_again("digests/locked/operator:v1");
    let locked = run(
        folder.path(),
        &[&render[..], &["--locked", "--offline"]].concat(),
    );
    assert_eq!(locked.stdout, first.stdout, "{}", locked.stderr);
    let flags = ["--lock", "olm.lock", "--locked", "--offline"];
    let images = [&["images", "pinned", "--catalog", "catalog"][..], &flags].concat();
    let images = run(folder.path(), &images);
    let listed = format!("{address}/digests/locked/bundle@{bundle}\n{image}@{digest}\n");
    assert_eq!(images.stdout, listed, "{}", images.stderr);
    let pins = run(
        folder.path(),
        &["pin", "bundle", "--pins", "olm.lock", "--offline"],
    );
    let line = format!("image: {image}@{digest} # the operator\n");
    assert!(
        pins.stdout.contains(&line),
        "{}{}",
        pins.stdout,
        pins.stderr
    );
}

fn pushed_again(name: &str) {
    let image = Image::scratch(Format::Oci).with_label("name", "another");
    registry::push(&image.parts(), name);
}

#[test]
fn a_disconnected_install_reads_and_names_its_mirror() {
    let address = plain().address();
    let digest = pushed("digests/mirrored/operator:v1");
    let original = "registry.invalid/team/operator";
    let folder = bundle(&format!("{original}:v1"), &format!("{original}@{digest}"));
    registry::push_bundle(&folder.path().join("bundle"), "digests/mirrored/bundle:v1");
    let rules = |kind: &str, list: &str| {
        format!(
            "apiVersion: config.openshift.io/v1\nkind: {kind}\nmetadata: {{name: mirrors}}\nspec:\n  {list}:\n  \
             - source: registry.invalid/team\n    mirrors: [{address}/digests/mirrored]\n    \
             mirrorSourcePolicy: NeverContactSource\n"
        )
    };
    let digests = rules("ImageDigestMirrorSet", "imageDigestMirrors");
    let tags = rules("ImageTagMirrorSet", "imageTagMirrors");
    fs::write(
        folder.path().join("mirrors.yaml"),
        format!("{digests}---\n{tags}"),
    )
    .expect("a file");
    let flags = [
        "-n",
        "ops",
        "--pin",
        "--mirror",
        "mirrors.yaml",
        "--insecure-registry",
        &address,
    ];
    let source = "docker://registry.invalid/team/bundle:v1";
    let rendered = run(folder.path(), &[&["render", source][..], &flags].concat());
    assert_eq!(rendered.code, 0, "{}", rendered.stderr);
    let there = format!("{address}/digests/mirrored/operator@{digest}");
    assert!(
        rendered.stdout.contains(&format!("image: {there}\n")),
        "{}",
        rendered.stdout
    );
    assert!(
        rendered.stdout.contains(&format!("value: {there}\n")),
        "{}",
        rendered.stdout
    );
    let images = ["images", source, "--mirror", "mirrors.yaml"];
    let images = [&images[..], &["--insecure-registry", &address]].concat();
    let images = run(folder.path(), &images);
    let bundle = format!("{address}/digests/mirrored/bundle:v1\n");
    assert!(images.stdout.contains(&bundle), "{}", images.stdout);
    assert!(
        !rendered.stdout.contains("registry.invalid"),
        "{}",
        rendered.stdout
    );
}
