//! A new certificate with its key and its CA.
//!
//! Reproduces operator-lifecycle-manager `pkg/controller/certs/certs.go` and `pkg/controller/install/certresources.go`:
//! ECDSA P-256 and two years, which is what certificates by cert-manager have here too. OLM v0 keeps one CA for an install;
//! here each certificate has one of its own, so that no key is left that could sign others.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};

use super::Pair;

/// How long a pair is valid.
const LIFETIME: SignedDuration = SignedDuration::from_hours(2 * 365 * 24);
/// How far the clock of a cluster may be behind.
const BACKDATED: SignedDuration = SignedDuration::from_hours(1);
/// The CA outlives what it signed, so that only one end has to be watched.
const LONGER: SignedDuration = SignedDuration::from_hours(24);
/// Later than any certificate says, in seconds since 1970: in the year 9000.
const LATEST_SECOND: i64 = 221_845_392_000;

/// No pair could be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a certificate: {0}")]
pub struct MakeError(#[from] rcgen::Error);

/// A new pair for these names, valid for two years from now.
///
/// Each has a CA of its own, whose key is thrown away here: whoever trusts the CA trusts this one certificate, and nobody
/// can sign another.
///
/// # Errors
/// When the system has no randomness, or a name is none that a certificate can have.
pub fn make(names: &[String], now: Timestamp) -> Result<Pair, MakeError> {
    let mut authority = parameters("kubectl-olm CA", &[], now, LIFETIME + LONGER)?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let mut served = parameters("kubectl-olm", names, now, LIFETIME)?;
    served.is_ca = IsCa::ExplicitNoCa;
    served.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    served.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    served.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = served.signed_by(&key, &authority)?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem().into(),
        authorities: authority.pem(),
    })
}

/// What all certificates have. The serial number is the hash of the key, and as random as that.
fn parameters(
    common_name: &str,
    names: &[String],
    now: Timestamp,
    lifetime: SignedDuration,
) -> Result<CertificateParams, MakeError> {
    let mut parameters = CertificateParams::new(names)?;
    parameters.distinguished_name = DistinguishedName::new();
    let name = &mut parameters.distinguished_name;
    name.push(DnType::CommonName, common_name);
    let date = |time: Timestamp| date_time_ymd(1970, 1, 1) + since_1970(time);
    parameters.not_before = date(now.saturating_sub(BACKDATED).unwrap_or(now));
    parameters.not_after = date(now.saturating_add(lifetime).unwrap_or(now));
    Ok(parameters)
}

/// A time as certificates can say it: from 1970 on, and never so late that arithmetic ends.
pub(super) fn since_1970(time: Timestamp) -> Duration {
    let seconds = time.as_second().clamp(0, LATEST_SECOND);
    Duration::from_secs(seconds.unsigned_abs())
}
