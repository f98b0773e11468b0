//! Objects that are proven to be as they should be, by their metadata alone.

use serde_json::Value;

use super::super::{
    desired::Desired,
    inventory::{Hold, Member},
    managed_fields, metadata,
};

/// Whether an object is as it was asked for: it is the one of the inventory, it was asked for like this when it was
/// written last, and all the fields that were set then are still ours.
///
/// `live` is its metadata, in an object; an object that is being deleted is not as it should be.
#[must_use]
pub fn unchanged(desired: &Desired, member: &Member, live: &Value) -> bool {
    let is_it = member.uid.is_some() && metadata::uid(live) == member.uid.as_deref();
    let is_asked = member.asked == desired.asked && !member.managed.is_empty();
    member.hold == Hold::Owned
        && is_it
        && !metadata::is_going(live)
        && is_asked
        && managed_fields::ours(live) == member.managed
}
