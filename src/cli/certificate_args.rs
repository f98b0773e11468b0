//! The flags that say where certificates come from, and the provider that they lead to.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    str::FromStr,
    sync::{Mutex, PoisonError},
};

use clap::Args;
use jiff::Timestamp;

use super::{
    candidates::words,
    certificate_folder,
    failure::{Class, Failure},
    read_args::ReadArgs,
};
use crate::{
    bundle::ClusterServiceVersion,
    install::CertificateSource,
    manifest::names,
    problem::Problem,
    render::certificates::{
        CertManager, Certificate, CertificateProvider, NoCertificates, Pair, SelfSigned, ServiceCa,
        Supplied, Supply, keep_or_make,
    },
    source,
};

/// The rule of notes about certificates that were made.
const RULE: &str = "certificates";

/// Where certificates come from.
#[derive(Debug, Args)]
pub(super) struct CertificateArgs {
    /// Where webhooks get certificates from: cert-manager, service-ca, self-signed, secret:NAME or none
    #[arg(long, value_name = "PROVIDER", default_value = "cert-manager", value_parser = CertificateSource::from_str, add = words(&["cert-manager", "service-ca", "self-signed", "secret:", "none"]))]
    pub certs: CertificateSource,
    /// Folder in which --certs self-signed keeps certificates and their private keys, so that they are made once
    #[arg(long, value_name = "DIR")]
    pub cert_dir: Option<PathBuf>,
}

/// Who gives the certificates of `--certs self-signed`.
pub(super) trait Supplier: Sync {
    /// A certificate with its key: one that was made before and can still be used, else a new one.
    ///
    /// # Errors
    /// When there is no place to keep it, or it cannot be read, made or kept.
    fn supply(&self, certificate: &Certificate) -> Result<Supply, Failure>;

    /// Where it is kept, for messages: `in certs`. Nothing when it is not, as nothing is to be said of it then.
    fn place(&self) -> Option<String>;
}

/// The folder of `--cert-dir`.
impl Supplier for CertificateArgs {
    fn supply(&self, certificate: &Certificate) -> Result<Supply, Failure> {
        let Some(folder) = &self.cert_dir else {
            return Err(no_folder());
        };
        certificate_folder::supply(folder, certificate, Timestamp::now())
    }

    fn place(&self) -> Option<String> {
        let folder = self.cert_dir.as_deref();
        folder.map(|folder| format!("in {}", folder.display()))
    }
}

/// Certificates for what is looked at and not installed: the same for all that is rendered in a run, so that two versions
/// do not differ by them.
#[derive(Debug, Default)]
pub(super) struct Passing(Mutex<BTreeMap<(String, String), Pair>>);

impl Supplier for Passing {
    fn supply(&self, certificate: &Certificate) -> Result<Supply, Failure> {
        let key = (certificate.namespace.clone(), certificate.name.clone());
        let mut pairs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = pairs.get(&key).cloned();
        let supply = keep_or_make(Ok(found), &certificate.dns_names(), Timestamp::now())
            .map_err(|error| Failure::of(Class::Bug, &error))?;
        pairs.insert(key, supply.pair().clone());
        Ok(supply)
    }

    fn place(&self) -> Option<String> {
        None
    }
}

fn no_folder() -> Failure {
    let message = "--certs self-signed needs --cert-dir DIR, which keeps the certificates";
    let hint = "with it every run renders the same; the folder is made if it is not there";
    Failure::new(Class::Usage, message).with_hint(hint)
}

/// What needs certificates.
#[derive(Clone, Copy)]
pub(super) struct Serving<'a> {
    /// The operator.
    pub csv: &'a ClusterServiceVersion,
    /// The namespace that it is installed into.
    pub namespace: &'a str,
    /// Who gives certificates that are made before rendering.
    pub supplier: &'a dyn Supplier,
}

impl CertificateArgs {
    /// The folder, where it is named; else the other one.
    pub(super) fn or<'s>(&'s self, other: &'s dyn Supplier) -> &'s dyn Supplier {
        match self.cert_dir {
            Some(_) => self,
            None => other,
        }
    }

