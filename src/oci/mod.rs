//! Container images as values: what manifests and configurations say, and the files that layers make together. Nothing
//! here knows where an image is.

mod checked_json;
pub mod choice;
pub mod config;
pub mod digest;
pub mod layer;
pub mod manifest;
pub mod needed;
pub mod overlay;
mod paths;
pub mod platform;

/// The largest manifest, index or configuration that is read, in bytes, as in containers/image (`internal/iolimits`).
/// They are text of a few kilobytes, so this is not among the limits that a user may lift.
pub const DOCUMENT_BYTES: u64 = 4 << 20;
