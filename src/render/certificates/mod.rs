//! Where the certificates of webhooks and aggregated APIs come from.
//!
//! Reproduces operator-controller `rukpak/render/certprovider.go` and `rukpak/render/certproviders/`.

mod ca_bundle;
mod cert_manager;
mod make;
mod pair;
mod self_signed;
mod service_ca;
mod supplied;
mod usable;
pub(super) mod volumes;

use super::names;
use crate::{bundle::ClusterServiceVersion, manifest::Manifest};

pub use self::{
    cert_manager::CertManager,
    make::{MakeError, make},
    pair::{Pair, Supply, Text, Unusable, keep_or_make},
    self_signed::{SelfSigned, is_pair},
    service_ca::ServiceCa,
    supplied::Supplied,
    usable::usable,
};

/// The certificate that a Deployment serves with.
#[derive(Debug)]
pub struct Certificate {
    /// The namespace of the Service, the certificate and its Secret.
    pub namespace: String,
    /// The Service that clients call.
    pub service: String,
    /// The name of the certificate, and of its Secret unless the provider has one of its own.
    pub name: String,
}

impl Certificate {
    /// The certificate for a Deployment.
    pub(super) fn of(deployment: &str, namespace: &str) -> Self {
        let service = names::service(deployment);
        Self {
            namespace: namespace.to_owned(),
            name: names::certificate(&service),
            service,
        }
    }

    /// Those of all Deployments that serve webhooks or aggregated APIs, in the bundle's order.
    pub fn all_of(csv: &ClusterServiceVersion, namespace: &str) -> impl Iterator<Item = Self> {
        let serving = csv.deployments.iter();
        let serving = serving.filter(|deployment| csv.serves_tls(&deployment.name));
        serving.map(move |deployment| Self::of(&deployment.name, namespace))
    }

    /// The names that clients use for the Service.
    #[must_use]
    pub fn dns_names(&self) -> [String; 3] {
        let short = format!("{}.{}", self.service, self.namespace);
        [
            short.clone(),
            format!("{short}.svc"),
            format!("{short}.svc.cluster.local"),
        ]
    }
}

/// Gives Deployments their certificate and clients its CA.
pub trait CertificateProvider: Send + Sync {
    /// The Secret with `tls.crt` and `tls.key` that a Deployment mounts, or `None` when it gets none.
    fn secret(&self, certificate: &Certificate) -> Option<String>;

    /// Gives a webhook configuration, a converted definition or an APIService the CA to trust.
    fn trust(&self, client: &mut Manifest, certificate: &Certificate);

    /// The hash of the CA, where a change of it is to restart the pods.
    fn authority_hash(&self, _certificate: &Certificate) -> Option<String> {
        None
    }

    /// Marks the Service, where that is what makes the certificate.
    fn mark_service(&self, _service: &mut Manifest, _certificate: &Certificate) {}

    /// The objects that make the certificate.
    fn objects(&self, _certificate: &Certificate) -> Vec<Manifest> {
        vec![]
    }
}

/// No certificates: nothing is mounted and nothing is trusted, as when OLM's renderer has no provider.
#[derive(Debug)]
pub struct NoCertificates;

impl CertificateProvider for NoCertificates {
    fn secret(&self, _: &Certificate) -> Option<String> {
        None
    }

    fn trust(&self, _: &mut Manifest, _: &Certificate) {}
}
