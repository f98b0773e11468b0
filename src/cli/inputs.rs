//! What is wanted, from flags and manifests: both become the same installs.

use std::{collections::BTreeSet, path::Path};

use super::{
    failure::{Class, Failure},
    install_args::InstallArgs,
    installs::{Purpose, Run},
    parts::{Part, Parts},
    secret_args::PullSecretFlag,
    wanted_args::WantedArgs,
};
use crate::{
    images::{mirror::MirrorRules, pin::Pins},
    install::{
        self, BundleSource, CatalogContent, CatalogRef, Content, Given, Install, Objects,
        SecretRef, Stopped, Wanted,
    },
    logins::{PullSecret, SecretError},
    manifest::{Manifest, names},
    problem::Problem,
    source::{self, Sources},
};

/// What manifests and flags say, read once.
#[derive(Debug)]
pub(super) struct Inputs {
    objects: Objects,
    pull_secrets: Vec<PullSecretFlag>,
    namespaces: Vec<Manifest>,
    /// The digests that the user gives.
    pins: Pins,
    /// Where images are mirrored, by --mirror.
    pub(super) mirrors: MirrorRules,
}

impl Inputs {
    /// Reads what flags name. What is only to be told is added to `problems`.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub(super) fn read(args: &WantedArgs, problems: &mut Vec<Problem>) -> Result<Self, Failure> {
        let mirrors = &args.install.read.sources.mirrors;
        let files = args.filename.paths().iter().chain(mirrors.paths());
        let stdin = files.chain(&args.source);
        if stdin
            .filter(|path| path.as_os_str() == source::STDIN)
            .count()
            > 1
        {
            let message = "standard input is named more than once, and can be read only once";
            let hint = "put one of them into a file";
            return Err(Failure::new(Class::Usage, message).with_hint(hint));
        }
        let objects = args.filename.read(&args.install.read, problems)?;
        let namespaces = objects.namespaces.iter();
        // One that was taken from a cluster is there.
        let written = namespaces.filter(|namespace| namespace.metadata("uid").is_none());
        let limits = args.install.read.limits();
        Ok(Self {
            pins: args.pins.files.read(&limits)?,
            mirrors: args.install.read.sources.mirrors()?,
            pull_secrets: args.secrets.read()?,
            namespaces: written.cloned().collect(),
            objects,
        })
    }

    /// Whether namespaces are selected by their labels.
    pub(super) fn selects_namespaces(&self) -> bool {
        let groups = self.objects.operator_groups.iter();
        let mut specs = groups.filter_map(|group| group.object().get("spec"));
        specs.any(|spec| spec.get("selector").is_some())
    }

    /// Adds namespaces that a cluster has; those of the manifests stay as they are written.
    pub(super) fn add_namespaces(&mut self, found: Vec<Manifest>) {
        let names: BTreeSet<_> = self
            .objects
            .namespaces
            .iter()
            .map(|given| given.name().to_owned())
            .collect();
        let new = found
            .into_iter()
            .filter(|namespace| !names.contains(namespace.name()));
        self.objects.namespaces.extend(new);
    }

    /// The Secrets that catalogs, installs and flags name and that are not in the input.
    pub(super) fn missing_secrets(&self, wanted: &Wanted) -> Vec<SecretRef> {
        let of_catalogs = wanted
            .catalogs
            .iter()
            .flat_map(|catalog| &catalog.pull_secrets);
        let of_installs = wanted
            .installs
            .iter()
            .flat_map(|install| &install.pull_secrets);
        let of_flags = self.pull_secrets.iter().filter_map(|flag| match flag {
            PullSecretFlag::Named(secret) => Some(secret),
            PullSecretFlag::Made(_) => None,
        });
        let named = of_catalogs.chain(of_installs).chain(of_flags);
        named
            .filter(|secret| self.secret(secret).is_none())
            .cloned()
            .collect()
    }

    /// Adds Secrets that a cluster has.
    pub(super) fn add_secrets(&mut self, found: Vec<Manifest>) {
        self.objects.secrets.extend(found);
    }

    /// What content is read with. The pull Secrets that anything names open registries, and mirrors are asked as nodes
    /// do that have the rules of the manifests.
    ///
    /// # Errors
    /// When that of a flag cannot be read, or as [`InstallArgs::open_sources`].
    pub(super) fn open_sources(
        &self,
        wanted: &Wanted,
        install: &InstallArgs,
    ) -> Result<Sources, Failure> {
        let catalogs = wanted.catalogs.iter();
        let installs = wanted.installs.iter();
        let named = catalogs
            .flat_map(|catalog| &catalog.pull_secrets)
            .chain(installs.flat_map(|install| &install.pull_secrets));
        let mut manifests: Vec<_> = named.filter_map(|secret| self.secret(secret)).collect();
        manifests.extend(self.pull_secrets.iter().filter_map(|flag| match flag {
            PullSecretFlag::Named(secret) => self.secret(secret),
            PullSecretFlag::Made(manifest) => Some(manifest),
        }));
        let secrets = manifests.into_iter().map(|manifest| {
            logins(manifest).map_err(|problem| {
                let message = format!("{} opens no registry", manifest.key());
                Failure::refused(vec![problem], message).with_hint(SecretError::HINT)
            })
        });
        let mut mirrors = self.mirrors.clone();
        for object in &self.objects.mirror_sets {
            let added = mirrors.add_object(object);
            added.map_err(|problems| {
                Failure::refused(problems, "the rules for mirrors were not read")
            })?;
        }
        install.open_sources(secrets.collect::<Result<_, _>>()?, mirrors)
    }

    /// The Secret of the input that is meant.
    fn secret(&self, secret: &SecretRef) -> Option<&Manifest> {
        let named = self.objects.secrets.iter();
        let named = named.filter(|other| other.name() == secret.name);
        let fits = |other: &&Manifest| match (&secret.namespace, other.namespace()) {
            (Some(wanted), namespace) => namespace.is_empty() || namespace == wanted,
            (None, _) => true,
        };
        // One that says its namespace is meant before one that is wherever it is applied.
        named
            .filter(fits)
            .max_by_key(|other| !other.namespace().is_empty())
    }

    /// Stops the catalogs and installs whose own pull Secrets cannot be read.
    fn stop_with_secrets(&self, wanted: &mut Wanted) {
        let broken = |secrets: &[SecretRef]| {
            let mut secrets = secrets.iter().filter_map(|secret| self.secret(secret));
            let problem = secrets.find_map(|manifest| logins(manifest).err())?;
            Some(Stopped {
                problems: vec![problem],
                hint: Some(SecretError::HINT.to_owned()),
            })
        };
        for catalog in &mut wanted.catalogs {
            if let Some(stopped) = broken(&catalog.pull_secrets) {
                catalog.pull_secrets.clear();
                if !matches!(catalog.content, CatalogContent::Unresolved(_)) {
                    catalog.content = CatalogContent::Unreadable(stopped);
                }
            }
        }
        for install in std::mem::take(&mut wanted.installs) {
            match broken(&install.pull_secrets) {
                Some(stopped) => wanted.stopped.push((install.id, stopped)),
                None => wanted.installs.push(install),
            }
        }
    }

    /// What is to be installed.
    ///
    /// # Errors
    /// When that is not clear.
    pub(super) fn wanted(
        &self,
        args: &WantedArgs,
        parts: &Parts,
        problems: &mut Vec<Problem>,
    ) -> Result<Wanted, Failure> {
        let given = self.given(args)?;
        let mut wanted = install::wanted(&self.objects, &given);
        self.stop_with_secrets(&mut wanted);
        let has_installs = !wanted.installs.is_empty() || !wanted.stopped.is_empty();
        match &args.source {
            Some(_) if has_installs => {
                let message = "both the command line and the manifests say what to install";
                let hint = "leave out the argument, or the Subscriptions, ClusterExtensions and others of -f";
                Err(Failure::new(Class::Usage, message).with_hint(hint))
            }
            Some(source) => {
                let install = of_flags(source, args, &wanted, &given, problems)?;
                wanted.installs.push(install);
                Ok(wanted)
            }
            None if !has_installs && !args.filename.is_given() => {
                let message = "nothing says what to install";
                let hint = "name a bundle, a package with --catalog, or manifests with -f";
                Err(Failure::new(Class::Usage, message).with_hint(hint))
            }
            // Catalogs may be all that somebody wants to see.
            None if !has_installs && parts.has(Part::Catalogs) && !wanted.catalogs.is_empty() => {
                Ok(wanted)
            }
            None if !has_installs => {
                let message = "no manifest says what to install";
                let hint = "it takes a Subscription, ClusterExtension, BundleDeployment or Bundle, or the name of a package";
                Err(Failure::new(Class::Refused, message).with_hint(hint))
            }
            None => {
                let mut flags = args.package.choice.of_version();
                flags.extend(args.install.config.is_some().then_some("--config"));
                match flags.as_slice() {
                    [] => check_catalogs(&self.objects, &given, &wanted).map(|()| wanted),
                    flags => {
                        let flags = flags.join(" and ");
                        let message =
                            format!("{flags}: the manifests say that, each for its own install");
                        let hint = "write it into the Subscription or ClusterExtension";
                        Err(Failure::new(Class::Usage, message).with_hint(hint))
                    }
                }
            }
        }
    }

    /// One bundle of several.
    ///
    /// # Errors
    /// When a flag makes no sense.
    pub(super) fn wanted_of(
        &self,
        source: &Path,
        args: &WantedArgs,
        problems: &mut Vec<Problem>,
    ) -> Result<Wanted, Failure> {
        let given = self.given(args)?;
        let mut wanted = Wanted::default();
        let install = of_flags(source, args, &wanted, &given, problems)?;
        wanted.installs.push(install);
        Ok(wanted)
    }

    fn given(&self, args: &WantedArgs) -> Result<Given, Failure> {
        let choice = &args.package.choice;
        let mut catalogs = choice.catalogs.refs()?;
        // There is only one catalog that it can be.
        if let ([only], [name]) = (
            catalogs.as_mut_slice(),
            catalog_names(&self.objects).as_slice(),
        ) && args.source.is_none()
            && choice.catalogs.is_one_without_name()
        {
            *only = only.called(name);
        }
        Ok(Given {
            kube_version: args.install.read.kube_version().cloned(),
            namespace: args.install.namespace.clone(),
            watched: args.install.watch_namespace.clone(),
            catalogs,
            installed: choice.installed.clone(),
            provided: choice.provided.clone(),
            without_dependencies: choice.no_dependencies,
        })
    }

    /// What installs are rendered with.
    pub(super) fn run<'r>(
        &'r self,
        args: &'r WantedArgs,
        sources: &'r Sources,
        (purpose, parts): (Purpose, &'r Parts),
    ) -> Run<'r> {
        Run {
            purpose,
            install: &args.install,
            package: &args.package,
            sources,
            parts,
            secrets: &self.objects.secrets,
            service_accounts: &self.objects.service_accounts,
            namespaces: &self.namespaces,
            pull_secrets: &self.pull_secrets,
            also_service_accounts: &args.secrets.also_service_account,
            pins: &self.pins,
            images: args.pins.images(),
            mirrors: (purpose == Purpose::Install).then_some(&self.mirrors),
            certificates: &args.install.certificates,
        }
    }
}

