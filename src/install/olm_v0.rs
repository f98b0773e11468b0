//! Installs of OLM v0: what Subscriptions ask for, with the OperatorGroup and the catalogs of their namespaces.
//!
//! Reproduces operator-lifecycle-manager `resolver/step_resolver.go` (`ResolveSteps`: which catalogs count for a
//! namespace, what is solved together) and `resolver/cache/cache.go` (the order of catalogs). A catalog that is of no
//! use stops only who needs it, and not, as there, everybody in its namespace.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Asker, CatalogRef, Content, Found, Given, Install, Objects, PackageWish, Stopped, about,
    annotations::Annotations, cluster_facts, field, fits, id_of, operator_group::OperatorGroup,
};
use crate::{
    manifest::Manifest,
    problem::{Place, Problem},
    render::overrides::Overrides,
    resolve::{Installed, InstalledBundle, Rules},
};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct SubscriptionSpec {
    name: String,
    source: String,
    source_namespace: String,
    channel: Option<String>,
    #[serde(rename = "startingCSV")]
    starting_csv: Option<String>,
    install_plan_approval: Option<String>,
    config: Option<Map<String, Value>>,
}

/// The installs that Subscriptions ask for.
pub(super) fn installs(objects: &Objects, given: &Given, catalogs: &[CatalogRef]) -> Vec<Found> {
    let mut namespaces = BTreeMap::new();
    let mut before: BTreeMap<_, &Manifest> = BTreeMap::new();
    let mut found = vec![];
    for subscription in &objects.subscriptions {
        let own = namespace_of(subscription, given);
        let namespace = namespaces
            .entry(own)
            .or_insert_with(|| Namespace::of(own, objects, given));
        let spec: SubscriptionSpec = field(subscription.object().get("spec"));
        let package = (own, spec.name);
        let install = match before.get(&package) {
            Some(first) => Err(twice(subscription, first)),
            None => {
                before.insert(package, subscription);
                install(subscription, namespace, objects, given, catalogs)
            }
        };
        found.push((id_of(subscription), install));
    }
    found
}

/// What two Subscriptions say of one package cannot both count.
fn twice(subscription: &Manifest, first: &Manifest) -> Stopped {
    let message = format!(
        "{} asks for the same package in the same namespace",
        id_of(first)
    );
    let hint = "leave one of the two Subscriptions";
    Stopped::because(about(subscription, "two-subscriptions", message), hint)
}

/// What Subscriptions of one namespace have in common.
struct Namespace<'o> {
    name: Option<&'o str>,
    /// The namespaces that they take catalogs from.
    sources: BTreeSet<String>,
    /// What is installed already.
    installed: Arc<[Installed]>,
}

impl<'o> Namespace<'o> {
    fn of(name: Option<&'o str>, objects: &Objects, given: &Given) -> Self {
        let subscriptions = objects.subscriptions.iter();
        let here = subscriptions.filter(|subscription| namespace_of(subscription, given) == name);
        let sources = here.map(|subscription| {
            let spec: SubscriptionSpec = field(subscription.object().get("spec"));
            spec.source_namespace
        });
        Self {
            name,
            sources: sources.collect(),
            installed: cluster_facts::installed_in(name, objects),
        }
    }
}

fn install(
    subscription: &Manifest,
    namespace: &Namespace<'_>,
    objects: &Objects,
    given: &Given,
    catalogs: &[CatalogRef],
) -> Result<Install, Stopped> {
    let spec: SubscriptionSpec = field(subscription.object().get("spec"));
    let annotations = Annotations::of(subscription)?;
    let own = namespace.name;
    let watched = match given.watched.as_slice() {
        [] => annotations.watched.as_slice(),
        watched => watched,
    };
    let group = OperatorGroup::of(objects, own, watched)?;
    let lacks_group = group.is_none() && watched.is_empty() && !objects.operator_groups.is_empty();
    let group = group.unwrap_or_else(|| OperatorGroup {
        watched: watched.to_vec(),
        ..OperatorGroup::default()
    });
    let catalog = source_of(subscription, &spec, catalogs)?;
    let scope = scope(namespace, catalogs, group.excludes_global);
    if !scope.contains(&catalog.id) {
        return Err(excluded(subscription, catalog));
    }
    let mut notes = group.notes;
    notes.extend(lacks_group.then(|| without_group(subscription)));
    notes.extend(moved(subscription, own, given));
    let place = Place::from(&subscription.origin);
    let overrides = overrides(spec.config.unwrap_or_default(), &place, &mut notes)?;
    let installed = annotations.installed.or_else(|| installed(subscription));
    let starting_csv = spec.starting_csv.filter(|name| !name.is_empty());
    let is_manual = spec.install_plan_approval.as_deref() == Some("Manual");
    if let (Some(bundle), None, false) = (&starting_csv, &installed, is_manual) {
        notes.push(stays(subscription, bundle));
    }
    let together = own.map_or_else(|| id_of(subscription), str::to_owned);
    Ok(Install {
        id: id_of(subscription),
        object: Some(Asker::from(subscription)),
        namespace: given.namespace.clone().or_else(|| own.map(str::to_owned)),
        watched: group.watched,
        content: Content::Package(Box::new(PackageWish {
            catalog: Some(catalog.id.clone()),
            scope,
            rules: Rules::Subscription {
                channel: spec.channel.filter(|channel| !channel.is_empty()),
                starting_csv,
            },
            installed: installed
                .into_iter()
                .chain(given.installed.clone())
                .collect(),
            beside: Arc::clone(&namespace.installed),
            provided: [given.provided.as_slice(), &annotations.provided].concat(),
            without_dependencies: given.without_dependencies || annotations.without_dependencies,
            together: Some(together),
            package: spec.name,
        })),
        overrides,
        certificates: annotations.certificates,
        pull_secrets: annotations.pull_secrets,
        also_service_accounts: annotations.also_service_accounts,
        notes,
    })
}

