//! Ways through a channel that are data: a newcomer adds one without writing Rust.
//!
//! `testdata/upgrade_path/<situation>.yaml` is a catalog, where to start, where to go, and the way.

use std::fs;

use kubectl_olm::{
    catalog::{Catalog, Detail},
    files::FileTree,
    limits::Limits,
    manifest::yaml,
    resolve::{
        upgrade_graph::{Hop, UpgradeGraph},
        upgrade_path::{NoPath, Path, Walk},
    },
    versions,
};
use serde::Deserialize;

use super::program::root;

/// One situation, in the only package of a catalog.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What says that this is right.
    oracle: String,
    /// One file of a file-based catalog, in YAML.
    content: String,
    channel: String,
    from: String,
    /// The version of `from`, when the catalog does not have it.
    version: Option<String>,
    /// The head when there is none.
    to: Option<String>,
    /// Each hop as `from -> to (what allows it)`.
    #[serde(default)]
    hops: Vec<String>,
    /// `automatic`, `stops if manual`, or `passed by` with the hop that OLM takes instead.
    walk: Option<String>,
    /// Why there is no way.
    no_path: Option<String>,
    /// What can be reached instead.
    nearest: Option<String>,
}

#[test]
fn each_case_has_the_way_that_olm_goes() {
    let mut wrong = vec![];
    let mut cases: Vec<_> = fs::read_dir(root().join("testdata/upgrade_path"))
        .expect("cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    cases.sort();
    for path in cases {
        let documents = yaml::read(&fs::read(&path).expect("a case"), &Limits::DEFAULT);
        let document = documents.expect("YAML").pop().expect("a document");
        let case: Case = serde_json::from_value(document.value)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!case.oracle.is_empty(), "{}: no oracle", path.display());
        let told = tell(&case);
        let expected = [&case.hops[..], &end(&case)].concat();
        if told != expected {
            wrong.push(format!("{}: {told:#?}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn end(case: &Case) -> Vec<String> {
    let nearest = case
        .nearest
        .iter()
        .map(|nearest| format!("nearest: {nearest}"));
    let ends = case.walk.iter().chain(&case.no_path).cloned();
    ends.chain(nearest).collect()
}

fn tell(case: &Case) -> Vec<String> {
    let mut tree = FileTree::default();
    tree.insert("catalog.yaml", case.content.clone().into_bytes())
        .expect("a path");
    let catalog = Catalog::read("catalog", 0, Box::new(tree), &Limits::DEFAULT).expect("a catalog");
    let name = catalog.packages().next().expect("a package");
    let package = catalog.package(name, Detail::Choice).expect("readable");
    let package = package.expect("a package");
    let graph = UpgradeGraph::of(&package, &case.channel).expect("a channel");
    let version = case.version.as_ref();
    let version = version.map(|version| versions::parse(version).expect("a version"));
    match graph.path(&case.from, version.as_ref(), case.to.as_deref()) {
        Ok(Path { hops, walk }) => {
            let mut told: Vec<_> = hops.iter().map(hop).collect();
            told.push(match walk {
                Walk::Automatic => "automatic".to_owned(),
                Walk::StopsIfManual => "stops if manual".to_owned(),
                Walk::PassedBy(None) => "passed by".to_owned(),
                Walk::PassedBy(Some(instead)) => format!("passed by: {}", hop(&instead)),
            });
            told
        }
        Err(no_path) => {
            let NoPath { nearest, .. } = &no_path;
            let nearest = nearest.iter().map(|nearest| format!("nearest: {nearest}"));
            [no_path.to_string()].into_iter().chain(nearest).collect()
        }
    }
}

fn hop(hop: &Hop) -> String {
    format!("{} -> {} ({})", hop.from, hop.to, hop.link)
}
