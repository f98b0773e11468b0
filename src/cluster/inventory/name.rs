//! The names of installs, of what is stored of them, and what nobody else may name so.
//!
//! The id is that of KEP-3659 as kubectl computes it (`pkg/cmd/apply/applyset.go`, `computeApplySetID`).

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use crate::manifest::{ObjectKey, names};

/// What the names of our Secrets and Leases begin with.
pub const PREFIX: &str = "kubectl-olm.";
/// What the keys of labels and annotations begin with that only we set.
const OUR_KEYS: [&str; 2] = ["applyset.kubernetes.io/", "kubectl-olm/"];
/// Bytes of a name: with all that is put around it, it is still a name for a Secret.
const LONGEST: usize = 190;
/// Digits of the checksum in the names of parts.
pub(super) const CHECK_DIGITS: usize = 12;

/// The name of an install in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstallName {
    /// The namespace of its inventory.
    pub namespace: String,
    /// Its name, with what it covers: `queues`, `queues.cluster`, `queues.namespaced`.
    pub name: String,
}

impl fmt::Display for InstallName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.name, self.namespace)
    }
}

impl InstallName {
    /// The name of an install, which has to do for a Secret and a Lease too.
    ///
    /// # Errors
    /// When it does not; the text names the rule.
    pub fn new(namespace: &str, name: &str) -> Result<Self, String> {
        if let Some(reason) = names::label_error(namespace) {
            return Err(format!("the namespace {namespace:?} is invalid: {reason}"));
        }
        let reason = names::subdomain_error(name).or_else(|| {
            let is_long = name.len() > LONGEST;
            is_long.then(|| format!("it must be no more than {LONGEST} characters"))
        });
        if let Some(reason) = reason {
            return Err(format!("the install's name {name:?} is invalid: {reason}"));
        }
        if is_like_a_part(name) {
            return Err(format!(
                "the install's name {name:?} is invalid: an inventory in parts uses names that end so; choose another"
            ));
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The name of its inventory's Secret, and of its Lease.
    #[must_use]
    pub fn secret(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// As `namespace/name`, which no other install has.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The install of such a text.
    ///
    /// # Errors
    /// Why it is none.
    pub fn of_path(path: &str) -> Result<Self, String> {
        let (namespace, name) = path
            .split_once('/')
            .ok_or_else(|| format!("{path:?} names no install as NAMESPACE/NAME"))?;
        Self::new(namespace, name)
    }

    /// The id of its ApplySet, which its objects carry as a label: `applyset-...-v1`.
    #[must_use]
    pub fn applyset_id(&self) -> String {
        applyset_id(&self.namespace, &self.secret())
    }

    /// What names a part of its inventory.
    pub(super) fn part(&self, generation: u64, checksum: &str, number: usize) -> String {
        let check = checksum.get(..CHECK_DIGITS).unwrap_or(checksum);
        format!("{}.g{generation}.{check}.{number}", self.secret())
    }
}

/// Whether only we may give an object this identity: our Secrets and Leases, in whatever namespace they are.
#[must_use]
pub fn is_ours(key: &ObjectKey) -> bool {
    let is_kind = matches!(
        (key.group.as_str(), key.kind.as_str()),
        ("", "Secret") | ("coordination.k8s.io", "Lease")
    );
    is_kind && key.name.starts_with(PREFIX)
}

/// Whether an object has the name of the first Secret of an install's inventory.
#[must_use]
pub fn is_inventory(key: &ObjectKey) -> bool {
    let name = key.name.strip_prefix(PREFIX);
    is_ours(key) && key.kind == "Secret" && name.is_some_and(|name| !is_like_a_part(name))
}

/// Whether only we may set a label or annotation with this key.
#[must_use]
pub fn is_our_key(key: &str) -> bool {
    OUR_KEYS.iter().any(|prefix| key.starts_with(prefix))
}

/// The id of the ApplySet whose parent is a Secret.
#[must_use]
pub fn applyset_id(namespace: &str, secret: &str) -> String {
    let parent = format!("{secret}.{namespace}.Secret.");
    let digest = Sha256::digest(parent.as_bytes());
    format!("applyset-{}-v1", URL_SAFE_NO_PAD.encode(digest))
}

/// Whether the Secret of an install of this name could be a part of another inventory.
fn is_like_a_part(name: &str) -> bool {
    let mut parts = name.rsplit('.');
    let (number, check, generation) = (parts.next(), parts.next(), parts.next());
    let are_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_check = |text: &str| {
        text.len() == CHECK_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    number.is_some_and(are_digits)
        && check.is_some_and(is_check)
        && generation
            .and_then(|text| text.strip_prefix('g'))
            .is_some_and(are_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of kubectl's own test (`pkg/cmd/apply/apply_test.go`).
    #[test]
    fn ids_are_those_of_kubectl() {
        let expected = "applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1";
        assert_eq!(applyset_id("test", "my-set"), expected);
    }

    #[test]
    fn names_that_do_not_do_are_refused_with_the_rule() {
        let long = "a".repeat(191);
        let reason =
            |namespace: &str, name: &str| InstallName::new(namespace, name).expect_err("refused");
        assert!(reason("ops", &long).ends_with("it must be no more than 190 characters"));
        assert!(reason("ops", "Queues").contains("lower case"));
        assert!(reason("ops", "../x").contains("lower case"));
        assert!(reason("a.b", "queues").starts_with("the namespace \"a.b\" is invalid"));
        assert!(reason("ops", "queues.g7.0123456789ab.1").contains("inventory in parts"));
        let name = InstallName::new("ops", &long[1..]).expect("a name");
        let part = name.part(u64::MAX, &"f".repeat(64), 999);
        assert_eq!(names::subdomain_error(&part), None, "{part}");
        assert!(is_like_a_part(&part[PREFIX.len()..]));
    }
}
