//! A package of a catalog, rendered: its version is chosen, the bundles are read, and each becomes an install of its own.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use clap::Args;

use super::{
    choice_args::ChoiceArgs,
    failure::{Class, Failure},
    install_args::{InstallArgs, ReadArgs},
    locked,
    output::Install,
    source_args::tell_notices,
};
use crate::{
    bundle::{self, Bundle},
    catalog::{Catalog, CatalogBundle, embedded},
    files::FileTree,
    problem::Problem,
    render,
    resolve::{self, Chosen, Reason, lock::LockedInstall},
    source::{self, ImageSource, Sources},
};

/// Bundle images that are waited for at the same time.
const IMAGES_AT_ONCE: usize = 16;

/// Which package is installed, in which version, and where its bundle comes from.
#[derive(Debug, Args)]
pub(super) struct PackageArgs {
    #[command(flatten)]
    pub choice: ChoiceArgs,
    /// What stands for a bundle image: a folder, an archive or another image; with a PREFIX/, a folder with one for each
    /// image below it; repeat for several
    #[arg(long, value_name = "IMAGE|PREFIX/=SOURCE", requires = "catalog")]
    pub image_source: Vec<ImageSource>,
    /// Write down in FILE what was chosen; with --locked, install what it says
    #[arg(long, value_name = "FILE", requires = "catalog")]
    pub lock: Option<PathBuf>,
    /// Choose nothing: install what the file of --lock says, and refuse anything else
    #[arg(long, requires = "lock")]
    pub locked: bool,
}

/// A package as it was rendered.
pub(super) struct Package {
    /// What is installed, in order.
    pub(super) installs: Vec<Install>,
    /// What there is to say about it.
    pub(super) problems: Vec<Problem>,
    /// The lock to write when all else is written, and its text.
    pub(super) lock: Option<(PathBuf, String)>,
}

/// A bundle that is to be rendered.
struct Part {
    install: LockedInstall,
    bundle: Bundle,
}

impl PackageArgs {
    /// Renders a package and what it needs.
    ///
    /// # Errors
    /// When nothing can be chosen, a bundle cannot be had, or one is refused.
    pub(super) fn render(
        &self,
        package: &Path,
        install: &InstallArgs,
        sources: &Sources,
    ) -> Result<Package, Failure> {
        let package = package.to_str().unwrap_or_default();
        let mut problems = vec![];
        let (catalogs, installs) = self.installs(package, sources, &mut problems)?;
        let parts = self.parts(installs, &catalogs, sources, &install.read, &mut problems);
        tell_notices(sources);
        // What else is wrong may be why.
        let parts = match parts {
            Ok(parts) => parts,
            Err(failure) => return Err(failure.with_problems(problems)),
        };
        let lock: Vec<_> = parts.iter().map(|part| part.install.clone()).collect();
        let installs = rendered(parts, install, &mut problems)?;
        let problems = install.read.accept(problems, package)?;
        let path = self.lock.as_ref().filter(|_| !self.locked);
        let lock = match path {
            Some(path) => Some((path.clone(), locked::text(&catalogs, lock)?)),
            None => None,
        };
        Ok(Package {
            installs,
            problems,
            lock,
        })
    }

    /// Reads the bundles; those that cannot be parsed are left out. What is wrong with them is added to `problems`.
    fn parts(
        &self,
        installs: Vec<LockedInstall>,
        catalogs: &[Catalog],
        sources: &Sources,
        read: &ReadArgs,
        problems: &mut Vec<Problem>,
    ) -> Result<Vec<Part>, Failure> {
        let contents = installs.iter().map(|install| content(install, catalogs));
        let contents: Vec<_> = contents.collect::<Result<_, _>>()?;
        let to_fetch = contents.iter().zip(&installs);
        let to_fetch = to_fetch.filter(|(content, _)| content.is_none());
        let to_fetch: Vec<_> = to_fetch.map(|(_, install)| install).collect();
        let fetched = source::concurrently(&to_fetch, IMAGES_AT_ONCE, |install| {
            let pin = locked::pin(&install.image_digest);
            sources.image(
                &install.image,
                &self.image_source,
                pin.as_ref(),
                &bundle::FOLDERS,
            )
        });
        let mut fetched = fetched.into_iter();
        let mut parts = vec![];
        for (mut install, content) in installs.into_iter().zip(contents) {
            let files = match content {
                Some(files) => files,
                None => match fetched.next() {
                    Some(Ok(read)) => {
                        install.image_digest = read.image.map(|digest| digest.to_string());
                        read.content
                    }
                    Some(Err(error)) => {
                        let mut failure = Failure::from(error);
                        let bundle = &install.bundle;
                        failure.prefix(format!("the content of the bundle {bundle} is missing"));
                        return Err(failure);
                    }
                    None => continue,
                },
            };
            parts.extend(part(install, files, read, problems)?);
        }
        Ok(parts)
    }

