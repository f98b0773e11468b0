//! The flags that say what to install and how, and the bundle they lead to.

use std::path::{Path, PathBuf};

use clap::{Args, builder::NonEmptyStringValueParser};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use semver::Version;

use super::{
    failure::{Class, Failure},
    source_args::{CommonCa, SourceArgs, unread},
};
use crate::{
    bundle::{self, Bundle, check::Facts},
    files::FileTree,
    kube_version,
    limits::Limits,
    manifest::names,
    problem::{Problem, Severity},
    render::{
        RenderOptions,
        certificates::{CertManager, CertificateProvider, NoCertificates, ServiceCa, Supplied},
        overrides::Overrides,
    },
    source::{self, Sources},
};

/// How strictly content is read.
#[derive(Debug, Args)]
pub(super) struct ReadArgs {
    /// Kubernetes version that the operator will run on, such as 1.31 or v1.31.2+k3s1
    #[arg(long, value_name = "VERSION", value_parser = kube_version::parse)]
    pub kube_version: Option<Version>,
    /// Treat warnings as errors
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    pub sources: SourceArgs,
}

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
    /// Where webhooks get certificates from: cert-manager, service-ca, secret:NAME or none
    #[arg(long, value_name = "PROVIDER", default_value = "cert-manager", value_parser = parse_certificates, add = words(&["cert-manager", "service-ca", "secret:", "none"]))]
    pub certs: Certificates,
    /// Overrides for every deployment: the fields of a Subscription's `spec.config` or of a ClusterExtension's
    /// inline configuration
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub read: ReadArgs,
}

/// The value of `--certs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Certificates {
    /// cert-manager makes them.
    CertManager,
    /// OpenShift's service CA makes them.
    ServiceCa,
    /// A Secret of the user's holds one.
    Secret(String),
    /// There are none.
    None,
}

/// The words that completion offers for a flag.
pub(super) fn words(words: &'static [&'static str]) -> ArgValueCandidates {
    ArgValueCandidates::new(|| words.iter().map(CompletionCandidate::new).collect())
}

fn parse_certificates(text: &str) -> Result<Certificates, String> {
    match text {
        "cert-manager" => Ok(Certificates::CertManager),
        "service-ca" => Ok(Certificates::ServiceCa),
        "none" => Ok(Certificates::None),
        _ => match text.strip_prefix("secret:") {
            Some(name) if !name.is_empty() => match names::subdomain_error(name) {
                None => Ok(Certificates::Secret(name.to_owned())),
                Some(reason) => Err(format!("no Secret can be called {name:?}: {reason}")),
            },
            _ => Err("use cert-manager, service-ca, secret:NAME or none".to_owned()),
        },
    }
}

impl ReadArgs {
    /// The limits that content is read with.
    #[must_use]
    pub(super) fn limits(&self) -> Limits {
        self.sources.limits()
    }

    /// Reads a bundle and checks it, adding what is wrong with it to `problems`.
    ///
    /// # Errors
    /// When there is no bundle, or it cannot be read from the disk.
    pub(super) fn bundle(
        &self,
        source: &Path,
        sources: &Sources,
        problems: &mut Vec<Problem>,
    ) -> Result<Option<Bundle>, Failure> {
        let files = sources.files(source, &bundle::FOLDERS);
        let files = files.map_err(|error| unread(error.into(), source))?;
        if bundle::FOLDERS
            .iter()
            .all(|folder| !files.has_folder(folder))
        {
            return Err(unread(no_bundle(source), source));
        }
        Ok(self.parsed(files, problems))
    }

    /// The bundle that files make, checked; what is wrong with it is added to `problems`.
    pub(super) fn parsed(&self, files: FileTree, problems: &mut Vec<Problem>) -> Option<Bundle> {
        let bundle = Bundle::parse(files, &self.limits(), problems)?;
        let facts = Facts {
            kube_version: self.kube_version.clone(),
        };
        problems.extend(bundle::check::check(&bundle, &facts));
        Some(bundle)
    }

    /// The problems, when they do not keep the content from being rendered.
    ///
    /// # Errors
    /// When they do.
    pub(super) fn accept(
        &self,
        problems: Vec<Problem>,
        what: &str,
    ) -> Result<Vec<Problem>, Failure> {
        if !self.refuses(&problems) {
            return Ok(problems);
        }
        let why = if problems.iter().any(Problem::is_error) {
            ""
        } else {
            ", as --strict takes warnings as errors"
        };
        let message = format!("{what} was not rendered{why}");
        Err(Failure::refused(problems, message))
    }

