//! Requirements that are made to be hard end, with an answer or a clear refusal.

use std::fmt::Write as _;

use kubectl_olm::{
    catalog::Catalog,
    files::FileTree,
    limits::Limits,
    resolve::{self, Reason, Refusal, Request, Resolution, Rules, Wanted},
};

/// A package with one channel, whose bundles are given by version and further properties.
fn package(text: &mut String, name: &str, bundles: &[(String, Vec<String>)]) {
    let mut entries = vec![];
    for (position, (version, properties)) in bundles.iter().enumerate() {
        let replaces = match position.checked_sub(1) {
            Some(before) => format!(r#", "replaces": "{name}.v{}""#, bundles[before].0),
            None => String::new(),
        };
        entries.push(format!(r#"{{"name": "{name}.v{version}"{replaces}}}"#));
        let own = format!(
            r#"{{"type": "olm.package", "value": {{"packageName": "{name}", "version": "{version}"}}}}"#
        );
        let properties: Vec<_> = [own].iter().chain(properties).cloned().collect();
        let properties = properties.join(",");
        writeln!(
            text,
            r#"{{"schema": "olm.bundle", "package": "{name}", "name": "{name}.v{version}", "image": "x", "properties": [{properties}]}}"#
        )
        .expect("text");
    }
    let entries = entries.join(",");
    writeln!(
        text,
        r#"{{"schema": "olm.package", "name": "{name}", "defaultChannel": "c"}}
{{"schema": "olm.channel", "package": "{name}", "name": "c", "entries": [{entries}]}}"#
    )
    .expect("text");
}

fn needs(package: &str, range: &str) -> String {
    format!(
        r#"{{"type": "olm.package.required", "value": {{"packageName": "{package}", "versionRange": "{range}"}}}}"#
    )
}

fn label(kind: &str, label: usize) -> String {
    format!(r#"{{"type": "{kind}", "value": {{"label": "l{label}"}}}}"#)
}

fn resolve(text: String, wanted: &str) -> Result<Resolution, Refusal> {
    let mut tree = FileTree::default();
    tree.insert("catalog.json", text.into_bytes())
        .expect("a path");
    let catalog = Catalog::read("big", 0, Box::new(tree), &Limits::NONE).expect("a catalog");
    let wanted = Wanted {
        package: wanted.to_owned(),
        catalog: None,
        rules: Rules::Subscription {
            channel: None,
            starting_csv: None,
        },
    };
    let request = Request {
        wanted: vec![wanted],
        ..Request::default()
    };
    resolve::resolve(&[&catalog], &request)
}

/// As many pigeons as labels, one hole too few: SAT solvers need exponential time to see it.
#[test]
fn pigeons_without_enough_holes_are_given_up() {
    let mut text = String::new();
    let labels = (0..=14).map(|l| label("olm.label.required", l)).collect();
    package(&mut text, "pigeons", &[("1.0.0".to_owned(), labels)]);
    for hole in 0..14 {
        let bundles: Vec<_> = (0..=14)
            .map(|l| (format!("{l}.0.0"), vec![label("olm.label", l)]))
            .collect();
        package(&mut text, &format!("hole{hole}"), &bundles);
    }
    let refusal = resolve(text, "pigeons").expect_err("no answer");
    assert!(
        refusal.reasons[0].sentence.contains("too entangled"),
        "{refusal:?}"
    );
}

#[test]
fn a_chain_of_a_thousand_packages_is_installed_from_its_end() {
    let mut text = String::new();
    for link in 0..1000 {
        let next = format!("p{}", link + 1);
        let properties = if link < 999 {
            vec![needs(&next, ">=1.0.0")]
        } else {
            vec![]
        };
        let bundles = [("1.0.0".to_owned(), properties)];
        package(&mut text, &format!("p{link}"), &bundles);
    }
    let resolution = resolve(text, "p0").expect("an answer");
    let packages: Vec<_> = resolution
        .chosen
        .iter()
        .map(|chosen| chosen.candidate.package.name.clone())
        .collect();
    let expected: Vec<_> = (0..1000).rev().map(|link| format!("p{link}")).collect();
    assert_eq!(packages, expected);
}

#[test]
fn versions_that_each_need_another_are_refused_in_few_words() {
    let mut text = String::new();
    let bundles: Vec<_> = (0..20_000)
        .map(|v| {
            (
                format!("{v}.0.0"),
                vec![needs(&format!("gone{v}"), "1.0.0")],
            )
        })
        .collect();
    package(&mut text, "many", &bundles);
    let refusal = resolve(text, "many").expect_err("nothing has what they need");
    assert!(sentences(&refusal.reasons) < 100, "{refusal:?}");
}

fn sentences(reasons: &[Reason]) -> usize {
    let below = reasons.iter().map(|reason| 1 + sentences(&reason.because));
    below.sum()
}
