//! What API servers call kinds in paths, and which kinds are in namespaces: without asking one.
//!
//! It holds the kinds of Kubernetes itself, as its API serves them, and those of others that bundles bring or that are
//! rendered from them. What a CustomResourceDefinition defines, it says itself ([`Defined`]). For all else there is only
//! the guess that Kubernetes makes (k8s.io/apimachinery `pkg/api/meta/restmapper.go`, `UnsafeGuessKindToResource`).

use serde_json::Value;

use super::Manifest;

/// The kinds of a group: kind and plural of those in namespaces, then of those in none.
struct Group {
    name: &'static str,
    namespaced: &'static [(&'static str, &'static str)],
    cluster: &'static [(&'static str, &'static str)],
}

/// Every group of which something is known.
static GROUPS: &[Group] = &[
    Group {
        name: "",
        namespaced: &[
            ("ConfigMap", "configmaps"),
            ("Endpoints", "endpoints"),
            ("Event", "events"),
            ("LimitRange", "limitranges"),
            ("PersistentVolumeClaim", "persistentvolumeclaims"),
            ("Pod", "pods"),
            ("PodTemplate", "podtemplates"),
            ("ReplicationController", "replicationcontrollers"),
            ("ResourceQuota", "resourcequotas"),
            ("Secret", "secrets"),
            ("Service", "services"),
            ("ServiceAccount", "serviceaccounts"),
        ],
        cluster: &[
            ("Namespace", "namespaces"),
            ("Node", "nodes"),
            ("PersistentVolume", "persistentvolumes"),
        ],
    },
    Group {
        name: "admissionregistration.k8s.io",
        namespaced: &[],
        cluster: &[
            ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
            (
                "MutatingAdmissionPolicyBinding",
                "mutatingadmissionpolicybindings",
            ),
            (
                "MutatingWebhookConfiguration",
                "mutatingwebhookconfigurations",
            ),
            ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
            (
                "ValidatingAdmissionPolicyBinding",
                "validatingadmissionpolicybindings",
            ),
            (
                "ValidatingWebhookConfiguration",
                "validatingwebhookconfigurations",
            ),
        ],
    },
    Group {
        name: "apiextensions.k8s.io",
        namespaced: &[],
        cluster: &[("CustomResourceDefinition", "customresourcedefinitions")],
    },
    Group {
        name: "apiregistration.k8s.io",
        namespaced: &[],
        cluster: &[("APIService", "apiservices")],
    },
    Group {
        name: "apps",
        namespaced: &[
            ("ControllerRevision", "controllerrevisions"),
            ("DaemonSet", "daemonsets"),
            ("Deployment", "deployments"),
            ("ReplicaSet", "replicasets"),
            ("StatefulSet", "statefulsets"),
        ],
        cluster: &[],
    },
    Group {
        name: "autoscaling",
        namespaced: &[("HorizontalPodAutoscaler", "horizontalpodautoscalers")],
        cluster: &[],
    },
    Group {
        name: "autoscaling.k8s.io",
        namespaced: &[("VerticalPodAutoscaler", "verticalpodautoscalers")],
        cluster: &[],
    },
    Group {
        name: "batch",
        namespaced: &[("CronJob", "cronjobs"), ("Job", "jobs")],
        cluster: &[],
    },
    Group {
        name: "cert-manager.io",
        namespaced: &[
            ("Certificate", "certificates"),
            ("CertificateRequest", "certificaterequests"),
            ("Issuer", "issuers"),
        ],
        cluster: &[("ClusterIssuer", "clusterissuers")],
    },
    Group {
        name: "certificates.k8s.io",
        namespaced: &[],
        cluster: &[("CertificateSigningRequest", "certificatesigningrequests")],
    },
    Group {
        name: "config.openshift.io",
        namespaced: &[],
        cluster: &[
            ("ImageDigestMirrorSet", "imagedigestmirrorsets"),
            ("ImageTagMirrorSet", "imagetagmirrorsets"),
        ],
    },
    Group {
        name: "console.openshift.io",
        namespaced: &[],
        cluster: &[
            ("ConsoleCLIDownload", "consoleclidownloads"),
            ("ConsoleLink", "consolelinks"),
            ("ConsolePlugin", "consoleplugins"),
            ("ConsoleQuickStart", "consolequickstarts"),
            ("ConsoleYAMLSample", "consoleyamlsamples"),
        ],
    },
    Group {
        name: "coordination.k8s.io",
        namespaced: &[("Lease", "leases")],
        cluster: &[],
    },
    Group {
        name: "discovery.k8s.io",
        namespaced: &[("EndpointSlice", "endpointslices")],
        cluster: &[],
    },
    Group {
        name: "events.k8s.io",
        namespaced: &[("Event", "events")],
        cluster: &[],
    },
    Group {
        name: "flowcontrol.apiserver.k8s.io",
        namespaced: &[],
        cluster: &[
            ("FlowSchema", "flowschemas"),
            ("PriorityLevelConfiguration", "prioritylevelconfigurations"),
        ],
    },
    Group {
        name: "monitoring.coreos.com",
        namespaced: &[
            ("PodMonitor", "podmonitors"),
            ("PrometheusRule", "prometheusrules"),
            ("ServiceMonitor", "servicemonitors"),
        ],
        cluster: &[],
    },
    Group {
        name: "networking.k8s.io",
        namespaced: &[
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
        ],
        cluster: &[
            ("IngressClass", "ingressclasses"),
            ("IPAddress", "ipaddresses"),
            ("ServiceCIDR", "servicecidrs"),
        ],
    },
    Group {
        name: "node.k8s.io",
        namespaced: &[],
        cluster: &[("RuntimeClass", "runtimeclasses")],
    },
    Group {
        name: "operators.coreos.com",
        namespaced: &[
            ("CatalogSource", "catalogsources"),
            ("ClusterServiceVersion", "clusterserviceversions"),
            ("InstallPlan", "installplans"),
            ("OperatorCondition", "operatorconditions"),
            ("OperatorGroup", "operatorgroups"),
            ("Subscription", "subscriptions"),
        ],
        cluster: &[("OLMConfig", "olmconfigs"), ("Operator", "operators")],
    },
    Group {
        name: "policy",
        namespaced: &[("PodDisruptionBudget", "poddisruptionbudgets")],
        cluster: &[],
    },
    Group {
        name: "rbac.authorization.k8s.io",
        namespaced: &[("Role", "roles"), ("RoleBinding", "rolebindings")],
        cluster: &[
            ("ClusterRole", "clusterroles"),
            ("ClusterRoleBinding", "clusterrolebindings"),
        ],
    },
    Group {
        name: "route.openshift.io",
        namespaced: &[("Route", "routes")],
        cluster: &[],
    },
    Group {
        name: "scheduling.k8s.io",
        namespaced: &[],
        cluster: &[("PriorityClass", "priorityclasses")],
    },
    Group {
        name: "security.openshift.io",
        namespaced: &[],
        cluster: &[("SecurityContextConstraints", "securitycontextconstraints")],
    },
    Group {
        name: "storage.k8s.io",
        namespaced: &[("CSIStorageCapacity", "csistoragecapacities")],
        cluster: &[
            ("CSIDriver", "csidrivers"),
            ("CSINode", "csinodes"),
            ("StorageClass", "storageclasses"),
            ("VolumeAttachment", "volumeattachments"),
            ("VolumeAttributesClass", "volumeattributesclasses"),
        ],
    },
];

