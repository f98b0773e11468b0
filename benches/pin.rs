//! What digests cost, beside skopeo and beside the limit, in one run: `cargo bench --bench pin`.
//!
//! A bundle names 200 images by tags of a real registry on this machine (`tests/tools/build target/tools` builds it). The
//! program pins it as users run it, with an empty cache; skopeo asks for the same 200 manifests, one after the other, as
//! operator-manifest has it do, and eight at once; curl, asking over one connection for many, is the limit of anybody.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark reads, prints, and stops where it cannot go on"
)]

#[path = "../tests/it/image_builder.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod image_builder;
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

use std::{fs, path::Path, process::Command, time::Duration};

use serde_json::json;

use self::{
    image_builder::{Format, Image},
    registry::plain,
    timing::{ROUNDS, Scratch, answered, fastest, install_peers, ratio, tell, timed},
};

const TAGS: usize = 200;
const REPOSITORY: &str = "bench/tags";

fn main() {
    install_peers();
    let scratch = Scratch::new("pin");
    for number in 0..TAGS {
        let image = Image::scratch(Format::Oci).with_label("number", &number.to_string());
        registry::push(&image.parts(), &format!("{REPOSITORY}:v{number}"));
    }
    let csv = write_csv(&scratch.empty("bundle"));
    println!("{TAGS} tags of a registry on this machine, {ROUNDS} rounds, the fastest counts");
    let limit = fastest(|| limit(&scratch));
    let one_by_one = fastest(|| inspected(1));
    let eight_at_once = fastest(|| inspected(8));
    let pinned = fastest(|| answered(&scratch.empty("cache"), &["pin", &csv]));
    tell("limit: curl, 50 at once", limit, None);
    tell("skopeo inspect, one by one", one_by_one, Some(limit));
    tell("skopeo inspect, eight at once", eight_at_once, Some(limit));
    tell("kubectl olm pin", pinned, Some(limit));
    println!(
        "    {:.1} times as fast as skopeo one by one, {:.1} times as eight at once",
        ratio(one_by_one, pinned),
        ratio(eight_at_once, pinned)
    );
}

/// A ClusterServiceVersion that names every image.
fn write_csv(folder: &Path) -> String {
    let variables = (0..TAGS).map(|number| {
        let value = format!("{}/{REPOSITORY}:v{number}", plain().address());
        json!({"name": format!("RELATED_IMAGE_{number}"), "value": value})
    });
    let container = json!({"name": "manager", "env": variables.collect::<Vec<_>>()});
    let template = json!({"spec": {"containers": [container]}});
    let deployments = json!([{"name": "manager", "spec": {"template": template}}]);
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "bench.v1.0.0"},
        "spec": {"install": {"strategy": "deployment", "spec": {"deployments": deployments}}},
    });
    let path = folder.join("bench.clusterserviceversion.json");
    fs::write(&path, format!("{csv:#}\n")).expect("a file");
    path.to_str().expect("a path").to_owned()
}

/// Skopeo, so many at once.
fn inspected(at_once: usize) -> Duration {
    let images = (0..TAGS).map(|number| plain().image(&format!("{REPOSITORY}:v{number}")));
    let images = images.collect::<Vec<_>>().join("\n");
    let inspect = "skopeo inspect --raw --tls-verify=false";
    let script = format!("printf '%s\\n' '{images}' | xargs -n 1 -P {at_once} {inspect}");
    let mut shell = Command::new("bash");
    timed(shell.args(["-c", &format!("set -o pipefail; {script}")]))
}

/// The bare requests.
fn limit(scratch: &Scratch) -> Duration {
    let folder = scratch.empty("limit");
    let address = plain().address();
    let mut curl = Command::new("curl");
    curl.args(["-sSf", "-Z", "--parallel-max", "50", "-H"]);
    curl.arg("Accept: application/vnd.oci.image.manifest.v1+json");
    curl.arg(format!(
        "http://{address}/v2/{REPOSITORY}/manifests/v[0-{}]",
        TAGS - 1
    ));
    curl.args(["-o", "#1"]).current_dir(&folder);
    timed(&mut curl)
}
