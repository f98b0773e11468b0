//! What becomes of an object that the inventory has and nobody wants any more.

use serde_json::Value;

use super::{
    super::{
        answer::ApiError,
        desired::PART_OF,
        inventory::{Hold, InstallName, Member},
        managed_fields, metadata,
    },
    Fate, Others,
};
use crate::manifest::ObjectKey;

/// What was found where an object should be, which may be a Secret.
#[derive(Clone)]
pub enum Found {
    /// It, or another one of its name.
    Object(Value),
    /// Nothing, or its kind is gone.
    Nothing,
    /// It could not be asked for.
    Unknown(ApiError),
}

/// What keeps an object that would be deleted.
#[derive(Debug, Default)]
pub struct Keeping {
    /// How many custom resources of a definition, or objects in a namespace, would go with it that are not among what the
    /// install itself deletes.
    pub others: usize,
    /// Why custom resources that are there cannot be counted.
    pub unconverted: Option<ApiError>,
    /// Whether what converts custom resources is among what the install deletes.
    pub loses_converter: bool,
}

/// What becomes of an object.
///
/// It is deleted only if the inventory has it, it is the one that the inventory means, and it says itself that it is ours:
/// anybody may put our label on an object, or change a list.
#[must_use]
pub fn fate(
    install: &InstallName,
    (key, member): (&ObjectKey, &Member),
    found: &Found,
    others: &Others,
    keeping: &Keeping,
) -> Fate {
    let live = match found {
        Found::Object(live) => live,
        Found::Nothing => return Fate::Gone,
        Found::Unknown(error) => return Fate::Unverifiable(error.to_string()),
    };
    if member.hold == Hold::Used {
        return Fate::Forget("it was there before".to_owned());
    }
    if let Some(name) = others.listing(key).first() {
        return Fate::Forget(format!("{} in {} needs it", name.name, name.namespace));
    }
    let Some(uid) = metadata::uid(live) else {
        return Fate::Unverifiable("it has no uid".to_owned());
    };
    match &member.uid {
        Some(known) if known != uid => {
            return Fate::Forget("it was deleted, and somebody has created it anew".to_owned());
        }
        // The run that meant to create it did not say whether it has.
        None if managed_fields::ours(live).is_empty() => {
            return Fate::Forget("it is not ours".to_owned());
        }
        _ => {}
    }
    let labels = live.pointer("/metadata/labels");
    let label = labels.and_then(|labels| labels.get(PART_OF)?.as_str());
    let is_labelled = label.is_some_and(|label| match member.hold {
        // Another install may have taken it over, and be gone.
        Hold::Owned => label == install.applyset_id() || others.owner_is_gone(label, live),
        // The install of ours that owned it is gone: no inventory lists it any more.
        _ => managed_fields::sets_label(live),
    });
    if !is_labelled && managed_fields::ours(live).is_empty() {
        return Fate::Foreign;
    }
    if !is_labelled {
        return Fate::Forget(format!(
            "its label {PART_OF} no longer says that it is ours"
        ));
    }
    match kept(key, keeping) {
        Some(reason) => Fate::Keep(reason),
        None => Fate::Delete {
            uid: uid.to_owned(),
        },
    }
}

/// Why an object is kept that would be deleted; nothing when nothing keeps it.
#[must_use]
pub fn kept(key: &ObjectKey, keeping: &Keeping) -> Option<String> {
    if let Some(error) = &keeping.unconverted {
        return Some(format!(
            "custom resources of its kind are there, and cannot be read: {}; {} has them read as they are stored",
            error.reason(),
            without_conversion(key)
        ));
    }
    let others = keeping.others;
    let reason = match others {
        0 => return None,
        _ if key.is_namespace() => format!(
            "objects in it that are not of this install: {others}; --delete-namespaces deletes it with them"
        ),
        _ => format!(
            "custom resources of its kind are there: {others}; --delete-custom-resources deletes it with them"
        ),
    };
    Some(match keeping.loses_converter {
        false => reason,
        true => format!(
            "{reason}. What converts them between versions goes; {} has them read as they are stored",
            without_conversion(key)
        ),
    })
}

/// The command that ends the conversion of custom resources by a webhook.
fn without_conversion(key: &ObjectKey) -> String {
    format!(
        r#"`kubectl patch customresourcedefinition {} --type=merge -p '{{"spec":{{"conversion":{{"strategy":"None","webhook":null}}}}}}'`"#,
        key.name
    )
}
