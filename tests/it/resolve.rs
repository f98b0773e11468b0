//! Choices that are data: a newcomer adds one without writing Rust.
//!
//! `testdata/resolve/<situation>.yaml` is catalogs, what is asked of them, and what must be chosen or told.

use std::{fs, path::Path};

use kubectl_olm::{
    catalog::{Catalog, Gvk},
    files::FileTree,
    limits::Limits,
    manifest::yaml,
    resolve::{
        self, Chosen, Installed, Provided, Reason, Refusal, Request, Rules, UpgradePolicy, Wanted,
        explain::Considered,
    },
    versions::{self, Constraint},
};
use serde::Deserialize;

use super::program::root;

/// One situation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What says that this is right: OLM's own code, with its version and the test or function, or the rule.
    oracle: String,
    /// The catalogs, in the order in which the user names them.
    catalogs: Vec<CaseCatalog>,
    /// What is asked for, all of it together.
    wanted: Vec<CaseWanted>,
    /// What is installed already.
    #[serde(default)]
    installed: Vec<CaseInstalled>,
    /// What the cluster has from elsewhere.
    #[serde(default)]
    provided: Vec<CaseProvided>,
    /// Whether dependencies are left alone.
    #[serde(default)]
    without_dependencies: bool,
    /// What must be installed, in order, each as `catalog/channel/bundle`; the channel is empty under OLM v1's rules.
    installs: Option<Vec<String>>,
    /// Every note and warning, when they matter to the case, and what was passed over, indented as a refusal.
    notes: Option<Vec<String>>,
    /// What is said of every version of what is wanted, when it matters to the case: `catalog/channel/bundle: why`.
    explanation: Option<Vec<String>>,
    /// The refusal as a person reads it: each reason indented by two spaces more than what it explains, then problems
    /// of the catalogs, then the hint.
    refused: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseCatalog {
    name: String,
    #[serde(default)]
    priority: i64,
    /// One file of a file-based catalog, in YAML.
    content: String,
}

/// A package under the rules of OLM v1 if it has one of `version`, `channels` and `upgrades`, else of OLM v0.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseWanted {
    package: String,
    catalog: Option<String>,
    channel: Option<String>,
    starting_csv: Option<String>,
    version: Option<String>,
    channels: Option<Vec<String>>,
    upgrades: Option<CaseUpgrades>,
}

