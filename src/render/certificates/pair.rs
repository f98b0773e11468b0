//! A certificate with its key and its CA: found, and kept or made anew.
//!
//! The renderer takes pairs as values. Who runs it finds them and says what time it is; making one takes randomness.

use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::{
    make::{MakeError, make},
    usable::usable,
};
use crate::manifest::decode_base64;

/// As many certificates are taken of one text.
const MAX_CERTIFICATES: usize = 16;
/// The label of a certificate in PEM.
const CERTIFICATE: &str = "CERTIFICATE";

/// A certificate with its key and its CA. No formatting shows the key.
#[derive(Debug, Clone)]
pub struct Pair {
    pub(super) certificate: String,
    pub(super) key: SecretString,
    pub(super) authorities: String,
}

/// Which of a pair's three texts is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// The certificate, with those between it and the CA.
    Certificate,
    /// The private key.
    Key,
    /// The CA.
    Authorities,
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Certificate => "certificate",
            Self::Key => "key",
            Self::Authorities => "CA",
        })
    }
}

/// Why a pair that was found is not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// A text is not there.
    #[error("it has no {0}")]
    Missing(Text),
    /// A text cannot be read.
    #[error("its {0} is damaged")]
    Damaged(Text),
    /// The certificate is not that of the key.
    #[error("its key is that of another certificate")]
    OtherKey,
    /// The CA did not sign the certificate, or it may not be served with.
    #[error("its CA does not vouch for it")]
    NotVouchedFor,
    /// A name that clients use is missing.
    #[error("it is not for the name {0}")]
    OtherName(String),
    /// It is valid only later.
    #[error("it is not valid yet")]
    NotValidYet,
    /// It is not valid any more.
    #[error("it has expired")]
    Expired,
    /// It is valid, and not for long.
    #[error("it expires within 30 days")]
    ExpiresSoon,
}

/// A pair to install, and where it is from.
#[derive(Debug)]
pub enum Supply {
    /// The one that was found.
    Kept(Pair),
    /// A new one, as none was found.
    New(Pair),
    /// A new one, for a reason.
    Renewed(Pair, Unusable),
}

impl Supply {
    /// The pair.
    #[must_use]
    pub fn pair(&self) -> &Pair {
        match self {
            Self::Kept(pair) | Self::New(pair) | Self::Renewed(pair, _) => pair,
        }
    }

    /// The pair.
    #[must_use]
    pub fn into_pair(self) -> Pair {
        match self {
            Self::Kept(pair) | Self::New(pair) | Self::Renewed(pair, _) => pair,
        }
    }
}

impl Pair {
    /// The pair of three PEM texts, which may be anything; nothing when there is none of them.
    ///
    /// # Errors
    /// When one of them is missing, or one with certificates holds anything else, such as a private key: who may read
    /// those is not asked.
    pub fn found(
        certificate: Option<Vec<u8>>,
        key: Option<Vec<u8>>,
        authorities: Option<Vec<u8>>,
    ) -> Result<Option<Self>, Unusable> {
        if certificate.is_none() && key.is_none() && authorities.is_none() {
            return Ok(None);
        }
        let there = |bytes: Option<Vec<u8>>, which| bytes.ok_or(Unusable::Missing(which));
        let certificate = there(certificate, Text::Certificate)?;
        let key = there(key, Text::Key)?;
        let authorities = there(authorities, Text::Authorities)?;
        let damaged = Unusable::Damaged;
        Ok(Some(Self {
            key: String::from_utf8(key)
                .map_err(|_| damaged(Text::Key))?
                .into(),
            certificate: certificates_of(&certificate).ok_or(damaged(Text::Certificate))?,
            authorities: certificates_of(&authorities).ok_or(damaged(Text::Authorities))?,
        }))
    }

    /// The pair of a Secret's `data`: `tls.crt`, `tls.key` and `ca.crt`.
    ///
    /// # Errors
    /// As [`Pair::found`].
    pub fn of_secret(data: &Map<String, Value>) -> Result<Option<Self>, Unusable> {
        let bytes = |key: &str, which| match data.get(key).and_then(Value::as_str) {
            None => Ok(None),
            Some(text) => decode_base64(text)
                .map(Some)
                .map_err(|_| Unusable::Damaged(which)),
        };
        Self::found(
            bytes("tls.crt", Text::Certificate)?,
            bytes("tls.key", Text::Key)?,
            bytes("ca.crt", Text::Authorities)?,
        )
    }

    /// The certificate as PEM, with those between it and the CA.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The private key as PEM.
    #[must_use]
    pub fn key(&self) -> &SecretString {
        &self.key
    }

    /// The certificates to trust as PEM: that of the CA, and after a renewal that of the one before.
    #[must_use]
    pub fn authorities(&self) -> &str {
        &self.authorities
    }
}

/// What was found, where a client would accept it for all these names now and for 30 days; else a new pair.
///
/// Where the old one is still valid, its CA stays trusted beside the new one, so that nothing fails while pods serve with
/// the old certificate.
///
/// # Errors
/// When no pair can be made.
pub fn keep_or_make(
    found: Result<Option<Pair>, Unusable>,
    names: &[String],
    now: Timestamp,
) -> Result<Supply, MakeError> {
    let reason = match found {
        Ok(None) => return Ok(Supply::New(make(names, now)?)),
        Ok(Some(pair)) => match usable(&pair, names, now) {
            Ok(()) => return Ok(Supply::Kept(pair)),
            Err(Unusable::ExpiresSoon) => {
                let mut made = make(names, now)?;
                made.authorities += &first_certificate(&pair.authorities);
                return Ok(Supply::Renewed(made, Unusable::ExpiresSoon));
            }
            Err(reason) => reason,
        },
        Err(reason) => reason,
    };
    Ok(Supply::Renewed(make(names, now)?, reason))
}

/// A PEM text of nothing but certificates, in the form that all are written in.
fn certificates_of(text: &[u8]) -> Option<String> {
    let blocks = pem::parse_many(text).ok()?;
    let is_certificate = |block: &pem::Pem| block.tag() == CERTIFICATE;
    if blocks.len() > MAX_CERTIFICATES || !blocks.iter().all(is_certificate) {
        return None;
    }
    Some(blocks.iter().map(written).collect())
}

/// The first certificate of a PEM text.
fn first_certificate(text: &str) -> String {
    let blocks = pem::parse_many(text).unwrap_or_default();
    blocks.first().map(written).unwrap_or_default()
}

/// As rcgen writes it.
fn written(block: &pem::Pem) -> String {
    let form = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    pem::encode_config(block, form)
}
