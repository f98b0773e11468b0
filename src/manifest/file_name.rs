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

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::ObjectKey;

/// Bytes of the longest file name, ending included.
///
/// Kubernetes allows 253 for a name and as many for a group, file systems 255 for the whole. 180 leaves room for the
/// folder within the 260 that Windows allows a path, and holds every name made of two 63-byte DNS labels.
const LONGEST_NAME: usize = 180;
const ENDING: &str = ".yaml";

/// What stands before a hash. No escape begins like this, as `z` is no hexadecimal digit, so that no object can be
/// given the name of another's file.
const HASH_MARK: &str = "__z";

/// Gives each object its file name, in the order of `objects`, which are all different.
///
/// Objects whose names come out equal, such as those of two kinds that differ only in case, all get a hash of their
/// identity at the end, whichever of them comes first.
#[must_use]
pub fn file_names(objects: &[ObjectKey]) -> Vec<String> {
    let stems: Vec<String> = objects.iter().map(stem).collect();
    let plain: Vec<String> = objects.iter().zip(&stems).map(plain_name).collect();
    let mut seen = BTreeSet::new();
    let shared: BTreeSet<_> = plain.iter().filter(|name| !seen.insert(*name)).collect();
    let name = |((object, stem), plain): ((&ObjectKey, &String), &String)| {
        if shared.contains(plain) {
            hashed_name(object, stem)
        } else {
            plain.clone()
        }
    };
    objects.iter().zip(&stems).zip(&plain).map(name).collect()
}

/// Whether a file with this name, given by [`file_names`], holds a core `Secret`, which only its owner should read.
#[must_use]
pub fn is_secret(file_name: &str) -> bool {
    holds(file_name, "", "Secret")
}

/// Whether a file with this name, given by [`file_names`], holds an object of this group and kind, whose letters say
/// what they mean. Case is not told apart, and a group that goes on after a `-` may be taken for a shorter one.
#[must_use]
pub(super) fn holds(file_name: &str, group: &str, kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let rest = file_name.strip_prefix(&kind);
    let rest = rest.and_then(|rest| match group {
        "" => Some(rest),
        group => rest.strip_prefix('.')?.strip_prefix(group),
    });
    rest.is_some_and(|rest| rest.starts_with('-'))
}

/// Whether [`file_names`] could have given this name.
#[must_use]
pub fn is_file_name(name: &str) -> bool {
    let is_safe = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    let stem = name.strip_suffix(ENDING).unwrap_or_default();
    stem.contains('-')
        && !needs_guard(stem)
        && name.len() <= LONGEST_NAME
        && name.bytes().all(is_safe)
}

/// The file name without its ending, of any length.
fn stem(object: &ObjectKey) -> String {
    let mut stem = escape(&object.kind.to_ascii_lowercase());
    if !object.group.is_empty() {
        stem.push('.');
        stem.push_str(&escape(&object.group));
    }
    stem.push('-');
    stem.push_str(&escape(&object.name));
    if !object.namespace.is_empty() {
        stem.push('_');
        stem.push_str(&escape(&object.namespace));
    }
    guard_start(stem)
}

fn plain_name((object, stem): (&ObjectKey, &String)) -> String {
    if stem.len() + ENDING.len() > LONGEST_NAME {
        hashed_name(object, stem)
    } else {
        format!("{stem}{ENDING}")
    }
}

/// The name with the identity's hash at the end, and as much of the readable part as there is room for.
fn hashed_name(object: &ObjectKey, stem: &str) -> String {
    let hash = hash(object);
    let room = LONGEST_NAME - ENDING.len() - hash.len() - HASH_MARK.len();
    // Escaped text is ASCII, so taking characters takes bytes.
    let head: String = stem.chars().take(room).collect();
    format!("{head}{HASH_MARK}{hash}{ENDING}")
}

