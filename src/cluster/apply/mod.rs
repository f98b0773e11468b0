//! Carries out a plan: the inventory ahead of the first write, then phase after phase, then what goes, then the
//! inventory again.
//!
//! A run may end anywhere, and the next one goes on: whatever is in the cluster is in the inventory, and every write is
//! one that can be made twice.

mod cleanup;
mod entries;
mod namespace;
mod remove;
mod store;
mod write;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

pub use self::{
    cleanup::{clean, custom_resources, left_namespace},
    namespace::make_namespace,
    store::sweep,
};
use super::{
    AT_ONCE,
    answer::{Answer, ApiError, RefusalKind},
    connection::Connection,
    health,
    inventory::{Content, InstallName, Inventory, Member, State},
    lock::Lock,
    managed_fields, metadata,
    plan::{Action, Change, Plan},
    request::{Force, Request},
    stored::Stored,
    survey::Deleting,
    wait::{self, NotReady},
};
use crate::{concurrent::concurrently_in_order, manifest::ObjectKey, problem::Problem};

/// How long a definition may take until its objects can be created, when nobody says how long to wait.
const DEFINITION: Duration = Duration::from_secs(60);
/// The phases up to that after which accounts and Secrets are there.
const BEFORE_ENTRIES: [&str; 6] = [
    "namespaces",
    "definitions",
    "versions",
    "policies",
    "identity",
    "configuration",
];
/// The phase of CustomResourceDefinitions.
const DEFINITIONS: &str = "definitions";

/// Who is told of what is done, as it is done.
pub trait Report: Sync {
    /// Something was done with an object; `note` says more where there is more to say.
    fn object(&self, key: &ObjectKey, word: &str, note: &str);
    /// Something is going on that takes a while.
    fn progress(&self, line: &str);
}

/// What a plan is carried out with.
pub struct Job<'j> {
    /// Where.
    pub connection: &'j Connection,
    /// The Lease, which has to be held for every write.
    pub lock: &'j Lock,
    /// Who is told.
    pub report: &'j dyn Report,
    /// What may be deleted with what goes.
    pub deleting: Deleting,
    /// Whether each phase is waited for.
    pub waiting: Waiting,
    /// Whether fields are taken from others.
    pub force: Force,
    /// Whether what does not depend on what failed is done all the same.
    pub failing: Failing,
    /// Who runs it, for the inventory.
    pub who: String,
}

impl Job<'_> {
    /// Sends a request for as long as the Lease is held: between two objects, and between two tries for one, the machine
    /// may have slept while another run took over.
    fn send(&self, request: &Request) -> Result<Answer, ApiError> {
        self.connection
            .send_while(request, &|| self.lock.check().is_ok())
    }
}

/// What an install is of, for its inventory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// What is installed.
    pub content: Content,
    /// The installs of this run that need it.
    pub required_by: BTreeSet<InstallName>,
    /// All installs of this run: what they need is known.
    pub beside: BTreeSet<InstallName>,
}

/// Whether a run waits until objects are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// It does not.
    No,
    /// For so long, for each phase.
    For(Duration),
}

/// What a run does when an object fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failing {
    /// Nothing more.
    Stop,
    /// It goes on with the other objects.
    GoOn,
}

/// What carrying out a plan came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many objects were written or removed.
    pub done: usize,
    /// What failed.
    pub failed: Vec<Problem>,
    /// What is not ready, or not gone.
    pub not_ready: Vec<NotReady>,
    /// Whether the run was stopped, or lost its Lease.
    pub stopped: Option<Stopped>,
}

/// Why a run ended before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It was interrupted, or out of time.
    Interrupted,
    /// Another run has taken over.
    LeaseLost,
}

impl Outcome {
    /// Whether everything was done that should be.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.stopped.is_none()
    }

    /// Notes why something failed.
    pub fn fail(&mut self, key: &ObjectKey, error: &ApiError) {
        match error {
            ApiError::Stopped { .. } => self.stopped = Some(Stopped::Interrupted),
            error => {
                let rule = match error.kind() {
                    Some(RefusalKind::Forbidden) => "rights",
                    _ => "failed",
                };
                self.failed
                    .push(Problem::error(rule, error.reason()).on(key));
            }
        }
    }
}

