//! Whose a live object is, as its labels, annotations and owner references say.
//!
//! What decides, first to last: our label; the controller among the owner references, as what it makes is changed back by
//! it; then the marks of tools, the more telling ones first. OLM v1 marks what it installs with labels (operator-controller
//! `internal/operator-controller/labels`), OLM v0 with `olm.owner` and its kind (operator-lifecycle-manager
//! `pkg/lib/ownerutil`), Helm with annotations and a label (helm `pkg/action/validate.go`), Argo CD with an annotation or,
//! in older set-ups, a label that others use as well, and so counts last (argo-cd `common/common.go`).
//!
//! | Owner | Marked by |
//! | --- | --- |
//! | an install of ours, or another ApplySet | label `applyset.kubernetes.io/part-of` |
//! | a controller | `ownerReferences` with `controller: true` |
//! | OLM v1 | labels `olm.operatorframework.io/owner-kind`, `-name` |
//! | OLM v0 | labels `olm.owner`, `olm.owner.kind`, `olm.owner.namespace`; `olm.managed`; `operators.coreos.com/NAME.NAMESPACE` |
//! | Flux | labels `kustomize.toolkit.fluxcd.io/name`, `helm.toolkit.fluxcd.io/name` with their `namespace` |
//! | Argo CD | annotation `argocd.argoproj.io/tracking-id`, or label `argocd.argoproj.io/instance` |
//! | Helm | annotation `meta.helm.sh/release-name`; label `app.kubernetes.io/managed-by: Helm` |
//! | kapp | label `kapp.k14s.io/app` |
//! | cli-utils, as kpt and Config Sync | annotation `config.k8s.io/owning-inventory` |
//! | another owner | any other of `ownerReferences` |
//!
//! The label `app.kubernetes.io/instance`, which Argo CD tracks by as long as nobody tells it not to, proves nothing: charts
//! and bundles set it too.

use serde_json::{Map, Value};

use super::desired::PART_OF;

/// Whose an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// An install of ours, by the value of [`PART_OF`]. Of another program's ApplySet it is one
    /// that no inventory has the id of.
    Install(String),
    /// Somebody else, in words: `the Helm release queues in ops`, `OLM's ClusterServiceVersion queues.v1`.
    Other(String),
    /// Nobody that is known.
    Nobody,
}

/// Characters of a name that are shown.
const LONGEST: usize = 253;

/// Whose a live object is. `metadata` is enough of it.
#[must_use]
pub fn of(live: &Value) -> Owner {
    let marks = Marks::of(live);
    if let Some(id) = marks.label(PART_OF) {
        return Owner::Install(id);
    }
    let other = WAYS.iter().find_map(|way| way(&marks));
    other.map_or(Owner::Nobody, Owner::Other)
}

/// The ways in which an owner is told, in the order in which they count.
const WAYS: [fn(&Marks<'_>) -> Option<String>; 9] = [
    controller, olm_v1, olm_v0, flux, argo_cd, helm, kapp, cli_utils, any_owner,
];

/// What owners are told by.
struct Marks<'v> {
    labels: Option<&'v Map<String, Value>>,
    annotations: Option<&'v Map<String, Value>>,
    references: &'v [Value],
}

impl<'v> Marks<'v> {
    fn of(live: &'v Value) -> Self {
        let metadata = |field: &str| live.get("metadata")?.get(field);
        let references = metadata("ownerReferences").and_then(Value::as_array);
        Self {
            labels: metadata("labels").and_then(Value::as_object),
            annotations: metadata("annotations").and_then(Value::as_object),
            references: references.map(Vec::as_slice).unwrap_or_default(),
        }
    }

    fn label(&self, key: &str) -> Option<String> {
        shown(self.labels?.get(key)?)
    }

    fn annotation(&self, key: &str) -> Option<String> {
        shown(self.annotations?.get(key)?)
    }
}

fn controller(marks: &Marks<'_>) -> Option<String> {
    let is_controller =
        |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    reference(marks.references.iter().find(is_controller)?)
}

fn any_owner(marks: &Marks<'_>) -> Option<String> {
    reference(marks.references.first()?)
}

