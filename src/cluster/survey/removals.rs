//! The objects that nobody wants any more: what becomes of them, and what keeps them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    super::{
        AT_ONCE,
        answer::ApiError,
        connection::Connection,
        inventory::{Hold, InstallName, Inventory, Member},
        live::{self, Going},
        managed_fields,
        plan::{self, Fate, Found, Keeping, Others, Removal},
        request::Request,
        resource::{Resource, Resources, Scope, Served},
        served,
    },
    Deleting,
};
use crate::{
    concurrent::concurrently,
    manifest::{ObjectKey, order},
};

/// An object of an inventory, with its kind as requests name it.
pub(super) type ListedMember<'i> = (&'i ObjectKey, &'i Member, Resource);

/// The objects that nobody wants any more, and where they are looked for.
pub(super) struct Gone<'g> {
    pub(super) members: &'g [ListedMember<'g>],
    pub(super) resources: &'g Resources,
    pub(super) labelled: &'g BTreeMap<ObjectKey, Value>,
}

/// The objects of an inventory, each with its kind as requests name it.
pub(super) fn members<'i>(
    resources: &Resources,
    inventory: &'i Inventory,
) -> Vec<ListedMember<'i>> {
    let of = |(key, member): (_, _)| {
        let resource = resource_of(resources, key, member);
        (key, member, resource)
    };
    inventory.objects.iter().map(of).collect()
}

/// The kind of an object of an inventory, as requests name it: as the inventory says, but when the cluster serves the kind
/// in other versions only, in the one that it prefers. All versions are views of the same objects, and in one that is not
/// served any more each of them would look as if it were gone.
#[must_use]
pub fn resource_of(resources: &Resources, key: &ObjectKey, member: &Member) -> Resource {
    let (version, plural) = match resources.find(key, &member.version) {
        Served::As(other) if other.version != member.version => (&other.version, &other.plural),
        _ => (&member.version, &member.plural),
    };
    Resource {
        group: key.group.clone(),
        version: version.clone(),
        kind: key.kind.clone(),
        plural: plural.clone(),
        scope: if key.namespace.is_empty() {
            Scope::Cluster
        } else {
            Scope::Namespaced
        },
    }
}

/// What becomes of the objects that nobody wants any more, the last phase first.
pub(super) fn removals(
    connection: &Connection,
    install: &InstallName,
    gone: &Gone<'_>,
    (others, deleting): (&Others, Deleting),
) -> Vec<Removal> {
    let inventory = live::secret_key(&install.namespace, &install.secret());
    let members = gone.members.iter().map(|(key, _, _)| *key);
    let definitions = gone.members.iter().map(|(key, _, _)| *key);
    let definitions = definitions.filter(|key| deleting.custom_resources && key.is_definition());
    let going = Going {
        keys: members.chain([&inventory]).collect(),
        definitions: definitions.map(|key| key.name.as_str()).collect(),
    };
    let fates = concurrently(gone.members, AT_ONCE, |(key, member, resource)| {
        if member.hold == Hold::Used {
            return (Fate::Forget("it was there before".to_owned()), false);
        }
        let found = live::find(connection, gone.resources, (key, resource), gone.labelled);
        let keeping = match &found {
            Found::Object(_) => keeping(connection, (key, resource), &going, deleting),
            _ => Ok(Keeping::default()),
        };
        let fate = match keeping {
            Ok(keeping) => plan::fate(install, (key, member), &found, others, &keeping),
            Err(error) => Fate::Unverifiable(error.to_string()),
        };
        let collects =
            matches!(&found, Found::Object(live) if managed_fields::sets_aggregation(live));
        (fate, collects)
    });
    let mut removals: Vec<_> = gone
        .members
        .iter()
        .zip(fates)
        .map(|((key, _, resource), (fate, collects))| Removal {
            key: (*key).clone(),
            resource: resource.clone(),
            fate,
            collects,
        })
        .collect();
    removals.sort_by_cached_key(|removal| {
        let (rank, _) = order::phase(&removal.key);
        (std::cmp::Reverse(rank), removal.key.clone())
    });
    removals
}

