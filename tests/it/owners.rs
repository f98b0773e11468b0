//! Whose objects are, by objects that are data: `testdata/owners/README.md` says what they hold.

use std::fs;

use kubectl_olm::cluster::owner::{self, Owner};
use serde::Deserialize;
use serde_json::Value;

use super::{cases::read, program::root};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    owner: String,
    object: Value,
}

#[test]
fn objects_are_those_of_their_owners() {
    let mut wrong = vec![];
    let entries = fs::read_dir(root().join("testdata/owners")).expect("cases");
    let paths = entries.map(|entry| entry.expect("a case").path());
    let paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    assert!(paths.len() >= 20, "cases are missing");
    for path in paths {
        let case: Case = read(&path);
        let found = match owner::of(&case.object) {
            Owner::Install(id) => format!("install {id}"),
            Owner::Other(owner) => owner,
            Owner::Nobody => "nobody".to_owned(),
        };
        if found != case.owner {
            wrong.push(format!("{}: {found}, not {}", path.display(), case.owner));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
