//! Every real bundle of the corpus renders to what OLM's own renderer makes of it, by the corpus's own comparison.
//!
//! Where it does not, a rule says why. The rules are listed here, never a bundle, and each is justified where the
//! program does it. The corpus is `OLM_CORPUS`, by default `../shared/corpus`.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use kubectl_olm::{
    limits::Limits,
    manifest::{Manifest, Origin, yaml},
};
use rayon::prelude::*;

use super::program::{root, run, tool};

/// A reason to differ, and whether a line of the comparison, with what the program told, shows that it is at work.
struct Rule {
    name: &'static str,
    explains: fn(&str, &str) -> bool,
}

const RULES: &[Rule] = &[
    Rule {
        name: "v1beta1 is converted to v1 (bundle/custom_resource_definition.rs, bundle/mod.rs)",
        explains: |line, told| {
            let object = format!("/{}:", object_name(line));
            let mut told = told.lines();
            told.any(|told| told.contains("converted to v1") && told.contains(&object))
        },
    },
    Rule {
        name: "the same object twice is merged (render/duplicates.rs)",
        explains: |line, told| {
            let object = format!("/{}: stands twice", object_name(line));
            let in_place = line.ends_with("missing") || line.contains(".metadata");
            in_place && told.lines().any(|told| told.contains(&object))
        },
    },
    Rule {
        name: "a ServiceAccount that only a Deployment names is made (render/generate/service_accounts.rs)",
        explains: |line, _| line.starts_with("ServiceAccount.") && line.ends_with("not expected"),
    },
    Rule {
        name: "port 0 becomes 443 (bundle/cluster_service_version.rs)",
        explains: |line, _| line.contains("port: expected 0, got 443"),
    },
    Rule {
        name: "names end at 63 characters (render/names.rs)",
        explains: |line, _| {
            let length = object_name(line).len();
            line.ends_with("missing") && length == 64
                || line.ends_with("not expected") && length == 63
        },
    },
    Rule {
        name: "a variable that is set twice stays once (render/generate/deployments.rs)",
        explains: |line, stderr| {
            line.contains(".env: expected") && stderr.contains("warning[duplicate-env]")
        },
    },
];

/// The name of the object that a line of the comparison is about.
fn object_name(line: &str) -> &str {
    let object = line.split(' ').next().unwrap_or_default();
    let name = object.rsplit('/').next().unwrap_or_default();
    name.trim_end_matches('\'')
}

/// A bundle of the corpus, and how it is installed.
pub(crate) struct Case {
    pub(crate) operator: String,
    pub(crate) version: String,
    /// The namespace it watches, where it cannot watch all.
    pub(crate) watched: Option<String>,
}

#[test]
fn real_bundles_render_as_olm_renders_them() {
    let Some(corpus) = corpus() else { return };
    let cases = cases(&corpus);
    let results: Vec<_> = cases
        .par_iter()
        .map(|case| compare(&corpus, case))
        .collect();
    let equal = results
        .iter()
        .filter(|result| result.is_ok_and_equal())
        .count();
    let mut by_rule: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unexplained = vec![];
    for result in &results {
        for rule in &result.rules {
            *by_rule.entry(rule).or_default() += 1;
        }
        unexplained.extend(
            result
                .unexplained
                .iter()
                .map(|line| format!("{}: {line}", result.bundle)),
        );
    }
    tell(&format!(
        "{equal} of {} bundles are equal to OLM's rendering",
        cases.len()
    ));
    for (rule, bundles) in by_rule {
        tell(&format!("{bundles} differ because {rule}"));
    }
    tell(&format!(
        "{} differences are unexplained",
        unexplained.len()
    ));
    assert!(
        unexplained.is_empty(),
        "the first unexplained: {}",
        unexplained[0]
    );
}

struct Comparison {
    bundle: String,
    rules: Vec<&'static str>,
    unexplained: Vec<String>,
}

impl Comparison {
    fn is_ok_and_equal(&self) -> bool {
        self.rules.is_empty() && self.unexplained.is_empty()
    }
}

/// Every bundle of the corpus.
pub(crate) fn cases(corpus: &Path) -> Vec<Case> {
    let table = fs::read_to_string(corpus.join("cases.tsv")).expect("the corpus has cases.tsv");
    let cases: Vec<_> = table.lines().skip(1).map(case).collect();
    assert!(
        cases.len() > 200,
        "the corpus is not whole: {} cases",
        cases.len()
    );
    cases
}

fn case(line: &str) -> Case {
    let fields: Vec<_> = line.split('\t').collect();
    Case {
        operator: fields[0].to_owned(),
        version: fields[1].to_owned(),
        watched: (fields[2] != "AllNamespaces").then(|| fields[3].to_owned()),
    }
}

fn compare(corpus: &Path, case: &Case) -> Comparison {
    let name = format!("{}/{}", case.operator, case.version);
    let bundle = corpus.join("bundles").join(&name);
    let mut arguments = vec![
        "render".into(),
        bundle.clone().into_os_string(),
        "-n".into(),
        "operators".into(),
    ];
    if let Some(watched) = &case.watched {
        arguments.extend(["--watch-namespace".into(), watched.into()]);
    }
    let rendered = run(arguments);
    let mut comparison = Comparison {
        bundle: name,
        rules: vec![],
        unexplained: vec![],
    };
    if rendered.code != 0 {
        comparison
            .unexplained
            .push(format!("refused: {}", rendered.stderr));
        return comparison;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let actual = folder.path().join("actual.yaml");
    fs::write(&actual, &rendered.stdout).expect("the temporary folder takes a file");
    let compared = Command::new(tool("python/bin/python"))
        .arg(corpus.join("../bin/compare-objects"))
        .args([bundle.join("expected.yaml"), actual])
        .output()
        .expect("python starts");
    let lines = String::from_utf8_lossy(&compared.stdout).into_owned();
    if !compared.status.success() && lines.is_empty() {
        comparison
            .unexplained
            .push(String::from_utf8_lossy(&compared.stderr).into_owned());
    }
    for line in lines.lines() {
        match RULES
            .iter()
            .find(|rule| (rule.explains)(line, &rendered.stderr))
        {
            Some(rule) if comparison.rules.contains(&rule.name) => {}
            Some(rule) => comparison.rules.push(rule.name),
            None => comparison.unexplained.push(line.to_owned()),
        }
    }
    comparison
}

/// The folder of the corpus, which is no part of the project.
pub(crate) fn corpus() -> Option<PathBuf> {
    let named = std::env::var_os("OLM_CORPUS").map(PathBuf::from);
    let is_named = named.is_some();
    let corpus = named.unwrap_or_else(|| root().join("../shared/corpus"));
    if corpus.join("cases.tsv").exists() {
        return Some(corpus);
    }
    assert!(
        !is_named,
        "OLM_CORPUS is {}, which is no corpus",
        corpus.display()
    );
    tell(&format!(
        "there is no corpus in {}, so nothing was compared; name one by OLM_CORPUS",
        corpus.display()
    ));
    None
}

/// Says something also where the test harness keeps what a test prints.
fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The objects of a bundle's manifests, file by file.
pub(crate) fn manifests(bundle: &Path) -> Vec<Manifest> {
    let entries = fs::read_dir(bundle.join("manifests")).expect("manifests");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let mut manifests = vec![];
    for path in paths {
        let text = fs::read(&path).expect("a file");
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        for document in yaml::read(&text, &Limits::DEFAULT).expect("YAML") {
            let (path, line) = ((*name).into(), document.line);
            manifests.push(Manifest::new(document.value, Origin::File { path, line }));
        }
    }
    manifests
}