    /// Whether there is a folder, should the flag ask for certificates that are kept in one.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn has_folder(&self) -> Result<(), Failure> {
        match (&self.certs, &self.cert_dir) {
            (CertificateSource::SelfSigned, None) => Err(no_folder()),
            _ => Ok(()),
        }
    }
}

/// The provider of a source; what there is to say about the certificates that it made is added to `notes`.
///
/// # Errors
/// When a CA is missing or cannot be used, or a certificate cannot be supplied.
pub(super) fn provider(
    source: &CertificateSource,
    read: &ReadArgs,
    serving: Serving<'_>,
    notes: &mut Vec<Problem>,
) -> Result<Box<dyn CertificateProvider>, Failure> {
    Ok(match (source, read.sources.common_ca_file()) {
        (CertificateSource::Secret(name), Some(path)) => {
            let ca = source::read_file(path, &read.limits())?;
            let ca = certificates_of(&ca).map_err(|reason| {
                let message = format!("{} cannot be the CA: {reason}", path.display());
                Failure::new(Class::Refused, message)
            })?;
            Box::new(Supplied::new(name.clone(), ca.as_bytes()))
        }
        (CertificateSource::Secret(_), None) => {
            let message =
                "--certs secret:NAME needs --ca-file, the CA that clients of the webhooks trust";
            return Err(Failure::new(Class::Usage, message));
        }
        (CertificateSource::CertManager, _) => Box::new(CertManager),
        (CertificateSource::ServiceCa, _) => Box::new(ServiceCa),
        (CertificateSource::SelfSigned, _) => Box::new(self_signed(serving, notes)?),
        (CertificateSource::None, _) => Box::new(NoCertificates),
    })
}

/// The provider with a certificate for every Deployment that serves.
fn self_signed(serving: Serving<'_>, notes: &mut Vec<Problem>) -> Result<SelfSigned, Failure> {
    let certificates = Certificate::all_of(serving.csv, serving.namespace);
    let pairs = certificates.map(|certificate| {
        is_secret_name(&certificate.name)?;
        let supply = serving.supplier.supply(&certificate)?;
        let place = serving.supplier.place();
        notes.extend(place.and_then(|place| note(&certificate, &supply, &place)));
        Ok((certificate.name, supply.into_pair()))
    });
    let pairs = pairs.collect::<Result<_, Failure>>()?;
    Ok(SelfSigned { pairs })
}

/// Content says what Deployments are called, and the name becomes that of a file or of a path on a server.
fn is_secret_name(name: &str) -> Result<(), Failure> {
    match names::subdomain_error(name) {
        None => Ok(()),
        Some(reason) => {
            let message = format!("no Secret can be called {name:?}: {reason}");
            Err(Failure::new(Class::Refused, message))
        }
    }
}

/// Tells of a certificate that was made.
fn note(certificate: &Certificate, supply: &Supply, place: &str) -> Option<Problem> {
    let what = format!("certificate of the Service {}", certificate.service);
    let message = match supply {
        Supply::Kept(_) => return None,
        Supply::New(_) => format!("the {what} was made, and is kept {place} for the next run"),
        Supply::Renewed(_, reason) => format!("the {what} {place} was made anew: {reason}"),
    };
    Some(Problem::note(RULE, message))
}

/// The certificates of a PEM file, and nothing else of it: what is rendered goes into Git and to every reader of the
/// cluster.
fn certificates_of(text: &[u8]) -> Result<String, String> {
    let blocks = pem::parse_many(text).map_err(|error| format!("it is not PEM: {error}"))?;
    if blocks
        .iter()
        .any(|block| block.tag().ends_with("PRIVATE KEY"))
    {
        return Err("it holds a private key, which must not get into the output".to_owned());
    }
    let is_certificate = |block: &pem::Pem| block.tag() == "CERTIFICATE";
    let certificates: Vec<_> = blocks.into_iter().filter(is_certificate).collect();
    if certificates.is_empty() {
        return Err("it holds no certificate".to_owned());
    }
    let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    Ok(pem::encode_many_config(&certificates, config))
}
