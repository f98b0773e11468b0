//! The flags that say how content is reached and read, and what they lead to.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use clap::Args;

use super::{
    failure::{Class, Failure},
    mirror_args::MirrorArgs,
    output, progress,
};
use crate::{
    images::mirror::MirrorRules,
    limits::Limits,
    logins::PullSecret,
    oci::platform::Platform,
    source::{
        self, Settings, Sources, layout,
        registry::{self, RegistrySettings},
    },
};

/// The heading of the flags about images.
const IMAGES: &str = "Images and registries";

/// For how long a registry may send nothing when that is not limited.
const NO_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

/// How content is reached, and how much it may cost.
#[derive(Debug, Args)]
pub(super) struct SourceArgs {
    /// Lift the limits on sizes and counts, for content you trust
    #[arg(long)]
    no_limits: bool,
    /// Ask no registry: take images from the cache, tags as they were found last
    #[arg(long, help_heading = IMAGES)]
    offline: bool,
    /// Keep nothing of images, and take nothing that was kept
    #[arg(long, help_heading = IMAGES, conflicts_with = "offline")]
    no_cache: bool,
    /// Credentials for registries: an auth.json or config.json of podman or docker, or the manifest of a pull Secret
    /// (default: REGISTRY_AUTH_FILE, else where podman and docker keep them)
    #[arg(long, value_name = "FILE", help_heading = IMAGES)]
    authfile: Option<PathBuf>,
    /// Host that may be sent the password of a registry that names it as its token server; repeat for several
    #[arg(long, value_name = "HOST", help_heading = IMAGES)]
    auth_host: Vec<String>,
    /// CA to trust, as PEM: HOST=FILE for one registry, FILE for all; repeat for several. With `--certs secret:NAME`,
    /// FILE is the CA of the webhooks instead
    #[arg(long, value_name = "[HOST=]FILE", help_heading = IMAGES)]
    ca_file: Vec<CaFile>,
    /// Registry, as HOST or HOST:PORT, whose certificate is not checked, or that has none and speaks plain HTTP; repeat
    /// for several
    #[arg(long, value_name = "HOST", help_heading = IMAGES)]
    insecure_registry: Vec<String>,
    /// Platform whose image is taken where there are several, such as linux/arm64 (default: this machine's, else any)
    #[arg(long, value_name = "OS/ARCH", help_heading = IMAGES)]
    platform: Option<Platform>,
    /// How long a registry may send nothing, and a request to the API server may take, such as 10s or 2m; 0 for as long as
    /// they like
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration, help_heading = IMAGES)]
    pub request_timeout: Duration,
    #[command(flatten)]
    pub mirrors: MirrorArgs,
}

/// A value of `--ca-file`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CaFile {
    registry: Option<String>,
    path: PathBuf,
}

impl FromStr for CaFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A registry has no slash in its name, and most paths have one.
        let (registry, path) = match text.split_once('=') {
            Some((registry, path)) if !registry.contains('/') => (Some(registry), path),
            _ => (None, text),
        };
        if path.is_empty() || registry == Some("") {
            return Err("use FILE or HOST=FILE".to_owned());
        }
        let registry = registry.map(str::to_owned);
        let path = path.into();
        Ok(Self { registry, path })
    }
}

/// Durations as kubectl takes them, without parts: `10s`, `2m`, `1h`, or seconds.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let usage = "use a number of seconds, or one with s, m or h behind it, such as 90s or 1m30s";
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let span: jiff::SignedDuration = text.parse().map_err(|_| usage.to_owned())?;
    Duration::try_from(span).map_err(|_| usage.to_owned())
}

impl SourceArgs {
    /// The limits that content is read with.
    #[must_use]
    pub(super) fn limits(&self) -> Limits {
        if self.no_limits {
            Limits::NONE
        } else {
            Limits::DEFAULT
        }
    }

    /// The CA that is for no registry in particular, the last one named.
    pub(super) fn common_ca_file(&self) -> Option<&PathBuf> {
        let common = self.ca_file.iter().rev();
        let mut common = common.filter(|file| file.registry.is_none());
        common.next().map(|file| &file.path)
    }

    /// The rules of --mirror.
    ///
    /// # Errors
    /// When a file with rules cannot be used.
    pub(super) fn mirrors(&self) -> Result<MirrorRules, Failure> {
        self.mirrors.read(&self.limits())
    }

    /// What content is read with, where the flags are all there is.
    ///
    /// # Errors
    /// When a file with a CA cannot be read, or one with rules for mirrors cannot be used.
    pub(super) fn open(&self) -> Result<Sources, Failure> {
        self.open_with(CommonCa::OfRegistries, vec![], self.mirrors()?)
    }

    /// What content is read with. `common_ca` says whose the CA is that is for no registry in
    /// particular; `pull_secrets` open registries before anything else does; `mirrors` say where images are.
    ///
    /// # Errors
    /// When a file with a CA cannot be read.
    pub(super) fn open_with(
        &self,
        common_ca: CommonCa,
        pull_secrets: Vec<PullSecret>,
        mirrors: MirrorRules,
    ) -> Result<Sources, Failure> {
        let limits = self.limits();
        let mut ca_files = vec![];
        for CaFile { registry, path } in &self.ca_file {
            if registry.is_some() || common_ca == CommonCa::OfRegistries {
                let text = source::read_file(path, &limits);
                let text = text.map_err(|error| Failure::of(Class::Usage, &error))?;
                ca_files.push(registry::CaFile {
                    host: registry.clone(),
                    name: path.display().to_string(),
                    pem: text,
                });
            }
        }
        Ok(Sources::new(Settings {
            limits,
            platform: self.platform.clone(),
            offline: self.offline,
            cache: !self.no_cache,
            authfile: self.authfile.clone(),
            pull_secrets,
            mirrors,
            registries: RegistrySettings {
                ca_files,
                insecure: self.insecure_registry.clone(),
                auth_hosts: self.auth_host.clone(),
                timeout: match self.request_timeout {
                    Duration::ZERO => NO_LIMIT,
                    timeout => timeout,
                },
            },
            progress: Arc::new(progress::Terminal::default()),
        }))
    }
}

/// Whose the CA is that `--ca-file` names without a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommonCa {
    /// That of all registries.
    OfRegistries,
    /// That of the webhooks.
    OfWebhooks,
}

/// A failure to read a source; where that is an image which was named without its scheme, with how to name it.
pub(super) fn unread(failure: Failure, source: &Path) -> Failure {
    match layout::form_at(source) {
        Some(form) => {
            let (scheme, source) = (form.scheme(), source.display());
            failure.with_hint(format!("this is an image: write {scheme}:{source}"))
        }
        None => failure,
    }
}

/// Tells what there is to tell about what was read.
pub(super) fn tell_notices(sources: &Sources) {
    for notice in sources.notices() {
        output::tell(&format!("note: {notice}"));
    }
}
