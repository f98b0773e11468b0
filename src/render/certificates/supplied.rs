//! A certificate that the user provides: a Secret in the install namespace, and the CA to trust.

use base64::{Engine, prelude::BASE64_STANDARD};

use super::{Certificate, CertificateProvider, ca_bundle};
use crate::manifest::Manifest;

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
        ca_bundle::set(client, &self.ca_bundle);
    }
}
