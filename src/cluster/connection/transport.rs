//! Makes the HTTP client: certificates, proxy, and whom to act as. It sends each request once, as it is told to; who the
//! user is goes into each request by itself.
//!
//! TLS is rustls with ring, and nothing else.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue, Uri};
use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{AuthInfo, Cluster},
};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use secrecy::{ExposeSecret, SecretString};

use super::{ConnectionError, chosen::Chosen, kubeconfig::read_file, login::Login, proxy};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// What clients are made of, read once.
#[derive(Debug)]
pub(super) struct Transport {
    config: Config,
    /// The certificates that the server's is checked with, as PEM.
    pub(super) authority: Option<Vec<u8>>,
    /// The key and certificates of the user, as PEM.
    pub(super) identity: Option<SecretString>,
    /// The server, for messages: no password that its URL may have.
    pub(super) server: String,
}

impl Transport {
    /// Reads what the cluster and the user need.
    ///
    /// # Errors
    /// When an address, a certificate or a key cannot be used.
    pub(super) fn new(
        chosen: &Chosen,
        request_timeout: Option<Duration>,
    ) -> Result<Self, ConnectionError> {
        // Another part of the program may have done the same before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let cluster = &chosen.cluster;
        let server = address(cluster)?;
        let mut config = Config::new(server.clone());
        let authority = authority(cluster)?;
        let is_plain = server.scheme_str() != Some("https");
        config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or_default();
        config.root_cert = match &authority {
            _ if is_plain || config.accept_invalid_certs => Some(vec![]),
            Some(pem) => Some(certificates(pem)?),
            None => None,
        };
        config.proxy_url = proxy::before(&server, cluster.proxy_url.as_deref(), &proxy::variable)?;
        let name = cluster.tls_server_name.clone();
        config.tls_server_name = name.filter(|name| !name.is_empty());
        config.disable_compression = cluster.disable_compression.unwrap_or_default();
        config.connect_timeout = Some(
            request_timeout
                .unwrap_or(CONNECT_TIMEOUT)
                .min(CONNECT_TIMEOUT),
        );
        config.default_retry = false;
        let agent = concat!("kubectl-olm/", env!("CARGO_PKG_VERSION"));
        let agent = (
            HeaderName::from_static("user-agent"),
            HeaderValue::from_static(agent),
        );
        config.headers.push(agent);
        config.auth_info = acting(&chosen.user);
        Ok(Self {
            server: told(&server),
            config,
            authority,
            identity: identity(&chosen.user)?,
        })
    }

    /// A client for a user who has logged in. It belongs to the runtime that this is called in.
    ///
    /// # Errors
    /// When the certificates or the key of the user cannot be used, or there are none to check the server's with.
    pub(super) fn client(&self, login: &Login) -> Result<Client, ConnectionError> {
        let mut config = self.config.clone();
        if let Some(pem) = &login.identity {
            // The client wants them apart and takes all that is in both.
            let pem = STANDARD.encode(pem.expose_secret());
            config.auth_info.client_key_data = Some(SecretString::from(pem));
            config.auth_info.client_certificate_data = Some(String::new());
        }
        let builder = ClientBuilder::try_from(config).map_err(|error| {
            let reason = super::exchange::words(&error);
            ConnectionError::Config(format!(
                "no connection to {} can be made: {reason}",
                self.server
            ))
        })?;
        Ok(builder.build())
    }
}

/// The address of a server, which may be written without a scheme (k8s.io/client-go `rest/url_utils.go`).
fn address(cluster: &Cluster) -> Result<Uri, ConnectionError> {
    let written = cluster.server.as_deref().unwrap_or_default();
    let has_tls = cluster.insecure_skip_tls_verify.unwrap_or_default()
        || cluster.certificate_authority.is_some()
        || cluster.certificate_authority_data.is_some();
    let written = match (written.contains("://"), has_tls) {
        (true, _) => written.to_owned(),
        (false, true) => format!("https://{written}"),
        (false, false) => format!("http://{written}"),
    };
    let uri: Option<Uri> = written.parse().ok();
    let is_server = |uri: &Uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
    };
    uri.filter(is_server).ok_or_else(|| {
        ConnectionError::Config(
            "the address of the server is no URL of http:// or https://".to_owned(),
        )
    })
}