fn excluded(subscription: &Manifest, catalog: &CatalogRef) -> Stopped {
    let message = format!(
        "the OperatorGroup of its namespace excludes catalogs of others, such as {}",
        catalog.id
    );
    let hint = "take the annotation from the OperatorGroup, or a catalog of the namespace";
    Stopped::because(about(subscription, "catalog-source", message), hint)
}

/// Warns that the OperatorGroups of the input are all in other namespaces: one of them may be meant.
fn without_group(subscription: &Manifest) -> Problem {
    let message = "its namespace has no OperatorGroup, as others of the input have, so that OLM would install nothing; \
                   what the bundle supports decides what is watched";
    let warning = Problem::warning("operator-group", message);
    warning.at(&subscription.origin).on(subscription.key())
}

fn note(subscription: &Manifest, rule: &'static str, message: String) -> Problem {
    let note = Problem::note(rule, message);
    note.at(&subscription.origin).on(subscription.key())
}

/// Tells that a flag has something installed elsewhere than its object says.
fn moved(subscription: &Manifest, own: Option<&str>, given: &Given) -> Option<Problem> {
    let elsewhere = given
        .namespace
        .as_ref()
        .filter(|name| Some(name.as_str()) != own)?;
    let message = format!(
        "is installed into {elsewhere}, as -n says; its OperatorGroup and catalogs are those of {}",
        subscription.namespace()
    );
    Some(note(subscription, "namespace", message))
}

/// Tells that OLM would not stop at the bundle to start from.
fn stays(subscription: &Manifest, bundle: &str) -> Problem {
    let message = format!(
        "OLM would go on from {bundle} to the head of the channel; {bundle} is what is installed here, as with \
         installPlanApproval Manual there"
    );
    note(subscription, "approval", message)
}

/// The bundle that the status says is installed.
fn installed(subscription: &Manifest) -> Option<InstalledBundle> {
    let status = subscription.object().get("status")?;
    let name = status.get("installedCSV")?.as_str()?;
    (!name.is_empty()).then(|| InstalledBundle {
        name: name.to_owned(),
        version: None,
    })
}

/// The namespace that an object is in: its own, else the one for everything.
fn namespace_of<'a>(manifest: &'a Manifest, given: &'a Given) -> Option<&'a str> {
    let own = Some(manifest.namespace()).filter(|namespace| !namespace.is_empty());
    own.or(given.namespace.as_deref())
}

/// The catalog that a Subscription names.
fn source_of<'c>(
    subscription: &Manifest,
    spec: &SubscriptionSpec,
    catalogs: &'c [CatalogRef],
) -> Result<&'c CatalogRef, Stopped> {
    let SubscriptionSpec {
        source,
        source_namespace,
        ..
    } = spec;
    let named = catalogs.iter().filter(|catalog| catalog.is_of_olm_v0());
    let named = named.filter(|catalog| catalog.name == *source);
    let mut named: Vec<_> = named
        .filter(|catalog| {
            let namespace = catalog.namespace.as_deref().unwrap_or_default();
            fits(namespace, Some(source_namespace))
        })
        .collect();
    named.sort_by_key(|catalog| catalog.namespace.is_none());
    named.first().copied().ok_or_else(|| {
        let message = format!(
            "names the CatalogSource {source} in {source_namespace}, which is not in the input"
        );
        let elsewhere = catalogs.iter().find(|catalog| catalog.name == *source);
        let elsewhere = elsewhere.and_then(|catalog| catalog.namespace.as_ref());
        let hint = match elsewhere {
            Some(namespace) => format!("there is one in {namespace}: set spec.sourceNamespace"),
            None => format!("add it to -f, or name its content with --catalog {source}=SOURCE"),
        };
        Stopped::because(about(subscription, "catalog-source", message), hint)
    })
}

/// The catalogs that count for a namespace: its own, and those of namespaces that its Subscriptions take catalogs from,
/// which OLM lets them do with the global one only. OLM's order: by priority, its own first, then by name. Those that
/// only flags name come last of one priority.
fn scope(namespace: &Namespace<'_>, catalogs: &[CatalogRef], excludes_global: bool) -> Vec<String> {
    let is_own = |catalog: &CatalogRef| match &catalog.namespace {
        Some(other) => Some(other.as_str()) == namespace.name,
        None => true,
    };
    let counts = |catalog: &&CatalogRef| {
        let is_global = catalog
            .namespace
            .as_ref()
            .is_some_and(|name| namespace.sources.contains(name));
        catalog.is_of_olm_v0() && (is_own(catalog) || (is_global && !excludes_global))
    };
    let mut scope: Vec<_> = catalogs.iter().filter(counts).collect();
    scope.sort_by_key(|catalog| {
        let of_a_flag = catalog.manifest.is_none();
        let name = if of_a_flag { "" } else { &catalog.name };
        (
            Reverse(catalog.priority.unwrap_or(0)),
            of_a_flag,
            !is_own(catalog),
            name,
        )
    });
    scope
        .into_iter()
        .map(|catalog| catalog.id.clone())
        .collect()
}

/// The overrides of a Subscription; what cannot be used is an error.
fn overrides(
    config: Map<String, Value>,
    place: &Place,
    notes: &mut Vec<Problem>,
) -> Result<Overrides, Stopped> {
    let mut problems = vec![];
    let overrides = Overrides::of_subscription(config, place, &mut problems);
    match overrides {
        Some(overrides) => {
            notes.append(&mut problems);
            Ok(overrides)
        }
        None => Err(problems.into()),
    }
}
