//! `kubectl olm` does on your machine what the Operator Lifecycle Manager does inside a cluster.
//!
//! This library is for the binary and its own tests; it promises nothing to others. Boxes with double lines touch the
//! world, everything else takes values and returns values:
//!
//! ```text
//!    ./bundle
//!       │
//!  ╔════▼═════╗  FileTree  ┌────────┐  Bundle  ┌────────┐  Rendered  ╔════════╗
//!  ║  source  ║───────────▶│ bundle │─────────▶│ render │───────────▶║  cli   ║──▶ stdout, files
//!  ╚══════════╝            └────────┘          └────────┘            ╚════════╝
//! ```
//!
//! What stays true:
//! - the same input gives the same bytes: no clock, no randomness, no order of hash maps;
//! - what is rendered equals what OLM's own renderer makes, except where a comment says why not;
//! - an object never appears twice, and all problems are told at once;
//! - content is hostile until proven otherwise: bounded, never unpacked to disk, never able to panic the program.

pub mod bundle;
pub mod catalog;
pub mod cli;
pub mod files;
pub mod image;
pub mod kube_version;
pub mod limits;
pub mod manifest;
pub mod problem;
pub mod render;
pub mod resolve;
pub mod source;
pub mod versions;