/// What the flags ask for.
fn of_flags(
    source: &Path,
    args: &WantedArgs,
    wanted: &Wanted,
    given: &Given,
    problems: &mut Vec<Problem>,
) -> Result<Install, Failure> {
    let (overrides, watched) = args.install.overrides(problems)?;
    let choice = &args.package.choice;
    let name = source.to_str().unwrap_or_default();
    let is_name = names::label_error(name).is_none();
    let content = if choice.catalogs.is_given() || (!wanted.catalogs.is_empty() && is_name) {
        // The catalogs that the user names for the package, else those of the manifests.
        let is_named = |catalog: &&CatalogRef| match &catalog.manifest {
            Some(object) => given.catalogs.iter().any(|given| given.stands_for(object)),
            None => true,
        };
        let named: Vec<_> = wanted.catalogs.iter().filter(is_named).collect();
        let catalogs = if named.is_empty() {
            wanted.catalogs.iter().collect()
        } else {
            named
        };
        let scope = catalogs.into_iter().map(|catalog| catalog.id.clone());
        Content::Package(Box::new(choice.wish(name, scope.collect())?))
    } else if let [flag, ..] = args.package.of_packages().as_slice() {
        let message = format!("{flag} is about packages of catalogs, and no catalog is named");
        let hint = "name one with --catalog, or give a CatalogSource or ClusterCatalog with -f";
        return Err(Failure::new(Class::Usage, message).with_hint(hint));
    } else {
        Content::Bundle(BundleSource::Source(source.to_owned()))
    };
    Ok(Install {
        id: source.display().to_string(),
        object: None,
        namespace: given.namespace.clone(),
        watched: match given.watched.as_slice() {
            [] => watched.into_iter().collect(),
            watched => watched.to_vec(),
        },
        content,
        overrides,
        certificates: None,
        pull_secrets: vec![],
        also_service_accounts: vec![],
        notes: vec![],
    })
}

