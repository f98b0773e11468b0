//! What the process was given to find configuration of containers by, as values.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The variables and folders that configuration of containers is found by. Without any, none is found.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `REGISTRY_AUTH_FILE`: the auth file to use instead of all others.
    pub registry_auth_file: Option<PathBuf>,
    /// `DOCKER_CONFIG`: the folder of docker's `config.json`.
    pub docker_config: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`: where podman keeps logins until the next start.
    pub xdg_runtime_dir: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`, which stands in for `.config` of the home folder.
    pub xdg_config_home: Option<PathBuf>,
    /// The home folder.
    pub home: Option<PathBuf>,
    /// `CONTAINERS_REGISTRIES_CONF`: the registries.conf to use instead of all others.
    pub containers_registries_conf: Option<PathBuf>,
    /// The folders of a machine's own configuration of containers, the first before the later ones.
    pub system_folders: Vec<PathBuf>,
    /// The user's number, by which podman keeps logins where `XDG_RUNTIME_DIR` is not set.
    pub user_id: Option<u32>,
    /// `PATH`, through which credential helpers are found.
    pub path: OsString,
}

impl Environment {
    /// The environment of this process. A variable that is empty counts as not set.
    #[must_use]
    pub fn from_process() -> Self {
        let folder = |name: &str| {
            let value = env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        Self {
            registry_auth_file: folder("REGISTRY_AUTH_FILE"),
            docker_config: folder("DOCKER_CONFIG"),
            xdg_runtime_dir: folder("XDG_RUNTIME_DIR"),
            xdg_config_home: folder("XDG_CONFIG_HOME"),
            home: etcetera::home_dir().ok(),
            containers_registries_conf: folder("CONTAINERS_REGISTRIES_CONF"),
            system_folders: ["/etc/containers", "/usr/share/containers"]
                .map(PathBuf::from)
                .into(),
            user_id: user_id(),
            path: env::var_os("PATH").unwrap_or_default(),
        }
    }

    /// The user's folder of configuration of containers.
    pub(in crate::source) fn user_folder(&self) -> Option<PathBuf> {
        let config = self.xdg_config_home.clone();
        let config = config.or_else(|| Some(self.home.as_ref()?.join(".config")));
        Some(config?.join("containers"))
    }

    /// podman's file of logins that last until the next start.
    pub(super) fn runtime_auth_file(&self) -> Option<PathBuf> {
        match (&self.xdg_runtime_dir, self.user_id) {
            (Some(folder), _) => Some(folder.join("containers/auth.json")),
            (None, Some(user)) => Some(
                Path::new("/run/containers")
                    .join(user.to_string())
                    .join("auth.json"),
            ),
            (None, None) => None,
        }
    }

    /// docker's file of logins.
    pub(super) fn docker_auth_file(&self) -> Option<PathBuf> {
        let folder = self.docker_config.clone();
        let folder = folder.or_else(|| Some(self.home.as_ref()?.join(".docker")));
        Some(folder?.join("config.json"))
    }
}

#[cfg(target_os = "linux")]
fn user_id() -> Option<u32> {
    Some(rustix::process::getuid().as_raw())
}

/// Elsewhere podman runs in a machine of its own, and keeps logins in the home folder.
#[cfg(not(target_os = "linux"))]
fn user_id() -> Option<u32> {
    None
}