/// What paths call objects of a kind: `networkpolicies`. Nothing for a kind that is not known; [`guessed_plural`] is for
/// those.
#[must_use]
pub fn plural_of(group: &str, kind: &str) -> Option<&'static str> {
    find(group, kind).map(|(plural, _)| plural)
}

/// Whether objects of a kind are in no namespace. Nothing for a kind that is not known.
#[must_use]
pub fn is_cluster_scoped(group: &str, kind: &str) -> Option<bool> {
    find(group, kind).map(|(_, is_cluster_scoped)| is_cluster_scoped)
}

/// What paths probably call a kind that nobody has told of, as Kubernetes guesses it.
#[must_use]
pub fn guessed_plural(kind: &str) -> String {
    let singular = kind.to_lowercase();
    if singular.ends_with("endpoints") {
        return singular;
    }
    match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if singular.ends_with('s') => singular + "es",
        None => singular + "s",
    }
}

/// What a CustomResourceDefinition says of the kind that it defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defined {
    /// The group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// What paths call it.
    pub plural: String,
    /// Whether its objects are in no namespace.
    pub is_cluster_scoped: bool,
}

impl Defined {
    /// Reads a CustomResourceDefinition of any version; nothing for other objects, and for one that lacks names.
    #[must_use]
    pub fn read(manifest: &Manifest) -> Option<Self> {
        let is_definition = manifest.kind() == "CustomResourceDefinition"
            && manifest.group() == "apiextensions.k8s.io";
        let spec = manifest.object().get("spec").filter(|_| is_definition)?;
        let text = |pointer: &str| {
            let text = spec.pointer(pointer).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Some(Self {
            group: text("/group")?,
            kind: text("/names/kind")?,
            plural: text("/names/plural")?,
            is_cluster_scoped: spec.get("scope").and_then(Value::as_str) == Some("Cluster"),
        })
    }
}

/// Plural, and whether it is in no namespace.
fn find(group: &str, kind: &str) -> Option<(&'static str, bool)> {
    let group = GROUPS.iter().find(|known| known.name == group)?;
    let find = |kinds: &'static [(&str, &'static str)]| {
        let found = kinds.iter().find(|(known, _)| *known == kind);
        found.map(|(_, plural)| *plural)
    };
    let cluster = find(group.cluster).map(|plural| (plural, true));
    cluster.or_else(|| find(group.namespaced).map(|plural| (plural, false)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_says_what_kubernetes_would_guess_but_for_one_word() {
        let kinds = GROUPS
            .iter()
            .flat_map(|group| group.namespaced.iter().chain(group.cluster));
        let odd: Vec<_> = kinds
            .filter(|(kind, plural)| guessed_plural(kind) != *plural)
            .map(|(kind, _)| *kind)
            .collect();
        assert_eq!(odd, ["SecurityContextConstraints"]);
    }

    #[test]
    fn definitions_tell_of_their_kind() {
        let definition = Manifest::generated(
            json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "spec": {
                    "group": "example.com",
                    "names": {"kind": "Octopus", "plural": "octopi"},
                    "scope": "Cluster",
                },
            }),
            "a test",
        );
        let defined = Defined::read(&definition).expect("a definition");
        assert_eq!(
            (defined.plural.as_str(), defined.is_cluster_scoped),
            ("octopi", true)
        );
        assert_eq!(plural_of("example.com", "Octopus"), None);
    }
}
