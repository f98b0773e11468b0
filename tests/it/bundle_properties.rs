//! The properties of real bundles, against what catalogs list for the same bundles, as opm derived them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use kubectl_olm::{
    bundle::{Bundle, FOLDERS},
    limits::Limits,
    manifest::yaml,
    source::{Settings, Sources},
};
use serde_json::Value;

use super::corpus::corpus;

/// What holds manifests, and is no matter of the resolver's.
const MANIFESTS: [&str; 2] = ["olm.bundle.object", "olm.csv.metadata"];

#[test]
fn properties_are_derived_as_opm_derives_them() {
    let Some(corpus) = corpus() else { return };
    let mut listed = BTreeMap::new();
    for version in ["v4.14", "v4.19"] {
        add_listed(&corpus.join("catalogs").join(version), &mut listed);
    }
    let (mut equal, mut wrong) = (0, vec![]);
    for (image, expected) in &listed {
        let Some((name, tag)) = image
            .rsplit('/')
            .next()
            .and_then(|last| last.split_once(':'))
        else {
            continue;
        };
        let folder = corpus.join("bundles").join(name).join(tag);
        if !folder.is_dir() {
            continue;
        }
        let derived = derived(&folder);
        if derived == *expected {
            equal += 1;
            continue;
        }
        let only = |of: &[(String, Value)], other: &[(String, Value)]| {
            let only = of.iter().filter(|property| !other.contains(property));
            only.map(|(kind, value)| format!("{kind} {value}"))
                .collect::<Vec<_>>()
                .join("; ")
        };
        let (ours, theirs) = (only(&derived, expected), only(expected, &derived));
        wrong.push(format!(
            "{image}: only derived: {ours}; only listed: {theirs}"
        ));
    }
    eprintln!("the properties of {equal} bundles are those that catalogs list");
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(equal > 10, "{equal}");
}

fn derived(folder: &Path) -> Vec<(String, Value)> {
    let files = Sources::new(Settings::offline()).files(folder, &FOLDERS);
    let files = files.expect("a bundle");
    let bundle = Bundle::parse(files, &Limits::DEFAULT, &mut vec![]);
    bundle.expect("a good bundle").properties()
}

/// Adds the properties of each bundle of a catalog, by its image.
fn add_listed(folder: &Path, listed: &mut BTreeMap<String, Vec<(String, Value)>>) {
    for path in files_below(folder) {
        let text = fs::read(&path).expect("a file of the catalog");
        for document in yaml::read(&text, &Limits::DEFAULT).expect("YAML") {
            let blob = document.value;
            if blob["schema"] != "olm.bundle" {
                continue;
            }
            let image = blob["image"].as_str().unwrap_or_default().to_owned();
            let properties = blob["properties"].as_array().expect("properties").iter();
            let pair = |property: &Value| {
                let kind = property["type"].as_str().unwrap_or_default().to_owned();
                (kind, property["value"].clone())
            };
            let pairs = properties.map(pair);
            let pairs = pairs.filter(|(kind, _)| !MANIFESTS.contains(&kind.as_str()));
            listed.insert(image, pairs.collect());
        }
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else if path
            .extension()
            .is_some_and(|end| ["json", "yaml", "yml"].iter().any(|known| end == *known))
        {
            files.push(path);
        }
    }
    files
}
