//! The ClusterServiceVersion: the parts of operator-framework/api `operators/v1alpha1` that an install is made of.
//!
//! The value has gone through [`crate::manifest::conform`] before, so it holds what Go's types hold and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::manifest::Manifest;

/// A ClusterServiceVersion.
#[derive(Debug)]
pub struct ClusterServiceVersion {
    /// The whole object; the fields below are read from it.
    pub manifest: Manifest,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.annotations`; they go into every pod template.
    pub annotations: BTreeMap<String, String>,
    /// `spec.minKubeVersion`, empty when there is none.
    pub min_kube_version: String,
    /// The types of `spec.installModes` that are supported.
    pub install_modes: BTreeSet<String>,
    /// `spec.install.spec.deployments`.
    pub deployments: Vec<StrategyDeployment>,
    /// `spec.install.spec.permissions`.
    pub permissions: Vec<Permission>,
    /// `spec.install.spec.clusterPermissions`.
    pub cluster_permissions: Vec<Permission>,
    /// `spec.webhookdefinitions`.
    pub webhooks: Vec<WebhookDescription>,
    /// Names of the owned CustomResourceDefinitions.
    pub owned_crds: Vec<String>,
    /// `spec.apiservicedefinitions.owned`.
    pub owned_api_services: Vec<ApiServiceDescription>,
}

/// A Deployment of the install strategy.
#[derive(Debug, Clone, Deserialize)]
pub struct StrategyDeployment {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Labels of the Deployment itself.
    #[serde(default)]
    pub label: BTreeMap<String, String>,
    /// The Deployment's `spec`.
    #[serde(default)]
    pub spec: Map<String, Value>,
}

impl StrategyDeployment {
    /// The pod's spec; empty when there is none.
    #[must_use]
    pub fn pod_spec(&self) -> Option<&Map<String, Value>> {
        self.spec.get("template")?.get("spec")?.as_object()
    }

    /// The ServiceAccount that the pods run as.
    #[must_use]
    pub fn service_account(&self) -> &str {
        let named = self.pod_spec().and_then(|spec| {
            let name = spec.get("serviceAccountName");
            name.or_else(|| spec.get("serviceAccount"))?.as_str()
        });
        account_or_default(named.unwrap_or_default())
    }
}

/// What a ServiceAccount may do. Serialised, it is what Go's encoder makes of it: names are hashes of that text.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    /// The account as written; empty stands for `default`.
    #[serde(default)]
    pub service_account_name: String,
    /// Its rules; `None` where the field is missing.
    pub rules: Option<Vec<PolicyRule>>,
}

impl Permission {
    /// The ServiceAccount, by its real name.
    #[must_use]
    pub fn service_account(&self) -> &str {
        account_or_default(&self.service_account_name)
    }
}

fn account_or_default(name: &str) -> &str {
    if name.is_empty() { "default" } else { name }
}

/// A rule of RBAC, with the fields in the order of Go's struct.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// Always encoded; `null` where the field is missing.
    pub verbs: Option<Vec<String>>,
    /// API groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// Resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Names of single objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths outside the API, such as `/metrics`.
    #[serde(
        default,
        rename = "nonResourceURLs",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub non_resource_urls: Vec<String>,
}

/// The kinds of webhook that a ClusterServiceVersion can define.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WebhookType {
    /// Converts between versions of a custom resource.
    Conversion,
    /// May change objects.
    Mutating,
    /// May refuse objects.
    Validating,
}

impl WebhookType {
    /// As the ClusterServiceVersion spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Conversion => "ConversionWebhook",
            Self::Mutating => "MutatingAdmissionWebhook",
            Self::Validating => "ValidatingAdmissionWebhook",
        }
    }
}

/// A webhook of the operator.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookDescription {
    /// The webhook's name, with at most one trailing `-`.
    #[serde(default)]
    pub generate_name: String,
    /// Its type as written; [`WebhookDescription::webhook_type`] reads it.
    #[serde(default)]
    pub r#type: String,
    /// The Deployment that serves it.
    #[serde(default)]
    pub deployment_name: String,
    /// The Service's port; 0 where the bundle gives none.
    #[serde(default)]
    pub container_port: i64,
    /// The container's port, when it differs.
    pub target_port: Option<Value>,
    /// What it is called for.
    #[serde(default)]
    pub rules: Vec<AdmissionRule>,
    /// The path it is served under.
    pub webhook_path: Option<String>,
    /// Versions of the review that it understands.
    #[serde(default)]
    pub admission_review_versions: Vec<String>,
    /// The CustomResourceDefinitions whose versions it converts.
    #[serde(default, rename = "conversionCRDs")]
    pub conversion_crds: Vec<String>,
    /// The fields that a webhook configuration takes over as they are.
    #[serde(flatten)]
    pub copied: BTreeMap<String, Value>,
}

impl WebhookDescription {
    /// The type, or `None` when the bundle names one that does not exist.
    #[must_use]
    pub fn webhook_type(&self) -> Option<WebhookType> {
        let all = [
            WebhookType::Conversion,
            WebhookType::Mutating,
            WebhookType::Validating,
        ];
        all.into_iter().find(|known| known.name() == self.r#type)
    }

    /// The port of the Service in front: what the bundle says, else the 443 that the API server defaults to
    /// (the bare renderer would write a port 0 that no API server takes).
    #[must_use]
    pub fn port(&self) -> i64 {
        port_or_default(self.container_port)
    }
}

/// A port, with the API server's default where there is none.
#[must_use]
pub fn port_or_default(port: i64) -> i64 {
    if port == 0 { 443 } else { port }
}

/// One rule of an admission webhook.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionRule {
    /// API groups.
    #[serde(default)]
    pub api_groups: Vec<String>,
    /// Resources.
    #[serde(default)]
    pub resources: Vec<String>,
    /// The other fields, as they are.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// An aggregated API that the operator serves.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiServiceDescription {
    /// API group.
    #[serde(default)]
    pub group: String,
    /// API version.
    #[serde(default)]
    pub version: String,
    /// The Deployment that serves it.
    #[serde(default)]
    pub deployment_name: String,
    /// The container's port; 0 where the bundle gives none.
    #[serde(default)]
    pub container_port: i64,
}

impl ClusterServiceVersion {
    /// The bundle that it says it replaces; empty when there is none.
    #[must_use]
    pub fn replaces(&self) -> &str {
        let spec = self.manifest.object().get("spec");
        let replaces = spec.and_then(|spec| spec.get("replaces"));
        replaces.and_then(Value::as_str).unwrap_or_default()
    }

    /// Reads the typed parts of a conformed object.
    ///
    /// # Errors
    /// The path and the reason of the first field that has a shape Go's types would not have let through.
    pub fn parse(manifest: Manifest) -> Result<Self, String> {
        let object = manifest.object();
        Ok(Self {
            name: manifest.name().to_owned(),
            annotations: read(object, "metadata.annotations")?,
            min_kube_version: read(object, "spec.minKubeVersion")?,
            install_modes: supported(&read::<Vec<InstallMode>>(object, "spec.installModes")?),
            deployments: read(object, "spec.install.spec.deployments")?,
            permissions: read(object, "spec.install.spec.permissions")?,
            cluster_permissions: read(object, "spec.install.spec.clusterPermissions")?,
            webhooks: read(object, "spec.webhookdefinitions")?,
            owned_crds: read::<Vec<Named>>(object, "spec.customresourcedefinitions.owned")?
                .into_iter()
                .map(|owned| owned.name)
                .collect(),
            owned_api_services: read(object, "spec.apiservicedefinitions.owned")?,
            manifest,
        })
    }

    /// The webhooks of one type, in the bundle's order.
    pub fn webhooks_of(&self, wanted: WebhookType) -> impl Iterator<Item = &WebhookDescription> {
        let of_type = move |webhook: &&WebhookDescription| webhook.webhook_type() == Some(wanted);
        self.webhooks.iter().filter(of_type)
    }

    /// Whether a webhook or an aggregated API is served by the Deployment, which then needs a certificate.
    #[must_use]
    pub fn serves_tls(&self, deployment: &str) -> bool {
        let webhooks = self.webhooks.iter().map(|webhook| &webhook.deployment_name);
        let apis = self
            .owned_api_services
            .iter()
            .map(|api| &api.deployment_name);
        webhooks.chain(apis).any(|name| name == deployment)
    }
}

#[derive(Deserialize)]
struct InstallMode {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    supported: bool,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

fn supported(modes: &[InstallMode]) -> BTreeSet<String> {
    let supported = modes.iter().filter(|mode| mode.supported);
    supported.map(|mode| mode.r#type.clone()).collect()
}

/// The value at a dotted path; the type's default where there is none.
fn read<T: DeserializeOwned + Default>(
    object: &Map<String, Value>,
    path: &str,
) -> Result<T, String> {
    let mut parts = path.split('.');
    let first = parts.next().and_then(|part| object.get(part));
    let found = parts.fold(first, |value, part| value?.get(part));
    match found {
        None | Some(Value::Null) => Ok(T::default()),
        Some(value) => T::deserialize(value).map_err(|error| format!("{path}: {error}")),
    }
}
