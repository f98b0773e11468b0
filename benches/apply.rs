//! What applying costs, beside kubectl and helm and beside the limit, in one run: `cargo bench --bench apply`.
//!
//! A bundle of 1,000 small objects goes into a new namespace of an API server of its own (`tests/tools/build target/tools`
//! builds it), and then once more, with nothing to do. The others get what `render` prints for the bundle, and their
//! rounds take turns. curl, sending the bare patches 16 at a time, is the limit of anybody. How many requests each takes
//! is counted by a proxy, in a round that is not timed.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark reads, prints, and stops where it cannot go on"
)]

#[path = "../tests/it/cluster/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use more of it")]
mod cluster;
#[path = "../tests/it/faults/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use more of it")]
mod faults;
#[path = "../tests/it/image_builder.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod image_builder;
#[path = "../tests/it/lying/mod.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod lying;
#[path = "../tests/it/program.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod program;
#[path = "../tests/it/registry.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod registry;
#[allow(dead_code, reason = "another benchmark uses more of it")]
mod timing;
#[path = "../tests/it/token_server.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod token_server;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};

use self::{
    cluster::Cluster,
    faults::FaultProxy,
    program::root,
    timing::{ROUNDS, Scratch, ratio, timed},
};

/// The kinds of the objects, how many there are of each, and what requests call them.
const KINDS: [(&str, usize, &str, &str); 4] = [
    ("ConfigMap", 400, "v1", "configmaps"),
    ("ServiceAccount", 300, "v1", "serviceaccounts"),
    ("Role", 200, "rbac.authorization.k8s.io/v1", "roles"),
    ("Service", 100, "v1", "services"),
];

/// The release of helm that is compared with.
const HELM: &str = "helm.sh/helm/v3/cmd/helm@v3.19.0";

/// The runs of a peer that are measured.
const RUNS: [&str; 2] = ["first", "again"];

/// Who applies: with a kubeconfig, into a namespace.
struct Peer {
    name: &'static str,
    first: Box<Act>,
    again: Box<Act>,
}

type Act = dyn Fn(&Path, &str) -> Command;

/// What one takes: the first time, and again.
type Taken = [Duration; 2];

fn main() {
    let helm = install_helm();
    let scratch = Scratch::new("apply");
    let cluster = Cluster::private();
    let folder = scratch.empty("input");
    let bundle = bundle(&folder);
    let objects = rendered(&bundle);
    println!(
        "1,000 objects into an API server on this machine, {ROUNDS} rounds, the fastest counts"
    );
    let peers = [
        ours(&bundle, &folder),
        kubectl(&objects, &folder),
        helm_of(&helm, &objects, &folder),
        limit(&cluster, &objects, &folder),
    ];
    let taken = fastest(&cluster, &peers);
    let counts = peers.each_ref().map(|peer| counted(&cluster, peer));
    let titles = RUNS.map(|run| format!("{run}, ms   ratio  requests"));
    println!("{:<28}{}", "", titles.join("  "));
    for ((peer, times), counts) in peers.iter().zip(taken).zip(counts) {
        let columns = [0, 1].map(|run| {
            let beside = ratio(times[run], taken[0][run]);
            let time = times[run].as_secs_f64() * 1000.0;
            format!("{time:9.0}  {beside:6.2}  {:8}", counts[run])
        });
        println!("{:<28}{}", peer.name, columns.join("  "));
    }
    println!("a ratio is to the time of kubectl olm");
    let [taken, count] = diff(&cluster, &peers[0], &bundle, &folder);
    println!("kubectl olm diff, with no difference: {taken} ms, {count} requests");
}

/// A bundle of nothing but the objects.
fn bundle(folder: &Path) -> PathBuf {
    let bundle = folder.join("bundle");
    let [manifests, metadata] = ["manifests", "metadata"].map(|part| {
        let part = bundle.join(part);
        fs::create_dir_all(&part).expect("a folder");
        part
    });
    let annotation = |(name, value): (&str, &str)| {
        format!("  operators.operatorframework.io.bundle.{name}: {value}\n")
    };
    let annotations = [
        ("mediatype.v1", "registry+v1"),
        ("manifests.v1", "manifests/"),
        ("metadata.v1", "metadata/"),
        ("package.v1", "bench"),
        ("channels.v1", "stable"),
    ];
    let annotations = annotations.map(annotation).concat();
    let annotations = format!("annotations:\n{annotations}");
    fs::write(metadata.join("annotations.yaml"), annotations).expect("a file");
    let version = json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "bench.v1.0.0"},
        "spec": {
            "displayName": "Bench",
            "version": "1.0.0",
            "installModes": [{"type": "OwnNamespace", "supported": true}],
            "install": {"strategy": "deployment", "spec": {"deployments": []}},
        },
    });
    for object in objects().into_iter().chain([version]) {
        let name = object["metadata"]["name"].as_str().expect("a name");
        fs::write(manifests.join(format!("{name}.yaml")), object.to_string()).expect("a file");
    }
    bundle
}

