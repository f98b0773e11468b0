//! What is wanted, what is there and the inventory become changes, each with its reason. Nothing is asked or sent here.
//!
//! An object whose uid, whose hash of what is asked for and whose fields of ours are those of the inventory is unchanged
//! (`unchanged.rs`): a field that anyone else changes leaves our entry in `managedFields`. What is not proven so is asked
//! for by a dry run, and `decide.rs` says what its answer means. What the inventory has and nobody wants any more goes
//! (`prune.rs`), and so do entries of ServiceAccounts (`entries.rs`). One error in a plan, and nothing of it is carried out.

mod decide;
mod entries;
mod preflight;
mod prune;
mod unchanged;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use self::{
    decide::{OWNER, Observed, decide},
    entries::{account_key, entries},
    preflight::{KindOf, Kinds, later, missing_kinds},
    prune::{Found, Keeping, fate, kept},
    unchanged::unchanged,
};
use super::{
    accounts::Entry,
    desired::Claim,
    inventory::{Hold, InstallName, Inventory},
    managed_fields,
    request::Force,
    resource::Resource,
};
use crate::{
    manifest::{ObjectKey, order},
    problem::Problem,
};

/// What is to be done for one install. Its objects may be Secrets, so that it has no `Debug`.
#[derive(Default)]
pub struct Plan {
    /// The objects that are wanted, in the order in which they are applied.
    pub changes: Vec<Change>,
    /// The objects that nobody wants any more, in the order in which they go.
    pub removals: Vec<Removal>,
    /// Entries for ServiceAccounts.
    pub adding: BTreeSet<Entry>,
    /// Entries that go.
    pub removing: BTreeSet<Entry>,
    /// Entries that are there and stay ours.
    pub keeping: BTreeSet<Entry>,
    /// The objects of which others have set fields to other values, where that is to be shown.
    pub refused: Vec<Refused>,
    /// What there is to say. An error refuses the plan.
    pub problems: Vec<Problem>,
    /// How many objects were compared with what is asked for, as the server makes no dry run for the user.
    pub compared: usize,
}

/// An object that is there, and that the server does not take as it is asked for: others have set fields to other values, or
/// it is not valid.
#[derive(Clone)]
pub struct Refused {
    /// Its identity.
    pub key: ObjectKey,
    /// What is asked for.
    pub asked: Value,
    /// The object as it is.
    pub before: Value,
    /// The object as it would be if it were taken.
    pub after: Value,
}

/// What is done with an object that is wanted.
#[derive(Clone)]
pub struct Change {
    /// Its identity.
    pub key: ObjectKey,
    /// Its kind, as requests name it.
    pub resource: Resource,
    /// What is done.
    pub action: Action,
    /// Whose it is afterwards.
    pub hold: Hold,
    /// What is sent.
    pub asked: Value,
    /// The hash of what is sent.
    pub hash: String,
    /// Its uid, as the inventory has it.
    pub uid: Option<String>,
    /// Whose it is when somebody else makes it before it is written.
    pub claim: Claim,
    /// The object as it is; nothing when it is not there or was not read.
    pub before: Option<Value>,
    /// The object as it would be; nothing when that is not known.
    pub after: Option<Value>,
    /// What has to be applied before what is sent, so that the server takes it.
    pub releasing: Option<Value>,
}

/// What is done with an object that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is not there.
    Create,
    /// It is ours, and something differs.
    Update,
    /// It is somebody else's, and is taken over as the user asked.
    Adopt,
    /// It is ours, and a field that cannot be changed is to be: it is deleted and created, as the user asked.
    Recreate,
    /// It is ours, and being deleted: it is created when it is gone.
    AfterDeletion,
    /// It is as it should be.
    Unchanged,
    /// It was made for the install just before the rest, as the rest goes into it.
    Made,
    /// It was there before, and is used as it is.
    Use,
}

impl Action {
    /// Whether the object is written.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, Self::Unchanged | Self::Made | Self::Use)
    }

    /// What kubectl would say.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Create | Self::AfterDeletion | Self::Made => "created",
            Self::Update => "configured",
            Self::Adopt => "adopted",
            Self::Recreate => "recreated",
            Self::Unchanged => "unchanged",
            Self::Use => "used",
        }
    }
}

/// What becomes of an object that nobody wants any more.
#[derive(Debug, Clone)]
pub struct Removal {
    /// Its identity.
    pub key: ObjectKey,
    /// Its kind, as requests name it.
    pub resource: Resource,
    /// What becomes of it.
    pub fate: Fate,
    /// Whether it is a ClusterRole that collects the rules of others, and has to go before them.
    pub collects: bool,
}

