//! What kubectl's flags about the connection say, as values.

use std::{path::PathBuf, time::Duration};

use secrecy::SecretString;

/// What kubectl's flags about the connection say. What is not given comes from the kubeconfig.
#[derive(Debug, Clone)]
pub struct ConnectionSettings {
    /// `--kubeconfig`.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`.
    pub context: Option<String>,
    /// `--cluster`.
    pub cluster: Option<String>,
    /// `--user`.
    pub user: Option<String>,
    /// `--server`.
    pub server: Option<String>,
    /// `--tls-server-name`.
    pub tls_server_name: Option<String>,
    /// `--insecure-skip-tls-verify`; the kubeconfig's say when it is not given.
    pub insecure_skip_tls_verify: Option<bool>,
    /// `--certificate-authority`.
    pub certificate_authority: Option<PathBuf>,
    /// `--client-certificate`.
    pub client_certificate: Option<PathBuf>,
    /// `--client-key`.
    pub client_key: Option<PathBuf>,
    /// `--token`.
    pub token: Option<SecretString>,
    /// `--username`.
    pub username: Option<String>,
    /// `--password`.
    pub password: Option<SecretString>,
    /// `--as`.
    pub impersonate: Option<String>,
    /// `--as-uid`.
    pub impersonate_uid: Option<String>,
    /// `--as-group`.
    pub impersonate_groups: Vec<String>,
    /// `--as-user-extra`, as keys and values.
    pub impersonate_extra: Vec<(String, String)>,
    /// `--disable-compression`; the kubeconfig's say when it is not given.
    pub disable_compression: Option<bool>,
    /// `--request-timeout`: how long one request may take; nothing for as long as the run may.
    pub request_timeout: Option<Duration>,
    /// How long a credential plugin may take that asks nobody; one that has a terminal to ask gets five times as long.
    pub plugin_timeout: Duration,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            cluster: None,
            user: None,
            server: None,
            tls_server_name: None,
            insecure_skip_tls_verify: None,
            certificate_authority: None,
            client_certificate: None,
            client_key: None,
            token: None,
            username: None,
            password: None,
            impersonate: None,
            impersonate_uid: None,
            impersonate_groups: vec![],
            impersonate_extra: vec![],
            disable_compression: None,
            request_timeout: Some(Duration::from_secs(30)),
            plugin_timeout: Duration::from_secs(60),
        }
    }
}
