//! Which kinds mean something to an install: by group and kind together, since others have kinds of the same names.

use super::{Objects, fault::Fault, rules};
use crate::{
    install::api_types,
    manifest::{Manifest, conform::Struct, go_types},
    near,
};

/// A kind that an install is said with.
pub(super) struct Kind {
    pub(super) group: &'static str,
    pub(super) name: &'static str,
    /// The versions that are read, the usual one first.
    pub(super) versions: &'static [Version],
    /// Where its objects are kept.
    pub(super) kept_in: fn(&mut Objects) -> &mut Vec<Manifest>,
}

/// What a version of a kind looks like.
pub(super) struct Version {
    pub(super) name: &'static str,
    pub(super) shape: &'static Struct,
    pub(super) rules: &'static [rules::Rule],
}

const fn version(
    name: &'static str,
    shape: &'static Struct,
    rules: &'static [rules::Rule],
) -> Version {
    Version { name, shape, rules }
}

const OLM_V0: &str = "operators.coreos.com";
const OLM_V1: &str = "olm.operatorframework.io";
const RUKPAK: &str = "core.rukpak.io";

/// All kinds that are read.
static KINDS: &[Kind] = &[
    Kind {
        group: OLM_V0,
        name: "CatalogSource",
        versions: &[version(
            "v1alpha1",
            &go_types::CATALOG_SOURCE,
            rules::CATALOG_SOURCE,
        )],
        kept_in: |objects| &mut objects.catalog_sources,
    },
    Kind {
        group: OLM_V0,
        name: "Subscription",
        versions: &[version(
            "v1alpha1",
            &go_types::SUBSCRIPTION,
            rules::SUBSCRIPTION,
        )],
        kept_in: |objects| &mut objects.subscriptions,
    },
    Kind {
        group: OLM_V0,
        name: "OperatorGroup",
        versions: &[
            version("v1", &go_types::OPERATOR_GROUP, rules::OPERATOR_GROUP),
            version("v1alpha2", &go_types::OPERATOR_GROUP, rules::OPERATOR_GROUP),
        ],
        kept_in: |objects| &mut objects.operator_groups,
    },
    Kind {
        group: OLM_V0,
        name: "ClusterServiceVersion",
        versions: &[version("v1alpha1", &go_types::CLUSTER_SERVICE_VERSION, &[])],
        kept_in: |objects| &mut objects.cluster_service_versions,
    },
    Kind {
        group: OLM_V1,
        name: "ClusterCatalog",
        versions: &[version(
            "v1",
            &api_types::CLUSTER_CATALOG,
            rules::CLUSTER_CATALOG,
        )],
        kept_in: |objects| &mut objects.cluster_catalogs,
    },
    Kind {
        group: OLM_V1,
        name: "ClusterExtension",
        versions: &[version(
            "v1",
            &api_types::CLUSTER_EXTENSION,
            rules::CLUSTER_EXTENSION,
        )],
        kept_in: |objects| &mut objects.cluster_extensions,
    },
    Kind {
        group: RUKPAK,
        name: "Bundle",
        versions: &[version("v1alpha1", &api_types::BUNDLE, rules::BUNDLE)],
        kept_in: |objects| &mut objects.bundles,
    },
    Kind {
        group: RUKPAK,
        name: "BundleDeployment",
        versions: &[
            version(
                "v1alpha2",
                &api_types::BUNDLE_DEPLOYMENT_V1ALPHA2,
                rules::BUNDLE_DEPLOYMENT_V1ALPHA2,
            ),
            version(
                "v1alpha1",
                &api_types::BUNDLE_DEPLOYMENT_V1ALPHA1,
                rules::BUNDLE_DEPLOYMENT_V1ALPHA1,
            ),
        ],
        kept_in: |objects| &mut objects.bundle_deployments,
    },
    Kind {
        group: "",
        name: "Namespace",
        versions: &[version("v1", &go_types::NAMESPACE, &[])],
        kept_in: |objects| &mut objects.namespaces,
    },
    Kind {
        group: "",
        name: "Secret",
        versions: &[version("v1", &go_types::SECRET, &[])],
        kept_in: |objects| &mut objects.secrets,
    },
    Kind {
        group: "",
        name: "ServiceAccount",
        versions: &[version("v1", &api_types::SERVICE_ACCOUNT, &[])],
        kept_in: |objects| &mut objects.service_accounts,
    },
    Kind {
        group: "config.openshift.io",
        name: "Proxy",
        versions: &[version("v1", &api_types::PROXY, &[])],
        kept_in: |objects| &mut objects.proxies,
    },
    Kind {
        group: "config.openshift.io",
        name: "ImageDigestMirrorSet",
        versions: &[version(
            "v1",
            &api_types::IMAGE_DIGEST_MIRROR_SET,
            rules::MIRRORS,
        )],
        kept_in: |objects| &mut objects.mirror_sets,
    },
    Kind {
        group: "config.openshift.io",
        name: "ImageTagMirrorSet",
        versions: &[version(
            "v1",
            &api_types::IMAGE_TAG_MIRROR_SET,
            rules::MIRRORS,
        )],
        kept_in: |objects| &mut objects.mirror_sets,
    },
    Kind {
        group: "operator.openshift.io",
        name: "ImageContentSourcePolicy",
        versions: &[version(
            "v1alpha1",
            &api_types::IMAGE_CONTENT_SOURCE_POLICY,
            rules::MIRRORS,
        )],
        kept_in: |objects| &mut objects.mirror_sets,
    },
];

