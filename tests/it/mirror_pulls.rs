//! Images that are pulled from where mirror rules say: from a real registry, in place of one that there is not.

use std::{error::Error, path::Path};

use kubectl_olm::{
    bundle::FOLDERS,
    images::mirror::MirrorRules,
    limits::Limits,
    source::{Settings, SourceError, Sources, registry::RegistrySettings},
};

use super::{
    image_builder::{Compression, Format, Image, index},
    lying::{Liar, answer},
    program::root,
    registry::{self, authfile, plain},
};

/// A registry that no network has.
const NOWHERE: &str = "registry.invalid/team";

/// The folder of the bundle that is pulled.
fn bundle() -> std::path::PathBuf {
    root().join("testdata/bundles/minimal")
}

/// An object of a kind with one rule.
fn set(kind: &str, list: &str, source: &str, mirror: &str, policy: &str) -> String {
    format!(
        "apiVersion: config.openshift.io/v1\nkind: {kind}\nmetadata:\n  name: one\nspec:\n  {list}:\n  - source: {source}\n    mirrors: [{mirror}]\n    mirrorSourcePolicy: {policy}\n---\n"
    )
}

fn digests(source: &str, mirror: &str, policy: &str) -> String {
    set(
        "ImageDigestMirrorSet",
        "imageDigestMirrors",
        source,
        mirror,
        policy,
    )
}

fn tags(source: &str, mirror: &str, policy: &str) -> String {
    set(
        "ImageTagMirrorSet",
        "imageTagMirrors",
        source,
        mirror,
        policy,
    )
}

fn settings(rules: &str, insecure: &[String]) -> Settings {
    let mut mirrors = MirrorRules::default();
    mirrors
        .add_files("rules", &[("rules", rules)], &Limits::DEFAULT)
        .expect("rules");
    Settings {
        offline: false,
        cache: false,
        mirrors,
        registries: RegistrySettings {
            insecure: insecure.to_vec(),
            ..RegistrySettings::default()
        },
        ..Settings::offline()
    }
}

/// Reads a bundle, and gives how many files it has.
fn read(image: &str, settings: Settings) -> Result<usize, SourceError> {
    let files = Sources::new(settings).files(Path::new(&format!("docker://{image}")), &FOLDERS)?;
    Ok(files.paths().count())
}

