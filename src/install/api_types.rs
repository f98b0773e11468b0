//! The types of OLM v1, of RukPak, of OpenShift's proxy and mirror rules and of ServiceAccounts, field by field.
//!
//! These are Go types like those in [`go_types`](crate::manifest::go_types), but they live in modules that cannot be
//! taken by a version, so that this table is kept by hand. Sources: operator-controller
//! `api/v1/{clusterextension,clustercatalog}_types.go`; rukpak `api/v1alpha1/{bundle,bundledeployment}_types.go` of
//! v0.16 and `api/v1alpha2/{bundle,bundledeployment}_types.go` of v0.24; openshift/api `config/v1/types_proxy.go`,
//! `types_image_digest_mirror_set.go`, `types_image_tag_mirror_set.go` and
//! `operator/v1alpha1/types_image_content_source_policy.go`.
//! Fields that only some releases have are here too. What stands in a status belongs to the cluster and is not looked at.

use crate::manifest::{
    conform::{
        Field,
        Shape::{self, Any, Bool, Int32, List, String, Struct},
        Struct as Type, Zero,
    },
    go_types::{LABEL_SELECTOR, LOCAL_OBJECT_REFERENCE, OBJECT_META, SUBSCRIPTION_CONFIG},
};

const fn field(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        shape,
        pointer: true,
        zero: Zero::Kept,
    }
}

const METADATA: Field = field("metadata", Struct(&OBJECT_META));
const API_VERSION: Field = field("apiVersion", String);
const KIND: Field = field("kind", String);
const STATUS: Field = field("status", Any);

