//! How a bundle is to be installed.

use super::{certificates::CertificateProvider, overrides::Overrides};

/// What the renderer has to be told besides the bundle.
pub struct RenderOptions {
    /// The namespace that the operator is installed in.
    pub namespace: String,
    /// Whether the Namespace object itself is part of the output.
    pub create_namespace: bool,
    /// The namespaces to watch; none leaves it to the bundle, an empty name stands for all.
    pub watched: Vec<String>,
    /// Where the certificates of webhooks and aggregated APIs come from.
    pub certificates: Box<dyn CertificateProvider>,
    /// What the user changes on every Deployment.
    pub overrides: Overrides,
}
