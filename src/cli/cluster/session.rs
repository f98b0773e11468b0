//! A connection for the time of a run, and what is rendered with what the cluster tells.

use std::{sync::Arc, time::Duration};

use super::{
    super::{
        connection_args::ConnectionArgs,
        failure::{Class, Failure},
        inputs::Inputs,
        installs::{self, Purpose, Rendered},
        interrupt, output,
        parts::Parts,
        wanted_args::WantedArgs,
    },
    certificates::LiveSecrets,
    facts,
    failures::api_failure,
    planned::Holding,
};
use crate::{
    cluster::{connection::Connection, inventory::State, lock::Lock},
    install::{Content, Install, Wanted},
    problem::Problem,
    resolve::InstalledBundle,
};

/// How long a run that was stopped may take to give back a Lease.
const RELEASE: Duration = Duration::from_secs(3);

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

    /// Gives back a Lease, for which a run that was stopped gets a little more time. One that cannot be given back ends by
    /// itself.
    pub(in crate::cli) fn release(&self, lock: Lock) {
        if interrupt::was_interrupted() {
            self.connection.end_after(RELEASE);
        }
        drop(lock.release());
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

/// What is rendered, and what for.
pub(in crate::cli) struct Rendering<'r> {
    /// What is applied of it.
    pub(in crate::cli) parts: &'r Parts,
    pub(in crate::cli) follows: Follows<'r>,
    /// Whether it is for changes.
    pub(in crate::cli) holding: Holding,
}

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
) -> Result<(Wanted, Rendered), Failure> {
    let connection = &session.connection;
    let Rendering { parts, follows, .. } = *rendering;
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
        inputs.add_secrets(facts::secrets(connection, &missing, &wanted)?);
        // What they say may stop a catalog or an install.
        wanted = inputs.wanted(args, parts, &mut vec![])?;
    }
    if let Follows::Installed(name) = follows {
        note_installed(connection, &mut wanted, name)?;
    }
    let sources = inputs.open_sources(&wanted, &args.install)?;
    let secrets = LiveSecrets::new(connection, parts.scope(), rendering.holding);
    let mut run = inputs.run(args, &sources, (Purpose::Install, parts));
    // A folder that the user names is meant; else they are where pods look for them.
    run.certificates = args.install.certificates.or(&secrets);
    let mut rendered = installs::render(&wanted, run)?;
    if follows != Follows::Nothing {
        let follows = |root| wanted.installs.get(root).is_some_and(has_before);
        rendered.outcome.hint(follows, FORCE);
    }
    problems.extend(rendered.outcome.told());
    problems.extend(secrets.told());
    Ok((wanted, rendered))
}

/// Whether the version that is installed counts for the one that is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Follows<'n> {
    /// The catalog's way from there is followed; the install has this name, else that of its object or package.
    Installed(Option<&'n str>),
    /// It does not.
    Nothing,
}

/// Whether something is installed from which the way of a catalog is followed.
fn has_before(install: &Install) -> bool {
    matches!(&install.content, Content::Package(wish) if !wish.installed.is_empty())
}

/// Tells each install which bundle of it is installed.
fn note_installed(
    connection: &Connection,
    wanted: &mut Wanted,
    name: Option<&str>,
) -> Result<(), Failure> {
    let is_package = |content: &Content| matches!(content, Content::Package(_));
    if !wanted
        .installs
        .iter()
        .any(|install| is_package(&install.content))
    {
        return Ok(());
    }
    let stored = facts::inventories(connection, wanted)?;
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
    Ok(())
}