/// An error with its causes.
fn told(read: Result<usize, SourceError>) -> String {
    let error = read.expect_err("an error");
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[test]
fn a_bundle_is_pulled_by_digest_from_its_mirror() {
    let digest = registry::push_bundle(&bundle(), "mirror-pulls/digest/app:v1");
    let mirror = format!("{}/mirror-pulls/digest", plain().address());
    let rules = digests(NOWHERE, &mirror, "NeverContactSource");
    let insecure = [plain().address()];
    let image = format!("{NOWHERE}/app@{digest}");
    assert!(read(&image, settings(&rules, &insecure)).expect("a bundle") > 1);
    let asked = plain().log("mirror-pulls/digest/app");
    assert_eq!(asked.first(), Some(&format!("GET manifests/{digest}")));
    // A tag has no rule.
    let error = told(read(
        &format!("{NOWHERE}/app:v1"),
        settings(&rules, &insecure),
    ));
    assert!(
        error.contains("never contacted") && error.contains("references with a tag"),
        "{error}"
    );
}

/// The manifests in an index have digests, and are asked for where its tag was found.
#[test]
fn an_index_is_pulled_by_tag_from_its_mirror() {
    let image =
        Image::of_bundle(&bundle(), Format::Oci, Compression::Gzip).for_platform("linux", "amd64");
    let other = image.clone().for_platform("linux", "arm64");
    registry::push(
        &index(Format::Oci, &[image, other]),
        "mirror-pulls/tag/app:v1",
    );
    let mirror = format!("{}/mirror-pulls/tag", plain().address());
    let rules = tags(NOWHERE, &mirror, "NeverContactSource");
    let found = read(
        &format!("{NOWHERE}/app:v1"),
        settings(&rules, &[plain().address()]),
    );
    assert!(found.expect("a bundle") > 1);
}

#[test]
fn a_line_leads_to_another_tag() {
    registry::push_bundle(&bundle(), "mirror-pulls/line:4f6f7b32");
    let lines = format!(
        "{NOWHERE}/app:v1=docker://{}/mirror-pulls/line:4f6f7b32\n",
        plain().address()
    );
    let found = read(
        &format!("{NOWHERE}/app:v1"),
        settings(&lines, &[plain().address()]),
    );
    assert!(found.expect("a bundle") > 1);
}

#[test]
fn what_a_mirror_does_not_have_is_taken_from_the_source() {
    let digest = registry::push_bundle(&bundle(), "mirror-pulls/origin/app:v1");
    let here = plain().address();
    let rules = digests(
        &format!("{here}/mirror-pulls/origin"),
        &format!("{here}/mirror-pulls/empty"),
        "AllowContactingSource",
    );
    let image = format!("{here}/mirror-pulls/origin/app@{digest}");
    assert!(read(&image, settings(&rules, std::slice::from_ref(&here))).expect("a bundle") > 1);
    let asked = plain().log("mirror-pulls/empty/app");
    assert_eq!(asked.first(), Some(&format!("GET manifests/{digest}")));
}

/// Not even where the source has what is right.
#[test]
fn other_content_at_a_mirror_is_refused() {
    let digest = registry::push_bundle(&bundle(), "mirror-pulls/right/app:v1");
    let liar = Liar::plain(|_| answer("200 OK", &[], "wrong"));
    let source = format!("{}/mirror-pulls/right", plain().address());
    let rules = digests(&source, &liar.address(), "AllowContactingSource");
    let insecure = [plain().address(), liar.address()];
    let error = told(read(
        &format!("{source}/app@{digest}"),
        settings(&rules, &insecure),
    ));
    assert!(error.contains("digest mismatch"), "{error}");
    assert!(error.contains(&liar.address()), "{error}");
    assert_eq!(plain().log("mirror-pulls/right/app"), [""; 0]);
}

#[test]
fn a_source_is_never_contacted_that_must_not_be() {
    let source = Liar::plain(|_| answer("404 Not Found", &[], ""));
    let mirror = format!("{}/mirror-pulls/nothing", plain().address());
    let insecure = [plain().address(), source.address()];
    let digest = format!("sha256:{}", "a".repeat(64));
    let images = [
        format!("{}/app@{digest}", source.address()),
        format!("{}/app:v1", source.address()),
    ];
    for (policy, is_asked) in [
        ("NeverContactSource", false),
        ("AllowContactingSource", true),
    ] {
        let rules = digests(&source.address(), &mirror, policy);
        for image in &images {
            read(image, settings(&rules, &insecure)).expect_err("nothing has it");
        }
        assert_eq!(!source.requests().is_empty(), is_asked, "{policy}");
    }
}

/// A password is for the registry that it was given for, not for those that have its images, too.
#[test]
fn a_mirror_is_not_told_the_password_of_the_source() {
    let wants = || {
        answer(
            "401 Unauthorized",
            &[("WWW-Authenticate", "Basic realm=\"x\"")],
            "",
        )
    };
    let mirror = Liar::plain(move |_| wants());
    let known = authfile(&[(NOWHERE, "user", "hunter2")]);
    let rules = tags(NOWHERE, &mirror.address(), "NeverContactSource");
    let settings = Settings {
        authfile: Some(known.path().to_owned()),
        ..settings(&rules, &[mirror.address()])
    };
    let error = told(read(&format!("{NOWHERE}/app:v1"), settings));
    assert!(!error.contains("hunter2"), "{error}");
    let sent = mirror.authorizations();
    assert!(
        !sent.is_empty() && sent.iter().all(Option::is_none),
        "{sent:?}"
    );
}
