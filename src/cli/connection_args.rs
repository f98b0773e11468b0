//! kubectl's flags about the cluster and its user. `--namespace` and `--request-timeout` stand elsewhere, as other
//! commands have them too.

use std::{path::PathBuf, time::Duration};

use clap::{ArgAction, Args};
use secrecy::SecretString;

use crate::cluster::connection::ConnectionSettings;

/// The heading of these flags.
const CLUSTER: &str = "Cluster";

/// Which cluster is meant, and on whose behalf it is asked: as in kubectl.
#[derive(Debug, Args)]
#[command(next_help_heading = CLUSTER)]
pub(super) struct ConnectionArgs {
    /// Kubeconfig to use (default: the files of KUBECONFIG, else ~/.kube/config, else the account of the pod)
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Cluster of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// User of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Address of the API server
    #[arg(short, long, value_name = "URL")]
    server: Option<String>,
    /// CA to check the certificate of the API server with, as PEM
    #[arg(long, value_name = "FILE")]
    certificate_authority: Option<PathBuf>,
    /// Name that the certificate of the API server has to be for
    #[arg(long, value_name = "NAME")]
    tls_server_name: Option<String>,
    /// Do not check the certificate of the API server: whoever is between can read and change everything
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    insecure_skip_tls_verify: Option<bool>,
    /// Certificate of the user, as PEM
    #[arg(long, value_name = "FILE")]
    client_certificate: Option<PathBuf>,
    /// Private key of the certificate of the user, as PEM
    #[arg(long, value_name = "FILE")]
    client_key: Option<PathBuf>,
    /// Bearer token of the user
    #[arg(long, value_name = "TOKEN", value_parser = secret)]
    token: Option<SecretString>,
    /// Name of the user for basic authentication
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// Password of the user for basic authentication
    #[arg(long, value_name = "PASSWORD", value_parser = secret)]
    password: Option<SecretString>,
    /// User to act as
    #[arg(long = "as", value_name = "NAME")]
    impersonate: Option<String>,
    /// Group to act as a member of; repeat for several
    #[arg(long = "as-group", value_name = "NAME")]
    impersonate_group: Vec<String>,
    /// UID of the user to act as
    #[arg(long = "as-uid", value_name = "UID")]
    impersonate_uid: Option<String>,
    /// Extra field of the user to act as; repeat for several
    #[arg(long = "as-user-extra", value_name = "KEY=VALUE", value_parser = key_and_value)]
    impersonate_extra: Vec<(String, String)>,
    /// Ask the API server not to compress its answers
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    disable_compression: Option<bool>,
    /// Taken as kubectl has it, and not used: what the API server serves is asked for in every run
    #[arg(long, value_name = "DIR", hide = true, action = ArgAction::Set)]
    cache_dir: Option<PathBuf>,
}

impl ConnectionArgs {
    /// What they say. A `request_timeout` of zero is no limit, as in kubectl.
    #[must_use]
    pub(super) fn settings(&self, request_timeout: Duration) -> ConnectionSettings {
        ConnectionSettings {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            cluster: self.cluster.clone(),
            user: self.user.clone(),
            server: self.server.clone(),
            tls_server_name: self.tls_server_name.clone(),
            insecure_skip_tls_verify: self.insecure_skip_tls_verify,
            certificate_authority: self.certificate_authority.clone(),
            client_certificate: self.client_certificate.clone(),
            client_key: self.client_key.clone(),
            token: self.token.clone(),
            username: self.username.clone(),
            password: self.password.clone(),
            impersonate: self.impersonate.clone(),
            impersonate_uid: self.impersonate_uid.clone(),
            impersonate_groups: self.impersonate_group.clone(),
            impersonate_extra: self.impersonate_extra.clone(),
            disable_compression: self.disable_compression,
            request_timeout: Some(request_timeout).filter(|time| !time.is_zero()),
            ..ConnectionSettings::default()
        }
    }
}

/// What must not be shown.
fn secret(text: &str) -> Result<SecretString, std::convert::Infallible> {
    Ok(SecretString::from(text))
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("use KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::wanted_args::WantedArgs;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        wanted: WantedArgs,
        #[command(flatten)]
        connection: ConnectionArgs,
    }

    #[test]
    fn they_stand_beside_those_of_an_install() {
        Line::command().debug_assert();
    }

    #[test]
    fn each_reaches_the_settings() {
        let words = "x --kubeconfig k -s https://h --context c --cluster l --user u --as a --as-group g --as-group h \
            --as-uid i --as-user-extra e=f=g --token t --insecure-skip-tls-verify --disable-compression=false";
        let line = Line::try_parse_from(words.split_whitespace()).expect("flags");
        let settings = line.connection.settings(Duration::ZERO);
        assert_eq!(settings.server.as_deref(), Some("https://h"));
        assert_eq!(settings.impersonate_groups, ["g", "h"]);
        let extra = ("e".to_owned(), "f=g".to_owned());
        assert_eq!(settings.impersonate_extra, [extra]);
        assert_eq!(settings.insecure_skip_tls_verify, Some(true));
        assert_eq!(settings.disable_compression, Some(false));
        assert_eq!(settings.request_timeout, None);
        assert!(!format!("{line:?}").contains("\"t\""));
    }
}
