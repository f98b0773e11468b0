//! Names for the files that hold one rendered object each: `<kind>[.<group>]-<name>[_<namespace>].yaml`.
//!
//! The part before the name is what `kubectl get -o name` prints before its slash (`deployment.apps`, `configmap`,
//! `clusterrole.rbac.authorization.k8s.io`). Groups are not shortened: a table of short forms would have to grow, and
//! each new entry would rename files in everybody's Git.
//!
//! A name depends on its object alone, so a file keeps its name whatever else appears or vanishes. This is why there
//! are no running numbers, and why the namespace is always part of the name: were it added only where two objects need
//! it, the second `Role` would rename the file of the first.
//!
//! Names are safe on Linux, macOS and Windows, in a shell, in a URL and in YAML. They consist of `a-z`, `0-9`, `.`,
//! `_` and `-`; no two differ only in case or in Unicode normal form. Every other byte of a name, which is mostly the
//! `:` of RBAC names such as `system:auth-delegator`, becomes `__` and two hexadecimal digits:
//! `system__3aauth-delegator`.
//! A lone `_` stands only before the namespace, because a `_` in a name is escaped too.
//!
//! What this does not do: check that kinds, groups and names are ones that Kubernetes would take. Whatever they are,
//! the result is a plain file name. No code of OLM is reproduced here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sha2::{Digest, Sha256};

/// What tells one object from all others; the version of its API does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectIdentity<'a> {
    /// The API group, empty for the core group.
    pub group: &'a str,
    /// The kind as written in the object, such as `ClusterRole`.
    pub kind: &'a str,
    /// The namespace; `None` or empty for a cluster-scoped object.
    pub namespace: Option<&'a str>,
    /// `metadata.name`.
    pub name: &'a str,
}

/// Why objects cannot have a file each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileNameError {
    /// One object was given twice; it is named as `Kind.group namespace/name`.
    #[error("{0} appears twice")]
    Twice(String),
    /// Two objects have names that were made up to collide.
    #[error("{first} and {second} would be written to the same file, {file_name}")]
    SameFile {
        /// The name that both have.
        file_name: String,
        /// The object that comes first.
        first: String,
        /// The object that comes later.
        second: String,
    },
}

/// Bytes of the longest file name, ending included.
///
/// Kubernetes allows 253 for a name and as many for a group, file systems 255 for the whole. 180 leaves room for the
/// folder within the 260 that Windows allows a path, and holds every name made of two 63-byte DNS labels.
const LONGEST_NAME: usize = 180;
const ENDING: &str = ".yaml";

/// Gives each object its file name, in the order of `objects`.
///
/// Objects whose names come out equal, such as those of two kinds that differ only in case, all get a hash of their
/// identity at the end, whichever of them comes first.
///
/// # Errors
///
/// [`FileNameError`] if two objects still have one name.
pub fn file_names(objects: &[ObjectIdentity<'_>]) -> Result<Vec<String>, FileNameError> {
    let stems: Vec<String> = objects.iter().map(stem).collect();
    let plain: Vec<String> = objects.iter().zip(&stems).map(plain_name).collect();
    let shared = repeated(&plain);
    let mut owners: BTreeMap<String, &ObjectIdentity<'_>> = BTreeMap::new();
    let mut names = Vec::with_capacity(objects.len());
    for ((object, stem), plain) in objects.iter().zip(&stems).zip(&plain) {
        let name = if shared.contains(plain.as_str()) {
            hashed_name(object, stem)
        } else {
            plain.clone()
        };
        if let Some(first) = owners.insert(name.clone(), object) {
            return Err(same_name(name, first, object));
        }
        names.push(name);
    }
    Ok(names)
}

/// Whether a file with this name, given by [`file_names`], holds a core `Secret`, which only its owner should read.
pub fn is_secret(file_name: &str) -> bool {
    file_name.starts_with("secret-")
}

impl fmt::Display for ObjectIdentity<'_> {
    /// Escapes control characters, since kind and name may be hostile and the text goes to a terminal.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.kind.escape_debug())?;
        if !self.group.is_empty() {
            write!(formatter, ".{}", self.group.escape_debug())?;
        }
        formatter.write_str(" ")?;
        if let Some(namespace) = self.set_namespace() {
            write!(formatter, "{}/", namespace.escape_debug())?;
        }
        write!(formatter, "{}", self.name.escape_debug())
    }
}

