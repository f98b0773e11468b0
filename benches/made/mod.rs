//! Packages of the real catalogs, which large ones are made of by giving them many names.

use std::{fs, path::Path};

use kubectl_olm::{limits::Limits, manifest::yaml};
use serde_json::{Value, json};

/// The documents of each package of the real catalogs.
pub(crate) fn real_packages(real: &Path) -> Vec<(String, Vec<Value>)> {
    let mut packages = vec![];
    for version in ["v4.14", "v4.19"] {
        let folder = fs::read_dir(real.join(version)).expect("a catalog");
        for entry in folder.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let files = fs::read_dir(entry.path()).expect("a package").flatten();
            let mut files: Vec<_> = files.map(|file| file.path()).collect();
            files.sort();
            let documents = files.iter().flat_map(|file| {
                let text = fs::read(file).expect("readable");
                yaml::read(&text, &Limits::NONE).expect("YAML")
            });
            let documents = documents.map(|document| document.value).collect();
            packages.push((format!("{name}-{}", version.replace('.', "-")), documents));
        }
    }
    packages.sort_by(|one, other| one.0.cmp(&other.0));
    packages
}

/// A document of a package under another name.
pub(crate) fn renamed(mut document: Value, package: &str) -> Value {
    let is_definition = document["schema"] == "olm.package";
    document[if is_definition { "name" } else { "package" }] = json!(package);
    let properties = document.get_mut("properties").and_then(Value::as_array_mut);
    for property in properties.into_iter().flatten() {
        if property["type"] == "olm.package" {
            property["value"]["packageName"] = json!(package);
        }
    }
    document
}
