//! What can be said about an install that no flag of the bundle's own says: the stored ClusterServiceVersion, the
//! Namespace as its owner wrote it, overrides that were read elsewhere, and the proxy of a cluster.

use kubectl_olm::{
    bundle::{Bundle, FOLDERS},
    limits::Limits,
    manifest::{Manifest, Origin},
    problem::{Place, Problem},
    render::{
        RenderOptions, StoredCsv,
        certificates::NoCertificates,
        overrides::{Overrides, Proxy},
        render,
    },
    source::{Settings, Sources},
};
use serde_json::{Map, Value, json};

use super::cases;

/// The bundle `minimal`, changed as a case says.
fn bundle(case: &Value) -> Bundle {
    let case = serde_json::from_value(case.clone()).expect("a case");
    let folder = cases::build(&case);
    let files = Sources::new(Settings::offline()).files(&folder.path().join("bundle"), &FOLDERS);
    let bundle = Bundle::parse(files.expect("files"), &Limits::DEFAULT, &mut vec![]);
    bundle.expect("a bundle")
}

fn options() -> RenderOptions {
    RenderOptions {
        namespace: "ops".to_owned(),
        namespaces: vec![],
        watched: vec![],
        certificates: Box::new(NoCertificates),
        overrides: Overrides::default(),
        csv: None,
    }
}

/// The objects of a kind, in their order among all.
fn rendered(bundle: Bundle, options: &RenderOptions) -> Vec<Value> {
    let rendered = render(bundle, options).expect("it renders");
    let objects = rendered.manifests.into_iter();
    objects.map(Manifest::into_value).collect()
}

fn of_kind<'o>(objects: &'o [Value], kind: &str) -> &'o Value {
    let mut found = objects.iter().filter(|object| object["kind"] == kind);
    let object = found.next().expect("an object of the kind");
    assert!(found.next().is_none(), "more than one {kind}");
    object
}

const CSV: &str = "ClusterServiceVersion";

/// A manifest that says otherwise in every place that OLM sets.
fn said_otherwise() -> Value {
    json!({"patch": {"manifests/csv.yaml": {
        "metadata": {
            "namespace": "placeholder",
            "labels": {"a": "b", "olm.managed": "false"},
            "annotations": {"operatorframework.io/properties": "old", "olm.properties": "[]"},
            "finalizers": ["operators.coreos.com/csv-cleanup"],
            "uid": "1",
        },
        "spec": {"version": "1.0.0", "replaces": "minimal.v0.1.0"},
        "status": {"phase": "Succeeded"},
    }}, "files": {"metadata/properties.yaml": "properties: [{type: a, value: {}}]"}})
}

#[test]
fn a_cluster_service_version_is_stored_as_olm_stores_it() {
    let csv = StoredCsv {
        replaces: "minimal.v0.9.0".to_owned(),
        properties: vec![
            (
                "olm.package".to_owned(),
                json!({"packageName": "minimal", "version": "1.0.0"}),
            ),
            (
                "olm.package.required".to_owned(),
                json!({"versionRange": ">=1 <2"}),
            ),
        ],
    };
    let options = RenderOptions {
        csv: Some(csv),
        ..options()
    };
    let objects = rendered(bundle(&said_otherwise()), &options);
    let csv = of_kind(&objects, CSV);
    let properties = r#"{"properties":[{"type":"olm.package","value":{"packageName":"minimal","version":"1.0.0"}},{"type":"olm.package.required","value":{"versionRange":"\u003e=1 \u003c2"}}]}"#;
    let metadata = json!({
        "name": "minimal.v1.0.0",
        "namespace": "ops",
        "labels": {"a": "b", "olm.managed": "true"},
        "annotations": {"operatorframework.io/properties": properties, "olm.properties": "[]"},
    });
    assert_eq!(csv["metadata"], metadata);
    assert_eq!(csv["spec"]["replaces"], "minimal.v0.9.0");
    assert_eq!(csv.get("status"), None);
    // What is watched, and what the bundle says, goes into pods as it does without the object.
    let without = rendered(bundle(&said_otherwise()), &self::options());
    assert_eq!(
        of_kind(&objects, "Deployment"),
        of_kind(&without, "Deployment")
    );
    assert!(without.iter().all(|object| object["kind"] != CSV));
}