impl ObjectIdentity<'_> {
    fn set_namespace(&self) -> Option<&str> {
        self.namespace.filter(|namespace| !namespace.is_empty())
    }

    /// 64 bits of a hash over all parts, each with its length so that no two identities give the same bytes.
    fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        let namespace = self.set_namespace().unwrap_or_default();
        for part in [self.group, self.kind, namespace, self.name] {
            hasher.update(format!("{}:{part}", part.len()));
        }
        let digest = hasher.finalize();
        digest
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// The file name without its ending, of any length.
fn stem(object: &ObjectIdentity<'_>) -> String {
    let mut stem = escape(&object.kind.to_ascii_lowercase());
    if !object.group.is_empty() {
        stem.push('.');
        stem.push_str(&escape(object.group));
    }
    stem.push('-');
    stem.push_str(&escape(object.name));
    if let Some(namespace) = object.set_namespace() {
        stem.push('_');
        stem.push_str(&escape(namespace));
    }
    guard_start(stem)
}

fn plain_name((object, stem): (&ObjectIdentity<'_>, &String)) -> String {
    if stem.len() + ENDING.len() > LONGEST_NAME {
        hashed_name(object, stem)
    } else {
        format!("{stem}{ENDING}")
    }
}

/// The name with the identity's hash at the end, and as much of the readable part as there is room for.
fn hashed_name(object: &ObjectIdentity<'_>, stem: &str) -> String {
    let hash = object.hash();
    let room = LONGEST_NAME - ENDING.len() - hash.len() - 1;
    // Escaped text is ASCII, so taking characters takes bytes.
    let head: String = stem.chars().take(room).collect();
    format!("{head}-{hash}{ENDING}")
}

/// Keeps what is safe everywhere and writes each other byte as `__` and its value.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!("__{byte:02x}")),
        }
    }
    escaped
}

/// Escapes the first byte where the name would be hidden, look like a flag, or open a device on Windows.
///
/// Windows looks at the part before the first dot only, which is the kind of an object with a group. The other device
/// names (`CONIN$`, `COM¹`) hold characters that are escaped anyway.
fn guard_start(stem: String) -> String {
    let before_dot = stem.split('.').next().unwrap_or_default();
    let is_device = match before_dot {
        "con" | "prn" | "aux" | "nul" => true,
        _ => matches!(
            before_dot.as_bytes(),
            [b'c', b'o', b'm', b'0'..=b'9'] | [b'l', b'p', b't', b'0'..=b'9']
        ),
    };
    if is_device || stem.starts_with(['.', '-']) {
        let (first, rest) = stem.split_at(1);
        return first
            .bytes()
            .map(|byte| format!("__{byte:02x}"))
            .collect::<String>()
            + rest;
    }
    stem
}

fn same_name(
    file_name: String,
    first: &ObjectIdentity<'_>,
    second: &ObjectIdentity<'_>,
) -> FileNameError {
    let (first, second) = (first.to_string(), second.to_string());
    if first == second {
        FileNameError::Twice(first)
    } else {
        FileNameError::SameFile {
            file_name,
            first,
            second,
        }
    }
}