/// Every object of the bundle, without a namespace.
fn objects() -> Vec<Value> {
    let of_kind = |(kind, count, version, _): (&'static str, usize, &'static str, &'static str)| {
        (0..count).map(move |number| {
            let name = format!("bench-{}-{number}", kind.to_lowercase());
            let mut object =
                json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
            match kind {
                "ConfigMap" => object["data"] = json!({"number": number.to_string()}),
                "Role" => {
                    let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
                    object["rules"] = json!([rule]);
                }
                "Service" => {
                    object["spec"] = json!({"ports": [{"port": 80}], "selector": {"app": name}});
                }
                _ => {}
            }
            object
        })
    };
    KINDS.into_iter().flat_map(of_kind).collect()
}

/// What `render` prints, for any namespace.
fn rendered(bundle: &Path) -> Vec<Value> {
    let mut render = program::program();
    render.arg("render").arg(bundle);
    let render = render.args(["-n", "bench", "-o", "json"]).output();
    let printed = render.expect("it starts").stdout;
    let mut list: Value = serde_json::from_slice(&printed).expect("a list");
    let Value::Array(mut objects) = list["items"].take() else {
        panic!("render prints no list");
    };
    for object in &mut objects {
        let metadata = object["metadata"].as_object_mut().expect("metadata");
        metadata.remove("namespace");
    }
    let expected: usize = KINDS.iter().map(|(_, count, ..)| count).sum();
    assert_eq!(objects.len(), expected, "the bundle is the objects");
    objects
}

/// All objects as one stream.
fn stream(objects: &[Value]) -> String {
    let documents = objects.iter().map(|object| format!("---\n{object}\n"));
    documents.collect()
}

fn ours(bundle: &Path, folder: &Path) -> Peer {
    let (bundle, home) = (bundle.to_owned(), folder.to_owned());
    let apply = move |kubeconfig: &Path, namespace: &str| {
        let mut apply = program::program();
        apply.env("HOME", &home).env("KUBECONFIG", kubeconfig);
        apply.arg("apply").arg(&bundle).args(["-n", namespace]);
        apply
    };
    Peer {
        name: "kubectl olm apply",
        first: Box::new(apply.clone()),
        again: Box::new(apply),
    }
}

fn kubectl(objects: &[Value], folder: &Path) -> Peer {
    let file = folder.join("objects.yaml");
    fs::write(&file, stream(objects)).expect("a file");
    let home = folder.to_owned();
    let apply = move |kubeconfig: &Path, namespace: &str| {
        let mut kubectl = Command::new(program::tool("kubectl"));
        kubectl
            .env_clear()
            .env("HOME", &home)
            .env("KUBECONFIG", kubeconfig);
        kubectl
            .args(["apply", "--server-side", "-n", namespace, "-f"])
            .arg(&file);
        kubectl
    };
    Peer {
        name: "kubectl apply --server-side",
        first: Box::new(apply.clone()),
        again: Box::new(apply),
    }
}

fn helm_of(helm: &Path, objects: &[Value], folder: &Path) -> Peer {
    let chart = folder.join("chart");
    fs::create_dir_all(chart.join("templates")).expect("a folder");
    let about = "apiVersion: v2\nname: bench\nversion: 1.0.0\n";
    fs::write(chart.join("Chart.yaml"), about).expect("a file");
    fs::write(chart.join("templates/objects.yaml"), stream(objects)).expect("a file");
    let (helm, home) = (helm.to_owned(), folder.to_owned());
    let run = move |verb: &'static str| {
        let (helm, home, chart) = (helm.clone(), home.clone(), chart.clone());
        let run = move |kubeconfig: &Path, namespace: &str| {
            let mut helm = Command::new(&helm);
            helm.env_clear()
                .env("HOME", &home)
                .env("KUBECONFIG", kubeconfig);
            helm.args([verb, "bench", "-n", namespace]).arg(&chart);
            helm
        };
        Box::new(run)
    };
    Peer {
        name: "helm 3.19",
        first: run("install"),
        again: run("upgrade"),
    }
}