#[test]
fn a_bundle_without_predecessor_and_properties_says_so() {
    let options = RenderOptions {
        csv: Some(StoredCsv::default()),
        ..options()
    };
    let objects = rendered(bundle(&said_otherwise()), &options);
    let csv = of_kind(&objects, CSV);
    assert_eq!(csv["spec"].get("replaces"), None);
    let annotation = &csv["metadata"]["annotations"]["operatorframework.io/properties"];
    assert_eq!(annotation, "{}");
}

#[test]
fn a_cluster_service_version_stands_after_definitions_of_custom_resources() {
    let crd = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.b.c}, \
        spec: {group: b.c, scope: Namespaced, names: {kind: A, plural: as}, versions: [{name: v1, served: true, storage: true}]}}";
    let case = json!({
        "files": {"manifests/crd.yaml": crd},
        "patch": {"manifests/csv.yaml": {
            "apiVersion": "app.coreos.com/v1alpha1",
            "spec": {"customresourcedefinitions": {"owned": [{"name": "as.b.c", "kind": "A", "version": "v1"}]}},
        }},
    });
    let options = RenderOptions {
        csv: Some(StoredCsv::default()),
        ..options()
    };
    let objects = rendered(bundle(&case), &options);
    let kinds: Vec<_> = objects.iter().map(|object| &object["kind"]).collect();
    assert_eq!(kinds[..2], ["CustomResourceDefinition", CSV]);
    // The group that the bundle gets wrong.
    assert_eq!(objects[1]["apiVersion"], "operators.coreos.com/v1alpha1");
}

#[test]
fn a_namespace_is_made_as_its_owner_wrote_it() {
    let written = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "ops",
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
            "annotations": {"owner": "team-a"},
            "uid": "1",
            "resourceVersion": "2",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    });
    let origin = Origin::File {
        path: "install/namespace.yaml".into(),
        line: 1,
    };
    let options = RenderOptions {
        namespaces: vec![Manifest::new(written, origin)],
        ..options()
    };
    let objects = rendered(bundle(&json!({})), &options);
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "ops",
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
            "annotations": {"owner": "team-a"},
        },
    });
    assert_eq!(objects[0], expected);
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().expect("a map").clone()
}

fn subscription(config: Value) -> Overrides {
    let mut problems = vec![];
    let overrides = Overrides::of_subscription(map(config), &Place::from("s.yaml"), &mut problems);
    assert_eq!(problems, []);
    overrides.expect("overrides")
}

#[test]
fn overrides_mean_the_same_wherever_they_are_said() {
    let config = json!({"env": [{"name": "A", "value": "1"}], "affinity": {}});
    let place = Place::from("e.yaml");
    let inline = json!({"watchNamespace": "team-a", "deploymentConfig": config});
    let (inline, watched) =
        Overrides::of_inline(map(inline), &place, &mut vec![]).expect("overrides");
    assert_eq!(watched.as_deref(), Some("team-a"));
    let text = config.to_string();
    let (file, _) = Overrides::parse(text.as_bytes(), "c.yaml", &Limits::DEFAULT, &mut vec![])
        .expect("overrides");
    let objects = [subscription(config), inline, file].map(|overrides| {
        let options = RenderOptions {
            overrides,
            ..options()
        };
        rendered(bundle(&json!({})), &options)
    });
    assert_eq!(objects[0], objects[1]);
    assert_eq!(objects[0], objects[2]);
    let container =
        &of_kind(&objects[0], "Deployment")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["env"], json!([{"name": "A", "value": "1"}]));
}

