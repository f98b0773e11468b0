//! Certificates that are made before rendering: a Secret for each Deployment that serves, and its CA in all that call it.
//!
//! Reproduces what OLM v0 does itself (operator-lifecycle-manager `pkg/controller/install/certresources.go`): a Secret of
//! the type `kubernetes.io/tls`, and the hash of the CA on the pods, so that a new certificate restarts those that read
//! theirs only once. The CA is in `ca.crt`, as cert-manager has it, and not in `olmCAKey`. Nothing is made here: the same
//! pairs give the same objects.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use secrecy::ExposeSecret;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Certificate, CertificateProvider, Pair, ca_bundle};
use crate::manifest::{Manifest, Origin};

/// What the Secrets are generated from. Nothing that is read from content is generated, so that no bundle can claim it.
const FROM: &str = "the certificate provider self-signed";

/// Whether an object is a Secret of this provider, which holds a private key.
#[must_use]
pub fn is_pair(manifest: &Manifest) -> bool {
    manifest.origin == Origin::Generated(FROM)
}

/// The provider.
#[derive(Debug)]
pub struct SelfSigned {
    /// By [`Certificate::name`]. What has none here gets no certificate.
    pub pairs: BTreeMap<String, Pair>,
}

impl SelfSigned {
    fn pair(&self, certificate: &Certificate) -> Option<&Pair> {
        self.pairs.get(&certificate.name)
    }
}

impl CertificateProvider for SelfSigned {
    fn secret(&self, certificate: &Certificate) -> Option<String> {
        self.pair(certificate).map(|_| certificate.name.clone())
    }

    fn trust(&self, client: &mut Manifest, certificate: &Certificate) {
        if let Some(pair) = self.pair(certificate) {
            ca_bundle::set(client, &BASE64_STANDARD.encode(pair.authorities()));
        }
    }

    fn authority_hash(&self, certificate: &Certificate) -> Option<String> {
        let digest = Sha256::digest(self.pair(certificate)?.authorities());
        Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn objects(&self, certificate: &Certificate) -> Vec<Manifest> {
        let secret = self.pair(certificate).map(|pair| {
            let object = json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": certificate.name, "namespace": certificate.namespace},
                "type": "kubernetes.io/tls",
                "data": {
                    "ca.crt": BASE64_STANDARD.encode(pair.authorities()),
                    "tls.crt": BASE64_STANDARD.encode(pair.certificate()),
                    "tls.key": BASE64_STANDARD.encode(pair.key().expose_secret()),
                },
            });
            Manifest::generated(object, FROM)
        });
        secret.into_iter().collect()
    }
}