    /// The catalogs, and what is to be installed from them, chosen or as the lock has it.
    fn installs(
        &self,
        package: &str,
        sources: &Sources,
        problems: &mut Vec<Problem>,
    ) -> Result<(Vec<Catalog>, Vec<LockedInstall>), Failure> {
        if let Some(path) = self.lock.as_ref().filter(|_| self.locked) {
            let lock = locked::read(path, package, &self.choice, sources.limits())?;
            let catalogs = self
                .choice
                .catalogs
                .open_at(&locked::pins(&lock), sources)?;
            problems.extend(locked::changed(path, &lock, &catalogs)?);
            return Ok((catalogs, lock.installs));
        }
        let catalogs = self.choice.catalogs.open(sources)?;
        let installs = self.chosen(package, &catalogs, problems)?;
        Ok((catalogs, installs))
    }

    /// What the catalogs offer for a package.
    fn chosen(
        &self,
        package: &str,
        catalogs: &[Catalog],
        problems: &mut Vec<Problem>,
    ) -> Result<Vec<LockedInstall>, Failure> {
        let request = self.choice.request(package, catalogs)?;
        let resolution = resolve::resolve(catalogs, &request)?;
        problems.extend(resolution.notes.iter().cloned());
        let passed_over = resolution.passed_over.iter().map(Reason::to_string);
        problems.extend(passed_over.map(|sentence| Problem::warning("passed-over", sentence)));
        let installs = resolution.chosen.iter();
        let mut installs: Vec<_> = installs
            .map(|chosen| install_of(chosen, catalogs))
            .collect();
        for install in &mut installs {
            let mut wanted = request.wanted.iter();
            let is_asked = wanted.any(|wanted| wanted.package == install.package);
            install.asked = is_asked.then(|| self.choice.asked());
        }
        self.choice.judge(&resolution.chosen, catalogs, problems)?;
        // What something needs and is there already need not be installed again.
        let is_there = |name: &str| request.installed.iter().any(|there| there.name == name);
        installs.retain(|install| install.asked.is_some() || !is_there(&install.bundle));
        Ok(installs)
    }
}

/// The files of a bundle that its catalog holds; nothing when it is an image.
fn content(install: &LockedInstall, catalogs: &[Catalog]) -> Result<Option<FileTree>, Failure> {
    let LockedInstall {
        package,
        bundle: name,
        ..
    } = install;
    let unreadable =
        |problems| Failure::refused(problems, format!("{name} cannot be read from the catalog"));
    let catalog = catalogs
        .iter()
        .find(|catalog| catalog.name == install.catalog);
    let bundle = match catalog.map(|catalog| catalog.bundle(package, name)) {
        Some(bundle) => bundle.map_err(unreadable)?,
        None => None,
    };
    let is_meant = |bundle: &CatalogBundle| {
        bundle.image == install.image && bundle.version().unwrap_or_default() == install.version
    };
    let Some(bundle) = bundle.filter(is_meant) else {
        let image = match install.image.as_str() {
            "" => String::new(),
            image => format!(", with the image {image}"),
        };
        let message = format!(
            "catalog {} has no bundle {name} in version {}{image}",
            install.catalog, install.version
        );
        let hint = "give the catalogs that the lock was made of, or choose anew without --locked";
        return Err(Failure::new(Class::Refused, message).with_hint(hint));
    };
    let files = embedded::files(package, &bundle).map_err(unreadable)?;
    if files.is_none() && bundle.image.is_empty() {
        let message = format!(
            "catalog {} has neither an image nor objects of the bundle {name}",
            install.catalog
        );
        let hint = "`kubectl olm catalog check` shows all that is wrong with a catalog";
        return Err(Failure::new(Class::Refused, message).with_hint(hint));
    }
    Ok(files)
}

