//! The flags that say what may be changed in a cluster.

use std::{collections::BTreeSet, time::Duration};

use clap::{Args, ValueEnum};

use super::{
    super::{
        failure::{Class, Failure},
        output::Output,
    },
    rendering::Follows,
};

use crate::cluster::{
    apply::Waiting,
    live::Asking,
    plan::{Adopt, Ours, Policy, Recreate},
    request::Force,
    survey::{Deleting, Missing, Safety, Survey},
};

/// The heading of the flags.
const HEADING: &str = "Changes";

/// What may be changed.
#[derive(Debug, Args)]
pub(in crate::cli) struct ChangeArgs {
    /// Name of the install (default: that of its Subscription or ClusterExtension, else of its package)
    #[arg(long, value_name = "NAME", help_heading = HEADING)]
    pub name: Option<String>,
    /// Object of another owner to take over, as kubectl names it (deployment.apps/manager), or `all`; repeat for several
    #[arg(long, value_name = "OBJECT|all", value_delimiter = ',', help_heading = HEADING)]
    adopt: Vec<String>,
    /// Take fields that others have set to other values
    #[arg(long, help_heading = HEADING)]
    force_conflicts: bool,
    /// Delete objects and create them anew to change fields that cannot be changed; never what holds data or other objects
    #[arg(long, help_heading = HEADING)]
    recreate: bool,
    /// Leave out objects of kinds that the cluster lacks
    #[arg(long, help_heading = HEADING)]
    skip_missing_kinds: bool,
    /// What is done when a new definition breaks an old one or what is stored by it: strict refuses it
    #[arg(long, value_name = "strict|none", default_value = "strict", hide_possible_values = true, help_heading = HEADING)]
    crd_upgrade_safety: SafetyWord,
    /// Install the version that is wanted even when the catalog knows no way to it from the one that is installed
    #[arg(long, help_heading = HEADING)]
    force_upgrade: bool,
    #[command(flatten)]
    pub deleting: DeletingArgs,
}

/// What may be deleted with what an install owns.
#[derive(Debug, Clone, Copy, Args)]
pub(in crate::cli) struct DeletingArgs {
    /// Delete definitions that go even when there are custom resources of theirs, and these with them
    #[arg(long, help_heading = HEADING)]
    delete_custom_resources: bool,
    /// Delete namespaces that go even when objects of others are in them, and these with them
    #[arg(long, help_heading = HEADING)]
    delete_namespaces: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SafetyWord {
    Strict,
    None,
}

/// Whether a run changes anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum DryRun {
    /// It does.
    #[default]
    None,
    /// It does not, and sends nothing that would change anything.
    Client,
    /// It does not, and the server says what it would do.
    Server,
}

impl DeletingArgs {
    /// What may be deleted.
    pub(in crate::cli) fn deleting(self) -> Deleting {
        Deleting {
            custom_resources: self.delete_custom_resources,
            namespaces: self.delete_namespaces,
        }
    }
}

impl ChangeArgs {
    /// Whether fields are taken from others.
    pub(in crate::cli) fn force(&self) -> Force {
        if self.force_conflicts {
            Force::Yes
        } else {
            Force::No
        }
    }

    /// Whether what is to be taken over is among what is rendered.
    ///
    /// # Errors
    /// When it is not: it may be mistyped.
    pub(in crate::cli) fn is_adoptable(&self, output: &Output) -> Result<(), Failure> {
        let keys: BTreeSet<_> = output
            .manifests()
            .map(|manifest| manifest.key().to_string())
            .collect();
        let unknown = self
            .adopt
            .iter()
            .filter(|name| *name != "all" && !keys.contains(*name));
        let unknown: Vec<_> = unknown.map(String::as_str).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let message = format!("--adopt {}: no such object is installed", unknown.join(","));
        let hint = "name objects as the refusal does, such as deployment.apps/manager";
        Err(Failure::new(Class::Usage, message).with_hint(hint))
    }

    /// Whether the version that is installed counts for the one that is chosen.
    pub(in crate::cli) fn follows(&self) -> Follows<'_> {
        if self.force_upgrade {
            Follows::Nothing
        } else {
            Follows::Installed(self.name.as_deref())
        }
    }

    /// How plans are made, when objects are asked about like this.
    pub(in crate::cli) fn survey(&self, asking: Asking) -> Survey {
        let names: BTreeSet<_> = self.adopt.iter().cloned().collect();
        Survey {
            policy: Policy {
                adopt: match (names.is_empty(), names.contains("all")) {
                    (true, _) => Adopt::None,
                    (_, true) => Adopt::All,
                    _ => Adopt::Named(names),
                },
                ours: Ours::Listed,
                force: self.force(),
                recreate: if self.recreate {
                    Recreate::Yes
                } else {
                    Recreate::No
                },
            },
            asking,
            missing: if self.skip_missing_kinds {
                Missing::Skip
            } else {
                Missing::Refuse
            },
            safety: match self.crd_upgrade_safety {
                SafetyWord::Strict => Safety::Strict,
                SafetyWord::None => Safety::None,
            },
            deleting: self.deleting.deleting(),
        }
    }
}

/// What `--wait` and `--timeout` say.
pub(in crate::cli) fn waiting(wait: bool, timeout: Duration) -> Waiting {
    if wait {
        Waiting::For(timeout)
    } else {
        Waiting::No
    }
}

/// How long a run waits, as kubectl says it: a number with s, m or h behind it, or several.
pub(in crate::cli) fn parse_timeout(text: &str) -> Result<Duration, String> {
    let span: jiff::SignedDuration = text
        .parse()
        .map_err(|_| "use a number with s, m or h behind it, such as 90s or 5m".to_owned())?;
    Duration::try_from(span).map_err(|_| "it cannot be less than nothing".to_owned())
}