/// 64 bits of a hash over all parts, each with its length so that no two identities give the same bytes.
fn hash(object: &ObjectKey) -> String {
    let mut hasher = Sha256::new();
    for part in [&object.group, &object.kind, &object.namespace, &object.name] {
        hasher.update(format!("{}:{part}", part.len()));
    }
    let digest = hasher.finalize();
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
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

/// Escapes the first byte where the name needs it.
fn guard_start(stem: String) -> String {
    if !needs_guard(&stem) {
        return stem;
    }
    let (first, rest) = stem.split_at(1);
    let first: String = first.bytes().map(|byte| format!("__{byte:02x}")).collect();
    first + rest
}

/// Whether a name would be hidden, look like a flag, or open a device on Windows.
///
/// Windows looks at the part before the first dot only, which is the kind of an object with a group. The other device
/// names (`CONIN$`, `COM¹`) hold characters that are escaped anyway.
fn needs_guard(stem: &str) -> bool {
    let before_dot = stem.split('.').next().unwrap_or_default();
    let is_device = match before_dot {
        "con" | "prn" | "aux" | "nul" => true,
        _ => matches!(
            before_dot.as_bytes(),
            [b'c', b'o', b'm', b'0'..=b'9'] | [b'l', b'p', b't', b'0'..=b'9']
        ),
    };
    is_device || stem.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectKey {
        ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    fn one(group: &str, kind: &str, namespace: &str, name: &str) -> String {
        file_names(&[object(group, kind, namespace, name)]).remove(0)
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
        assert_eq!(one("", "ConfigMap", "op", "a"), "configmap-a_op.yaml");
        assert_eq!(
            one("apps", "Deployment", "op", "web"),
            "deployment.apps-web_op.yaml"
        );
        assert_eq!(
            one(
                "rbac.authorization.k8s.io",
                "ClusterRole",
                "",
                "system:auth-delegator"
            ),
            "clusterrole.rbac.authorization.k8s.io-system__3aauth-delegator.yaml"
        );
        assert_eq!(one("", "Namespace", "", "op"), "namespace-op.yaml");
    }

    #[test]
    fn a_name_does_not_depend_on_other_objects() {
        let role = object("rbac.authorization.k8s.io", "Role", "a", "x");
        let others = [
            role.clone(),
            object("rbac.authorization.k8s.io", "Role", "b", "x"),
            object("", "Role", "a", "x"),
        ];
        assert_eq!(file_names(&others)[0], file_names(&[role])[0]);
    }

    #[test]
    fn different_objects_have_different_names() {
        let objects = [
            object("", "Role", "a", "b"),
            object("", "Role", "b", "a"),
            object("", "Role", "", "a-b"),
            object("", "Role", "", "a_b"),
            object("", "Role", "", "b_a"),
            object("", "Role", "", "a__62"),
            object("", "Role", "", "a:"),
            object("", "Role", "", "a__3a"),
            object("", "Role", "", "A"),
            object("", "Role", "", "a"),
            object("", "Role", "", "ä"),
            object("", "Role", "", "a\u{308}"),
            object("g", "Role", "", "a"),
        ];
        let names = file_names(&objects);
        assert_eq!(
            names.iter().collect::<BTreeSet<_>>().len(),
            objects.len(),
            "{names:?}"
        );
        names.iter().for_each(|name| assert_safe(name));
    }

    #[test]
    fn equal_names_are_told_apart_by_a_hash_in_any_order() {
        let upper = object("g.io", "FOO", "", "a");
        let lower = object("g.io", "Foo", "", "a");
        let unrelated = object("g.io", "Foo", "", "b");
        let names = file_names(&[upper.clone(), lower.clone(), unrelated.clone()]);
        let turned = file_names(&[lower, unrelated, upper]);
        assert_eq!(
            [&names[0], &names[1], &names[2]],
            [&turned[2], &turned[0], &turned[1]]
        );
        assert_ne!(names[0], names[1]);
        assert_eq!(names[2], "foo.g.io-b.yaml");
        // A dash may belong to the group or to the name.
        let dashes = [object("a", "K", "", "b-c"), object("a-b", "K", "", "c")];
        let names = file_names(&dashes);
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn nobody_can_name_an_object_after_the_file_of_another() {
        let long = object("", "Pod", "", &"n".repeat(200));
        let (upper, lower) = (object("", "POD", "", "a"), object("", "Pod", "", "a"));
        for name in file_names(&[long.clone(), upper.clone(), lower.clone()]) {
            let forged = name.trim_start_matches("pod-").trim_end_matches(".yaml");
            let forged = object("", "Pod", "", forged);
            let names = file_names(&[long.clone(), upper.clone(), lower.clone(), forged]);
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 4, "{names:?}");
        }
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
                    for namespace in ["", name] {
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
            object(group, "ClusterRole", "", &first),
            object(group, "ClusterRole", "", &second),
        ]);
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
        assert_eq!(one("", "Pod", "", &fits), format!("pod-{fits}.yaml"));
    }

    /// The value is `printf '0:3:Pod0:200:nnn…' | sha256sum | cut -c1-16`: it may never change, or files are renamed.
    #[test]
    fn the_hash_is_pinned() {
        let name = one("", "Pod", "", &"n".repeat(200));
        assert_eq!(&name[name.len() - 24..], "__z14be2654a9e4667c.yaml");
    }

    #[test]
    fn only_core_secrets_count_as_secret() {
        assert!(is_secret(&one("", "Secret", "op", "a")));
        assert!(!is_secret(&one("g.io", "Secret", "op", "a")));
        assert!(!is_secret(&one("", "ConfigMap", "op", "secret-a")));
    }

    #[test]
    fn names_that_no_object_gets_are_told() {
        assert!(is_file_name(&one("apps", "Deployment", "op", "A:b")));
        assert!(is_file_name(&one("", "Pod", "", &"n".repeat(300))));
        let long = format!("pod-{}.yaml", "n".repeat(180));
        for name in [
            "null",
            "1e5.yaml",
            "kustomization.yaml",
            "a-b",
            "a-B.yaml",
            "-a.yaml",
            ".a-b.yaml",
            "con.x-a.yaml",
            &long,
        ] {
            assert!(!is_file_name(name), "{name}");
        }
    }
}