fn repeated(names: &[String]) -> BTreeSet<&str> {
    let mut seen = BTreeSet::new();
    names
        .iter()
        .map(String::as_str)
        .filter(|name| !seen.insert(*name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object<'a>(
        group: &'a str,
        kind: &'a str,
        namespace: Option<&'a str>,
        name: &'a str,
    ) -> ObjectIdentity<'a> {
        ObjectIdentity {
            group,
            kind,
            namespace,
            name,
        }
    }

    fn one(group: &str, kind: &str, namespace: Option<&str>, name: &str) -> String {
        file_names(&[object(group, kind, namespace, name)])
            .unwrap()
            .remove(0)
    }

    /// The rules a name must keep, written independently of how names are made.
    fn assert_safe(name: &str) {
        assert!(name.len() <= 180, "{name}");
        assert!(name.ends_with(".yaml"), "{name}");
        assert!(
            name.bytes()
                .all(|byte| b"abcdefghijklmnopqrstuvwxyz0123456789._-".contains(&byte)),
            "{name}"
        );
        assert!(!name.starts_with(['.', '-']), "{name}");
        let device = name.split('.').next().unwrap();
        let devices = "con prn aux nul com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 \
                       lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9";
        assert!(
            !devices
                .split_whitespace()
                .any(|reserved| reserved == device),
            "{name}"
        );
    }

    #[test]
    fn ordinary_objects_have_the_names_kubectl_prints() {
        assert_eq!(one("", "ConfigMap", Some("op"), "a"), "configmap-a_op.yaml");
        assert_eq!(
            one("apps", "Deployment", Some("op"), "web"),
            "deployment.apps-web_op.yaml"
        );
        assert_eq!(
            one(
                "rbac.authorization.k8s.io",
                "ClusterRole",
                None,
                "system:auth-delegator"
            ),
            "clusterrole.rbac.authorization.k8s.io-system__3aauth-delegator.yaml"
        );
        assert_eq!(one("", "Namespace", Some(""), "op"), "namespace-op.yaml");
    }

    #[test]
    fn a_name_does_not_depend_on_other_objects() {
        let role = object("rbac.authorization.k8s.io", "Role", Some("a"), "x");
        let others = [
            role,
            ObjectIdentity {
                namespace: Some("b"),
                ..role
            },
            ObjectIdentity { group: "", ..role },
        ];
        assert_eq!(
            file_names(&others).unwrap()[0],
            file_names(&[role]).unwrap()[0]
        );
    }

    #[test]
    fn different_objects_have_different_names() {
        let objects = [
            object("", "Role", Some("a"), "b"),
            object("", "Role", Some("b"), "a"),
            object("", "Role", None, "a-b"),
            object("", "Role", None, "a_b"),
            object("", "Role", None, "b_a"),
            object("", "Role", None, "a__62"),
            object("", "Role", None, "a:"),
            object("", "Role", None, "a__3a"),
            object("", "Role", None, "A"),
            object("", "Role", None, "a"),
            object("", "Role", None, "ä"),
            object("", "Role", None, "a\u{308}"),
            object("g", "Role", None, "a"),
        ];
        let names = file_names(&objects).unwrap();
        assert_eq!(
            names.iter().collect::<BTreeSet<_>>().len(),
            objects.len(),
            "{names:?}"
        );
        names.iter().for_each(|name| assert_safe(name));
    }

    #[test]
    fn equal_names_are_told_apart_by_a_hash_in_any_order() {
        let upper = object("g.io", "FOO", None, "a");
        let lower = object("g.io", "Foo", None, "a");
        let unrelated = object("g.io", "Foo", None, "b");
        let names = file_names(&[upper, lower, unrelated]).unwrap();
        let turned = file_names(&[lower, unrelated, upper]).unwrap();
        assert_eq!(
            [&names[0], &names[1], &names[2]],
            [&turned[2], &turned[0], &turned[1]]
        );
        assert_ne!(names[0], names[1]);
        assert_eq!(names[2], "foo.g.io-b.yaml");
        // A dash may belong to the group or to the name.
        let dashes = [object("a", "K", None, "b-c"), object("a-b", "K", None, "c")];
        let names = file_names(&dashes).unwrap();
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn the_same_object_twice_is_an_error_that_names_it() {
        let twice = object("", "Secret", Some("op"), "a\u{1b}");
        let error = file_names(&[twice, twice]).unwrap_err();
        assert_eq!(error.to_string(), "Secret op/a\\u{1b} appears twice");
    }

    #[test]
    fn a_name_made_to_look_like_a_shortened_one_gets_another() {
        let long = "n".repeat(200);
        let cut = one("", "Pod", None, &long);
        let forged = cut
            .strip_prefix("pod-")
            .and_then(|name| name.strip_suffix(".yaml"))
            .unwrap();
        let names = file_names(&[
            object("", "Pod", None, &long),
            object("", "Pod", None, forged),
        ])
        .unwrap();
        assert_eq!(names[0], cut);
        assert_ne!(names[1], cut);
    }

    #[test]
    fn a_name_made_to_look_like_one_with_a_hash_is_an_error() {
        let (upper, lower) = (object("", "POD", None, "a"), object("", "Pod", None, "a"));
        let hashed = file_names(&[upper, lower]).unwrap().remove(0);
        let forged = hashed
            .strip_prefix("pod-")
            .and_then(|name| name.strip_suffix(".yaml"))
            .unwrap();
        let error = file_names(&[upper, lower, object("", "Pod", None, forged)]).unwrap_err();
        let FileNameError::SameFile {
            file_name,
            first,
            second,
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!(
            (file_name, first, second),
            (hashed.clone(), "POD a".to_owned(), format!("Pod {forged}"))
        );
    }

    #[test]
    fn hostile_identities_give_plain_file_names() {
        let odd = [
            "",
            ".",
            "..",
            "/",
            "a/b",
            "../../etc/passwd",
            "a\\b",
            "%2e%2e",
            "CON",
            "nul",
            "nul.yaml",
            "COM¹",
            "com1",
            "lpt0",
            "-rf",
            "a ",
            "a.",
            "a\0b",
            "a\nb",
            "#",
            "*",
            "C:",
            "日本",
            "$(id)",
            "~",
            "con.x",
        ];
        for kind in odd {
            for name in odd {
                for group in odd {
                    for namespace in [None, Some(name)] {
                        assert_safe(&one(group, kind, namespace, name));
                    }
                }
            }
        }
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let group = "rbac.authorization.k8s.io";
        let base = format!("system:{}", "n".repeat(245));
        let (first, second) = (format!("{base}1"), format!("{base}2"));
        assert_eq!(first.len(), 253);
        let names = file_names(&[
            object(group, "ClusterRole", None, &first),
            object(group, "ClusterRole", None, &second),
        ])
        .unwrap();
        assert_ne!(names[0], names[1]);
        for name in &names {
            assert_safe(name);
            assert_eq!(name.len(), 180);
            assert!(
                name.starts_with("clusterrole.rbac.authorization.k8s.io-system__3annnn"),
                "{name}"
            );
        }
        // Just short enough is not cut.
        let fits = "n".repeat(180 - "pod-.yaml".len());
        assert_eq!(one("", "Pod", None, &fits), format!("pod-{fits}.yaml"));
    }

    /// The value is `printf '0:3:Pod0:200:nnn…' | sha256sum | cut -c1-16`: it may never change, or files are renamed.
    #[test]
    fn the_hash_is_pinned() {
        let name = one("", "Pod", None, &"n".repeat(200));
        assert_eq!(&name[name.len() - 21..], "14be2654a9e4667c.yaml");
    }

    #[test]
    fn only_core_secrets_count_as_secret() {
        assert!(is_secret(&one("", "Secret", Some("op"), "a")));
        assert!(!is_secret(&one("g.io", "Secret", Some("op"), "a")));
        assert!(!is_secret(&one("", "ConfigMap", Some("op"), "secret-a")));
    }
}
