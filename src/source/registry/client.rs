//! HTTP clients: one for hosts without settings of their own, and one for each set of certificates and for hosts whose
//! certificate is not checked. None of them follows a redirect, tries again or decompresses by itself. Beside them
//! stands what is known of hosts: which are asked without TLS.
//!
//! TLS is rustls with ring, and nothing else: neither rustls nor the HTTP client may choose another.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use reqwest::{Certificate, Client, Url, redirect, retry, tls};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::{
    CaFile,
    address::HostPort,
    error::RegistryError,
    wanted::{Checked, Repository},
};

/// What tells the clients apart: the files of certificates, by position, and whether certificates are checked.
type Kind = (Vec<usize>, Checked);

/// The clients, each made when it is first needed: reading the system's certificates takes time.
#[derive(Debug)]
pub(super) struct Clients {
    authorities: Vec<(Option<HostPort>, Vec<CertificateDer<'static>>)>,
    insecure: Vec<HostPort>,
    /// For how long nothing may come.
    pub(super) timeout: Duration,
    made: Mutex<BTreeMap<Kind, Client>>,
    /// Registries that may be asked without TLS, and how they answered.
    schemes: Mutex<BTreeMap<String, String>>,
}

impl Clients {
    /// Reads the certificates. `insecure` are the hosts whose certificates are not checked.
    ///
    /// # Errors
    /// When a file has none, or one that cannot be used.
    pub(super) fn new(
        files: Vec<CaFile>,
        insecure: Vec<HostPort>,
        timeout: Duration,
    ) -> Result<Self, RegistryError> {
        if let Some(variable) = PROXIES.into_iter().find(|variable| is_no_proxy(variable)) {
            return Err(RegistryError::Proxy(variable));
        }
        // Another part of the program may have done the same before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let authorities = files.into_iter().map(authorities);
        Ok(Self {
            authorities: authorities.collect::<Result<_, _>>()?,
            insecure,
            timeout,
            made: Mutex::default(),
            schemes: Mutex::default(),
        })
    }

    /// Whether the certificate of an address is checked, when it is not told otherwise.
    pub(super) fn checked(&self, url: &Url) -> Checked {
        if self.insecure.iter().any(|host| host.has(url)) {
            Checked::No
        } else {
            Checked::Yes
        }
    }

    /// How a registry is asked; nothing when that is yet to be found out.
    pub(super) fn scheme(&self, repository: &Repository) -> Option<String> {
        let known = self.schemes.lock().unwrap_or_else(PoisonError::into_inner);
        match repository.checked {
            Checked::Yes => Some("https".to_owned()),
            Checked::No => known.get(&repository.registry).cloned(),
        }
    }

    /// Remembers how a registry answered first.
    pub(super) fn learn_scheme(&self, repository: &Repository, url: &Url) {
        let mut known = self.schemes.lock().unwrap_or_else(PoisonError::into_inner);
        let scheme = || url.scheme().to_owned();
        known
            .entry(repository.registry.clone())
            .or_insert_with(scheme);
    }

    /// The client for an address.
    ///
    /// # Errors
    /// When there are no certificates on this machine to check with.
    pub(super) fn of(&self, url: &Url, checked: Checked) -> Result<Client, RegistryError> {
        let files = self.authorities.iter().enumerate();
        let files = files
            .filter(|(_, (host, _))| host.as_ref().is_none_or(|host| host.has(url)))
            .map(|(position, _)| position);
        let kind = (files.collect(), checked);
        // Held while one is made: two would not share their connections.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = made.get(&kind) {
            return Ok(client.clone());
        }
        let client = self.make(&kind)?;
        made.insert(kind, client.clone());
        Ok(client)
    }

    fn make(&self, (files, checked): &Kind) -> Result<Client, RegistryError> {
        let certificates = files
            .iter()
            .filter_map(|position| self.authorities.get(*position))
            .flat_map(|(_, certificates)| certificates)
            .map(|certificate| Certificate::from_der(certificate))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| RegistryError::Setup(words(&error)))?;
        let builder = Client::builder()
            .user_agent(concat!("kubectl-olm/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false)
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .connect_timeout(self.timeout)
            .tls_backend_rustls()
            .tls_version_min(tls::Version::TLS_1_2)
            .tls_danger_accept_invalid_certs(*checked == Checked::No);
        let builder = if certificates.is_empty() {
            builder
        } else {
            builder.tls_certs_merge(certificates)
        };
        builder
            .build()
            .map_err(|error| RegistryError::Setup(words(&error)))
    }
}

/// The variables that name proxies.
const PROXIES: [&str; 5] = [
    "HTTPS_PROXY",
    "https_proxy",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// Whether a variable is set to what is no proxy. The HTTP client would pass it over and ask servers itself, where
/// nobody may.
fn is_no_proxy(variable: &str) -> bool {
    let value = std::env::var(variable).unwrap_or_default();
    let with_scheme = match value.contains("://") {
        true => value.clone(),
        false => format!("http://{value}"),
    };
    !value.is_empty() && reqwest::Proxy::all(with_scheme).is_err()
}

/// The certificates of a file, each of them one that can be used.
fn authorities(
    file: CaFile,
) -> Result<(Option<HostPort>, Vec<CertificateDer<'static>>), RegistryError> {
    let host = match &file.host {
        Some(host) => {
            let parsed = HostPort::parse(host);
            Some(parsed.ok_or_else(|| RegistryError::Host(host.clone()))?)
        }
        None => None,
    };
    let bad = |reason: String| RegistryError::CaFile {
        name: file.name.clone(),
        reason,
    };
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&file.pem)
        .collect::<Result<_, _>>()
        .map_err(|_| bad("it is no PEM".to_owned()))?;
    if certificates.is_empty() {
        return Err(bad("it holds no certificate in PEM".to_owned()));
    }
    for (number, certificate) in certificates.iter().enumerate() {
        let added = RootCertStore::empty().add(certificate.clone());
        added.map_err(|error| bad(format!("certificate {}: {error}", number + 1)))?;
    }
    Ok((host, certificates))
}

/// The innermost cause of an error, which has no address in it.
fn words(error: &reqwest::Error) -> String {
    let first: &dyn std::error::Error = error;
    let innermost = std::iter::successors(Some(first), |error| error.source()).last();
    innermost.map(ToString::to_string).unwrap_or_default()
}