    /// Whether the problems refuse the content.
    pub(super) fn refuses(&self, problems: &[Problem]) -> bool {
        let refuses = |problem: &Problem| match problem.severity {
            Severity::Error => true,
            Severity::Warning => self.strict,
            Severity::Note => false,
        };
        problems.iter().any(refuses)
    }
}

/// A folder that holds no bundle, with those below it that do.
fn no_bundle(source: &Path) -> Failure {
    let shown = source.display();
    let message = format!("{shown} is no bundle: it has no folders `manifests` and `metadata`");
    let below = source::folders_with(source, bundle::FOLDERS[0]).unwrap_or_default();
    let hint = match below.as_slice() {
        [] => "a catalog goes behind --catalog, and the name of a package before it".to_owned(),
        [one] => format!("there is one in {}", one.display()),
        [one, ..] => {
            let one = one.display();
            format!("there are some below, such as {one}; --each renders all")
        }
    };
    Failure::new(Class::Refused, message).with_hint(hint)
}

impl InstallArgs {
    /// What content is read with.
    ///
    /// # Errors
    /// As [`SourceArgs::open`].
    pub(super) fn open_sources(&self) -> Result<Sources, Failure> {
        let common_ca = match self.certs {
            Certificates::Secret(_) => CommonCa::OfWebhooks,
            _ => CommonCa::OfRegistries,
        };
        self.read.sources.open(common_ca)
    }

    /// The overrides, and the namespace to watch that may stand with them.
    fn overrides(
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

    /// The namespace to install a bundle into: the one asked for, else the one that the bundle suggests.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn namespace(&self, bundle: &Bundle) -> Result<String, Failure> {
        let namespace = self.namespace.as_deref();
        let namespace = namespace.or_else(|| bundle.suggested_namespace());
        namespace.map(str::to_owned).ok_or_else(|| {
            let message = format!("no namespace to install {} into", bundle.package);
            let hint = "name one with -n; this bundle suggests none";
            Failure::new(Class::Usage, message).with_hint(hint)
        })
    }

    /// How a bundle is to be rendered that the user asked for. What is only to be told is added to `problems`.
    ///
    /// # Errors
    /// When a flag is missing that this bundle needs, or a file that a flag names cannot be used.
    pub(super) fn options(
        &self,
        bundle: &Bundle,
        problems: &mut Vec<Problem>,
    ) -> Result<RenderOptions, Failure> {
        self.options_in(self.namespace(bundle)?, problems)
    }

    /// How a bundle is to be rendered that another one needs: in the same namespace, watching the same ones. Overrides
    /// are for what the user asked for.
    ///
    /// # Errors
    /// As [`InstallArgs::options`].
    pub(super) fn options_of_dependency(&self, namespace: &str) -> Result<RenderOptions, Failure> {
        let options = self.options_in(namespace.to_owned(), &mut vec![])?;
        Ok(RenderOptions {
            overrides: Overrides::default(),
            ..options
        })
    }

    fn options_in(
        &self,
        namespace: String,
        problems: &mut Vec<Problem>,
    ) -> Result<RenderOptions, Failure> {
        let (overrides, watched) = self.overrides(problems)?;
        let watched = if self.watch_namespace.is_empty() {
            watched.into_iter().collect()
        } else {
            self.watch_namespace.clone()
        };
        for name in [&namespace].into_iter().chain(&watched) {
            if let Some(reason) = names::label_error(name) {
                let message = format!("{name:?} cannot be the name of a namespace: {reason}");
                return Err(Failure::new(Class::Usage, message));
            }
        }
        Ok(RenderOptions {
            namespace,
            create_namespace: self.create_namespace,
            watched,
            certificates: self.certificates()?,
            overrides,
        })
    }

    fn certificates(&self) -> Result<Box<dyn CertificateProvider>, Failure> {
        Ok(match (&self.certs, self.read.sources.common_ca_file()) {
            (Certificates::Secret(name), Some(path)) => {
                let ca = source::read_file(path, &self.read.limits())?;
                let ca = certificates_of(&ca).map_err(|reason| {
                    let message = format!("{} cannot be the CA: {reason}", path.display());
                    Failure::new(Class::Refused, message)
                })?;
                Box::new(Supplied::new(name.clone(), ca.as_bytes()))
            }
            (Certificates::Secret(_), None) => {
                let message = "--certs secret:NAME needs --ca-file, the CA that clients of the webhooks trust";
                return Err(Failure::new(Class::Usage, message));
            }
            (Certificates::CertManager, _) => Box::new(CertManager),
            (Certificates::ServiceCa, _) => Box::new(ServiceCa),
            (Certificates::None, _) => Box::new(NoCertificates),
        })
    }
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
