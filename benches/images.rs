//! What images cost, beside the limits and what others take, in one run: `cargo bench --bench images`.
//!
//! The program is run as users run it, on images in a real registry (`tests/tools/build target/tools` builds it): a
//! catalog of 616 MB of JSON (`BENCH_BYTES` says how large), made of the real ones as `benches/catalog.rs` makes its own,
//! and 50 bundles of the corpus (`OLM_CORPUS`, by default `../shared/corpus`). The limit is what anybody has to do who
//! trusts nobody: fetch the same blobs with curl, hash them, and decompress them. Beside it stands Debian's skopeo, with
//! umoci for what skopeo does not unpack; both are installed when they are missing and root runs this.

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
mod made;
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
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use kubectl_olm::{
    bundle,
    concurrent::concurrently,
    source::{Settings, Sources, registry::RegistrySettings},
};
use serde_json::ser::PrettyFormatter;

use self::{
    image_builder::{Compression, Image, digest},
    program::root,
    registry::plain,
    timing::{ROUNDS, Scratch, answered, fastest, install_peers, ratio, tell, timed},
};

const BUNDLES: usize = 50;
const CATALOG: &str = "bench/catalog";

fn main() {
    let corpus = env::var_os("OLM_CORPUS").map(PathBuf::from);
    let corpus = corpus.unwrap_or_else(|| root().join("../shared/corpus"));
    assert!(
        corpus.join("cases.tsv").exists(),
        "{} is missing: name the corpus with OLM_CORPUS",
        corpus.display()
    );
    install_peers();
    let scratch = Scratch::new("images");
    catalog(&corpus, &scratch);
    bundles(&corpus, &scratch);
}

/// The first answer from a large catalog, and the next ones.
fn catalog(corpus: &Path, scratch: &Scratch) {
    let (files, package) = make_catalog(&corpus.join("catalogs"));
    let bytes: usize = files.iter().map(|(_, content)| content.len()).sum();
    let image = Image::of_catalog_files(&files, Compression::Gzip);
    drop(files);
    let parts = image.parts();
    let pushed = registry::push(&parts, &format!("{CATALOG}:v1"));
    let [_, configs, _] = image.layers() else {
        panic!("a catalog image has three layers");
    };
    println!(
        "a catalog image of {:.0} MB of JSON, {:.0} MB compressed, {ROUNDS} rounds, the fastest counts",
        bytes as f64 / 1e6,
        configs.blob.len() as f64 / 1e6
    );
    let targets = [
        "manifests/v1".to_owned(),
        format!("blobs/{}", digest(&image.config())),
        format!("blobs/{}", configs.digest()),
    ];
    drop((image, parts));

    let one_by_one = fastest(|| limit(&targets, Order::OneByOne, scratch));
    let pipelined = fastest(|| limit(&targets, Order::Pipelined, scratch));
    tell("curl, then sha256sum, then gzip -d", one_by_one, None);
    tell(
        "limit: curl | sha256sum and gzip -d at the same time",
        pipelined,
        None,
    );
    let peer = fastest(|| unpacked(scratch));
    tell("skopeo copy, then umoci unpack", peer, Some(pipelined));

    let source = plain().image(&format!("{CATALOG}:v1"));
    let show = ["catalog", "show", &package, "--catalog", &source];
    let requests = plain().log(CATALOG).len();
    let cold = fastest(|| answered(&scratch.empty("cache"), &show));
    let requests = (plain().log(CATALOG).len() - requests) / ROUNDS;
    tell("first answer", cold, Some(pipelined));
    println!(
        "    {requests} requests; skopeo with umoci took {:.1} times as long",
        ratio(peer, cold)
    );

    let source = plain().image(&format!("{CATALOG}@{pushed}"));
    let show = ["catalog", "show", &package, "--catalog", &source];
    let cache = scratch.empty("cache");
    answered(&cache, &show);
    let requests = plain().log(CATALOG).len();
    let kept = fastest(|| answered(&cache, &show));
    let requests = plain().log(CATALOG).len() - requests;
    tell("from the cache", kept, Some(pipelined));
    println!("    {requests} requests");
}

/// A catalog as large as asked for, with a file for each package, and the name of one in its middle.
fn make_catalog(real: &Path) -> (Vec<(String, Vec<u8>)>, String) {
    let bytes: usize =
        env::var("BENCH_BYTES").map_or(616_000_000, |bytes| bytes.parse().expect("a number"));
    let packages = made::real_packages(real);
    let (mut files, mut names, mut written) = (vec![], vec![], 0);
    for round in 0.. {
        for (name, documents) in &packages {
            if written >= bytes {
                let middle = names.swap_remove(names.len() / 2);
                return (files, middle);
            }
            let new = format!("{name}-{round}");
            let mut json = vec![];
            for document in documents {
                let document = made::renamed(document.clone(), &new);
                let format = PrettyFormatter::with_indent(b"    ");
                let mut writer = serde_json::Serializer::with_formatter(&mut json, format);
                serde::Serialize::serialize(&document, &mut writer).expect("JSON");
                json.push(b'\n');
            }
            written += json.len();
            files.push((format!("configs/{new}/catalog.json"), json));
            names.push(new);
        }
    }
    unreachable!("the rounds do not end")
}