/// An object with a specification and a status.
macro_rules! object {
    ($(#[$doc:meta])* $name:ident, $title:literal, $spec:ident) => {
        $(#[$doc])*
        pub(super) static $name: Type = Type::new(
            $title,
            &[API_VERSION, KIND, METADATA, field("spec", Struct(&$spec)), STATUS],
        );
    };
}

object!(
    /// operator-controller's ClusterExtension.
    CLUSTER_EXTENSION, "olm/v1 ClusterExtension", CLUSTER_EXTENSION_SPEC
);
static CLUSTER_EXTENSION_SPEC: Type = Type::new(
    "olm/v1 ClusterExtensionSpec",
    &[
        field("config", Struct(&CONFIG)),
        field("install", Struct(&INSTALL)),
        field("namespace", String),
        field("progressDeadlineMinutes", Int32),
        field("serviceAccount", Struct(&LOCAL_OBJECT_REFERENCE)),
        field("source", Struct(&EXTENSION_SOURCE)),
    ],
);
static CONFIG: Type = Type::new(
    "olm/v1 ClusterExtensionConfig",
    &[
        field("configType", String),
        field("inline", Struct(&INLINE_CONFIG)),
    ],
);
/// The configuration of a registry+v1 bundle (`rukpak/bundle/registryv1bundleconfig.json`).
static INLINE_CONFIG: Type = Type::new(
    "olm/v1 registry+v1 configuration",
    &[
        field("deploymentConfig", Struct(&SUBSCRIPTION_CONFIG)),
        field("watchNamespace", String),
    ],
);
static INSTALL: Type = Type::new(
    "olm/v1 ClusterExtensionInstallConfig",
    &[field("preflight", Struct(&PREFLIGHT))],
);
static PREFLIGHT: Type = Type::new(
    "olm/v1 PreflightConfig",
    &[field("crdUpgradeSafety", Struct(&CRD_UPGRADE_SAFETY))],
);
static CRD_UPGRADE_SAFETY: Type = Type::new(
    "olm/v1 CRDUpgradeSafetyPreflightConfig",
    &[field("enforcement", String)],
);
static EXTENSION_SOURCE: Type = Type::new(
    "olm/v1 SourceConfig",
    &[
        field("catalog", Struct(&CATALOG_FILTER)),
        field("sourceType", String),
    ],
);
static CATALOG_FILTER: Type = Type::new(
    "olm/v1 CatalogFilter",
    &[
        field("channels", List(&String)),
        field("packageName", String),
        field("selector", Struct(&LABEL_SELECTOR)),
        field("upgradeConstraintPolicy", String),
        field("version", String),
    ],
);

object!(
    /// operator-controller's ClusterCatalog.
    CLUSTER_CATALOG, "olm/v1 ClusterCatalog", CLUSTER_CATALOG_SPEC
);
static CLUSTER_CATALOG_SPEC: Type = Type::new(
    "olm/v1 ClusterCatalogSpec",
    &[
        field("availabilityMode", String),
        field("priority", Int32),
        field("source", Struct(&CATALOG_SOURCE)),
    ],
);
static CATALOG_SOURCE: Type = Type::new(
    "olm/v1 CatalogSource",
    &[
        field("image", Struct(&CATALOG_IMAGE)),
        field("type", String),
    ],
);
static CATALOG_IMAGE: Type = Type::new(
    "olm/v1 ImageSource",
    &[field("pollIntervalMinutes", Int32), field("ref", String)],
);

object!(
    /// RukPak's Bundle, which v1alpha2 does not have.
    BUNDLE, "rukpak/v1alpha1 Bundle", BUNDLE_SPEC
);
static BUNDLE_SPEC: Type = Type::new(
    "rukpak/v1alpha1 BundleSpec",
    &[
        field("provisionerClassName", String),
        field("source", Struct(&BUNDLE_SOURCE)),
    ],
);

object!(
    /// RukPak's BundleDeployment with a template of a Bundle.
    BUNDLE_DEPLOYMENT_V1ALPHA1, "rukpak/v1alpha1 BundleDeployment", DEPLOYMENT_SPEC_V1ALPHA1
);
static DEPLOYMENT_SPEC_V1ALPHA1: Type = Type::new(
    "rukpak/v1alpha1 BundleDeploymentSpec",
    &[
        field("config", Any),
        field("provisionerClassName", String),
        field("template", Struct(&BUNDLE_TEMPLATE)),
    ],
);
static BUNDLE_TEMPLATE: Type = Type::new(
    "rukpak/v1alpha1 BundleTemplate",
    &[METADATA, field("spec", Struct(&BUNDLE_SPEC))],
);

object!(
    /// RukPak's BundleDeployment that names its content itself.
    BUNDLE_DEPLOYMENT_V1ALPHA2, "rukpak/v1alpha2 BundleDeployment", DEPLOYMENT_SPEC_V1ALPHA2
);
static DEPLOYMENT_SPEC_V1ALPHA2: Type = Type::new(
    "rukpak/v1alpha2 BundleDeploymentSpec",
    &[
        field("config", Any),
        field("installNamespace", String),
        field("preflight", Any),
        field("provisionerClassName", String),
        field("source", Struct(&BUNDLE_SOURCE)),
        field("watchNamespaces", List(&String)),
    ],
);
static BUNDLE_SOURCE: Type = Type::new(
    "rukpak BundleSource",
    &[
        field("configMaps", List(&Struct(&CONFIG_MAP_SOURCE))),
        field("git", Struct(&GIT_SOURCE)),
        field("http", Struct(&HTTP_SOURCE)),
        field("image", Struct(&BUNDLE_IMAGE)),
        field("type", String),
        field("upload", Any),
    ],
);
static BUNDLE_IMAGE: Type = Type::new(
    "rukpak ImageSource",
    &[
        field("certificateData", String),
        field("insecureSkipTLSVerify", Bool),
        field("pullSecret", String),
        field("ref", String),
    ],
);
static CONFIG_MAP_SOURCE: Type = Type::new(
    "rukpak ConfigMapSource",
    &[
        field("configMap", Struct(&LOCAL_OBJECT_REFERENCE)),
        field("path", String),
    ],
);
static GIT_SOURCE: Type = Type::new(
    "rukpak GitSource",
    &[
        field("auth", Struct(&AUTHORIZATION)),
        field("directory", String),
        field("ref", Struct(&GIT_REF)),
        field("repository", String),
    ],
);
static GIT_REF: Type = Type::new(
    "rukpak GitRef",
    &[
        field("branch", String),
        field("commit", String),
        field("tag", String),
    ],
);
static HTTP_SOURCE: Type = Type::new(
    "rukpak HTTPSource",
    &[field("auth", Struct(&AUTHORIZATION)), field("url", String)],
);
static AUTHORIZATION: Type = Type::new(
    "rukpak Authorization",
    &[
        field("insecureSkipVerify", Bool),
        field("secret", Struct(&LOCAL_OBJECT_REFERENCE)),
    ],
);

object!(
    /// OpenShift's cluster-wide proxy.
    PROXY, "config/v1 Proxy", PROXY_SPEC
);
static PROXY_SPEC: Type = Type::new(
    "config/v1 ProxySpec",
    &[
        field("httpProxy", String),
        field("httpsProxy", String),
        field("noProxy", String),
        field("proxyType", Int32),
        field("readinessEndpoints", List(&String)),
        field("trustedCA", Struct(&LOCAL_OBJECT_REFERENCE)),
    ],
);

object!(
    /// OpenShift's mirrors for references with a digest.
    IMAGE_DIGEST_MIRROR_SET, "config/v1 ImageDigestMirrorSet", DIGEST_MIRRORS
);
static DIGEST_MIRRORS: Type = Type::new(
    "config/v1 ImageDigestMirrorSetSpec",
    &[field("imageDigestMirrors", List(&Struct(&IMAGE_MIRRORS)))],
);

object!(
    /// OpenShift's mirrors for references with a tag.
    IMAGE_TAG_MIRROR_SET, "config/v1 ImageTagMirrorSet", TAG_MIRRORS
);
static TAG_MIRRORS: Type = Type::new(
    "config/v1 ImageTagMirrorSetSpec",
    &[field("imageTagMirrors", List(&Struct(&IMAGE_MIRRORS)))],
);
static IMAGE_MIRRORS: Type = Type::new(
    "config/v1 ImageMirrors",
    &[
        field("mirrorSourcePolicy", String),
        field("mirrors", List(&String)),
        field("source", String),
    ],
);

object!(
    /// OpenShift's older mirrors for references with a digest.
    IMAGE_CONTENT_SOURCE_POLICY, "operator/v1alpha1 ImageContentSourcePolicy", REPOSITORY_MIRRORS
);
static REPOSITORY_MIRRORS: Type = Type::new(
    "operator/v1alpha1 ImageContentSourcePolicySpec",
    &[field(
        "repositoryDigestMirrors",
        List(&Struct(&REPOSITORY_DIGEST_MIRRORS)),
    )],
);
static REPOSITORY_DIGEST_MIRRORS: Type = Type::new(
    "operator/v1alpha1 RepositoryDigestMirrors",
    &[field("mirrors", List(&String)), field("source", String)],
);

/// Kubernetes' ServiceAccount, `core/v1/types.go` of k8s.io/api.
pub(super) static SERVICE_ACCOUNT: Type = Type::new(
    "core/v1 ServiceAccount",
    &[
        API_VERSION,
        field("automountServiceAccountToken", Bool),
        field("imagePullSecrets", List(&Struct(&LOCAL_OBJECT_REFERENCE))),
        KIND,
        METADATA,
        field("secrets", List(&Any)),
    ],
);
