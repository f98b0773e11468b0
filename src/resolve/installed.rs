//! What is known of an operator that is installed, by the name of its bundle.

use semver::Version;

use super::{Installed, Refusal};
use crate::{
    catalog::{Catalog, CatalogBundle, Detail, Package},
    versions,
};

/// Finds out what a bundle that is installed is a version of, and what it provides: from the catalogs where one has it,
/// first the package that is wanted.
///
/// # Errors
/// When no catalog has the bundle, none has one that says it can be installed over it, and its name does not tell.
pub fn installed_bundle(
    catalogs: &[&Catalog],
    wanted: &str,
    name: &str,
    version: Option<&Version>,
) -> Result<Installed, Refusal> {
    let mut known = None;
    for catalog in catalogs {
        let likely = catalog.packages().filter(|package| *package == wanted);
        let others = catalog.packages().filter(|package| *package != wanted);
        for package in likely.chain(others) {
            if known.is_none() && catalog.has_bundle(package, name) {
                known = catalog.package(package, Detail::Choice)?;
            }
        }
    }
    if let Some((package, bundle)) = known
        .as_ref()
        .and_then(|package| Some((package, package.bundle(name)?)))
    {
        return of_bundle(package, bundle, version);
    }
    let is_of = |package: &str| {
        let rest = name.strip_prefix(package);
        rest.is_some_and(|rest| rest.starts_with('.'))
    };
    let package = if is_of(wanted) || is_followed(catalogs, wanted, name)? {
        Some(wanted)
    } else {
        let mut packages = catalogs.iter().flat_map(|catalog| catalog.packages());
        packages.find(|package| is_of(package))
    };
    if let Some(package) = package {
        return Ok(Installed {
            name: name.to_owned(),
            package: package.to_owned(),
            version: version.cloned(),
            provides: vec![],
        });
    }
    Err(Refusal {
        message: format!("no catalog has the bundle {name} that is said to be installed"),
        hint: Some("name it as the catalog does, such as PACKAGE.v1.2.3 (kubectl olm catalog show PACKAGE lists the names); a package that no catalog has goes into --provided PACKAGE=VERSION".to_owned()),
        ..Refusal::default()
    })
}

fn of_bundle(
    package: &Package,
    bundle: &CatalogBundle,
    version: Option<&Version>,
) -> Result<Installed, Refusal> {
    let in_catalog = bundle.version().and_then(|text| versions::parse(text).ok());
    if let (Some(said), Some(known)) = (version, &in_catalog)
        && said != known
    {
        let name = &bundle.name;
        let message = format!("{name} is version {known} in the catalog, and said to be {said}");
        let hint = Some(format!("leave the version out: --installed {name}"));
        return Err(Refusal {
            message,
            hint,
            ..Refusal::default()
        });
    }
    Ok(Installed {
        name: bundle.name.clone(),
        package: package.name.clone(),
        version: in_catalog.or(version.cloned()),
        provides: bundle.provided().collect(),
    })
}

/// Whether a bundle of the wanted package says that it can be installed over the one that is installed.
fn is_followed(catalogs: &[&Catalog], wanted: &str, name: &str) -> Result<bool, Refusal> {
    for catalog in catalogs {
        let package = catalog.package(wanted, Detail::Choice)?.unwrap_or_default();
        let mut entries = package.channels.iter().flat_map(|channel| &channel.entries);
        if entries
            .any(|entry| entry.replaces == name || entry.skips.iter().any(|skip| skip == name))
        {
            return Ok(true);
        }
    }
    Ok(false)
}
