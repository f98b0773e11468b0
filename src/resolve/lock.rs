//! `olm.lock`: what was chosen, so that the same is installed again, and so that a person sees in a diff what a new
//! choice changes. It is YAML with one value a line, sorted keys, and installs in install order.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{limits::Limits, manifest::yaml};

/// The form of the file that this version writes and reads.
const LOCK_VERSION: u32 = 1;

/// What stands at the top of the file.
const HEADER: &str =
    "# Written by kubectl olm: what it chose. With --locked it installs exactly this.\n";

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lock {
    /// The form of the file.
    pub lock_version: u32,
    /// The catalogs that were asked, the preferred one first.
    pub catalogs: Vec<LockedCatalog>,
    /// What is installed, in install order.
    pub installs: Vec<LockedInstall>,
}

/// A catalog that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockedCatalog {
    /// What it is called.
    pub name: String,
    /// The digest of the image that it is from; none when it is from disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The digest of its files.
    pub digest: String,
}

/// A bundle that was chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockedInstall {
    /// Its package.
    pub package: String,
    /// Its name.
    pub bundle: String,
    /// Its version.
    pub version: String,
    /// The catalog that it is from.
    pub catalog: String,
    /// The channel that it was chosen from; none when the rules know no channels.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Its image; none when the catalog holds it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// The digest of that image; none when something else stood for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_digest: Option<String>,
    /// The digest of its files.
    pub digest: String,
    /// Its images, and by which digests they were named instead; none when they were left as they are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<String, String>,
    /// How it was asked for; nothing when something else needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// The installed bundle that it takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// What the installs are called that it is for; none when flags ask for it.
    #[serde(default, rename = "for", skip_serializing_if = "BTreeSet::is_empty")]
    pub installs: BTreeSet<String>,
    /// The bundles that need it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_by: Vec<String>,
}

/// How a package was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Asked {
    /// The only catalog to take it from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// The channels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<String>,
    /// The range of versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The bundle to start from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_csv: Option<String>,
    /// Whether the catalog's upgrades do not count.
    #[serde(default, skip_serializing_if = "is_false")]
    pub self_certified: bool,
    /// What was installed already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub installed: Vec<String>,
    /// What the cluster had from elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provided: Vec<String>,
    /// Whether dependencies were left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub without_dependencies: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Lock {
    /// The lock of a choice.
    #[must_use]
    pub fn new(catalogs: Vec<LockedCatalog>, installs: Vec<LockedInstall>) -> Self {
        Self {
            lock_version: LOCK_VERSION,
            catalogs,
            installs,
        }
    }

    /// The text of the file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = HEADER.to_owned();
        let value = serde_json::to_value(self).unwrap_or_default();
        yaml::write(&value, &mut text);
        text
    }

    /// Reads the text of the file.
    ///
    /// # Errors
    /// Why it is no lock, as `line 3: …` where a line is to blame.
    pub fn parse(text: &[u8], limits: &Limits) -> Result<Self, String> {
        let documents = yaml::read(text, limits).map_err(|error| error.to_string())?;
        let mut documents = documents.into_iter().map(|document| document.value);
        let (Some(value), None) = (documents.next(), documents.next()) else {
            return Err("it does not hold one document".to_owned());
        };
        let version = value.get("lockVersion").and_then(Value::as_u64);
        if version != Some(LOCK_VERSION.into()) {
            let found = value.get("lockVersion").unwrap_or(&Value::Null);
            return Err(format!(
                "its lockVersion is {found}, and this program knows {LOCK_VERSION}"
            ));
        }
        let lock: Self = serde_json::from_value(value).map_err(|error| error.to_string())?;
        let mut installs = lock.installs.iter();
        match installs.find(|install| install.digest.is_empty()) {
            Some(install) => Err(format!("it has no digest of {}", install.bundle)),
            None => Ok(lock),
        }
    }
}
