//! What comes of templates of catalog images: `testdata/image_template/templates.yaml`.

use std::{error::Error, fs};

use kubectl_olm::{
    install::image_template::{TemplateError, resolve},
    kube_version,
    limits::Limits,
    manifest::yaml,
};
use serde::Deserialize;

use super::program::root;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    template: String,
    version: Option<String>,
    image: Option<String>,
    error: Option<String>,
    hint: Option<String>,
    cause: Option<String>,
}

#[test]
fn templates_give_the_image_or_say_why_not() {
    let text = fs::read(root().join("testdata/image_template/templates.yaml")).expect("the cases");
    let documents = yaml::read(&text, &Limits::DEFAULT).expect("YAML");
    let value = documents.into_iter().next().expect("a document").value;
    let cases: Vec<Case> = serde_json::from_value(value).expect("cases");
    assert!(cases.len() > 25, "cases are missing");
    let wrong: Vec<_> = cases.iter().filter_map(difference).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What comes of a template, where it is not what the case expects.
fn difference(case: &Case) -> Option<String> {
    let version = case.version.as_deref();
    let version = version.map(|text| kube_version::parse(text).expect("a version"));
    let resolved = resolve(&case.template, version.as_ref());
    let error = resolved.as_ref().err();
    let found = (
        resolved.as_ref().ok().cloned(),
        error.map(ToString::to_string),
        error.and_then(TemplateError::hint),
        error.and_then(|error| error.source().map(ToString::to_string)),
    );
    let expected = (
        case.image.clone(),
        case.error.clone(),
        case.hint.clone(),
        case.cause.clone(),
    );
    (found != expected).then(|| format!("{:?} gives {found:?}", case.template))
}

#[test]
fn a_template_longer_than_any_image_is_not_read() {
    let template = "{kube_major_version}".repeat(205);
    let error = resolve(&template, None).expect_err("no image");
    assert_eq!(
        error.to_string(),
        "the template has 4100 bytes, more than the limit of 4096"
    );
}