/// What becomes of an object that nobody wants any more.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// It goes, if it is still this one.
    Delete {
        /// Its uid.
        uid: String,
    },
    /// It is gone already.
    Gone,
    /// It is no longer ours, or never was: it stays, and is forgotten. Why, in a few words.
    Forget(String),
    /// It never was ours, though the inventory lists it: it stays and is forgotten, and the user is told, as somebody may
    /// have edited the inventory.
    Foreign,
    /// It stays and stays ours, as long as there is a reason. What it is, in a few words.
    Keep(String),
    /// Nobody knows whether it is there: it stays ours. Why, in a few words.
    Unverifiable(String),
}

/// What the user allows.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Which objects may be taken over.
    pub adopt: Adopt,
    /// What says which objects are the install's.
    pub ours: Ours,
    /// Whether fields are taken from others.
    pub force: Force,
    /// Whether objects may be deleted and created to change fields that cannot be changed.
    pub recreate: Recreate,
}

/// What says which objects are an install's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ours {
    /// Its inventory.
    #[default]
    Listed,
    /// The label alone, for those who may not read the inventory, and change nothing.
    Labelled,
}

/// Which objects of others may be taken over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Adopt {
    /// None.
    #[default]
    None,
    /// Those that are named, as kubectl names them: `deployment.apps/manager`.
    Named(BTreeSet<String>),
    /// All.
    All,
}

impl Adopt {
    /// Whether an object may be taken over.
    #[must_use]
    pub fn takes(&self, key: &ObjectKey) -> bool {
        match self {
            Self::None => false,
            Self::Named(names) => names.contains(&key.to_string()),
            Self::All => true,
        }
    }
}

/// Whether objects may be deleted and created to change fields that cannot be changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Recreate {
    /// They may not.
    #[default]
    No,
    /// They may, unless data would be lost with them.
    Yes,
}

impl Plan {
    /// Whether nothing is written, when the inventory says what it should.
    #[must_use]
    pub fn changes_nothing(&self) -> bool {
        let writes = self.changes.iter().any(|change| change.action.writes());
        let goes =
            |removal: &Removal| !matches!(removal.fate, Fate::Keep(_) | Fate::Unverifiable(_));
        let removes = self.removals.iter().any(goes);
        !writes && !removes && self.adding.is_empty() && self.removing.is_empty()
    }

    /// Whether something is refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.problems.iter().any(Problem::is_error)
    }

    /// The changes of each phase, in order, with what the phase is called.
    #[must_use]
    pub fn phases(&self) -> Vec<(&'static str, Vec<&Change>)> {
        let mut phases: BTreeMap<usize, (&'static str, Vec<&Change>)> = BTreeMap::new();
        for change in &self.changes {
            let (rank, name) = order::phase(&change.key);
            phases.entry(rank).or_insert((name, vec![])).1.push(change);
        }
        phases.into_values().collect()
    }
}

/// The other installs of a cluster.
#[derive(Debug, Clone, Default)]
pub struct Others {
    /// Their inventories.
    pub inventories: Vec<Inventory>,
    /// The ids of those whose inventories cannot be understood.
    pub unreadable: BTreeSet<String>,
    /// Whether there are no more, in namespaces that the user may not see.
    pub are_all: bool,
}

impl Others {
    /// The installs whose inventories list an object.
    #[must_use]
    pub fn listing(&self, key: &ObjectKey) -> Vec<&InstallName> {
        let lists = |other: &&Inventory| {
            let member = other.objects.get(key);
            member.is_some_and(|member| member.hold != Hold::Used)
        };
        let listing = self.inventories.iter().filter(lists);
        listing.map(|other| &other.install).collect()
    }

    /// The install with an id.
    #[must_use]
    pub fn named(&self, id: &str) -> Option<&InstallName> {
        let mut installs = self.inventories.iter().map(|other| &other.install);
        installs.find(|install| install.applyset_id() == id)
    }

    /// Whether the install that our program has labelled an object for is gone. An object that another program has labelled
    /// is that program's.
    #[must_use]
    pub fn owner_is_gone(&self, id: &str, live: &Value) -> bool {
        let is_known = self.named(id).is_some() || self.unreadable.contains(id);
        self.are_all && !is_known && managed_fields::sets_label(live)
    }
}
