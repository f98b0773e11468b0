//! The flags that say what to install and how, and the bundle they lead to.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use clap::{Args, builder::NonEmptyStringValueParser};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use serde_json::json;

use super::{
    certificate_args::CertificateArgs,
    failure::{Class, Failure},
    source_args::{CommonCa, SourceArgs, unread},
};
use crate::{
    bundle::{self, Bundle, check::Facts},
    files::FileTree,
    images::mirror::MirrorRules,
    install::CertificateSource,
    kube_version::{self, KubeVersion},
    limits::Limits,
    logins::PullSecret,
    manifest::Manifest,
    problem::{Problem, Severity},
    render::overrides::Overrides,
    source::{self, Sources},
};

/// How strictly content is read.
#[derive(Debug, Args)]
pub(super) struct ReadArgs {
    /// Kubernetes version that the operator will run on, such as 1.31 or v1.31.2+k3s1
    #[arg(long, value_name = "VERSION", value_parser = kube_version::parse)]
    kube_version: Option<KubeVersion>,
    /// What a cluster says, where one is asked and the flag says nothing.
    #[arg(skip)]
    found_version: OnceLock<KubeVersion>,
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
    #[command(flatten)]
    pub certificates: CertificateArgs,
    /// Overrides for every deployment: the fields of a Subscription's `spec.config` or of a ClusterExtension's
    /// inline configuration
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub read: ReadArgs,
}

/// What becomes of the images of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Images {
    /// They stay as they were written.
    AsWritten,
    /// They get digests.
    Pinned,
}

/// The words that completion offers for a flag.
pub(super) fn words(words: &'static [&'static str]) -> ArgValueCandidates {
    ArgValueCandidates::new(|| words.iter().map(CompletionCandidate::new).collect())
}

impl ReadArgs {
    /// The limits that content is read with.
    #[must_use]
    pub(super) fn limits(&self) -> Limits {
        self.sources.limits()
    }

    /// The version of Kubernetes, where it is known.
    #[must_use]
    pub(super) fn kube_version(&self) -> Option<&KubeVersion> {
        self.kube_version
            .as_ref()
            .or_else(|| self.found_version.get())
    }

    /// Notes the version that a cluster says. One that cannot be understood is not known.
    pub(super) fn found_version(&self, version: &str) {
        if let Ok(version) = kube_version::parse(version) {
            self.found_version.get_or_init(|| version);
        }
    }

    /// Reads the files of a bundle.
    ///
    /// # Errors
    /// When there is no bundle, or it cannot be read.
    pub(super) fn files(&self, source: &Path, sources: &Sources) -> Result<FileTree, Failure> {
        let files = sources.files(source, &bundle::FOLDERS);
        let files = files.map_err(|error| unread(error.into(), source))?;
        if bundle::FOLDERS
            .iter()
            .all(|folder| !files.has_folder(folder))
        {
            return Err(unread(no_bundle(source), source));
        }
        Ok(files)
    }

    /// Reads a bundle and checks it, adding what is wrong with it to `problems`.
    ///
    /// # Errors
    /// As [`ReadArgs::files`].
    pub(super) fn bundle(
        &self,
        source: &Path,
        sources: &Sources,
        problems: &mut Vec<Problem>,
    ) -> Result<Option<Bundle>, Failure> {
        Ok(self.parsed(self.files(source, sources)?, Images::AsWritten, problems))
    }

    /// The bundle that files make, checked; what is wrong with it is added to `problems`.
    pub(super) fn parsed(
        &self,
        files: FileTree,
        images: Images,
        problems: &mut Vec<Problem>,
    ) -> Option<Bundle> {
        let bundle = Bundle::parse(files, &self.limits(), problems)?;
        let facts = Facts {
            kube_version: self.kube_version().map(KubeVersion::version),
            is_pinned: images == Images::Pinned,
        };
        problems.extend(bundle::check::check(&bundle, &facts));
        Some(bundle)
    }

    /// Why problems refuse something, as the end of a sentence; nothing when they do not.
    pub(super) fn why_refused<'p>(
        &self,
        problems: impl IntoIterator<Item = &'p Problem>,
    ) -> Option<&'static str> {
        let refusing = problems.into_iter().filter(|problem| self.refuses(problem));
        let severities = refusing.map(|problem| problem.severity);
        Some(match severities.min()? {
            Severity::Error => "",
            _ => ", as --strict takes warnings as errors",
        })
    }

    /// Whether a problem keeps the content from being rendered.
    pub(super) fn refuses(&self, problem: &Problem) -> bool {
        match problem.severity {
            Severity::Error => true,
            Severity::Warning => self.strict,
            Severity::Note => false,
        }
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
    /// What content is read with, as [`SourceArgs::open_with`].
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
