//! The objects of each bundle, with the pull Secrets of its catalog, as they are written.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{
        certificate_args::{self, Serving},
        check::any_watched,
        failure::{Class, Failure},
        output::{About, Install as Written},
        pin_args::Images,
        secret_args::{FLAG, PullSecretFlag},
    },
    Chosen, Outcome, Part, Purpose, Run, catalogs, naming,
    secrets::{found, uncovered},
};
use crate::{
    bundle::Bundle,
    catalog::RelatedImage,
    images::pin::Pins,
    install::{CatalogContent, CertificateSource, Install, Wanted},
    manifest::{Manifest, names},
    problem::{Problem, Severity},
    pull_secrets::{self, PullSecret},
    render::{
        self, Brought, Owned, RenderOptions, StoredCsv, certificates::CertificateProvider,
        overrides::Overrides,
    },
    resolve::lock::LockedInstall,
};

/// Where bundles are that are only looked at, when nothing says where. Packages have names that no namespace can have.
const ANY_NAMESPACE: &str = "operators";
/// As many objects are told on which installs do not agree.
const TOLD_CONFLICTS: usize = 3;

/// A bundle's objects.
pub(super) struct Objects {
    pub(super) chosen: Chosen,
    /// What is written above them.
    heading: String,
    /// What the bundle is called.
    name: String,
    /// What is installed.
    about: About,
    pub(super) manifests: Vec<Manifest>,
    /// The pull Secrets that its pods have.
    secrets: Vec<PullSecret>,
    /// The images that its catalog lists.
    pub(super) listed: Vec<RelatedImage>,
}

impl Objects {
    /// A problem, with what it is about.
    pub(super) fn of_bundle(&self, problem: Problem) -> Problem {
        self.chosen.content.of_bundle(problem, &self.name)
    }
}

impl Chosen {
    /// What is installed: it is called as the object that asks for it, else as its package.
    fn about(&self, install: &Install, namespace: &str, bundle: &Bundle) -> About {
        let mut locked = self.locked.clone();
        // No catalog has chosen it.
        if locked.version.is_empty() {
            locked.package.clone_from(&bundle.package);
            locked.bundle.clone_from(&bundle.csv.name);
            let spec = bundle.csv.manifest.object().get("spec");
            let version = spec.and_then(|spec| spec.get("version")?.as_str());
            version.unwrap_or_default().clone_into(&mut locked.version);
        }
        let asker = install.object.as_ref().filter(|_| self.asked.is_some());
        About {
            position: 0,
            name: asker
                .map_or(&locked.package, |asker| &asker.key.name)
                .clone(),
            namespace: namespace.to_owned(),
            bundle: locked,
            id: self.asked.map(|_| install.id.clone()),
        }
    }

    /// What is written above the objects of its bundle, of this name: why it is there, where nobody asked for it.
    fn heading(&self, name: &str) -> String {
        match self.asked {
            Some(_) => String::new(),
            None => format!("{name}, which {} needs", self.locked.required_by.join(", ")),
        }
    }
}

/// What rendering came to.
pub(super) struct Whole {
    /// What is written.
    pub(super) written: Vec<Written>,
    /// What a lock says of it, and the installs that it is for.
    pub(super) locks: Vec<(BTreeSet<usize>, LockedInstall)>,
    /// Whether images have digests where it is installed.
    pub(super) is_pinned: bool,
    /// The digests that took the place of tags; where it is only looked at, those that are known without asking for them.
    pub(super) pins: Pins,
}

/// What all bundles are rendered with.
pub(super) struct Rendering<'r> {
    pub(super) wanted: &'r Wanted,
    pub(super) run: Run<'r>,
}

