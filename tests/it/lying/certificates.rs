//! Certificates for lying servers, good and bad, all of the same authority.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

/// An authority that no system knows.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate.
    pub(crate) pem: String,
}

/// What is wrong with a certificate.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Flaw {
    None,
    WrongName,
    Expired,
    NotYetValid,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![]).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate");
        Self {
            pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// What a server at 127.0.0.1 needs, with a certificate of this authority.
    pub(crate) fn server(&self, flaw: Flaw) -> Arc<ServerConfig> {
        let name = match flaw {
            Flaw::WrongName => "elsewhere.example",
            _ => "127.0.0.1",
        };
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        match flaw {
            Flaw::Expired => params.not_after = date_time_ymd(2001, 1, 1),
            Flaw::NotYetValid => params.not_before = date_time_ymd(4000, 1, 1),
            Flaw::None | Flaw::WrongName => {}
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a configuration");
        Arc::new(config)
    }
}
