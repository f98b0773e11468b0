//! Whether a certificate that was found can be kept.
//!
//! That is judged as a client judges it, by rustls, so that nothing is kept that connections would fail with. OLM v0
//! (operator-lifecycle-manager `pkg/controller/install/certresources.go`) renews a day before the end, as its controller
//! is always there; here nobody is, so the first run in the last month renews.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rustls::{
    CertificateError, Error, InconsistentKeys, RootCertStore,
    client::{
        WebPkiServerVerifier,
        danger::{ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    sign::CertifiedKey,
};
use secrecy::ExposeSecret;

use super::{Pair, Text, Unusable, make::since_1970};

/// How long a pair has to be valid still.
const RENEWED_BEFORE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Whether a client that trusts the pair's CA accepts it for all these names, now and 30 days later.
///
/// # Errors
/// Why it does not.
pub fn usable(pair: &Pair, names: &[String], now: Timestamp) -> Result<(), Unusable> {
    let provider = Arc::new(ring::default_provider());
    let chain = certificates(&pair.certificate).ok_or(Unusable::Damaged(Text::Certificate))?;
    matches_key(chain.clone(), pair.key.expose_secret(), &provider)?;
    let mut roots = RootCertStore::empty();
    for root in certificates(&pair.authorities).ok_or(Unusable::Damaged(Text::Authorities))? {
        let added = roots.add(root);
        added.map_err(|_| Unusable::Damaged(Text::Authorities))?;
    }
    let client = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let client = client.map_err(|_| Unusable::Damaged(Text::Authorities))?;
    let accepts = |name: &str, at: Timestamp| -> Result<ServerCertVerified, Unusable> {
        let (served, between) = chain
            .split_first()
            .ok_or(Unusable::Missing(Text::Certificate))?;
        let other_name = || Unusable::OtherName(name.to_owned());
        let server = ServerName::try_from(name).map_err(|_| other_name())?;
        let verified = client.verify_server_cert(
            served,
            between,
            &server,
            &[],
            UnixTime::since_unix_epoch(since_1970(at)),
        );
        verified.map_err(|error| reason(&error, name))
    };
    for name in names {
        accepts(name, now)?;
    }
    let later = now.saturating_add(RENEWED_BEFORE).unwrap_or(now);
    for name in names {
        accepts(name, later).map_err(|reason| match reason {
            Unusable::Expired => Unusable::ExpiresSoon,
            reason => reason,
        })?;
    }
    Ok(())
}

/// The certificates of a PEM text; nothing when there is none.
fn certificates(pem: &str) -> Option<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    found.ok().filter(|found| !found.is_empty())
}

/// Whether a key is that of the first certificate.
fn matches_key(
    chain: Vec<CertificateDer<'static>>,
    key: &str,
    provider: &CryptoProvider,
) -> Result<(), Unusable> {
    let damaged = Unusable::Damaged(Text::Key);
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| damaged.clone())?;
    match CertifiedKey::from_der(chain, key, provider) {
        Ok(_) => Ok(()),
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => Err(Unusable::OtherKey),
        Err(Error::InvalidCertificate(_)) => Err(Unusable::Damaged(Text::Certificate)),
        Err(_) => Err(damaged),
    }
}

/// What a client's refusal means.
fn reason(error: &Error, name: &str) -> Unusable {
    let Error::InvalidCertificate(error) = error else {
        return Unusable::Damaged(Text::Certificate);
    };
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Unusable::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            Unusable::NotValidYet
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Unusable::OtherName(name.to_owned())
        }
        CertificateError::BadEncoding => Unusable::Damaged(Text::Certificate),
        _ => Unusable::NotVouchedFor,
    }
}