/// Carries out a plan for an install, whose inventory is what is stored, if anything.
///
/// # Errors
/// When the inventory could not be written ahead, so that nothing else was.
pub fn apply(
    job: &Job<'_>,
    install: &InstallName,
    plan: &Plan,
    about: About,
    stored: Option<Stored>,
) -> Result<Outcome, ApiError> {
    let old = stored.as_ref().map(|stored| &stored.inventory);
    let mut inventory = ahead(job, install, plan, about, old);
    let mut outcome = Outcome::default();
    if plan.changes_nothing() && old.is_some_and(|old| is_settled(old, &inventory, plan)) {
        tell_unchanged(job, plan);
        wait_for(job, &plan.changes.iter().collect::<Vec<_>>(), &mut outcome);
        return Ok(outcome);
    }
    let stored = store::save(job.connection, &inventory, stored.as_ref())?;
    let mut adding = Some(&plan.adding);
    for (phase, changes) in plan.phases() {
        if !go_on(job, &mut outcome) {
            break;
        }
        if !BEFORE_ENTRIES.contains(&phase)
            && let Some(adding) = adding.take()
        {
            entries::add(job, adding, &mut outcome);
            if !go_on(job, &mut outcome) {
                break;
            }
        }
        write_all(job, &changes, &mut inventory, &mut outcome);
        if phase == DEFINITIONS && outcome.is_complete() {
            establish(job, &changes, &mut outcome);
        }
        wait_for(job, &changes, &mut outcome);
    }
    if let Some(adding) = adding.filter(|_| go_on(job, &mut outcome)) {
        entries::add(job, adding, &mut outcome);
    }
    finish(job, plan, inventory, &stored, &mut outcome);
    Ok(outcome)
}

/// Removes what nobody wants any more, and says in the inventory that all is done.
fn finish(
    job: &Job<'_>,
    plan: &Plan,
    mut inventory: Inventory,
    stored: &Stored,
    outcome: &mut Outcome,
) {
    if !go_on(job, outcome) || !outcome.is_complete() || !outcome.not_ready.is_empty() {
        if outcome.stopped.is_none() {
            // What is known of what was written spares the next run to ask; what fails here is told already.
            drop(store::save(job.connection, &inventory, Some(stored)));
        }
        return;
    }
    entries::remove(job, &plan.removing, outcome);
    remove::remove(job, &plan.removals, &mut inventory, outcome);
    go_on(job, outcome);
    if outcome.stopped.is_some() {
        return;
    }
    if outcome.failed.is_empty() {
        inventory.state = State::Done;
        inventory.entries = plan.adding.union(&plan.keeping).cloned().collect();
    }
    if let Err(error) = store::save(job.connection, &inventory, Some(stored)) {
        let key =
            super::live::secret_key(&inventory.install.namespace, &inventory.install.secret());
        outcome.fail(&key, &error);
    }
}

/// Whether the run may write: it has not failed, and holds its Lease. What is not sent
/// for want of that looks like what was interrupted.
fn go_on(job: &Job<'_>, outcome: &mut Outcome) -> bool {
    if job.connection.is_over() {
        outcome.stopped = Some(Stopped::Interrupted);
    } else if job.lock.check().is_err() {
        outcome.stopped = Some(Stopped::LeaseLost);
    }
    let may_fail = job.failing == Failing::GoOn;
    let is_ready = outcome.not_ready.is_empty();
    outcome.stopped.is_none() && (may_fail || (outcome.failed.is_empty() && is_ready))
}

/// The inventory that is written ahead: what there is and what is wanted, together.
fn ahead(
    job: &Job<'_>,
    install: &InstallName,
    plan: &Plan,
    about: About,
    old: Option<&Inventory>,
) -> Inventory {
    let mut objects = old.map_or_else(BTreeMap::new, |old| old.objects.clone());
    for change in &plan.changes {
        let known = objects.remove(&change.key);
        objects.insert(change.key.clone(), member(change, known));
    }
    let required_by = required_by(&about, old);
    let mut entries = old.map_or_else(Default::default, |old| old.entries.clone());
    entries.extend(plan.adding.iter().cloned());
    entries.extend(plan.keeping.iter().cloned());
    Inventory {
        install: install.clone(),
        generation: old.map_or(0, |old| old.generation) + 1,
        state: State::Running {
            what: "apply".to_owned(),
            who: job.who.clone(),
        },
        required_by,
        content: about.content,
        objects,
        entries,
    }
}

/// The installs that need one: those of this run that do, and those of earlier runs that this one knows nothing of.
fn required_by(about: &About, old: Option<&Inventory>) -> BTreeSet<InstallName> {
    let before = old.into_iter().flat_map(|old| &old.required_by);
    let others = before.filter(|install| !about.beside.contains(install));
    others.chain(&about.required_by).cloned().collect()
}

