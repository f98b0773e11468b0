//! The flags that say what to install and how.

use std::path::PathBuf;

use clap::{Args, builder::NonEmptyStringValueParser};
use serde_json::json;

use super::{
    certificate_args::CertificateArgs, failure::Failure, read_args::ReadArgs, source_args::CommonCa,
};
use crate::{
    images::mirror::MirrorRules,
    install::CertificateSource,
    logins::PullSecret,
    manifest::Manifest,
    problem::Problem,
    render::overrides::Overrides,
    source::{self, Sources},
};

/// How to install.
#[derive(Debug, Args)]
pub(super) struct InstallArgs {
    /// Namespace to install into (default: the one that the bundle suggests)
    #[arg(short, long, value_parser = NonEmptyStringValueParser::new())]
    pub namespace: Option<String>,
    /// Put the Namespace object into the output
    #[arg(long)]
    pub create_namespace: bool,
    /// Namespace to watch; repeat or separate by commas for several (default: all, else the operator's own)
    #[arg(
        long,
        value_name = "NAMESPACE",
        value_delimiter = ',',
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub watch_namespace: Vec<String>,
    #[command(flatten)]
    pub certificates: CertificateArgs,
    /// Overrides for every deployment: the fields of a Subscription's `spec.config` or of a ClusterExtension's
    /// inline configuration
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub read: ReadArgs,
}

impl InstallArgs {
    /// What content is read with, as `SourceArgs::open_with`.
    ///
    /// # Errors
    /// As there.
    pub(super) fn open_sources(
        &self,
        secrets: Vec<PullSecret>,
        mirrors: MirrorRules,
    ) -> Result<Sources, Failure> {
        let common_ca = match self.certificates.certs {
            CertificateSource::Secret(_) => CommonCa::OfWebhooks,
            _ => CommonCa::OfRegistries,
        };
        self.read.sources.open_with(common_ca, secrets, mirrors)
    }

    /// The overrides of `--config`, and the namespace to watch that may stand with them.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub(super) fn overrides(
        &self,
        problems: &mut Vec<Problem>,
    ) -> Result<(Overrides, Option<String>), Failure> {
        let Some(path) = &self.config else {
            return Ok((Overrides::default(), None));
        };
        let text = source::read_file(path, &self.read.limits())?;
        let place = path.display().to_string();
        let parsed = Overrides::parse(&text, &place, &self.read.limits(), problems);
        parsed.ok_or_else(|| {
            let message = format!("{place} is refused as configuration");
            Failure::refused(std::mem::take(problems), message)
        })
    }

    /// The Namespace of `--create-namespace`.
    pub(super) fn new_namespace(&self, name: &str) -> Option<Manifest> {
        self.create_namespace.then(|| {
            let object = json!({"metadata": {"name": name}});
            Manifest::generated(object, "--create-namespace")
        })
    }
}