/// An address without a password.
fn told(server: &Uri) -> String {
    let scheme = server.scheme_str().unwrap_or_default();
    let authority = server
        .authority()
        .map_or("", |authority| authority.as_str());
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let path = server.path().trim_end_matches('/');
    super::super::answer::clean(&format!("{scheme}://{host}{path}"), 300)
}

/// Only whom to act as: who the user is goes into each request.
fn acting(user: &AuthInfo) -> AuthInfo {
    AuthInfo {
        impersonate: user.impersonate.clone().filter(|name| !name.is_empty()),
        impersonate_uid: user.impersonate_uid.clone(),
        impersonate_groups: user.impersonate_groups.clone(),
        impersonate_user_extra: user.impersonate_user_extra.clone(),
        ..AuthInfo::default()
    }
}

/// The certificates to check with, as PEM; those of the system when there are none.
fn authority(cluster: &Cluster) -> Result<Option<Vec<u8>>, ConnectionError> {
    let data = cluster.certificate_authority_data.as_deref();
    let path = cluster.certificate_authority.as_deref();
    content("certificate-authority", data, path)
}

fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, ConnectionError> {
    let bad = |reason: &str| ConnectionError::Config(format!("certificate-authority: {reason}"));
    let mut all = vec![];
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| bad("it is no PEM"))?;
        let added = RootCertStore::empty().add(certificate.clone());
        added.map_err(|error| bad(&error.to_string()))?;
        all.push(certificate.to_vec());
    }
    if all.is_empty() {
        return Err(bad("it holds no certificate in PEM"));
    }
    Ok(all)
}

/// The key and the certificates of a user, as PEM.
fn identity(user: &AuthInfo) -> Result<Option<SecretString>, ConnectionError> {
    let data = user.client_certificate_data.as_deref();
    let path = user.client_certificate.as_deref();
    let certificate = content("client-certificate", data, path)?;
    let data = user.client_key_data.as_ref();
    let path = user.client_key.as_deref();
    let key = content("client-key", data.map(ExposeSecret::expose_secret), path)?;
    let bad = |reason: &str| ConnectionError::Config(reason.to_owned());
    let (certificate, key) = match (certificate, key) {
        (None, None) => return Ok(None),
        (Some(certificate), Some(key)) => (certificate, key),
        (None, Some(_)) => {
            return Err(bad(
                "the user has a client-key without a client-certificate",
            ));
        }
        (Some(_), None) => {
            return Err(bad(
                "the user has a client-certificate without a client-key",
            ));
        }
    };
    let both = [key, certificate].join(&b'\n');
    let both = String::from_utf8(both);
    let both =
        both.map_err(|_| bad("the client-certificate or the client-key of the user is no PEM"))?;
    Ok(Some(SecretString::from(both)))
}

/// What a kubeconfig has itself, else what stands in the file that it names.
fn content(
    what: &str,
    data: Option<&str>,
    path: Option<&str>,
) -> Result<Option<Vec<u8>>, ConnectionError> {
    if let Some(data) = data.filter(|data| !data.is_empty()) {
        let data: String = data.split_ascii_whitespace().collect();
        let decoded = STANDARD.decode(data);
        let bad = |_| ConnectionError::Config(format!("{what}-data is no base64"));
        return decoded.map(Some).map_err(bad);
    }
    let Some(path) = path.filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let content = read_file(path.as_ref()).map_err(|source| ConnectionError::Unreadable {
        path: path.into(),
        source,
    })?;
    Ok(Some(content))
}