#[test]
fn all_that_is_wrong_with_overrides_is_told_where_it_stands() {
    let place = Place {
        path: "install/extension.yaml".to_owned(),
        line: 7,
    };
    let inline = json!({
        "watchNamespaces": [],
        "watchNamespace": 3,
        "deploymentConfig": {
            "enviroment": [],
            "selector": {"matchExpressions": [{"key": "app", "operator": "is", "values": ["a"]}]},
        },
    });
    let mut problems = vec![];
    assert!(Overrides::of_inline(map(inline), &place, &mut problems).is_none());
    problems.sort();
    let told: Vec<_> = problems.iter().map(Problem::to_string).collect();
    let at = "error[config]: install/extension.yaml:7: ";
    let expected = [
        "deploymentConfig.selector.matchExpressions[0].operator: \"is\" is none; there are In, NotIn, Exists and DoesNotExist",
        "unknown field `deploymentConfig.enviroment`; there are affinity, annotations, env, envFrom, nodeSelector, resources, selector, tolerations, volumeMounts, volumes",
        "unknown field `watchNamespaces`; beside watchNamespace and deploymentConfig it belongs into `deploymentConfig`",
        "watchNamespace: expected the name of a namespace, found 3",
    ];
    assert_eq!(told, expected.map(|message| format!("{at}{message}")));
}

#[test]
fn the_proxy_of_a_cluster_stands_after_the_variables_of_the_user() {
    let proxy = Proxy {
        http: Some("http://proxy:3128".to_owned()),
        https: Some(String::new()),
        no: Some(".svc".to_owned()),
    };
    let http = json!({"name": "HTTP_PROXY", "value": "http://proxy:3128"});
    let no = json!({"name": "NO_PROXY", "value": ".svc"});
    let own = json!({"name": "NO_PROXY", "value": "own"});
    let lower = json!({"name": "no_proxy", "value": "own"});
    let selected = json!({"matchLabels": {"app": "another"}});
    for (config, expected) in [
        (json!({}), json!([own_first(), no, http])),
        (
            json!({"env": [lower]}),
            json!([own_first(), no, lower, http]),
        ),
        (json!({"env": [own]}), json!([own_first(), own])),
        (
            json!({"env": [{"name": "HTTPS_PROXY"}]}),
            json!([own_first(), {"name": "NO_PROXY", "value": "bundle"}, {"name": "HTTPS_PROXY"}]),
        ),
        // The selector chooses for the user's wishes, and the proxy is none of them.
        (
            json!({"env": [lower], "selector": selected}),
            json!([own_first(), no, http]),
        ),
    ] {
        let options = RenderOptions {
            overrides: subscription(config.clone()).with_proxy(&proxy),
            ..options()
        };
        let objects = rendered(bundle(&with_variables()), &options);
        let pod = &of_kind(&objects, "Deployment")["spec"]["template"]["spec"];
        assert_eq!(pod["containers"][0]["env"], expected, "{config}");
        assert_eq!(pod["initContainers"][0].get("env"), None);
    }
}

fn own_first() -> Value {
    json!({"name": "A", "value": "1"})
}

/// A bundle whose operator sets variables itself, one of them of the proxy.
fn with_variables() -> Value {
    let env = json!([own_first(), {"name": "NO_PROXY", "value": "bundle"}]);
    let pod = json!({
        "initContainers": [{"name": "before", "image": "i"}],
        "containers": [{"name": "manager", "image": "i", "env": env}],
    });
    let spec = json!({
        "selector": {"matchLabels": {"app": "manager"}},
        "template": {"metadata": {"labels": {"app": "manager"}}, "spec": pod},
    });
    let deployments = json!([{"name": "manager", "spec": spec}]);
    json!({"patch": {"manifests/csv.yaml": {"spec": {"install": {"spec": {"deployments": deployments}}}}}})
}
