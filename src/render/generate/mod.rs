//! The generators: one list, one function for each kind of output.
//!
//! Reproduces operator-controller `rukpak/render/registryv1/generators/`; the list stands for `ResourceGenerators` in
//! `registryv1.go`, with the Namespace and what OLM v0 makes for aggregated APIs added.

mod api_services;
mod bundled_objects;
mod cluster_service_version;
mod custom_resource_definitions;
mod deployments;
mod permissions;
mod service_accounts;
mod services;
mod webhooks;

use serde_json::Value;

use super::{RenderOptions, certificates::Certificate};
use crate::{bundle::ClusterServiceVersion, manifest::Manifest, problem::Problem};

/// An install while it is rendered.
pub(super) struct Rendering<'a> {
    pub(super) csv: &'a ClusterServiceVersion,
    /// The namespaces to watch; one empty name stands for all.
    pub(super) targets: &'a [String],
    pub(super) options: &'a RenderOptions,
    /// The bundle's definitions, until their generator takes them.
    pub(super) crds: Vec<Manifest>,
    /// The bundle's other objects, until their generator takes them.
    pub(super) others: Vec<Manifest>,
    /// What has been made so far.
    pub(super) manifests: Vec<Manifest>,
    /// What there is to say about it.
    pub(super) problems: Vec<Problem>,
}

type Generator = fn(&mut Rendering<'_>);

/// Every generator. Their order decides which of two equal objects is named first, and nothing else.
pub(super) const GENERATORS: &[Generator] = &[
    namespaces,
    service_accounts::generate,
    permissions::namespaced,
    permissions::cluster_wide,
    custom_resource_definitions::generate,
    bundled_objects::generate,
    cluster_service_version::generate,
    deployments::generate,
    webhooks::validating,
    webhooks::mutating,
    services::generate,
    api_services::generate,
    certificates,
];

impl Rendering<'_> {
    fn namespace(&self) -> &str {
        &self.options.namespace
    }

    fn watches_all(&self) -> bool {
        self.targets == [""]
    }

    /// The certificate that a Deployment serves with.
    fn certificate(&self, deployment: &str) -> Certificate {
        Certificate::of(deployment, self.namespace())
    }

    /// The Deployments that serve webhooks or aggregated APIs, in the bundle's order.
    fn serving(&self) -> Vec<&crate::bundle::cluster_service_version::StrategyDeployment> {
        let deployments = self.csv.deployments.iter();
        deployments
            .filter(|deployment| self.csv.serves_tls(&deployment.name))
            .collect()
    }
}

/// The Namespaces that the user wants; OLM never makes one. What a cluster has put into one stays there.
fn namespaces(rendering: &mut Rendering<'_>) {
    for mut manifest in rendering.options.namespaces.iter().cloned() {
        let object = manifest.object_mut();
        object.insert("apiVersion".to_owned(), "v1".into());
        object.insert("kind".to_owned(), "Namespace".into());
        if let Some(Value::Object(spec)) = object.get_mut("spec") {
            spec.remove("finalizers");
            if spec.is_empty() {
                object.remove("spec");
            }
        }
        manifest.metadata_mut().remove("namespace");
        super::strip_live(&mut manifest);
        rendering.manifests.push(manifest);
    }
}

/// What makes the certificates (`CertProviderResourceGenerator`).
fn certificates(rendering: &mut Rendering<'_>) {
    let provider = &rendering.options.certificates;
    let certificates = Certificate::all_of(rendering.csv, rendering.namespace());
    let objects = certificates.flat_map(|certificate| provider.objects(&certificate));
    let objects: Vec<_> = objects.collect();
    rendering.manifests.extend(objects);
}