/// Whether hashing and decompressing wait for the end of what is before them.
#[derive(Clone, Copy)]
enum Order {
    OneByOne,
    Pipelined,
}

/// What anybody has to do at least: fetch, hash, decompress.
fn limit(targets: &[String], order: Order, scratch: &Scratch) -> Duration {
    let folder = scratch.empty("limit");
    let address = plain().address();
    let (layer, small) = targets.split_last().expect("a layer");
    let url = |target: &str| format!("http://{address}/v2/{CATALOG}/{target}");
    let fetch = |target: &str| {
        let accept = "Accept: application/vnd.oci.image.manifest.v1+json";
        format!("curl -sSf -H '{accept}' {}", url(target))
    };
    let small = small
        .iter()
        .map(|target| format!("{} | sha256sum", fetch(target)));
    let small = small.collect::<Vec<_>>().join(" && ");
    let large = match order {
        Order::OneByOne => format!(
            "{} > layer && sha256sum layer && gzip -dc layer > tar",
            fetch(layer)
        ),
        Order::Pipelined => format!(
            "mkfifo copy && {{ sha256sum < copy & {} | tee copy | gzip -dc > tar && wait; }}",
            fetch(layer)
        ),
    };
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("set -o pipefail; {small} && {large}")]);
    let taken = timed(shell.current_dir(&folder));
    fs::remove_dir_all(folder).expect("a folder");
    taken
}

/// The image unpacked by others.
fn unpacked(scratch: &Scratch) -> Duration {
    let folder = scratch.empty("unpacked");
    let source = plain().image(&format!("{CATALOG}:v1"));
    let copy = format!("skopeo copy -q --src-tls-verify=false {source} oci:image:v1");
    let mut shell = Command::new("bash");
    shell.args([
        "-c",
        &format!("{copy} && umoci unpack --rootless --image image:v1 bundle"),
    ]);
    let taken = timed(shell.current_dir(&folder));
    fs::remove_dir_all(folder).expect("a folder");
    taken
}

/// Many bundle images.
fn bundles(corpus: &Path, scratch: &Scratch) {
    let table = fs::read_to_string(corpus.join("cases.tsv")).expect("the corpus has cases.tsv");
    let all: Vec<_> = table.lines().skip(1).collect();
    // Of all the corpus, not of the operators that come first.
    let chosen = all.iter().step_by(all.len() / BUNDLES).take(BUNDLES);
    let cases: Vec<_> = chosen
        .map(|line| {
            let fields: Vec<_> = line.split('\t').collect();
            let [operator, version, mode, watched, ..] = fields.as_slice() else {
                panic!("{line} is no case");
            };
            let name = format!("{operator}/{version}");
            let repository = format!("bench/{}", name.to_lowercase());
            registry::push_bundle(
                &corpus.join("bundles").join(&name),
                &format!("{repository}:v1"),
            );
            let watched = (*mode != "AllNamespaces").then_some(*watched);
            (plain().image(&format!("{repository}:v1")), watched)
        })
        .collect();
    println!(
        "{} bundle images, {ROUNDS} rounds, the fastest counts",
        cases.len()
    );
    let peer = fastest(|| {
        let folder = scratch.empty("copies");
        let copies = cases.iter().enumerate().map(|(number, (image, _))| {
            let mut skopeo = Command::new("skopeo");
            skopeo.args(["copy", "-q", "--src-tls-verify=false", image]);
            skopeo.arg(format!("dir:{}", folder.join(number.to_string()).display()));
            timed(&mut skopeo)
        });
        copies.sum()
    });
    tell("skopeo copy, one by one", peer, None);
    let render = |cache: &Path, (image, watched): &(String, Option<&str>)| {
        let mut words = vec!["render", image, "-n", "operators"];
        if let Some(watched) = watched {
            words.extend(["--watch-namespace", watched]);
        }
        answered(cache, &words)
    };
    let one_by_one = fastest(|| {
        let cache = scratch.empty("cache");
        cases.iter().map(|case| render(&cache, case)).sum()
    });
    let at_once = fastest(|| read_at_once(&cases));
    for (what, taken) in [
        (
            "read and rendered, a run of the program for each",
            one_by_one,
        ),
        (
            "read by one run, as for a package that needs them all",
            at_once,
        ),
    ] {
        tell(what, taken, None);
        println!("    {:.1} times as fast as skopeo", ratio(peer, taken));
    }
}

/// Reads all images in one process, as the program does for a package and what it needs.
fn read_at_once(cases: &[(String, Option<&str>)]) -> Duration {
    let begun = Instant::now();
    let sources = Sources::new(Settings {
        offline: false,
        cache: false,
        registries: RegistrySettings {
            insecure: vec![plain().address()],
            ..RegistrySettings::default()
        },
        ..Settings::offline()
    });
    let read = concurrently(cases, 16, |(image, _)| {
        sources.files(Path::new(image), &bundle::FOLDERS)
    });
    let taken = begun.elapsed();
    for files in read {
        assert!(files.expect("a bundle").has_folder("manifests"));
    }
    taken
}
