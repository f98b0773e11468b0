//! Certificates by OpenShift's service CA (`certproviders/openshift_serviceca.go`): annotations, and no objects.

use super::{Certificate, CertificateProvider};
use crate::manifest::Manifest;

/// The provider.
#[derive(Debug)]
pub struct ServiceCa;

impl CertificateProvider for ServiceCa {
    fn secret(&self, certificate: &Certificate) -> Option<String> {
        Some(certificate.name.clone())
    }

    fn trust(&self, client: &mut Manifest, _: &Certificate) {
        client.annotate("service.beta.openshift.io/inject-cabundle", "true");
    }

    fn mark_service(&self, service: &mut Manifest, certificate: &Certificate) {
        service.annotate(
            "service.beta.openshift.io/serving-cert-secret-name",
            &certificate.name,
        );
    }
}
