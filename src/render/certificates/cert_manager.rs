//! Certificates by cert-manager (`certproviders/certmanager.go`): an Issuer and a Certificate for each Deployment.

use serde_json::json;

use super::{Certificate, CertificateProvider};
use crate::{manifest::Manifest, render::names};

/// The provider.
#[derive(Debug)]
pub struct CertManager;

const API_VERSION: &str = "cert-manager.io/v1";

impl CertificateProvider for CertManager {
    fn secret(&self, certificate: &Certificate) -> Option<String> {
        Some(certificate.name.clone())
    }

    fn trust(&self, client: &mut Manifest, certificate: &Certificate) {
        let from = format!("{}/{}", certificate.namespace, certificate.name);
        client.annotate("cert-manager.io/inject-ca-from", from);
    }

    fn objects(&self, certificate: &Certificate) -> Vec<Manifest> {
        let issuer = names::issuer(&certificate.name);
        let dns_names = certificate.dns_names();
        let objects = [
            json!({
                "apiVersion": API_VERSION,
                "kind": "Issuer",
                "metadata": {"name": issuer, "namespace": certificate.namespace},
                "spec": {"selfSigned": {}},
            }),
            json!({
                "apiVersion": API_VERSION,
                "kind": "Certificate",
                "metadata": {"name": certificate.name, "namespace": certificate.namespace},
                "spec": {
                    "commonName": dns_names[0],
                    "dnsNames": dns_names,
                    "duration": "17520h0m0s",
                    "issuerRef": {"name": issuer},
                    "renewBefore": "24h0m0s",
                    "secretName": certificate.name,
                    "usages": ["server auth"],
                },
            }),
        ];
        objects
            .map(|object| Manifest::generated(object, "the certificate provider cert-manager"))
            .into()
    }
}
