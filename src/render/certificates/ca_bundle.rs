//! The CA that an object trusts, written where its kind has it.

use serde_json::Value;

use crate::manifest::{Manifest, map_at};

/// Sets `caBundle`, which is base64 of PEM: of every webhook of a configuration, of the conversion of a definition, else
/// of an APIService.
pub(super) fn set(client: &mut Manifest, ca_bundle: &str) {
    let ca_bundle = Value::from(ca_bundle);
    let object = client.object_mut();
    if let Some(webhooks) = object.get_mut("webhooks").and_then(Value::as_array_mut) {
        for webhook in webhooks.iter_mut().filter_map(Value::as_object_mut) {
            map_at(webhook, "clientConfig").insert("caBundle".to_owned(), ca_bundle.clone());
        }
    } else if let Some(conversion) = object
        .get_mut("spec")
        .and_then(|spec| spec.get_mut("conversion")?.as_object_mut())
    {
        let client = map_at(map_at(conversion, "webhook"), "clientConfig");
        client.insert("caBundle".to_owned(), ca_bundle);
    } else {
        map_at(object, "spec").insert("caBundle".to_owned(), ca_bundle);
    }
}
