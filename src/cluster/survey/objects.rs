//! The objects that are wanted: their kinds, and what is seen of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    super::{
        AT_ONCE,
        connection::Connection,
        desired::{Desired, DesiredSet},
        inventory::{InstallName, Inventory},
        live::{self, Asking},
        owner::{self, Owner},
        plan::{self, KindOf, Kinds, Observed},
        resource::{Resource, Resources},
    },
    Missing,
};
use crate::{concurrent::concurrently, manifest::ObjectKey, problem::Problem};

/// An object that is wanted, of a kind that is known.
pub(super) struct Wanted<'d> {
    pub(super) desired: &'d Desired,
    pub(super) kind: KnownKind,
}

impl Wanted<'_> {
    /// Its key and its kind, as lists are asked for.
    pub(super) fn listed(&self) -> (&ObjectKey, Resource) {
        (&self.desired.key, self.kind.resource().clone())
    }
}

/// An object's kind that is served, or comes with the install.
pub(super) enum KnownKind {
    Served(Resource),
    Defined(Resource),
}

impl KnownKind {
    pub(super) fn resource(&self) -> &Resource {
        match self {
            Self::Served(resource) | Self::Defined(resource) => resource,
        }
    }
}

/// The objects whose kinds are known; the others are told of.
pub(super) fn with_kinds<'d>(
    resources: &Resources,
    desired: &'d DesiredSet,
    missing: Missing,
    problems: &mut Vec<Problem>,
) -> Vec<Wanted<'d>> {
    let kinds = Kinds::new(resources, &desired.objects);
    let (mut known, mut lacking) = (vec![], vec![]);
    for desired in &desired.objects {
        let api_version = desired.manifest.api_version();
        let version = api_version.rsplit('/').next().unwrap_or_default();
        match kinds.of(&desired.key, version) {
            KindOf::Served(resource) => known.push(Wanted {
                desired,
                kind: KnownKind::Served(resource),
            }),
            KindOf::Defined(resource) => known.push(Wanted {
                desired,
                kind: KnownKind::Defined(resource),
            }),
            kind => lacking.push((desired, kind)),
        }
    }
    let told = plan::missing_kinds(&lacking).into_iter();
    problems.extend(told.map(|kind| match missing {
        Missing::Refuse => kind.refused(),
        Missing::Skip => kind.left_out(),
    }));
    known
}

/// What is known before objects are asked about.
pub(super) struct Known<'k> {
    pub(super) inventory: Option<&'k Inventory>,
    pub(super) labelled: &'k BTreeMap<ObjectKey, Value>,
    /// The namespaces that are wanted, or have to be there.
    pub(super) wanted: BTreeSet<&'k str>,
}

/// What is seen of each object. Namespaces, which come first, are asked about first: what belongs into one that is not
/// there cannot be asked about, and need not be tried.
pub(super) fn observe_all(
    connection: &Connection,
    objects: &[Wanted<'_>],
    known: &Known<'_>,
    asking: Asking,
) -> Vec<Observed> {
    let namespaces = objects
        .iter()
        .take_while(|wanted| wanted.desired.key.is_namespace());
    let (namespaces, others) = objects.split_at(namespaces.count());
    let ask = |object: &Wanted<'_>| observe(connection, object, known, asking);
    let mut observed = concurrently(namespaces, AT_ONCE, ask);
    let is_new = |observed: &Observed| matches!(observed, Observed::New(_));
    let new = namespaces.iter().zip(&observed);
    let new = new.filter(|(_, observed)| is_new(observed));
    let absent: BTreeSet<_> = new
        .map(|(wanted, _)| wanted.desired.key.name.as_str())
        .collect();
    observed.extend(concurrently(others, AT_ONCE, |object| {
        match absent.contains(object.desired.key.namespace.as_str()) {
            true => Observed::Later,
            false => ask(object),
        }
    }));
    observed
}

fn observe(
    connection: &Connection,
    Wanted { desired, kind }: &Wanted<'_>,
    known: &Known<'_>,
    asking: Asking,
) -> Observed {
    let KnownKind::Served(resource) = kind else {
        return Observed::Later;
    };
    let member = known
        .inventory
        .and_then(|inventory| inventory.objects.get(&desired.key));
    if let (Some(member), Some(live)) = (member, known.labelled.get(&desired.key))
        && plan::unchanged(desired, member, live)
    {
        return Observed::Unchanged;
    }
    match live::observe(connection, (desired, resource), asking) {
        // Its namespace is not there yet, and comes with the install.
        Observed::Refused {
            live: None, error, ..
        } if known.wanted.contains(desired.key.namespace.as_str())
            && error.is_missing_namespace() =>
        {
            Observed::Later
        }
        observed => observed,
    }
}

/// Whether an object that is there is of another install, or another ApplySet.
pub(super) fn is_anothers(install: &InstallName, observed: &Observed) -> bool {
    let live = match observed {
        Observed::There { live, .. } | Observed::Compared { live, .. } => Some(live),
        Observed::Refused { live, .. } => live.as_ref(),
        _ => None,
    };
    let owner = live.map(owner::of);
    matches!(owner, Some(Owner::Install(id)) if id != install.applyset_id())
}
