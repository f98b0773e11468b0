//! The flags that say how content is read, and reading a bundle so.

use std::{path::Path, sync::OnceLock};

use clap::Args;

use super::{
    failure::{Class, Failure},
    pin_args::Images,
    source_args::{SourceArgs, unread},
};
use crate::{
    bundle::{self, Bundle, check::Facts},
    files::FileTree,
    kube_version::{self, KubeVersion},
    limits::Limits,
    problem::{Problem, Severity},
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
            format!("there are some below, such as {one}; `kubectl olm render --each` renders all")
        }
    };
    Failure::new(Class::Refused, message).with_hint(hint)
}
