//! What the input tells of a cluster: the operators that are installed in it, and its proxy.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::{Objects, field, fits};
use crate::{
    catalog::Gvk, manifest::Manifest, render::overrides::Proxy, resolve::Installed, versions,
};

/// The label of copies that OLM makes of a ClusterServiceVersion.
const COPIED_FROM: &str = "olm.copiedFrom";

/// OpenShift's proxy (`lib/proxy`): its status, or its spec when nobody has made a status of it yet.
pub(super) fn proxy(objects: &Objects) -> Option<Proxy> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Fields {
        http_proxy: Option<String>,
        https_proxy: Option<String>,
        no_proxy: Option<String>,
    }
    let cluster = objects
        .proxies
        .iter()
        .find(|proxy| proxy.name() == "cluster")?;
    // A manifest that never was in a cluster may have an empty one, too.
    let is_made = |status: &&Value| status.as_object().is_some_and(|status| !status.is_empty());
    let status = cluster.object().get("status").filter(is_made);
    let fields: Fields = field(status.or_else(|| cluster.object().get("spec")));
    Some(Proxy {
        http: fields.http_proxy,
        https: fields.https_proxy,
        no: fields.no_proxy,
    })
}

/// The operators whose ClusterServiceVersions are in a namespace, without the copies that OLM makes in others.
pub(super) fn installed_in(own: Option<&str>, objects: &Objects) -> Arc<[Installed]> {
    let csvs = objects.cluster_service_versions.iter();
    let here = csvs.filter(|csv| fits(csv.namespace(), own));
    let originals = here.filter(|csv| {
        let labels = csv.metadata("labels");
        labels.and_then(|labels| labels.get(COPIED_FROM)).is_none()
    });
    originals.map(|csv| installed(csv, objects)).collect()
}

fn installed(csv: &Manifest, objects: &Objects) -> Installed {
    let spec = csv.object().get("spec");
    let part = |name: &str| spec.and_then(|spec| spec.get(name));
    let version = part("version").and_then(Value::as_str);
    let owned = |kind: &str| {
        let owned = part(kind).and_then(|of_kind| of_kind.get("owned"));
        owned.and_then(Value::as_array).into_iter().flatten()
    };
    let api = |owned: &Value, group: &str| {
        let text = |name: &str| owned.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Gvk {
            group: group.to_owned(),
            version: text("version")?,
            kind: text("kind")?,
        })
    };
    let of_definitions = owned("customresourcedefinitions").filter_map(|owned| {
        let (_, group) = owned.get("name")?.as_str()?.split_once('.')?;
        api(owned, group)
    });
    let of_services = owned("apiservicedefinitions")
        .filter_map(|owned| api(owned, owned.get("group")?.as_str()?));
    Installed {
        name: csv.name().to_owned(),
        package: package_of(csv, objects),
        version: version.and_then(|version| versions::parse(version).ok()),
        provides: of_definitions.chain(of_services).collect(),
    }
}

/// The package of an installed ClusterServiceVersion: what its Subscription says, else what OLM wrote into it, else what
/// its name begins with.
fn package_of(csv: &Manifest, objects: &Objects) -> String {
    let subscribed = objects.subscriptions.iter().find(|subscription| {
        let status = subscription.object().get("status");
        let installed = status.and_then(|status| status.get("installedCSV"));
        installed.and_then(Value::as_str) == Some(csv.name())
            && fits(subscription.namespace(), Some(csv.namespace()))
    });
    if let Some(subscription) = subscribed {
        let package = subscription
            .object()
            .get("spec")
            .and_then(|spec| spec.get("name"));
        return package
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
    }
    let annotations = csv.metadata("annotations");
    let properties = annotations
        .and_then(|annotations| annotations.get("operatorframework.io/properties"))
        .and_then(Value::as_str);
    let properties: Option<Value> = properties.and_then(|text| serde_json::from_str(text).ok());
    let properties = properties
        .as_ref()
        .and_then(|value| value.get("properties")?.as_array());
    let mut properties = properties.into_iter().flatten();
    let package = properties
        .find(|property| property.get("type").and_then(Value::as_str) == Some("olm.package"));
    let package = package.and_then(|property| property.pointer("/value/packageName")?.as_str());
    let begins = csv.name().split('.').next();
    package.or(begins).unwrap_or_default().to_owned()
}