#[derive(Deserialize, Clone, Copy)]
enum CaseUpgrades {
    CatalogProvided,
    SelfCertified,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseInstalled {
    name: String,
    package: String,
    version: Option<String>,
    #[serde(default)]
    provides: Vec<CaseApi>,
}

/// An API, or a package.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseProvided {
    api: Option<CaseApi>,
    package: Option<String>,
    version: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseApi {
    #[serde(default)]
    group: String,
    version: String,
    kind: String,
}

#[test]
fn each_case_is_resolved_as_olm_does() {
    let mut wrong = vec![];
    let mut cases: Vec<_> = fs::read_dir(root().join("testdata/resolve"))
        .expect("cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    cases.sort();
    for path in cases {
        let case = read(&path);
        assert!(!case.oracle.is_empty(), "{}: no oracle", path.display());
        let told = tell(&case);
        let expected = expected(&case);
        if told != expected {
            wrong.push(format!(
                "{}\n--- expected\n{expected}--- told\n{told}",
                path.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn read(path: &Path) -> Case {
    let text = fs::read(path).expect("a case");
    let mut documents = yaml::read(&text, &Limits::DEFAULT)
        .unwrap_or_else(|error| panic!("{}: {}", path.display(), error.message()));
    let document = documents.pop().expect("a document");
    serde_json::from_value(document.value)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the case says, as [`tell`] would.
fn expected(case: &Case) -> String {
    let mut expected = String::new();
    for line in case.installs.iter().flatten() {
        expected += &format!("installs {line}\n");
    }
    for line in case.notes.iter().flatten() {
        expected += &format!("{line}\n");
    }
    expected += case.refused.as_deref().unwrap_or_default();
    for line in case.explanation.iter().flatten() {
        expected += &format!("{line}\n");
    }
    expected
}

/// What the library says, as far as the case wants to know.
fn tell(case: &Case) -> String {
    let catalogs: Vec<_> = case.catalogs.iter().map(catalog).collect();
    let request = request(case);
    let mut told = String::new();
    match resolve::resolve(&catalogs.iter().collect::<Vec<_>>(), &request) {
        Ok(resolution) => {
            for chosen in &resolution.chosen {
                told += &format!("installs {}\n", line(&catalogs, chosen));
            }
            if case.notes.is_some() {
                for note in &resolution.notes {
                    told += &format!("{note}\n");
                }
                branches(&mut told, &resolution.passed_over, "");
            }
        }
        Err(refusal) if case.refused.is_some() => told += &tree(&refusal),
        Err(refusal) => told += &format!("refused: {}", tree(&refusal)),
    }
    if case.explanation.is_some() {
        let (explanations, _) = resolve::explain(&catalogs.iter().collect::<Vec<_>>(), &request);
        for considered in explanations.iter().flat_map(|of| &of.considered) {
            let Considered {
                catalog,
                channel,
                bundle,
                verdict,
                ..
            } = considered;
            told += &format!("{catalog}/{channel}/{bundle}: {verdict}\n");
        }
    }
    told
}

fn catalog(case: &CaseCatalog) -> Catalog {
    let mut tree = FileTree::default();
    tree.insert("catalog.yaml", case.content.clone().into_bytes())
        .expect("a path");
    Catalog::read(&case.name, case.priority, Box::new(tree), &Limits::DEFAULT).expect("a catalog")
}

fn request(case: &Case) -> Request {
    let version = |text: &String| versions::parse(text).expect("a version");
    let api = |api: &CaseApi| Gvk {
        group: api.group.clone(),
        version: api.version.clone(),
        kind: api.kind.clone(),
    };
    Request {
        wanted: case.wanted.iter().map(wanted).collect(),
        installed: case
            .installed
            .iter()
            .map(|installed| Installed {
                name: installed.name.clone(),
                package: installed.package.clone(),
                version: installed.version.as_ref().map(version),
                provides: installed.provides.iter().map(api).collect(),
            })
            .collect(),
        provided: case
            .provided
            .iter()
            .map(|provided| match (&provided.api, &provided.package) {
                (Some(of), None) => Provided::Api(api(of)),
                (None, Some(name)) => Provided::Package {
                    name: name.clone(),
                    version: provided.version.as_ref().map(version),
                },
                _ => panic!("provided is an api or a package"),
            })
            .collect(),
        without_dependencies: case.without_dependencies,
    }
}

fn wanted(case: &CaseWanted) -> Wanted {
    let of_v1 = case.version.is_some() || case.channels.is_some() || case.upgrades.is_some();
    let rules = if of_v1 {
        let version = case.version.as_deref();
        Rules::ClusterExtension {
            channels: case.channels.clone().unwrap_or_default(),
            version: version.map(|text| Constraint::parse(text).expect("a constraint")),
            upgrades: match case.upgrades {
                Some(CaseUpgrades::SelfCertified) => UpgradePolicy::SelfCertified,
                Some(CaseUpgrades::CatalogProvided) | None => UpgradePolicy::CatalogProvided,
            },
        }
    } else {
        Rules::Subscription {
            channel: case.channel.clone(),
            starting_csv: case.starting_csv.clone(),
        }
    };
    Wanted {
        package: case.package.clone(),
        catalog: case.catalog.clone(),
        rules,
    }
}

fn line(catalogs: &[Catalog], chosen: &Chosen) -> String {
    let candidate = &chosen.candidate;
    let catalog = &catalogs[candidate.catalog].name;
    let bundle = &candidate.bundle().expect("a bundle").name;
    format!("{catalog}/{}/{bundle}", candidate.channel)
}

fn tree(refusal: &Refusal) -> String {
    let mut text = format!("{}\n", refusal.message);
    branches(&mut text, &refusal.reasons, "  ");
    for problem in &refusal.problems {
        text += &format!("{problem}\n");
    }
    if let Some(hint) = &refusal.hint {
        text += &format!("hint: {hint}\n");
    }
    text
}

fn branches(text: &mut String, reasons: &[Reason], indent: &str) {
    for reason in reasons {
        *text += &format!("{indent}{}\n", reason.sentence);
        branches(text, &reason.because, &format!("{indent}  "));
    }
}