/// What keeps an object from being deleted.
///
/// # Errors
/// When that cannot be counted.
pub fn keeping(
    connection: &Connection,
    (key, resource): (&ObjectKey, &Resource),
    going: &Going<'_>,
    deleting: Deleting,
) -> Result<Keeping, ApiError> {
    let mut keeping = Keeping::default();
    if key.is_namespace() && !deleting.namespaces {
        keeping.others = live::strangers(connection, &key.name, going)?;
    }
    if !key.is_definition() || deleting.custom_resources {
        return Ok(keeping);
    }
    // A list tells of it no more than its metadata.
    let Some(definition) = live::get(connection, resource, key)? else {
        return Ok(keeping);
    };
    match custom_resources(connection, &definition) {
        Ok((of, found)) => {
            let is_left = |object: &&Value| !going.keys.contains(&live::key_of(&of, object));
            keeping.others = found.iter().filter(is_left).count();
        }
        // There is something to be converted.
        Err(error) if error.is_conversion() => keeping.unconverted = Some(error),
        Err(error) => return Err(error),
    }
    keeping.loses_converter = converter(&definition).is_some_and(|key| going.keys.contains(&key));
    Ok(keeping)
}

/// The Service that converts the custom resources of a definition; nothing when none does.
fn converter(definition: &Value) -> Option<ObjectKey> {
    let conversion = definition.pointer("/spec/conversion")?;
    let service = conversion.pointer("/webhook/clientConfig/service")?;
    let text = |field: &str| Some(service.get(field)?.as_str()?.to_owned());
    (conversion.get("strategy")? == "Webhook").then_some(ObjectKey {
        group: String::new(),
        kind: "Service".to_owned(),
        namespace: text("namespace")?,
        name: text("name")?,
    })
}

/// The metadata of all custom resources of a definition, with the resource that they were listed by.
///
/// # Errors
/// When they cannot be listed, or the definition is not whole.
pub fn custom_resources(
    connection: &Connection,
    definition: &Value,
) -> Result<(Resource, Vec<Value>), ApiError> {
    let resource = defined_by(definition)?;
    let of_kind = ObjectKey {
        group: resource.group.clone(),
        kind: resource.kind.clone(),
        namespace: String::new(),
        name: String::new(),
    };
    let list =
        |resource: &Resource| connection.list_all(&Request::list_metadata(resource, None, ""));
    match served::as_served(connection, (&of_kind, &resource), list) {
        Ok(Some((found, resource))) => Ok((resource, found)),
        // A definition that is new or goes has none.
        Ok(None) => Ok((resource, vec![])),
        Err(error) if error.is_missing_object() => Ok((resource, vec![])),
        Err(error) => Err(error),
    }
}

/// Some custom resources of a definition, whole: the first page of their list.
///
/// # Errors
/// As [`custom_resources`].
pub(super) fn some_custom_resources(
    connection: &Connection,
    definition: &Value,
) -> Result<Vec<Value>, ApiError> {
    let resource = defined_by(definition)?;
    let page = connection.send(&Request::list(&resource, None, ""))?.body;
    let items = page.get("items").and_then(Value::as_array);
    Ok(items.cloned().unwrap_or_default())
}

/// How the objects of a definition are listed in all namespaces.
///
/// # Errors
/// When the definition has no version that is served, as one of which only the metadata is known.
fn defined_by(definition: &Value) -> Result<Resource, ApiError> {
    let text = |pointer: &str| {
        let text = definition.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let versions = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array);
    let is = |version: &Value, field: &str| version.get(field) == Some(&Value::Bool(true));
    let served = versions
        .into_iter()
        .flatten()
        .filter(|version| is(version, "served"));
    // What is read as it is stored need not be converted.
    let served = served.max_by_key(|version| is(version, "storage"));
    let version = served.and_then(|version| version.get("name")?.as_str());
    let version = version.ok_or_else(|| ApiError::NotKubernetes {
        about: text("/metadata/name"),
        reason: "it has no version that is served, so that its custom resources cannot be listed"
            .to_owned(),
    })?;
    Ok(Resource {
        group: text("/spec/group"),
        version: version.to_owned(),
        kind: text("/spec/names/kind"),
        plural: text("/spec/names/plural"),
        scope: Scope::Cluster,
    })
}
