//! What an install owns: a Secret in the install's namespace that is an ApplySet parent (KEP-3659) and holds the exact
//! list of objects, compressed, in parts where it is large.
//!
//! `kubectl get all -l applyset.kubernetes.io/part-of=ID` and kubectl's own reading of ApplySets
//! (`pkg/cmd/apply/applyset.go`) take it for one; the list, which an ApplySet has not, is ours. There is no data of other
//! Secrets in it. Nothing is sent here.
//!
//! | File | What it does |
//! | --- | --- |
//! | `name.rs` | what installs, their Secrets and their parts are called |
//! | `secrets.rs` | the Secrets that hold an inventory |
//! | `form.rs` | the text in them, to and from compressed bytes |
//! | `read.rs` | an inventory from its Secrets, which anybody may have changed |
//! | `summary.rs` | what its annotations say to people |

mod form;
mod name;
mod read;
mod secrets;
mod summary;

use std::collections::{BTreeMap, BTreeSet};

pub use self::{
    name::{InstallName, PREFIX, applyset_id, is_inventory, is_our_key, is_ours},
    secrets::{INVENTORY, PARENTS},
};
use super::accounts::Entry;
use crate::manifest::ObjectKey;

/// What an install owns, and what it is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    /// The install.
    pub install: InstallName,
    /// How many runs have begun to write it; each adds one.
    pub generation: u64,
    /// Whether the run that wrote it has ended.
    pub state: State,
    /// What is installed, or is being.
    pub content: Content,
    /// The objects.
    pub objects: BTreeMap<ObjectKey, Member>,
    /// The entries in ServiceAccounts that were not there before.
    pub entries: BTreeSet<Entry>,
    /// The installs that need this one, as the runs that applied them found. An install that is gone by now may still be
    /// among them.
    pub required_by: BTreeSet<InstallName>,
}

/// How far an install is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// What is listed is there.
    Done,
    /// It was removed, and what is listed was kept.
    Removed,
    /// A run has begun and not said that it has ended; the list is what it found and what it wants, together.
    Running {
        /// What it does: `apply`, `cleanup`.
        what: String,
        /// Who does it: `user@host pid 4711`.
        who: String,
    },
}

/// What is installed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// The package.
    pub package: String,
    /// The bundle's name: `queues.v1.2.0`.
    pub bundle: String,
    /// Its version.
    pub version: String,
    /// The image that it came from, by digest; empty when it came from none.
    pub image: String,
    /// The catalog that it came from; empty when it came from none.
    pub catalog: String,
}

/// An object of an install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The version that it was applied in.
    pub version: String,
    /// What paths name it by, so that it can be deleted when nobody knows its kind: `deployments`.
    pub plural: String,
    /// Its uid; nothing while it is not known to be there.
    pub uid: Option<String>,
    /// The hash of what was asked for when it was written last; empty before that.
    pub asked: String,
    /// The hash of our fields after that, as [`managed_fields::ours`](super::managed_fields::ours).
    pub managed: String,
    /// Whose it is.
    pub hold: Hold,
}

/// Whose an object of an install is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// The install made it, or took it over; it goes with it.
    Owned,
    /// It is used, and another install of ours owns it; it goes with the last that lists it.
    Shared,
    /// It was there before, is used, and stays.
    Used,
}

/// Why an inventory cannot be read. Nothing may be deleted then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InventoryError {
    /// It was written by a later version of this program.
    #[error("{name}: it was written by a later version of kubectl-olm (form {form})")]
    Newer {
        /// The Secret.
        name: String,
        /// The form that is not known.
        form: u64,
    },
    /// It is damaged, or is not ours.
    #[error("{name}: {reason}")]
    Broken {
        /// The Secret.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}