/// Kinds of OLM's groups that clusters make, or that say nothing about an install. All kinds of these groups are known.
static WITHOUT_MEANING: &[(&str, &[&str])] = &[
    (
        OLM_V0,
        &["InstallPlan", "OLMConfig", "Operator", "OperatorCondition"],
    ),
    (
        OLM_V1,
        &[
            "ClusterExtensionRevision",
            "ClusterObjectSet",
            "ClusterObjectSlice",
        ],
    ),
    (RUKPAK, &["ProvisionerClass"]),
];

/// Other kinds of the core group, of which the names of some are like those that are read.
const CORE_KINDS: [&str; 13] = [
    "Binding",
    "ConfigMap",
    "Endpoints",
    "Event",
    "LimitRange",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodTemplate",
    "ReplicationController",
    "ResourceQuota",
    "Service",
];

/// What an object of a kind means to an install.
pub(super) enum Meaning {
    /// It is read as this.
    Known(&'static Kind, &'static Version),
    /// It is left out.
    Nothing,
    /// It is refused.
    Refused(Fault),
}

/// Looks a kind up. Everything in the messages was written as a name.
pub(super) fn meaning(group: &str, version: &str, name: &str) -> Meaning {
    let of_group = || KINDS.iter().filter(|kind| kind.group == group);
    if let Some(kind) = of_group().find(|kind| kind.name == name) {
        return match kind.versions.iter().find(|known| known.name == version) {
            Some(version) => Meaning::Known(kind, version),
            None => Meaning::Refused(wrong_version(unknown_version(kind, version))),
        };
    }
    let whole = WITHOUT_MEANING.iter().find(|(known, _)| *known == group);
    let others = whole.map_or(&[][..], |(_, kinds)| kinds);
    if others.contains(&name) || (group.is_empty() && CORE_KINDS.contains(&name)) {
        return Meaning::Nothing;
    }
    let known = || of_group().map(|kind| kind.name);
    let similar = near::names(name, known().chain(others.iter().copied()));
    if let Some(hint) = near::hint(&similar) {
        let message = format!("{} has no kind {}, {hint}", shown_group(group), shown(name));
        return Meaning::Refused(Fault::error("kind", "kind", message));
    }
    if whole.is_some() {
        let known = listed(known().chain(others.iter().copied()), "and");
        let message = format!("{group} has no kind {}; its kinds are {known}", shown(name));
        return Meaning::Refused(Fault::error("kind", "kind", message));
    }
    mistyped_group(group, name)
}

/// A kind of ours in a group that is almost ours.
fn mistyped_group(group: &str, name: &str) -> Meaning {
    let mut groups = KINDS
        .iter()
        .filter(|kind| kind.name == name && !kind.group.is_empty());
    let similar = |kind: &&Kind| {
        let longer = group.len() > kind.group.len() + 2;
        !longer && !near::names(group, std::iter::once(kind.group)).is_empty()
    };
    match groups.find(similar) {
        Some(kind) => {
            let group = shown_group(group);
            let message = format!(
                "there is no {name} in {group}, did you mean {}?",
                kind.group
            );
            Meaning::Refused(wrong_version(message))
        }
        None => Meaning::Nothing,
    }
}

fn wrong_version(message: String) -> Fault {
    Fault::error("api-version", "apiVersion", message)
}

fn unknown_version(kind: &Kind, version: &str) -> String {
    let known = listed(kind.versions.iter().map(|known| known.name), "and");
    let are = if kind.versions.len() == 1 {
        "is"
    } else {
        "are"
    };
    let (group, name) = (shown_group(kind.group), kind.name);
    format!(
        "version {} of {name} in {group} is not known, known {are} {known}",
        shown(version)
    )
}

/// `a`, `a and b`, `a, b and c`, or with another word for `and`.
pub(super) fn listed<'n>(names: impl Iterator<Item = &'n str>, and: &str) -> String {
    let names: Vec<_> = names.collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} {and} {last}", others.join(", ")),
        None => String::new(),
    }
}

fn shown_group(group: &str) -> &str {
    match group {
        "" => "the core group",
        group => shown(group),
    }
}

/// A word as it was written, if it can be one of an API: anything else may be text that went astray.
pub(super) fn shown(word: &str) -> &str {
    let of_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'/');
    let is_word = word.len() <= 63 && !word.is_empty() && word.as_bytes().iter().all(of_word);
    if is_word { word } else { "(no name)" }
}
