//! A connection for the time of a run, and what is rendered with what the cluster tells.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    super::{
        connection_args::ConnectionArgs,
        failure::{Class, Failure},
        inputs::Inputs,
        installs::{self, Purpose, Rendered},
        interrupt, output,
        wanted_args::WantedArgs,
    },
    certificates::LiveSecrets,
    facts,
    failures::api_failure,
    rendering::{Follows, Holding, Rendering},
};
use crate::{
    cluster::{
        connection::Connection,
        inventory::{InstallName, Inventory, State},
    },
    install::{Content, Install, Wanted},
    problem::Problem,
    resolve::InstalledBundle,
};

/// What may be done when the catalog has no way from what is installed.
const FORCE: &str =
    "--force-upgrade takes the version that is wanted without regard to the one that is installed";

/// A connection.
pub(in crate::cli) struct Session {
    pub(in crate::cli) connection: Arc<Connection>,
}

impl Session {
    /// Connects as flags say. Ctrl-C ends what is sent over it gently.
    ///
    /// # Errors
    /// When the kubeconfig cannot be used.
    pub(in crate::cli) fn open(args: &ConnectionArgs, timeout: Duration) -> Result<Self, Failure> {
        let settings = args.settings(timeout);
        let connection = Connection::open(&settings).map_err(|error| {
            let failure = Failure::of(Class::Usage, &error);
            match error.hint() {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            }
        })?;
        let connection = Arc::new(connection);
        interrupt::stop_first(&connection);
        connection.on_wait(output::tell);
        Ok(Self { connection })
    }

    /// Tells the warnings that the server gave since it was asked last.
    pub(in crate::cli) fn tell_warnings(&self) {
        for warning in self.connection.take_warnings() {
            output::tell(&format!("Warning: {warning}"));
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.tell_warnings();
    }
}

/// What was rendered, and from what.
pub(in crate::cli) struct FromCluster {
    pub(in crate::cli) wanted: Wanted,
    pub(in crate::cli) rendered: Rendered,
    /// The runs that the installs of the cluster had had; nothing when not all of them may be seen.
    pub(in crate::cli) generations: Option<Generations>,
    /// What there is to say of certificates once they are in the cluster.
    pub(in crate::cli) made: Vec<Problem>,
}

/// How many runs installs have had.
pub(in crate::cli) type Generations = BTreeMap<InstallName, u64>;

/// Renders what is wanted, with the facts that the cluster tells: its version, Secrets and namespaces that are named, and
/// what is installed.
///
/// # Errors
/// When the cluster does not tell them, or nothing can be rendered.
pub(in crate::cli) fn rendered(
    session: &Session,
    args: &WantedArgs,
    rendering: &Rendering<'_>,
    problems: &mut Vec<Problem>,
) -> Result<FromCluster, Failure> {
    let connection = &session.connection;
    let Rendering {
        parts,
        follows,
        holding,
    } = *rendering;
    let mut inputs = Inputs::read(args, problems)?;
    if args.install.read.kube_version().is_none() {
        let version = connection.version().map_err(|error| api_failure(&error))?;
        args.install.read.found_version(&version);
    }
    if inputs.selects_namespaces() {
        inputs.add_namespaces(facts::namespaces(connection)?);
    }
    let mut wanted = inputs.wanted(args, parts, problems)?;
    let missing = inputs.missing_secrets(&wanted);
    if !missing.is_empty() {
        let facts::Secrets { found, absent } = facts::secrets(connection, &missing, &wanted)?;
        inputs.add_secrets(found);
        problems.extend(absent);
        // What they say may stop a catalog or an install.
        wanted = inputs.wanted(args, parts, &mut vec![])?;
    }
    let found = installed(connection, &wanted, holding)?;
    if let (Follows::Installed(name), Some(found)) = (follows, &found) {
        note_installed(&found.inventories, &mut wanted, name);
    }
    let sources = inputs.open_sources(&wanted, &args.install)?;
    let secrets = LiveSecrets::new(connection, parts.scope(), holding);
    let mut run = inputs.run(args, &sources, (Purpose::Install, parts));
    // A folder that the user names is meant; else they are where pods look for them.
    run.certificates = args.install.certificates.or(&secrets);
    let mut rendered = installs::render(&wanted, run)?;
    if follows != Follows::Nothing {
        let follows = |root| wanted.installs.get(root).is_some_and(has_before);
        rendered.outcome.hint(follows, FORCE);
    }
    problems.extend(rendered.outcome.told());
    let (told, made) = secrets.told();
    problems.extend(told);
    let all = found.filter(|found| found.are_all);
    let generations = all.map(|found| {
        let all = found.inventories.into_iter();
        all.map(|inventory| (inventory.install, inventory.generation))
            .collect()
    });
    Ok(FromCluster {
        wanted,
        rendered,
        generations,
        made,
    })
}

/// What is installed: for the way from there, and to see later whether another run has come between.
///
/// # Errors
/// When it cannot be told, and the way of a package depends on it.
fn installed(
    connection: &Connection,
    wanted: &Wanted,
    holding: Holding,
) -> Result<Option<facts::Found>, Failure> {
    let is_package = |install: &Install| matches!(install.content, Content::Package(_));
    match (wanted.installs.iter().any(is_package), holding) {
        (true, _) => facts::inventories(connection, wanted).map(Some),
        (false, Holding::Lease) => Ok(facts::inventories(connection, wanted).ok()),
        (false, Holding::Nothing) => Ok(None),
    }
}

/// Whether something is installed from which the way of a catalog is followed.
fn has_before(install: &Install) -> bool {
    matches!(&install.content, Content::Package(wish) if !wish.installed.is_empty())
}

/// Tells each install which bundle of it is installed.
fn note_installed(stored: &[Inventory], wanted: &mut Wanted, name: Option<&str>) {
    for install in &mut wanted.installs {
        let Content::Package(wish) = &mut install.content else {
            continue;
        };
        let of_object = install.object.as_ref().map(|asker| asker.key.name.as_str());
        let called = name.or(of_object).unwrap_or(&wish.package);
        let fits = |namespace: &str| {
            install
                .namespace
                .as_deref()
                .is_none_or(|wanted| wanted == namespace)
        };
        let mut own = stored.iter().filter(|inventory| {
            super::is_called(&inventory.install, called) && fits(&inventory.install.namespace)
        });
        if let Some(inventory) = own.next()
            && wish.installed.is_empty()
            && inventory.content.package == wish.package
            && inventory.state != State::Removed
        {
            wish.installed.push(InstalledBundle {
                name: inventory.content.bundle.clone(),
                version: inventory.content.version.parse().ok(),
            });
        }
    }
}