/// The bundle that files make, which must be the one that is meant; nothing when it cannot be parsed. What is wrong with
/// it is added to `problems`.
fn part(
    mut install: LockedInstall,
    files: FileTree,
    read: &ReadArgs,
    problems: &mut Vec<Problem>,
) -> Result<Option<Part>, Failure> {
    let name = &install.bundle;
    let refuse =
        |message: String, hint: &str| Err(Failure::new(Class::Refused, message).with_hint(hint));
    let digest = files.digest();
    if !install.digest.is_empty() && install.digest != digest {
        return refuse(
            format!("the files of {name} are not those that the lock was made of"),
            "see what changed, then choose anew without --locked",
        );
    }
    let mut found = vec![];
    let bundle = read.parsed(files, &mut found);
    problems.extend(found.into_iter().map(|problem| of_bundle(problem, name)));
    let Some(bundle) = bundle else {
        return Ok(None);
    };
    if bundle.csv.name != *name {
        return refuse(
            format!("what stands for the bundle {name} is {}", bundle.csv.name),
            "see that --image-source names the bundle that the catalog means",
        );
    }
    install.digest = digest;
    Ok(Some(Part { install, bundle }))
}

fn install_of(chosen: &Chosen, catalogs: &[Catalog]) -> LockedInstall {
    let candidate = &chosen.candidate;
    let default = CatalogBundle::default();
    let bundle = candidate.bundle().unwrap_or(&default);
    let catalog = catalogs.get(candidate.catalog);
    let required_by: BTreeSet<_> = chosen
        .required_by
        .iter()
        .map(|(bundle, _)| bundle.clone())
        .collect();
    LockedInstall {
        package: candidate.package.name.clone(),
        bundle: bundle.name.clone(),
        version: bundle.version().unwrap_or_default().to_owned(),
        catalog: catalog.map_or_else(String::new, |catalog| catalog.name.clone()),
        channel: candidate.channel.clone(),
        image: bundle.image.clone(),
        image_digest: None,
        digest: String::new(),
        asked: None,
        required_by: required_by.into_iter().collect(),
    }
}

/// What a bundle's problem is about comes before where in the bundle it stands.
fn of_bundle(mut problem: Problem, bundle: &str) -> Problem {
    let path = &mut problem.place.path;
    *path = match path.as_str() {
        "" => bundle.to_owned(),
        path => format!("{bundle}: {path}"),
    };
    problem
}

/// Renders the bundles, each with the options that are for it. Those that another one needs go into its namespace.
fn rendered(
    parts: Vec<Part>,
    install: &InstallArgs,
    problems: &mut Vec<Problem>,
) -> Result<Vec<Install>, Failure> {
    let asked = parts.iter().find(|part| part.install.asked.is_some());
    let Some(asked) = asked else {
        return Ok(vec![]);
    };
    let namespace = install.namespace(&asked.bundle)?;
    let mut installs = vec![];
    let mut headings = vec![];
    for Part {
        install: locked,
        bundle,
    } in parts
    {
        let (options, heading) = if locked.asked.is_some() {
            (install.options(&bundle, problems)?, String::new())
        } else {
            let needed_by = locked.required_by.join(", ");
            let heading = format!("{}, which {needed_by} needs", locked.bundle);
            (install.options_of_dependency(&namespace)?, heading)
        };
        let found = match render::render(bundle, &options) {
            Ok(rendered) => {
                installs.push((locked.bundle.clone(), rendered.manifests));
                headings.push(heading);
                rendered.problems
            }
            Err(found) => found,
        };
        problems.extend(
            found
                .into_iter()
                .map(|problem| of_bundle(problem, &locked.bundle)),
        );
    }
    let joined = match render::join(installs) {
        Ok(joined) => joined,
        Err(found) => {
            problems.extend(found);
            return Ok(vec![]);
        }
    };
    let joined = joined.into_iter().zip(headings);
    Ok(joined
        .map(|((_, manifests), heading)| Install { heading, manifests })
        .collect())
}