fn reference(owner: &Value) -> Option<String> {
    let kind = owner.get("kind").and_then(shown)?;
    let name = owner.get("name").and_then(shown)?;
    let api_version = owner
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Some(match (api_version.split('/').next(), kind.as_str()) {
        (Some("operators.coreos.com"), _) => format!("OLM's {kind} {name}"),
        (Some("olm.operatorframework.io"), _) => format!("OLM v1's {kind} {name}"),
        _ => format!("its owner {kind} {name}"),
    })
}

fn olm_v1(marks: &Marks<'_>) -> Option<String> {
    let name = marks.label("olm.operatorframework.io/owner-name")?;
    let kind = marks.label("olm.operatorframework.io/owner-kind");
    let kind = kind.unwrap_or_else(|| "ClusterExtension".to_owned());
    Some(format!("OLM v1's {kind} {name}"))
}

fn olm_v0(marks: &Marks<'_>) -> Option<String> {
    if let Some(name) = marks.label("olm.owner") {
        let kind = marks.label("olm.owner.kind");
        let kind = kind.unwrap_or_else(|| "ClusterServiceVersion".to_owned());
        let namespace = marks.label("olm.owner.namespace");
        return Some(format!("OLM's {kind} {name}{}", within(namespace)));
    }
    // Operators that OLM knows carry one label for the Operator that it keeps of their package.
    let operator = marks.labels?.keys().find_map(|key| {
        let package = key.strip_prefix("operators.coreos.com/")?;
        Some(clean(package))
    });
    if let Some(operator) = operator {
        return Some(format!("OLM's Operator {operator}"));
    }
    let is_managed = marks.label("olm.managed").as_deref() == Some("true");
    is_managed.then(|| "OLM".to_owned())
}

fn flux(marks: &Marks<'_>) -> Option<String> {
    let kinds = [("kustomize", "Kustomization"), ("helm", "HelmRelease")];
    kinds.iter().find_map(|(controller, kind)| {
        let name = marks.label(&format!("{controller}.toolkit.fluxcd.io/name"))?;
        let namespace = marks.label(&format!("{controller}.toolkit.fluxcd.io/namespace"));
        Some(format!("Flux's {kind} {name}{}", within(namespace)))
    })
}

fn argo_cd(marks: &Marks<'_>) -> Option<String> {
    // `APPLICATION:GROUP/KIND:NAMESPACE/NAME`; one of another namespace is told as `NAMESPACE_APPLICATION`.
    let tracked = marks.annotation("argocd.argoproj.io/tracking-id");
    let tracked = tracked.and_then(|id| Some(id.split(':').next()?.to_owned()));
    let application = tracked.filter(|name| !name.is_empty());
    let application = application.or_else(|| marks.label("argocd.argoproj.io/instance"))?;
    Some(format!("Argo CD's application {application}"))
}

fn helm(marks: &Marks<'_>) -> Option<String> {
    if let Some(release) = marks.annotation("meta.helm.sh/release-name") {
        let namespace = marks.annotation("meta.helm.sh/release-namespace");
        return Some(format!("the Helm release {release}{}", within(namespace)));
    }
    let manager = marks.label("app.kubernetes.io/managed-by");
    (manager.as_deref() == Some("Helm")).then(|| "Helm".to_owned())
}

fn kapp(marks: &Marks<'_>) -> Option<String> {
    let app = marks.label("kapp.k14s.io/app")?;
    Some(format!("kapp's app {app}"))
}

fn cli_utils(marks: &Marks<'_>) -> Option<String> {
    let inventory = marks.annotation("config.k8s.io/owning-inventory")?;
    Some(format!("the cli-utils inventory {inventory}"))
}

fn within(namespace: Option<String>) -> String {
    namespace.map_or_else(String::new, |namespace| format!(" in {namespace}"))
}

/// A text that says something, without what could steer a terminal.
fn shown(value: &Value) -> Option<String> {
    let text = clean(value.as_str()?);
    (!text.is_empty()).then_some(text)
}

fn clean(text: &str) -> String {
    let good = text.chars().filter(|character| !character.is_control());
    good.take(LONGEST).collect()
}
