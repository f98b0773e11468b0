//! What is rendered for a live cluster, and what for.

use super::super::parts::Parts;

/// What is rendered, and what for.
pub(in crate::cli) struct Rendering<'r> {
    /// What is applied of it.
    pub(in crate::cli) parts: &'r Parts,
    pub(in crate::cli) follows: Follows<'r>,
    /// Whether it is for changes.
    pub(in crate::cli) holding: Holding,
}

/// Whether the version that is installed counts for the one that is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Follows<'n> {
    /// The catalog's way from there is followed; the install has this name, else that of its object or package.
    Installed(Option<&'n str>),
    /// It does not.
    Nothing,
}

/// Whether installs are held while they are planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Holding {
    Lease,
    Nothing,
}
