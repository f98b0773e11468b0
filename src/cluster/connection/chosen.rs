//! Which cluster is asked, and on whose behalf: what the kubeconfig says, and what the flags say instead
//! (k8s.io/client-go `tools/clientcmd/client_config.go`). Takes values and gives values, but for the place that a pod finds
//! its own API server at.

use std::{env, path::Path};

use kube::config::{AuthInfo, Cluster, Context};

use super::{ConnectionError, kubeconfig::Kubeconfig, settings::ConnectionSettings};

/// Where a pod finds what it needs to ask its API server.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A cluster and a user.
#[derive(Debug)]
pub(super) struct Chosen {
    /// What messages call it: the context, or where it is from.
    pub(super) context: String,
    pub(super) cluster: Cluster,
    pub(super) user: AuthInfo,
    /// The namespace of the context.
    pub(super) namespace: Option<String>,
}

/// Chooses as the settings say.
///
/// # Errors
/// When what they name is not there, or they make no sense together.
pub(super) fn choose(
    kubeconfig: Kubeconfig,
    settings: &ConnectionSettings,
) -> Result<Chosen, ConnectionError> {
    let mut chosen = match in_cluster(&kubeconfig, settings) {
        Some(chosen) => chosen,
        None => of_kubeconfig(kubeconfig, settings)?,
    };
    override_cluster(&mut chosen.cluster, settings);
    override_user(&mut chosen.user, settings)?;
    Ok(chosen)
}

/// What a pod uses where there is no kubeconfig.
fn in_cluster(kubeconfig: &Kubeconfig, settings: &ConnectionSettings) -> Option<Chosen> {
    let is_empty = kubeconfig.contexts.is_empty() && kubeconfig.clusters.is_empty();
    if !is_empty || settings.kubeconfig.is_some() || settings.server.is_some() {
        return None;
    }
    let read = |name| env::var(name).ok().filter(|value| !value.is_empty());
    let host = read("KUBERNETES_SERVICE_HOST")?;
    let port = read("KUBERNETES_SERVICE_PORT")?;
    let token = Path::new(ACCOUNT).join("token");
    if !token.is_file() {
        return None;
    }
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host
    };
    let namespace = std::fs::read_to_string(Path::new(ACCOUNT).join("namespace"));
    Some(Chosen {
        context: "of this pod".to_owned(),
        cluster: Cluster {
            server: Some(format!("https://{host}:{port}")),
            certificate_authority: Some(format!("{ACCOUNT}/ca.crt")),
            ..Cluster::default()
        },
        user: AuthInfo {
            token_file: Some(format!("{ACCOUNT}/token")),
            ..AuthInfo::default()
        },
        namespace: namespace.ok().map(|name| name.trim().to_owned()),
    })
}

fn of_kubeconfig(
    mut kubeconfig: Kubeconfig,
    settings: &ConnectionSettings,
) -> Result<Chosen, ConnectionError> {
    let places = kubeconfig.places.join("; ");
    let missing = |what: &str, name: &str| {
        ConnectionError::Config(format!(
            "there is no {what} {name:?} in the kubeconfig ({places})"
        ))
    };
    let wanted = settings.context.clone().or(kubeconfig.current.clone());
    let context = match &wanted {
        Some(name) => match kubeconfig.contexts.remove(name) {
            Some(context) => context,
            // As kubectl does: a current context that is gone is none, when nothing of it is needed.
            None if settings.context.is_none() && settings.server.is_some() => Context::default(),
            None => return Err(missing("context", name)),
        },
        None => Context::default(),
    };
    let cluster_name = settings.cluster.as_ref().unwrap_or(&context.cluster);
    let cluster = match kubeconfig.clusters.remove(cluster_name) {
        Some(cluster) => cluster,
        None if !cluster_name.is_empty() => return Err(missing("cluster", cluster_name)),
        None if settings.server.is_some() => Cluster::default(),
        None => return Err(ConnectionError::NoCluster { places }),
    };
    let user_name = settings.user.as_ref().or(context.user.as_ref());
    let user = match user_name.filter(|name| !name.is_empty()) {
        None => AuthInfo::default(),
        Some(name) => match kubeconfig.users.remove(name) {
            Some(user) => user,
            None => return Err(missing("user", name)),
        },
    };
    Ok(Chosen {
        context: wanted.unwrap_or_else(|| "without a name".to_owned()),
        cluster,
        user,
        namespace: context.namespace.filter(|name| !name.is_empty()),
    })
}

fn override_cluster(cluster: &mut Cluster, settings: &ConnectionSettings) {
    if let Some(server) = &settings.server {
        cluster.server = Some(server.clone());
    }
    if let Some(name) = &settings.tls_server_name {
        cluster.tls_server_name = Some(name.clone());
    }
    if let Some(path) = &settings.certificate_authority {
        cluster.certificate_authority = Some(path.to_string_lossy().into_owned());
        cluster.certificate_authority_data = None;
        cluster.insecure_skip_tls_verify = None;
    }
    if let Some(insecure) = settings.insecure_skip_tls_verify {
        cluster.insecure_skip_tls_verify = Some(insecure);
    }
    if let Some(disable) = settings.disable_compression {
        cluster.disable_compression = Some(disable);
    }
}

fn override_user(
    user: &mut AuthInfo,
    settings: &ConnectionSettings,
) -> Result<(), ConnectionError> {
    // A login that is given takes the place of every other.
    if settings.token.is_some() || settings.username.is_some() || settings.password.is_some() {
        user.token = settings.token.clone();
        user.username = settings.username.clone();
        user.password = settings.password.clone();
        (user.token_file, user.exec, user.auth_provider) = (None, None, None);
    }
    if let Some(path) = &settings.client_certificate {
        user.client_certificate = Some(path.to_string_lossy().into_owned());
        user.client_certificate_data = None;
    }
    if let Some(path) = &settings.client_key {
        user.client_key = Some(path.to_string_lossy().into_owned());
        user.client_key_data = None;
    }
    if let Some(name) = &settings.impersonate {
        user.impersonate = Some(name.clone());
    }
    if let Some(uid) = &settings.impersonate_uid {
        user.impersonate_uid = Some(uid.clone());
    }
    if !settings.impersonate_groups.is_empty() {
        user.impersonate_groups = Some(settings.impersonate_groups.clone());
    }
    for (key, value) in &settings.impersonate_extra {
        let all = user.impersonate_user_extra.get_or_insert_default();
        all.entry(key.clone()).or_default().push(value.clone());
    }
    let is_some = |name: &Option<String>| name.as_ref().is_some_and(|name| !name.is_empty());
    let has_more = user.impersonate_uid.is_some()
        || user.impersonate_groups.is_some()
        || user.impersonate_user_extra.is_some();
    if has_more && !is_some(&user.impersonate) {
        return Err(ConnectionError::Config(
            "a uid, groups or extra fields to act with are given without a user to act as (--as)"
                .to_owned(),
        ));
    }
    Ok(())
}