/// What the inventory says of an object before it is written.
fn member(change: &Change, known: Option<Member>) -> Member {
    let before = change.before.as_ref();
    let uid = before.and_then(metadata::uid);
    let uid = uid.map(str::to_owned);
    let resource = &change.resource;
    let (version, plural) = (resource.version.clone(), resource.plural.clone());
    let (asked, managed) = match (change.action, before) {
        (Action::Unchanged | Action::Made, Some(before)) => {
            (change.hash.clone(), managed_fields::ours(before))
        }
        // It was proven by what is known of it.
        _ => known.as_ref().map_or_else(Default::default, |known| {
            (known.asked.clone(), known.managed.clone())
        }),
    };
    let uid = match change.action {
        // What takes its place has another one.
        Action::Create | Action::Recreate | Action::AfterDeletion => None,
        _ => uid.or_else(|| known.and_then(|known| known.uid)),
    };
    Member {
        version,
        plural,
        uid,
        asked,
        managed,
        hold: change.hold,
    }
}

/// Whether the stored inventory says all that it has to, so that it need not be written.
fn is_settled(old: &Inventory, new: &Inventory, plan: &Plan) -> bool {
    old.state == State::Done
        && old.content == new.content
        && old.required_by == new.required_by
        && old.objects == new.objects
        && old.entries == plan.keeping
}

fn tell_unchanged(job: &Job<'_>, plan: &Plan) {
    for change in &plan.changes {
        job.report.object(&change.key, change.action.word(), "");
    }
}

/// Writes the objects of a phase, tells of each as it is done, and notes in the inventory what they are.
fn write_all(job: &Job<'_>, changes: &[&Change], inventory: &mut Inventory, outcome: &mut Outcome) {
    let work = |change: &&Change| (change.action.writes()).then(|| write::write(job, change));
    concurrently_in_order(changes, AT_ONCE, work, |change, written| match written {
        None => job.report.object(&change.key, change.action.word(), ""),
        Some(Ok(written)) => {
            outcome.done += 1;
            job.report.object(&change.key, written.action.word(), "");
            if let Some(member) = inventory.objects.get_mut(&change.key) {
                member.uid = Some(written.uid);
                member.managed = written.managed;
                member.asked.clone_from(&change.hash);
                member.hold = written.hold;
            }
        }
        Some(Err(write::WriteError::Api(error))) => outcome.fail(&change.key, &error),
        Some(Err(write::WriteError::Refused(problem))) => outcome.failed.push(problem),
        Some(Err(write::WriteError::NotGone(not_gone))) => outcome.not_ready.push(*not_gone),
    });
}

/// Waits until definitions can be used. Objects of theirs may be refused as unknown for a while yet, see
/// [`write::write`].
fn establish(job: &Job<'_>, changes: &[&Change], outcome: &mut Outcome) {
    let written = changes.iter().filter(|change| change.action.writes());
    let written: Vec<_> = written
        .map(|change| (change.resource.clone(), change.key.clone()))
        .collect();
    if written.is_empty() {
        return;
    }
    let time = match job.waiting {
        Waiting::For(time) => time,
        Waiting::No => DEFINITION,
    };
    let told = |done, all, _: &str| {
        job.report
            .progress(&format!("{done} of {all} definitions can be used"));
    };
    if let Err(not_ready) = wait::until_ready(job.connection, &written, time, &told) {
        outcome.not_ready.extend(not_ready);
    }
}

/// Waits until the objects of a phase are ready, if the run waits.
fn wait_for(job: &Job<'_>, changes: &[&Change], outcome: &mut Outcome) {
    let Waiting::For(time) = job.waiting else {
        return;
    };
    if !go_on(job, outcome) {
        return;
    }
    let objects: Vec<_> = changes
        .iter()
        .filter(|change| !health::is_ready_when_written(&change.key.group, &change.key.kind))
        .map(|change| (change.resource.clone(), change.key.clone()))
        .collect();
    if objects.is_empty() {
        return;
    }
    let told = |done, all, waited_for: &str| {
        job.report
            .progress(&format!("{done} of {all} ready, waiting for {waited_for}"));
    };
    if let Err(not_ready) = wait::until_ready(job.connection, &objects, time, &told) {
        outcome.not_ready.extend(not_ready);
    }
}
