//! Which version an install can be upgraded to, as catalogs know the way.

use std::sync::Arc;

use super::{failure::Failure, installs};
use crate::{
    catalog::Catalog,
    cluster::inventory::Content,
    install::PackageWish,
    resolve::{self, InstalledBundle, Rules, UpgradePolicy},
};

/// The version that the next upgrade of an install leads to, by its bundle's name: the highest that the catalogs have an edge
/// to; nothing when there is none, or no catalog has the package.
///
/// # Errors
/// When a catalog cannot be read.
pub(super) fn newer(content: &Content, catalogs: &[Catalog]) -> Result<Option<String>, Failure> {
    let opened: Vec<_> = catalogs.iter().collect();
    let has_package = |catalog: &&&Catalog| catalog.packages().any(|name| name == content.package);
    if opened.iter().find(has_package).is_none() {
        return Ok(None);
    }
    let wish = PackageWish {
        package: content.package.clone(),
        catalog: None,
        scope: catalogs
            .iter()
            .map(|catalog| catalog.name.clone())
            .collect(),
        rules: Rules::ClusterExtension {
            channels: vec![],
            version: None,
            upgrades: UpgradePolicy::CatalogProvided,
        },
        installed: vec![InstalledBundle {
            name: content.bundle.clone(),
            version: content.version.parse().ok(),
        }],
        beside: Arc::default(),
        provided: vec![],
        without_dependencies: true,
        together: None,
    };
    let request = installs::request(&[&wish], &opened)?;
    // What has no way to anything else is the newest.
    let Ok(resolution) = resolve::resolve(&opened, &request) else {
        return Ok(None);
    };
    let chosen = resolution.chosen.iter();
    let bundles = chosen.filter_map(|chosen| chosen.candidate.bundle());
    let mut other = bundles.filter(|bundle| bundle.name != content.bundle);
    Ok(other.next().map(|bundle| bundle.name.clone()))
}
