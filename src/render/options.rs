//! How a bundle is to be installed.

use serde_json::Value;

use super::{certificates::CertificateProvider, overrides::Overrides};
use crate::manifest::Manifest;

/// What the renderer has to be told besides the bundle.
pub struct RenderOptions {
    /// The namespace that the operator is installed in.
    pub namespace: String,
    /// Namespaces that become part of the output, as the user wrote them; OLM never makes one.
    pub namespaces: Vec<Manifest>,
    /// The namespaces to watch; none leaves it to the bundle, an empty name stands for all.
    pub watched: Vec<String>,
    /// Where the certificates of webhooks and aggregated APIs come from.
    pub certificates: Box<dyn CertificateProvider>,
    /// What the user changes on every Deployment.
    pub overrides: Overrides,
    /// What makes the ClusterServiceVersion part of the output, as OLM stores it.
    pub csv: Option<StoredCsv>,
}

/// What OLM's catalog operator puts into a ClusterServiceVersion before it stores it.
#[derive(Debug, Clone, Default)]
pub struct StoredCsv {
    /// The bundle that it replaces, whatever its manifest says; empty when there is none.
    pub replaces: String,
    /// Type and value of each property of the bundle. OLM writes those of required APIs and packages twice; once is
    /// enough.
    pub properties: Vec<(String, Value)>,
}
