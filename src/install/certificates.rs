//! Where the certificates of webhooks come from, as the user says it.

use std::str::FromStr;

use crate::manifest::names;

/// The value of `--certs` and of the annotation that stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateSource {
    /// cert-manager makes them.
    CertManager,
    /// OpenShift's service CA makes them.
    ServiceCa,
    /// They are made before rendering, and kept by the user or in the cluster.
    SelfSigned,
    /// A Secret of the user's holds one.
    Secret(String),
    /// There are none.
    None,
}

impl FromStr for CertificateSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cert-manager" => Ok(Self::CertManager),
            "service-ca" => Ok(Self::ServiceCa),
            "self-signed" => Ok(Self::SelfSigned),
            "none" => Ok(Self::None),
            _ => match text.strip_prefix("secret:") {
                Some(name) if !name.is_empty() => match names::subdomain_error(name) {
                    None => Ok(Self::Secret(name.to_owned())),
                    Some(reason) => Err(format!("no Secret can be called {name:?}: {reason}")),
                },
                _ => {
                    Err("use cert-manager, service-ca, self-signed, secret:NAME or none".to_owned())
                }
            },
        }
    }
}
