//! What the commands about a live cluster share: a connection, what the cluster tells before anything is rendered, and
//! the plan for each install.

mod args;
mod certificates;
mod ending;
mod facts;
mod failures;
mod planned;
mod rendering;
mod report;
mod session;

use crate::cluster::inventory::InstallName;

/// Whether an install is called so, or is a part of the one that is: what is in the whole cluster, or in namespaces.
pub(super) fn is_called(install: &InstallName, name: &str) -> bool {
    let rest = install.name.strip_prefix(name);
    rest.is_some_and(|rest| matches!(rest, "" | ".cluster" | ".namespaced"))
}

pub(super) use self::{
    args::{ChangeArgs, DeletingArgs, DryRun, parse_timeout, waiting},
    ending::{ask, count, ended, refusal},
    failures::{api_failure, stored_failure},
    planned::{Namespace, Planned, Planning, hold, namespace, plan_all, with_shared},
    rendering::{Holding, Rendering},
    report::{Lines, Unchanged, line, named, show},
    session::{FromCluster, Session, rendered},
};
