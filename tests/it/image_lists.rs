//! Lists of images for other programs: `testdata/image_lists/<situation>.yaml` is images, where they are to go, and the
//! text of each list.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use kubectl_olm::{
    image::ImageReference,
    images::{
        Role,
        export::{self, Destination, Export, Needed, Registry},
        mirror::MirrorRules,
    },
    limits::Limits,
    problem::Problem,
};
use serde::Deserialize;

use super::{cases::read, program::root};

/// All roles that a case may name.
const ROLES: [Role; 11] = [
    Role::Container,
    Role::InitContainer,
    Role::ImageVolume,
    Role::RelatedImageVariable,
    Role::Variable,
    Role::RelatedImage,
    Role::Annotation,
    Role::Argument,
    Role::Text,
    Role::Catalog,
    Role::Bundle,
];

/// Images, where they are to go, and their lists; a list that is left out is not looked at.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    images: Vec<Image>,
    registry: Option<String>,
    /// The text of a file with rules.
    rules: Option<String>,
    mapping: Option<String>,
    idms: Option<String>,
    itms: Option<String>,
    icsp: Option<String>,
    imageset: Option<String>,
    skopeo: Option<String>,
    /// By list, what is not in it and why.
    #[serde(default)]
    left_out: BTreeMap<String, Vec<String>>,
    /// By list, why there is none.
    #[serde(default)]
    problems: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Image {
    image: String,
    tag: Option<String>,
    roles: Vec<String>,
}

#[test]
fn lists_say_what_other_programs_read() {
    let entries = fs::read_dir(root().join("testdata/image_lists")).expect("cases");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a case").path()).collect();
    paths.sort();
    assert!(paths.len() >= 5, "cases are missing");
    for path in paths {
        check(&read(&path), &path.display().to_string());
    }
}

fn check(case: &Case, path: &str) {
    let needed: Vec<_> = case.images.iter().map(needed).collect();
    let mut rules = MirrorRules::default();
    if let Some(text) = &case.rules {
        let added = rules.add_files("rules.yaml", &[("rules.yaml", text)], &Limits::DEFAULT);
        added.expect("rules");
    }
    let registry = case.registry.as_deref().map(Registry::parse);
    let registry = registry.transpose().expect("a registry");
    let destination = registry.map_or(Destination::Rules(&rules), Destination::Registry);
    type List<'a> = (&'a str, &'a Option<String>, Result<Export, Vec<Problem>>);
    let lists: [List<'_>; 4] = [
        (
            "mapping",
            &case.mapping,
            export::mapping(&needed, &destination),
        ),
        ("idms", &case.idms, Ok(export::idms(&needed, &destination))),
        ("itms", &case.itms, export::itms(&needed, &destination)),
        ("icsp", &case.icsp, Ok(export::icsp(&needed, &destination))),
    ];
    for (name, expected, list) in lists {
        let at = format!("{path}: {name}");
        match list {
            Ok(list) => {
                assert!(!case.problems.contains_key(name), "{at}: there is a list");
                compare(&list.text, expected, &at);
                let told = list.left_out.iter();
                let told: Vec<_> = told
                    .map(|left| format!("{}: {}", left.image, left.why))
                    .collect();
                let left_out = case.left_out.get(name).cloned();
                if expected.is_some() {
                    assert_eq!(told, left_out.unwrap_or_default(), "{at}");
                }
            }
            Err(problems) => {
                let told: Vec<_> = problems.iter().map(Problem::to_string).collect();
                assert_eq!(Some(&told), case.problems.get(name), "{at}");
            }
        }
    }
    compare(
        &export::imageset(&needed),
        &case.imageset,
        &format!("{path}: imageset"),
    );
    compare(
        &export::skopeo(&needed),
        &case.skopeo,
        &format!("{path}: skopeo"),
    );
}

fn compare(text: &str, expected: &Option<String>, at: &str) {
    if let Some(expected) = expected {
        assert_eq!(text, expected, "{at}");
    }
}

fn needed(image: &Image) -> Needed {
    let role = |word: &String| {
        let role = ROLES.into_iter().find(|role| format!("{role:?}") == *word);
        role.unwrap_or_else(|| panic!("{word} is no role"))
    };
    Needed {
        image: ImageReference::parse(&image.image).expect("an image"),
        tag: image.tag.clone(),
        roles: image.roles.iter().map(role).collect::<BTreeSet<_>>(),
    }
}

#[test]
fn a_destination_is_a_host_and_perhaps_a_path() {
    for text in [
        "registry.corp",
        "localhost",
        "10.0.0.1:5000",
        "registry.corp:5000/a/b",
    ] {
        assert!(Registry::parse(text).is_ok(), "{text}");
    }
    for text in [
        "",
        "corp",
        "corp/mirror",
        "https://registry.corp",
        "registry.corp/",
        "registry.corp/a:v1",
        "registry.corp/A",
    ] {
        let error = Registry::parse(text).expect_err(text).to_string();
        assert!(
            error.starts_with(&format!("{text:?} is no registry")),
            "{error}"
        );
    }
}
