//! What went wrong with a cluster, as a failure with its exit code.

use super::super::failure::{Class, Failure};
use crate::cluster::{
    answer::{ApiError, RefusalKind},
    inventory::InventoryError,
    stored::StoredError,
};

/// What helps when custom resources cannot be converted.
const UNCONVERTED: &str = r#"have them read as they are stored: `kubectl patch customresourcedefinition NAME --type=merge -p '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'`"#;

/// The failure of a request that came before the first write.
pub(in crate::cli) fn api_failure(error: &ApiError) -> Failure {
    let class = match error {
        ApiError::Refused(_) => Class::ClusterRefused,
        ApiError::Unreachable { .. } | ApiError::NotKubernetes { .. } => Class::Network,
        ApiError::Stopped { .. } => Class::Interrupted,
    };
    if class == Class::Interrupted {
        return Failure::new(class, "interrupted").with_detail("nothing was changed");
    }
    let failure = Failure::of(class, error);
    if error.is_conversion() {
        return failure.with_hint(UNCONVERTED);
    }
    if matches!(error, ApiError::Unreachable { .. }) {
        return failure.with_hint(
            "see that the server is up, and that --context names the one that is meant",
        );
    }
    match error.kind() {
        Some(RefusalKind::Forbidden) => {
            failure.with_hint("`kubectl olm rbac` prints what an account needs for an install")
        }
        Some(RefusalKind::Credentials) => {
            failure.with_hint("log in again, or name another --context")
        }
        _ => failure,
    }
}

/// The failure of reading an inventory.
pub(in crate::cli) fn stored_failure(error: &StoredError) -> Failure {
    match error {
        StoredError::Api(error) => api_failure(error),
        StoredError::Inventory(error) => {
            let failure = Failure::of(Class::ClusterRefused, error);
            match error {
                InventoryError::Newer { .. } => {
                    failure.with_hint("use that version; nothing was changed or deleted")
                }
                InventoryError::Broken { .. } => failure.with_hint(
                    "restore the Secret from a backup; or delete it, and apply again with --adopt all, which makes a new one. \
                     Nothing was changed or deleted",
                ),
            }
        }
    }
}
