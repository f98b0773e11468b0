//! Versions and ranges of versions, as OLM reads them: v0 with blang/semver, v1 with Masterminds/semver.

/// A range of versions in the syntax of Masterminds/semver v3.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint;
