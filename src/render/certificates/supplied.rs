//! A certificate that the user provides: a Secret in the install namespace, and the CA to trust.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::{Certificate, CertificateProvider};
use crate::manifest::{Manifest, map_at};

/// The provider.
#[derive(Debug)]
pub struct Supplied {
    /// The name of a Secret with `tls.crt` and `tls.key`; all Deployments of the bundle serve with it.
    secret: String,
    /// The CA's certificates as PEM, in base64.
    ca_bundle: String,
}

impl Supplied {
    /// The provider for a Secret and the PEM text of its CA.
    #[must_use]
    pub fn new(secret: String, ca: &[u8]) -> Self {
        let ca_bundle = BASE64_STANDARD.encode(ca);
        Self { secret, ca_bundle }
    }
}

impl CertificateProvider for Supplied {
    fn secret(&self, _: &Certificate) -> Option<String> {
        Some(self.secret.clone())
    }

    fn trust(&self, client: &mut Manifest, _: &Certificate) {
        let ca_bundle = Value::String(self.ca_bundle.clone());
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
}
