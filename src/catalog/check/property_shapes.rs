//! The Go types of the properties that opm reads, field by field: operator-registry `alpha/property/property.go`, and
//! what these take from operator-framework/api `operators/v1alpha1/clusterserviceversion_types.go`.
//!
//! It is data only: what the entries mean is told in the module conform, which walks them. Fields are sorted by name.

use crate::manifest::conform::{
    Field, Shape,
    Shape::{Any, Bool, Bytes, Int32, Int64, List, Map, String, Struct as Fields},
    Struct, Zero,
};

/// The shape of the values of a type of property; nothing for a type whose values are free.
pub(super) fn of(kind: &str) -> Option<&'static Struct> {
    let types = TYPES.iter();
    let (_, shape) = types.copied().find(|(name, _)| *name == kind)?;
    Some(shape)
}

static TYPES: [(&str, &Struct); 7] = [
    ("olm.package", &PACKAGE),
    ("olm.package.required", &PACKAGE_REQUIRED),
    ("olm.gvk", &GVK),
    ("olm.gvk.required", &GVK),
    ("olm.bundle.object", &BUNDLE_OBJECT),
    ("olm.csv.metadata", &CSV_METADATA),
    ("olm.channel", &CHANNEL),
];

const fn field(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        shape,
        pointer: false,
        zero: Zero::Kept,
    }
}

#[rustfmt::skip]
mod table {
use super::*;

pub(super) static PACKAGE: Struct = Struct::new("property Package", &[field("packageName", String), field("release", String), field("version", String)]);
pub(super) static PACKAGE_REQUIRED: Struct = Struct::new("property PackageRequired", &[field("packageName", String), field("versionRange", String)]);
pub(super) static GVK: Struct = Struct::new("property GVK", &[field("group", String), field("kind", String), field("version", String)]);
pub(super) static BUNDLE_OBJECT: Struct = Struct::new("property BundleObject", &[field("data", Bytes)]);
pub(super) static CHANNEL: Struct = Struct::new("property Channel", &[field("channelName", String), field("priority", Int64)]);
pub(super) static CSV_METADATA: Struct = Struct::new("property CSVMetadata", &[
    field("annotations", Map(&String)),
    field("apiServiceDefinitions", Fields(&API_SERVICES)),
    field("crdDescriptions", Fields(&CRDS)),
    field("description", String),
    field("displayName", String),
    field("installModes", List(&Fields(&INSTALL_MODE))),
    field("keywords", List(&String)),
    field("labels", Map(&String)),
    field("links", List(&Fields(&APP_LINK))),
    field("maintainers", List(&Fields(&MAINTAINER))),
    field("maturity", String),
    field("minKubeVersion", String),
    field("nativeAPIs", List(&Fields(&GVK))),
    field("provider", Fields(&APP_LINK)),
]);
static API_SERVICES: Struct = Struct::new("operators/v1alpha1 APIServiceDefinitions", &[field("owned", List(&Fields(&API_SERVICE))), field("required", List(&Fields(&API_SERVICE)))]);
static API_SERVICE: Struct = Struct::new("operators/v1alpha1 APIServiceDescription", &[
    field("actionDescriptors", List(&Fields(&DESCRIPTOR))),
    field("containerPort", Int32),
    field("deploymentName", String),
    field("description", String),
    field("displayName", String),
    field("group", String),
    field("kind", String),
    field("name", String),
    field("resources", List(&Fields(&RESOURCE))),
    field("specDescriptors", List(&Fields(&DESCRIPTOR))),
    field("statusDescriptors", List(&Fields(&DESCRIPTOR))),
    field("version", String),
]);
static CRDS: Struct = Struct::new("operators/v1alpha1 CustomResourceDefinitions", &[field("owned", List(&Fields(&CRD))), field("required", List(&Fields(&CRD)))]);
static CRD: Struct = Struct::new("operators/v1alpha1 CRDDescription", &[
    field("actionDescriptors", List(&Fields(&DESCRIPTOR))),
    field("description", String),
    field("displayName", String),
    field("kind", String),
    field("name", String),
    field("resources", List(&Fields(&RESOURCE))),
    field("specDescriptors", List(&Fields(&DESCRIPTOR))),
    field("statusDescriptors", List(&Fields(&DESCRIPTOR))),
    field("version", String),
]);
static RESOURCE: Struct = Struct::new("operators/v1alpha1 APIResourceReference", &[field("kind", String), field("name", String), field("version", String)]);
static DESCRIPTOR: Struct = Struct::new("operators/v1alpha1 SpecDescriptor", &[field("description", String), field("displayName", String), field("path", String), field("value", Any), field("x-descriptors", List(&String))]);
static INSTALL_MODE: Struct = Struct::new("operators/v1alpha1 InstallMode", &[field("supported", Bool), field("type", String)]);
static APP_LINK: Struct = Struct::new("operators/v1alpha1 AppLink", &[field("name", String), field("url", String)]);
static MAINTAINER: Struct = Struct::new("operators/v1alpha1 Maintainer", &[field("email", String), field("name", String)]);
}
use table::{BUNDLE_OBJECT, CHANNEL, CSV_METADATA, GVK, PACKAGE, PACKAGE_REQUIRED};