impl Rendering<'_> {
    /// Renders the bundles of all installs that have not failed. Those that another one needs go into its namespace.
    pub(super) fn render(&self, parts: Vec<Part>, outcome: &mut Outcome) -> Whole {
        let mut rendered = self.all_objects(parts, outcome);
        outcome.judge(&self.wanted.installs, &self.run.install.read);
        rendered.retain(|objects| !outcome.have_failed(&objects.chosen.roots));
        let is_pinned = self.run.images == Images::Pinned
            || rendered
                .iter()
                .any(|objects| naming::is_wanted(objects, self.run));
        let pins = match self.run.purpose {
            Purpose::Install => naming::pin(&mut rendered, self.run, outcome),
            Purpose::Look => naming::known_of_all(&rendered, self.run),
        };
        let mut catalogs = self.catalogs();
        self.mirror(&mut catalogs, &mut rendered, outcome);
        for objects in &rendered {
            let found = uncovered(&objects.manifests, &objects.secrets);
            let found = found.into_iter().map(|problem| objects.of_bundle(problem));
            outcome.tell(objects.chosen.roots.iter().copied(), found);
        }
        outcome.judge(&self.wanted.installs, &self.run.install.read);
        rendered.retain(|objects| !outcome.have_failed(&objects.chosen.roots));
        let locks = rendered
            .iter()
            .filter_map(|objects| objects.chosen.for_lock(&self.wanted.installs));
        let locks = locks.collect();
        let joined = self.joined(rendered, outcome);
        outcome.judge(&self.wanted.installs, &self.run.install.read);
        let mut written = catalogs;
        // What flags ask for is a whole, of which nothing is written when a part does not go with another.
        if !(self.wanted.installs.iter().any(Install::is_of_flags) && outcome.has_failed(0)) {
            written.extend(joined);
        }
        Whole {
            written,
            locks,
            is_pinned,
            pins,
        }
    }

    /// Names images as their mirrors do, where rules are given for that.
    fn mirror(&self, catalogs: &mut [Written], rendered: &mut [Objects], outcome: &mut Outcome) {
        let Some(rules) = self.run.mirrors.filter(|rules| !rules.is_empty()) else {
            return;
        };
        let of_catalogs = catalogs.iter_mut().flat_map(|written| &mut written.objects);
        let (mut problems, mut renamed) = (vec![], BTreeSet::new());
        for owned in of_catalogs {
            let manifests = std::slice::from_mut(&mut owned.manifest);
            problems.extend(naming::mirror(manifests, rules, &mut renamed));
        }
        outcome.tell(None, problems);
        for objects in rendered {
            let problems = naming::mirror(&mut objects.manifests, rules, &mut renamed);
            let problems: Vec<_> = problems
                .into_iter()
                .map(|problem| objects.of_bundle(problem))
                .collect();
            outcome.tell(objects.chosen.roots.iter().copied(), problems);
        }
        let (count, are) = match renamed.len() {
            0 => {
                let message = "no rule of --mirror is for any image";
                return outcome.tell(None, [Problem::note("mirrored", message)]);
            }
            1 => ("1 image".to_owned(), "is"),
            count => (format!("{count} images"), "are"),
        };
        let message = format!("{count} {are} named as at the mirror");
        outcome.tell(None, [Problem::note("mirrored", message)]);
    }

    /// The objects of all bundles that can be rendered.
    fn all_objects(&self, parts: Vec<Part>, outcome: &mut Outcome) -> Vec<Objects> {
        let namespaces = self.namespaces(&parts, outcome);
        let mut rendered = vec![];
        for part in parts {
            let roots = part.chosen.roots.clone();
            let asked = part.chosen.asked;
            if asked.is_some_and(|root| outcome.has_failed(root)) {
                let message = format!("it needs {}, which stopped", part.chosen.locked.package);
                outcome.fail_all(&roots, Failure::new(Class::Refused, message));
            }
            let mut goes_on = asked.into_iter().chain(roots.iter().copied());
            let namespace = goes_on.find_map(|root| {
                let namespace = namespaces.get(&root)?;
                (!outcome.has_failed(root)).then_some((root, namespace))
            });
            let Some((root, namespace)) = namespace else {
                continue;
            };
            match self.objects(part, root, namespace, outcome) {
                Ok(objects) => rendered.extend(objects),
                Err(failure) => outcome.fail_all(&roots, failure),
            }
        }
        rendered
    }

    /// The catalogs of the input, each with the image that it is served from.
    fn catalogs(&self) -> Vec<Written> {
        let mut written = vec![];
        for catalog in &self.wanted.catalogs {
            let is_resolved = !matches!(catalog.content, CatalogContent::Unresolved(_));
            if let Some(manifest) = catalog.manifest.as_ref().filter(|_| is_resolved) {
                let mut manifest = manifest.clone();
                render::strip_live(&mut manifest);
                written.push(Written {
                    heading: String::new(),
                    about: None,
                    objects: vec![Owned {
                        owners: BTreeSet::from([catalogs::owner(&catalog.id)]),
                        brought_by: BTreeSet::new(),
                        manifest,
                    }],
                });
            }
        }
        written
    }

    /// The objects of all bundles, each once. An install that wants one to be different from an earlier one fails.
    fn joined(&self, mut rendered: Vec<Objects>, outcome: &mut Outcome) -> Vec<Written> {
        let lists = rendered.iter_mut().map(|objects| &mut objects.manifests);
        pull_secrets::agree(lists.collect());
        let installs = &self.wanted.installs;
        let mut headings = vec![];
        let mut abouts = vec![];
        let mut roots = BTreeMap::new();
        let mut brought = vec![];
        for objects in rendered {
            let of_objects = objects
                .chosen
                .roots
                .iter()
                .filter_map(|root| Some((*root, installs.get(*root)?)));
            let named = of_objects.filter(|(_, install)| !install.is_of_flags());
            let owners: BTreeMap<_, _> = named
                .map(|(root, install)| (install.id.clone(), root))
                .collect();
            brought.push(Brought {
                // Two installs may be of one bundle.
                name: match owners.keys().next() {
                    Some(id) if objects.heading.is_empty() => id.clone(),
                    _ => objects.name,
                },
                owners: owners.keys().cloned().collect(),
                manifests: objects.manifests,
            });
            roots.extend(owners);
            let mut about = objects.about;
            about.position = abouts.len();
            abouts.push(about);
            headings.push((objects.heading, objects.chosen.roots));
        }
        let joined = render::join(brought);
        let named = joined.stopped.iter().find_map(|owner| roots.get(owner));
        let first = headings.first().and_then(|(_, roots)| roots.first());
        let mut problems = joined.problems;
        // An operator that is there twice disagrees with itself in all of its cluster-scoped objects.
        let more = problems.split_off(problems.len().min(TOLD_CONFLICTS)).len();
        if let Some(last) = problems.last_mut().filter(|_| more > 0) {
            last.message = format!(
                "{}; {more} more objects are different as well",
                last.message
            );
        }
        outcome.tell(named.or(first).copied(), problems);
        for owner in &joined.stopped {
            if let Some(root) = roots.get(owner) {
                let message = "it wants objects to be different from what is installed beside it";
                outcome.fail(*root, Failure::new(Class::Refused, message));
            }
        }
        let written = joined.installs.into_iter().zip(headings).zip(abouts);
        let written = written.map(|((objects, (heading, _)), about)| Written {
            heading,
            about: Some(about),
            objects,
        });
        written
            .filter(|install| !install.objects.is_empty())
            .collect()
    }

    /// The namespace of each install: the one asked for, else the one that its bundle suggests.
    fn namespaces(&self, parts: &[Part], outcome: &mut Outcome) -> BTreeMap<usize, String> {
        let mut namespaces = BTreeMap::new();
        for part in parts {
            let asked = part.chosen.asked;
            let Some((root, install)) =
                asked.and_then(|root| Some((root, self.wanted.installs.get(root)?)))
            else {
                continue;
            };
            match namespace(install, &part.bundle, self.run.purpose) {
                Ok(namespace) => drop(namespaces.insert(root, namespace)),
                Err(failure) => outcome.fail(root, failure),
            }
        }
        namespaces
    }

    /// The objects of one bundle; none when its problems keep it from being rendered.
    fn objects(
        &self,
        part: Part,
        root: usize,
        namespace: &str,
        outcome: &mut Outcome,
    ) -> Result<Option<Objects>, Failure> {
        let Some(install) = self.wanted.installs.get(root) else {
            return Ok(None);
        };
        let Part {
            chosen,
            bundle,
            stored,
            listed,
        } = part;
        let name = bundle.csv.name.clone();
        let about = chosen.about(install, namespace, &bundle);
        let is_asked = chosen.asked.is_some();
        let mut made = vec![];
        let serving = Serving {
            csv: &bundle.csv,
            namespace,
            supplier: self.run.certificates,
        };
        let certificates = self.certificates(install, serving, &mut made)?;
        let mut options = self.options(install, namespace, is_asked, stored, certificates);
        if self.run.purpose == Purpose::Look && options.watched.is_empty() {
            options.watched = any_watched(&bundle.csv.install_modes);
        }
        let (rendered, mut found) = match render::render(bundle, &options) {
            Ok(rendered) => (Some(rendered.manifests), rendered.problems),
            Err(found) => (None, found),
        };
        found.extend(made);
        if self.run.purpose == Purpose::Look {
            // They tell where it would be installed and what it would watch.
            found.retain(|problem| problem.severity != Severity::Note);
        }
        let mut objects = None;
        let roots = chosen.roots.clone();
        let content = chosen.content.clone();
        if let Some(mut manifests) = rendered {
            let secrets = self.pull_secrets(install, &chosen.locked.catalog, namespace)?;
            let also = install
                .also_service_accounts
                .iter()
                .chain(self.run.also_service_accounts);
            let also: Vec<_> = also.filter(|_| is_asked).cloned().collect();
            pull_secrets::attach(&mut manifests, namespace, &secrets, &also, &mut found);
            pull_secrets::keep_entries(&mut manifests, self.run.service_accounts);
            objects = Some(Objects {
                heading: chosen.heading(&name),
                about,
                chosen,
                name: name.clone(),
                manifests,
                secrets,
                listed,
            });
        }
        let found = found
            .into_iter()
            .map(|problem| content.of_bundle(problem, &name));
        outcome.tell(roots, found);
        Ok(objects)
    }

    /// How a bundle is rendered. Overrides are for what the user asked for.
    fn options(
        &self,
        install: &Install,
        namespace: &str,
        is_asked: bool,
        csv: Option<StoredCsv>,
        certificates: Box<dyn CertificateProvider>,
    ) -> RenderOptions {
        let overrides = if is_asked {
            install.overrides.clone()
        } else {
            Overrides::default()
        };
        let overrides = match &self.wanted.proxy {
            Some(proxy) => overrides.with_proxy(proxy),
            None => overrides,
        };
        let is_used = |given: &&Manifest| {
            given.name() == namespace || install.watched.iter().any(|name| name == given.name())
        };
        let given = self.run.namespaces.iter().filter(is_used);
        let mut namespaces: Vec<_> = given.cloned().collect();
        if namespaces.iter().all(|given| given.name() != namespace) {
            namespaces.extend(self.run.install.new_namespace(namespace));
        }
        RenderOptions {
            namespace: namespace.to_owned(),
            namespaces,
            watched: install.watched.clone(),
            certificates,
            overrides,
            csv,
        }
    }

    /// Who makes the certificates of a bundle.
    fn certificates(
        &self,
        install: &Install,
        serving: Serving<'_>,
        notes: &mut Vec<Problem>,
    ) -> Result<Box<dyn CertificateProvider>, Failure> {
        let args = &self.run.install;
        let source = install.certificates.as_ref();
        let source = match (source.unwrap_or(&args.certificates.certs), self.run.purpose) {
            // For what is only looked at, none is made.
            (CertificateSource::SelfSigned, Purpose::Look) => &CertificateSource::None,
            (source, _) => source,
        };
        certificate_args::provider(source, &args.read, serving, notes)
    }

    /// The pull Secrets of a bundle: those of its catalog, of its install, and those that flags name.
    ///
    /// # Errors
    /// When it is not clear which Secret is meant.
    fn pull_secrets(
        &self,
        install: &Install,
        catalog: &str,
        namespace: &str,
    ) -> Result<Vec<PullSecret>, Failure> {
        let catalogs = self
            .wanted
            .catalogs
            .iter()
            .filter(|other| other.id == catalog);
        let of_catalog = catalogs.flat_map(|catalog| &catalog.pull_secrets);
        let named = of_catalog.chain(&install.pull_secrets);
        let named = named.map(|secret| found(secret, self.run.secrets, namespace));
        let of_flags = self.run.pull_secrets.iter().map(|flag| match flag {
            PullSecretFlag::Named(secret) => found(secret, self.run.secrets, namespace),
            PullSecretFlag::Made(manifest) => Ok(PullSecret {
                name: manifest.name().to_owned(),
                source: Some(manifest.clone()),
                named_by: FLAG.to_owned(),
            }),
        });
        named.chain(of_flags).collect()
    }
}

/// The namespace to install a bundle into.
///
/// # Errors
/// When there is none, or it or one that is to be watched cannot be.
fn namespace(install: &Install, bundle: &Bundle, purpose: Purpose) -> Result<String, Failure> {
    let namespace = install.namespace.as_deref();
    let any = (purpose == Purpose::Look).then_some(ANY_NAMESPACE);
    let namespace = namespace
        .or_else(|| bundle.suggested_namespace())
        .or(any)
        .ok_or_else(|| {
            let message = format!("no namespace to install {} into", bundle.package);
            let hint = "name one with -n; this bundle suggests none";
            Failure::new(Class::Usage, message).with_hint(hint)
        })?;
    let watched = install.watched.iter().map(String::as_str);
    // An empty name stands for all namespaces.
    let watched = watched.filter(|name| !name.is_empty());
    for name in [namespace].into_iter().chain(watched) {
        if let Some(reason) = names::label_error(name) {
            let message = format!("{name:?} cannot be the name of a namespace: {reason}");
            return Err(Failure::new(Class::Usage, message));
        }
    }
    Ok(namespace.to_owned())
}
