//! Installs and catalogs of OLM v1: ClusterExtension and ClusterCatalog.
//!
//! Reproduces operator-controller `resolve/catalog.go` (which catalogs count: those that are available and whose labels
//! the selector matches, all without one) and catalogd's webhook, by which a catalog can be selected by its name.
//! What a package needs is installed with it, which OLM v1 refuses to do.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Asker, CatalogContent, CatalogRef, Content, Found, Given, Install, Objects, PackageWish,
    Stopped, about, annotations::Annotations, field, id_of, or_default, texts,
};
use crate::{
    manifest::{Manifest, label_selector::LabelSelector},
    problem::{Place, Problem},
    render::overrides::Overrides,
    resolve::{InstalledBundle, Rules, UpgradePolicy},
    versions::{self, Constraint},
};

/// The label that catalogd gives each catalog.
const NAME_LABEL: &str = "olm.operatorframework.io/metadata.name";

const RULE: &str = "cluster-extension";

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ClusterCatalogSpec {
    availability_mode: String,
    priority: i64,
    source: ImageSource,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ImageSource {
    #[serde(deserialize_with = "or_default")]
    image: Image,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Image {
    #[serde(deserialize_with = "or_default")]
    r#ref: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ClusterExtensionSpec {
    namespace: String,
    source: Source,
    config: Config,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Source {
    #[serde(deserialize_with = "or_default")]
    catalog: CatalogFilter,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CatalogFilter {
    #[serde(deserialize_with = "or_default")]
    package_name: String,
    #[serde(deserialize_with = "or_default")]
    version: String,
    #[serde(deserialize_with = "texts")]
    channels: Vec<String>,
    selector: Option<Value>,
    #[serde(deserialize_with = "or_default")]
    upgrade_constraint_policy: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Config {
    #[serde(deserialize_with = "or_default")]
    inline: Map<String, Value>,
}

/// The ClusterCatalogs.
pub(super) fn catalogs(objects: &Objects, given: &Given) -> Vec<CatalogRef> {
    let catalogs = objects.cluster_catalogs.iter();
    catalogs
        .map(|catalog| {
            let spec: ClusterCatalogSpec = field(catalog.object().get("spec"));
            let mut labels: BTreeMap<_, _> = field(catalog.metadata("labels"));
            labels.extend(labels_of_name(catalog.name()));
            let standing_in = given
                .catalogs
                .iter()
                .find(|given| given.stands_for(catalog));
            let content = if spec.availability_mode == "Unavailable" {
                let problem = Problem::error(RULE, "its availabilityMode is Unavailable");
                let problem = problem.at(&catalog.origin).on(catalog.key());
                CatalogContent::Unreadable(problem.into())
            } else {
                match standing_in {
                    Some(given) => given.content.clone(),
                    None => CatalogContent::Image(spec.source.image.r#ref),
                }
            };
            CatalogRef {
                id: catalog.name().to_owned(),
                manifest: Some(catalog.clone()),
                namespace: None,
                name: catalog.name().to_owned(),
                labels: Some(labels),
                priority: standing_in
                    .and_then(|given| given.priority)
                    .or(Some(spec.priority)),
                content,
                pull_secrets: vec![],
            }
        })
        .collect()
}

/// The labels by which a catalog can be selected by its name.
pub(super) fn labels_of_name(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from_iter([(NAME_LABEL.to_owned(), name.to_owned())])
}

/// The installs that ClusterExtensions ask for.
pub(super) fn installs(objects: &Objects, given: &Given, catalogs: &[CatalogRef]) -> Vec<Found> {
    let extensions = objects.cluster_extensions.iter();
    let found = extensions.map(|extension| {
        let install = install(extension, given, catalogs);
        (id_of(extension), install)
    });
    found.collect()
}

fn install(
    extension: &Manifest,
    given: &Given,
    catalogs: &[CatalogRef],
) -> Result<Install, Stopped> {
    let spec: ClusterExtensionSpec = field(extension.object().get("spec"));
    let annotations = Annotations::of(extension)?;
    let filter = spec.source.catalog;
    let scope = scope(filter.selector.as_ref(), catalogs);
    let scope = scope.map_err(|reason| about(extension, RULE, reason))?;
    if scope.is_empty() {
        return Err(without_catalog(extension));
    }
    let rules = rules(&filter).map_err(|reason| about(extension, RULE, reason))?;
    let mut notes = vec![];
    let place = Place::from(&extension.origin);
    let inline = Overrides::of_inline(spec.config.inline, &place, &mut notes);
    let Some((overrides, watched_inline)) = inline else {
        return Err(notes.into());
    };
    let watched = match given.watched.as_slice() {
        [] if annotations.watched.is_empty() => watched_inline.into_iter().collect(),
        [] => annotations.watched,
        watched => watched.to_vec(),
    };
    let installed = annotations.installed.or_else(|| installed(extension));
    let namespace = Some(spec.namespace).filter(|namespace| !namespace.is_empty());
    Ok(Install {
        id: id_of(extension),
        object: Some(Asker::from(extension)),
        namespace: given.namespace.clone().or(namespace),
        watched,
        content: Content::Package(Box::new(PackageWish {
            package: filter.package_name,
            catalog: None,
            scope,
            rules,
            installed: installed
                .into_iter()
                .chain(given.installed.clone())
                .collect(),
            beside: Arc::default(),
            provided: [given.provided.as_slice(), &annotations.provided].concat(),
            without_dependencies: given.without_dependencies || annotations.without_dependencies,
            together: None,
        })),
        overrides,
        certificates: annotations.certificates,
        pull_secrets: annotations.pull_secrets,
        also_service_accounts: annotations.also_service_accounts,
        notes,
    })
}

fn without_catalog(extension: &Manifest) -> Stopped {
    let message = "no ClusterCatalog of the input that is available fits its selector";
    let hint = "add ClusterCatalogs to -f, or --catalog NAME=SOURCE, which a selector finds by its name alone, as the \
                label olm.operatorframework.io/metadata.name";
    Stopped::because(about(extension, RULE, message), hint)
}

/// How the version is chosen.
fn rules(filter: &CatalogFilter) -> Result<Rules, String> {
    let version =
        match filter.version.as_str() {
            "" => None,
            range => Some(Constraint::parse(range).map_err(|reason| {
                format!("desired version range {range:?} is invalid: {reason}")
            })?),
        };
    Ok(Rules::ClusterExtension {
        channels: filter.channels.clone(),
        version,
        upgrades: match filter.upgrade_constraint_policy.as_str() {
            "SelfCertified" => UpgradePolicy::SelfCertified,
            _ => UpgradePolicy::CatalogProvided,
        },
    })
}

/// The catalogs that a selector matches, the preferred one first.
fn scope(selector: Option<&Value>, catalogs: &[CatalogRef]) -> Result<Vec<String>, String> {
    let selector = selector.map(LabelSelector::parse).transpose();
    let selector = selector.map_err(|reasons| {
        format!(
            "desired catalog selector is invalid: {}",
            reasons.join(", ")
        )
    })?;
    let selects = |labels: &BTreeMap<_, _>| {
        selector
            .as_ref()
            .is_none_or(|selector| selector.matches(labels))
    };
    let fitting = catalogs.iter().filter(|catalog| {
        let is_available = !matches!(catalog.content, CatalogContent::Unreadable(_));
        is_available && catalog.labels.as_ref().is_some_and(selects)
    });
    let mut fitting: Vec<_> = fitting.collect();
    fitting.sort_by_key(|catalog| Reverse(catalog.priority.unwrap_or(0)));
    Ok(fitting
        .into_iter()
        .map(|catalog| catalog.id.clone())
        .collect())
}

/// What the status says that is installed.
fn installed(extension: &Manifest) -> Option<InstalledBundle> {
    let bundle = extension
        .object()
        .get("status")?
        .pointer("/install/bundle")?;
    let text = |field: &str| bundle.get(field).and_then(Value::as_str);
    Some(InstalledBundle {
        name: text("name").filter(|name| !name.is_empty())?.to_owned(),
        version: text("version").and_then(|version| versions::parse(version).ok()),
    })
}