/// The bare patches, over as few connections as curl likes.
fn limit(cluster: &Cluster, objects: &[Value], folder: &Path) -> Peer {
    let ca = folder.join("ca.crt");
    fs::write(&ca, cluster.ca()).expect("a file");
    let (folder, token, url) = (
        folder.to_owned(),
        cluster.token(),
        format!("https://{}", cluster.address()),
    );
    let objects = objects.to_vec();
    let patches = move |_: &Path, namespace: &str| {
        let patches = objects.iter().map(|object| {
            let name = object["metadata"]["name"].as_str().expect("a name");
            let (_, _, version, plural) = KINDS
                .into_iter()
                .find(|(kind, ..)| object["kind"] == *kind)
                .expect("one of the kinds");
            let api = if version == "v1" { "api" } else { "apis" };
            format!(
                "url = \"{url}/{api}/{version}/namespaces/{namespace}/{plural}/{name}?fieldManager=bench\"\nrequest = PATCH\n\
                 header = \"Content-Type: application/apply-patch+yaml\"\nheader = \"Authorization: Bearer {token}\"\n\
                 data-binary = {}\ncacert = {}\noutput = /dev/null\nfail\nsilent\nshow-error\n",
                Value::from(object.to_string()),
                ca.display(),
            )
        });
        let patches: Vec<_> = patches.collect();
        let file = folder.join("patches");
        fs::write(&file, patches.join("next\n")).expect("a file");
        let mut curl = Command::new("curl");
        curl.args(["-Z", "--parallel-max", "16", "--fail-early", "-K"])
            .arg(file);
        curl
    };
    Peer {
        name: "limit: curl, 16 at once",
        first: Box::new(patches.clone()),
        again: Box::new(patches),
    }
}

/// The fastest of the rounds, each in a new namespace.
fn fastest<const COUNT: usize>(cluster: &Cluster, peers: &[Peer; COUNT]) -> [Taken; COUNT] {
    let kubeconfig = cluster.kubeconfig();
    let mut fastest = [[Duration::MAX; 2]; COUNT];
    for _ in 0..ROUNDS {
        for (peer, fastest) in peers.iter().zip(&mut fastest) {
            let namespace = cluster.namespace("bench");
            for (run, fastest) in [&peer.first, &peer.again].into_iter().zip(fastest) {
                let taken = timed(&mut run(&kubeconfig, &namespace));
                *fastest = taken.min(*fastest);
            }
        }
    }
    fastest
}

/// How many requests it takes the first time, and again; those of curl are the objects.
fn counted(cluster: &Cluster, peer: &Peer) -> [usize; 2] {
    let proxy = FaultProxy::start(cluster);
    let kubeconfig = proxy.kubeconfig(cluster.token());
    let namespace = cluster.namespace("bench");
    [&peer.first, &peer.again].map(|run| {
        timed(&mut run(&kubeconfig, &namespace));
        let count = proxy.requests().len();
        proxy.settle();
        count
    })
}

/// The milliseconds and the requests of a comparison with what was applied.
fn diff(cluster: &Cluster, peer: &Peer, bundle: &Path, folder: &Path) -> [usize; 2] {
    let namespace = cluster.namespace("bench");
    timed(&mut (peer.first)(&cluster.kubeconfig(), &namespace));
    let diff = |kubeconfig: &Path| {
        let mut diff = program::program();
        diff.env("HOME", folder).env("KUBECONFIG", kubeconfig);
        diff.arg("diff").arg(bundle).args(["-n", &namespace]);
        timed(&mut diff)
    };
    let proxy = FaultProxy::start(cluster);
    diff(&proxy.kubeconfig(cluster.token()));
    let taken = timing::fastest(|| diff(&cluster.kubeconfig()));
    let taken = usize::try_from(taken.as_millis()).expect("a short time");
    [taken, proxy.requests().len()]
}

/// Builds helm, where it is missing.
fn install_helm() -> PathBuf {
    let helm = root().join("target/tools/helm");
    if !helm.exists() {
        println!("building helm");
        let mut go = Command::new("go");
        go.args(["install", "-trimpath", "-ldflags", "-s -w", HELM]);
        go.env("GOBIN", root().join("target/tools"))
            .env("CGO_ENABLED", "0");
        timed(&mut go);
    }
    helm
}