/// The logins of a Secret.
fn logins(manifest: &Manifest) -> Result<PullSecret, Problem> {
    PullSecret::from_manifest(manifest.object().clone()).map_err(|error| {
        let problem = Problem::error("pull-secret", error.to_string());
        problem.at(&manifest.origin).on(manifest.key())
    })
}

/// The names of all catalogs that the manifests define or name.
fn catalog_names(objects: &Objects) -> Vec<&str> {
    let defined = objects
        .catalog_sources
        .iter()
        .chain(&objects.cluster_catalogs);
    let named = objects.subscriptions.iter().filter_map(|subscription| {
        let spec = subscription.object().get("spec");
        spec.and_then(|spec| spec.get("source")?.as_str())
    });
    let names: BTreeSet<_> = defined.map(Manifest::name).chain(named).collect();
    names.into_iter().collect()
}

/// Refuses a catalog of a flag that nothing in the manifests is about, or more than one thing.
fn check_catalogs(objects: &Objects, given: &Given, wanted: &Wanted) -> Result<(), Failure> {
    for flag in &given.catalogs {
        let of_objects = wanted.catalogs.iter().filter(|catalog| {
            let object = catalog.manifest.as_ref();
            object.is_some_and(|object| flag.stands_for(object))
        });
        let ids: Vec<_> = of_objects.map(|catalog| catalog.id.as_str()).collect();
        if ids.len() > 1 {
            let message = format!(
                "--catalog: several catalogs are called {}: {}",
                flag.name,
                ids.join(", ")
            );
            let hint = format!(
                "say which one is meant: --catalog NAMESPACE/{}=SOURCE",
                flag.name
            );
            return Err(Failure::new(Class::Usage, message).with_hint(hint));
        }
    }
    let known = catalog_names(objects);
    let of_flags = wanted
        .catalogs
        .iter()
        .filter(|catalog| catalog.manifest.is_none());
    let mut unused = of_flags.filter(|catalog| !known.contains(&catalog.name.as_str()));
    let unused = unused
        .next()
        .filter(|_| objects.cluster_extensions.is_empty());
    let Some(unused) = unused else {
        return Ok(());
    };
    let message = format!(
        "--catalog: nothing in the manifests is about a catalog called {}",
        unused.name
    );
    let hint = format!(
        "name the one that it stands for, as NAME=SOURCE; there are {}",
        known.join(", ")
    );
    Err(Failure::new(Class::Usage, message).with_hint(hint))
}
