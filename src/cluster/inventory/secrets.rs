//! The Secrets that hold an inventory: the first one is the parent of the ApplySet, and holds the contents or names the
//! Secrets that hold parts of them, each with its checksum.
//!
//! The names of parts have the generation and a checksum of the whole in them. So writing an inventory changes no Secret
//! that the one before it names, and a set of which only some parts were written is never taken for a whole: the first is
//! written last.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::{super::checksum::sha256, InstallName, Inventory, form, summary};
use crate::manifest::ObjectKey;

/// The label of the parts of an inventory, with the id of the install as its value. Those that the first Secret does not
/// name are of an earlier run, and can go once it is written.
pub const INVENTORY: &str = "kubectl-olm/inventory";
/// A selector of the first Secrets of all installs.
pub const PARENTS: &str = "applyset.kubernetes.io/id,app.kubernetes.io/managed-by=kubectl-olm";

/// The label with the id of an ApplySet.
pub(super) const ID: &str = "applyset.kubernetes.io/id";
/// The annotation with the tool that an ApplySet belongs to, and its version.
pub(super) const TOOLING: &str = "applyset.kubernetes.io/tooling";
/// The tool, as it stands before the `/` in [`TOOLING`].
pub(super) const TOOL: &str = "kubectl-olm";
/// The type of the first Secret.
pub(super) const TYPE: &str = "kubectl-olm/inventory";
/// The type of the others.
const PART_TYPE: &str = "kubectl-olm/inventory-part";
/// The key of the contents, or of a part of them.
pub(super) const CONTENTS: &str = "inventory";
/// The key of the list of parts.
pub(super) const PARTS: &str = "parts";
/// Bytes in one Secret: less than the mebibyte that a Secret may hold, and with what base64 adds less than etcd takes.
pub(super) const PART_BYTES: usize = 900 << 10;

impl Inventory {
    /// The Secrets that hold it, the first one being the parent of the ApplySet, which is written last.
    #[must_use]
    pub fn secrets(&self) -> Vec<Value> {
        let contents = form::pack(self);
        if contents.len() <= PART_BYTES {
            return vec![self.parent(CONTENTS, &contents)];
        }
        let checksum = sha256(&contents);
        let mut secrets = vec![];
        let mut list = vec![];
        for (number, bytes) in (1..).zip(contents.chunks(PART_BYTES)) {
            let name = self.install.part(self.generation, &checksum, number);
            list.push(json!({"name": name, "sha256": sha256(bytes)}));
            secrets.push(self.part(&name, bytes));
        }
        let list = Value::Array(list).to_string();
        secrets.insert(0, self.parent(PARTS, list.as_bytes()));
        secrets
    }

    fn parent(&self, key: &str, bytes: &[u8]) -> Value {
        let mut annotations = summary::annotations(self);
        let tool = format!("{TOOL}/v{}", env!("CARGO_PKG_VERSION"));
        let applyset = [
            (TOOLING, tool),
            ("applyset.kubernetes.io/contains-group-kinds", self.kinds()),
            (
                "applyset.kubernetes.io/additional-namespaces",
                self.namespaces(),
            ),
        ];
        for (key, value) in applyset {
            annotations.insert(key.to_owned(), Value::String(value));
        }
        let mut secret = secret(&self.install, &self.install.secret(), TYPE, key, bytes);
        secret["metadata"]["labels"][ID] = json!(self.install.applyset_id());
        secret["metadata"]["annotations"] = Value::Object(annotations);
        secret
    }

    fn part(&self, name: &str, bytes: &[u8]) -> Value {
        let mut secret = secret(&self.install, name, PART_TYPE, CONTENTS, bytes);
        secret["metadata"]["labels"][INVENTORY] = json!(self.install.applyset_id());
        secret
    }

    /// `kind.group` of all objects, as Go prints a `GroupKind`.
    fn kinds(&self) -> String {
        let kind = |key: &ObjectKey| match key.group.as_str() {
            "" => key.kind.clone(),
            group => format!("{}.{group}", key.kind),
        };
        let kinds: BTreeSet<_> = self.objects.keys().map(kind).collect();
        Vec::from_iter(kinds).join(",")
    }

    /// The namespaces of objects, without that of the inventory.
    fn namespaces(&self) -> String {
        let namespaces = self.objects.keys().map(|key| key.namespace.as_str());
        let is_other =
            |namespace: &&str| !namespace.is_empty() && *namespace != self.install.namespace;
        let namespaces: BTreeSet<_> = namespaces.filter(is_other).collect();
        Vec::from_iter(namespaces).join(",")
    }
}

fn secret(install: &InstallName, name: &str, kind: &str, key: &str, bytes: &[u8]) -> Value {
    let mut data = Map::new();
    data.insert(key.to_owned(), Value::String(STANDARD.encode(bytes)));
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": install.namespace,
            "labels": {"app.kubernetes.io/managed-by": TOOL},
        },
        "type": kind,
        "data": data,
    })
}
