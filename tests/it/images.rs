//! Images as users have them: in a real registry, in OCI layouts, in OCI and docker archives. Whatever the way, the
//! answer is the one that the same files give from a folder, and no more is fetched than it takes.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rayon::prelude::*;
use tempfile::TempDir;

use super::{
    corpus::{self, Case},
    image_builder::{Compression, Document, Format, Image, Layer, index},
    program::{Run, program, root, tool},
    registry::{self, plain},
    tap::{Speed, Tap},
};

/// Longer than it may take to stop after Ctrl-C.
const SOON: Duration = Duration::from_secs(1);

/// As many bundles are gone through at the same time.
const WAITING: usize = 8;

/// The program with a cache.
fn with_cache(cache: &Path) -> Command {
    let mut program = program();
    program.env("XDG_CACHE_HOME", cache);
    program
}

/// Runs the program with a cache, a command of words, and the registry that speaks HTTP allowed to.
fn run(cache: &Path, words: &str) -> Run {
    run_with(cache, words, &plain().address())
}

/// The same with a server that stands before the registry.
fn run_with(cache: &Path, words: &str, address: &str) -> Run {
    with_cache(cache)
        .args(words.split(' '))
        .args(["--insecure-registry", address])
        .output()
        .expect("the program starts")
        .into()
}

/// What a command prints when it must succeed.
fn printed(run: Run, what: &str) -> String {
    assert_eq!(run.code, 0, "{what}: {}", run.stderr);
    run.stdout
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A bundle of the tests, and what it renders to.
fn bundle(name: &str) -> (PathBuf, String) {
    let folder = root().join("testdata/bundles").join(name);
    let rendered = run(
        folder_of_tests(),
        &format!("render {} -n ops", folder.display()),
    );
    (folder, printed(rendered, name))
}

fn folder_of_tests() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// A catalog of two packages, one of which is called `first`.
fn small_catalog() -> TempDir {
    let catalog = folder();
    for package in ["first", "second"] {
        let folder = catalog.path().join(package);
        fs::create_dir(&folder).expect("a folder");
        let text = format!(
            "---\nschema: olm.package\nname: {package}\ndefaultChannel: stable\n\
             ---\nschema: olm.channel\npackage: {package}\nname: stable\nentries:\n- name: {package}.v1.0.0\n\
             ---\nschema: olm.bundle\npackage: {package}\nname: {package}.v1.0.0\nimage: example.com/{package}:1\n\
             properties:\n- type: olm.package\n  value: {{packageName: {package}, version: 1.0.0}}\n"
        );
        fs::write(folder.join("catalog.yaml"), text).expect("a file");
    }
    catalog
}

/// Where the same image can be had.
fn ways(image: &Image, repository: &str, folder: &Path) -> [String; 4] {
    let parts = image.parts();
    registry::push(&parts, &format!("{repository}:v1"));
    let place = |name: &str| folder.join(name);
    parts.write_oci_layout(&place("layout"), "v1");
    parts.write_oci_archive(&place("oci.tar"), "v1");
    image.write_docker_archive(
        &place("docker.tar"),
        &format!("example.com/{repository}:v1"),
    );
    [
        plain().image(&format!("{repository}:v1")),
        format!("oci:{}", place("layout").display()),
        format!("oci-archive:{}", place("oci.tar").display()),
        format!("docker-archive:{}", place("docker.tar").display()),
    ]
}

#[test]
fn every_real_bundle_renders_from_images_as_from_its_folder() {
    let Some(corpus) = corpus::corpus() else {
        return;
    };
    let cases = corpus::cases(&corpus);
    let cache = folder();
    let compare = |(number, case): (usize, &Case)| {
        let name = format!("{}/{}", case.operator, case.version);
        let bundle = corpus.join("bundles").join(&name);
        // Images of all kinds are about.
        let compressions = [Compression::Gzip, Compression::Zstd, Compression::Plain];
        let formats = [Format::Oci, Format::Docker];
        let image = Image::of_bundle(&bundle, formats[number % 2], compressions[number % 3]);
        let temporary = folder();
        let repository = format!("corpus/{}", name.to_lowercase());
        let ways = ways(&image, &repository, temporary.path());
        let watched = case.watched.iter();
        let flags: String = watched
            .map(|namespace| format!(" --watch-namespace {namespace}"))
            .collect();
        let render = |source: &str| {
            let words = format!("render {source} -n operators{flags}");
            run(cache.path(), &words)
        };
        let expected = render(bundle.to_str().expect("a path"));
        let differs = |way: &String| {
            let rendered = render(way);
            let is_same = rendered.code == 0 && rendered.stdout == expected.stdout;
            (!is_same).then(|| format!("{name} from {way}: {}", rendered.stderr))
        };
        ways.iter().filter_map(differs).collect::<Vec<_>>()
    };
    // Most of the time goes by with waiting: for the disk of the registry, and for programs.
    let threads = rayon::ThreadPoolBuilder::new().num_threads(WAITING);
    let threads = threads.build().expect("threads");
    let differences: Vec<_> = threads.install(|| {
        let cases = cases.par_iter().enumerate();
        cases.flat_map_iter(compare).collect()
    });
    assert!(
        differences.is_empty(),
        "{} of {} differ, the first: {}",
        differences.len(),
        4 * cases.len(),
        differences[0]
    );
}

#[test]
fn a_real_catalog_answers_from_its_image_as_from_its_folder() {
    let Some(corpus) = corpus::corpus() else {
        return;
    };
    let catalog = corpus.join("catalogs/v4.19");
    let (temporary, cache) = (folder(), folder());
    let image = Image::of_catalog(&catalog, Compression::Gzip);
    let ways = ways(&image, "catalogs/v4-19", temporary.path());
    let package = "coherence-operator";
    let answers = |source: &str| {
        [
            format!("catalog list --catalog real={source}"),
            format!("catalog show {package} --catalog real={source}"),
            format!("explain {package} --catalog real={source}"),
        ]
        .map(|words| {
            let run = run(cache.path(), &words);
            (run.code, run.stdout)
        })
    };
    let expected = answers(catalog.to_str().expect("a path"));
    assert!(expected.iter().all(|(code, _)| *code == 0), "{expected:?}");
    for way in ways {
        assert!(answers(&way) == expected, "{way} answers otherwise");
    }
}

#[test]
fn a_package_of_a_catalog_image_is_rendered_from_its_bundle_image() {
    let (bundle, expected) = bundle("minimal");
    let registry = plain();
    registry::push_bundle(&bundle, "chain/bundle:v1");
    let image = format!("{}/chain/bundle:v1", registry.address());
    let catalog = format!(
        "---\nschema: olm.package\nname: minimal\ndefaultChannel: stable\n\
         ---\nschema: olm.channel\npackage: minimal\nname: stable\nentries:\n- name: minimal.v1.0.0\n\
         ---\nschema: olm.bundle\npackage: minimal\nname: minimal.v1.0.0\nimage: {image}\n\
         properties:\n- type: olm.package\n  value: {{packageName: minimal, version: 1.0.0}}\n"
    );
    let files = [("configs/minimal/catalog.yaml".to_owned(), catalog.into())];
    let catalog = Image::of_catalog_files(&files, Compression::Gzip);
    registry::push(&catalog.parts(), "chain/catalog:v1");
    let source = registry.image("chain/catalog:v1");
    let words = format!("render minimal -n ops --catalog {source}");
    assert_eq!(printed(run(folder().path(), &words), "render"), expected);
}

#[test]
fn only_the_layers_that_hold_the_catalog_are_fetched() {
    let catalog = small_catalog();
    let image = Image::of_catalog(catalog.path(), Compression::Gzip);
    registry::push(&image.parts(), "needed/catalog:v1");
    let source = plain().image("needed/catalog:v1");
    let words = format!("catalog list --catalog {source}");
    let listed = printed(run(folder().path(), &words), "list");
    assert!(listed.contains("first"), "{listed}");
    let [opm, configs, cache] = image.layers() else {
        panic!("a catalog image has three layers");
    };
    let log = plain().log("needed/catalog");
    let asked = |digest: &str| log.iter().any(|request| request.ends_with(digest));
    assert!(asked(&configs.digest()), "{log:?}");
    assert!(!asked(&opm.digest()), "{log:?}");
    assert!(!asked(&cache.digest()), "{log:?}");
}

#[test]
fn an_index_gives_the_platform_asked_for_or_any_that_is_there() {
    let bundles = ["minimal", "queue-operator"].map(bundle);
    let platforms = [("linux", "s390x"), ("linux", "ppc64le")];
    let images: Vec<_> = bundles
        .iter()
        .zip(platforms)
        .map(|((folder, _), (os, architecture))| {
            let image = Image::of_bundle(folder, Format::Oci, Compression::Gzip);
            image.for_platform(os, architecture)
        })
        .collect();
    registry::push(&index(Format::Docker, &images), "platforms/bundle:v1");
    let render = |flags: &str| {
        let source = plain().image("platforms/bundle:v1");
        run(folder().path(), &format!("render {source} -n ops{flags}"))
    };
    for ((_, expected), (os, architecture)) in bundles.iter().zip(platforms) {
        let platform = format!(" --platform {os}/{architecture}");
        assert_eq!(&printed(render(&platform), &platform), expected);
    }
    // Content is the same on all platforms, so one that does not run here serves as well.
    assert_eq!(printed(render(""), "no platform"), bundles[0].1);
    let missing = render(" --platform windows/amd64");
    assert_eq!(missing.code, 3, "{}", missing.stderr);
    for text in ["windows/amd64", "linux/s390x", "linux/ppc64le"] {
        assert!(missing.stderr.contains(text), "{text}: {}", missing.stderr);
    }
}

#[test]
fn a_tag_is_looked_up_again_but_offline() {
    let cache = folder();
    let source = plain().image("moved/bundle:latest");
    let words = format!("render {source} -n ops");
    let mut last = String::new();
    for name in ["minimal", "queue-operator"] {
        let (bundle, expected) = bundle(name);
        registry::push_bundle(&bundle, "moved/bundle:latest");
        assert_eq!(printed(run(cache.path(), &words), name), expected);
        last = expected;
    }
    assert_eq!(printed(offline(cache.path(), &words), "offline"), last);
}

/// Runs a command that must not open a socket.
fn offline(cache: &Path, words: &str) -> Run {
    without_network(cache, &format!("{words} --offline"))
}

/// Runs a command where the program is killed when it opens a socket.
fn without_network(cache: &Path, words: &str) -> Run {
    let program = with_cache(cache);
    let mut guard = Command::new(tool("no-network"));
    guard.arg(program.get_program()).env_clear();
    let environment = program.get_envs();
    guard.envs(environment.filter_map(|(name, value)| Some((name, value?))));
    guard.args(words.split(' ')).current_dir(root());
    guard.args(["--insecure-registry", &plain().address()]);
    guard.output().expect("no-network starts").into()
}

#[test]
fn offline_opens_no_socket_and_says_what_is_missing() {
    let (bundle, expected) = bundle("minimal");
    let digest = registry::push_bundle(&bundle, "offline/bundle:v1");
    let cache = folder();
    let by_tag = format!("{}/offline/bundle:v1", plain().address());
    let words = format!("render docker://{by_tag} -n ops");
    // This shows that the program would be caught.
    assert_eq!(without_network(cache.path(), &words).code, -1);

    let missing = offline(cache.path(), &words);
    assert_eq!(missing.code, 3, "{}", missing.stderr);
    let message = format!("{by_tag} is not in the cache, and --offline asks no registry");
    assert!(missing.stderr.contains(&message), "{}", missing.stderr);

    printed(run(cache.path(), &words), "online");
    assert_eq!(printed(offline(cache.path(), &words), "by tag"), expected);
    let by_digest = plain().image(&format!("offline/bundle@{digest}"));
    let words = format!("render {by_digest} -n ops");
    assert_eq!(
        printed(offline(cache.path(), &words), "by digest"),
        expected
    );
}

#[test]
fn offline_reads_archives() {
    let (bundle, expected) = bundle("minimal");
    let (temporary, cache) = (folder(), folder());
    let image = Image::of_bundle(&bundle, Format::Docker, Compression::Gzip);
    let [_, archives @ ..] = ways(&image, "offline/archives", temporary.path());
    for way in archives {
        let words = format!("render {way} -n ops");
        assert_eq!(printed(offline(cache.path(), &words), &way), expected);
    }
}

#[test]
fn what_is_known_by_digest_is_asked_for_once() {
    let (bundle, expected) = bundle("minimal");
    let digest = registry::push_bundle(&bundle, "once/bundle:v1");
    let tap = Tap::before(&plain().address(), Speed::Full);
    let cache = folder();
    let by_digest = format!(
        "render docker://{}/once/bundle@{digest} -n ops",
        tap.address()
    );
    let first = run_with(cache.path(), &by_digest, tap.address());
    assert_eq!(printed(first, "first"), expected);
    let connections = tap.connections();
    assert!(connections > 0, "nothing was fetched");
    let second = run_with(cache.path(), &by_digest, tap.address());
    assert_eq!(printed(second, "second"), expected);
    assert_eq!(tap.connections(), connections);

    // By its tag only the tag is asked for, as the rest is known by digest.
    let before = plain().log("once/bundle").len();
    let by_tag = format!("render {} -n ops", plain().image("once/bundle:v1"));
    assert_eq!(printed(run(cache.path(), &by_tag), "by tag"), expected);
    let log = plain().log("once/bundle").split_off(before);
    let is_tag = |request: &String| request.ends_with(" manifests/v1");
    assert!(!log.is_empty() && log.iter().all(is_tag), "{log:?}");
}

#[test]
fn ctrl_c_ends_a_slow_download_and_leaves_nothing_behind() {
    let catalog = small_catalog();
    let mut random = fastrand::Rng::with_seed(3);
    let letters = std::iter::repeat_with(|| random.alphanumeric());
    let noise: String = letters.take(1 << 20).collect();
    let large = format!("---\nschema: example\nname: large\npackage: first\ntext: {noise}\n");
    fs::write(catalog.path().join("first/large.yaml"), large).expect("a file");
    let image = Image::of_catalog(catalog.path(), Compression::Gzip);
    let digest = registry::push(&image.parts(), "slow/catalog:v1");
    let tap = Tap::before(&plain().address(), Speed::BytesPerSecond(100 << 10));
    let command =
        |address: &str| format!("catalog list --catalog docker://{address}/slow/catalog@{digest}");

    let interrupted = folder();
    let mut program = with_cache(interrupted.path());
    program.args(command(tap.address()).split(' '));
    program.args(["--insecure-registry", tap.address()]);
    program.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = program.spawn().expect("the program starts");
    tap.wait_for(64 << 10);
    let begun = Instant::now();
    // Every shell has a kill, also where there is no program of that name.
    let interrupt = format!("kill -INT {}", child.id());
    let killed = Command::new("sh").args(["-c", &interrupt]).status();
    assert!(killed.expect("a shell starts").success());
    let run: Run = child.wait_with_output().expect("it ends").into();
    assert_eq!(run.code, 130, "{}", run.stderr);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(run.stdout, "");

    // What a run keeps does not depend on an earlier one that was interrupted.
    let undisturbed = folder();
    let fast = Tap::before(&plain().address(), Speed::Full);
    for cache in [interrupted.path(), undisturbed.path()] {
        let listed = run_with(cache, &command(fast.address()), fast.address());
        printed(listed, "list");
    }
    assert_eq!(files(interrupted.path()), files(undisturbed.path()));
}

/// The files below a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = walkdir::WalkDir::new(folder).into_iter().flatten();
    let files = entries.filter(|entry| !entry.file_type().is_dir());
    let path = |path: &Path| path.strip_prefix(folder).expect("it is below").to_owned();
    files.map(|entry| path(entry.path())).collect()
}

#[test]
fn what_an_image_is_is_said_where_it_is_not_what_was_meant() {
    let catalog = small_catalog();
    let parts = Image::of_catalog(catalog.path(), Compression::Gzip).parts();
    registry::push(&parts, "meant/catalog:v1");
    registry::push_bundle(&root().join("testdata/bundles/minimal"), "meant/bundle:v1");
    let source = plain().image("meant/catalog:v1");
    let rendered = run(folder().path(), &format!("render {source} -n ops"));
    let listed = format!(
        "catalog list --catalog {}",
        plain().image("meant/bundle:v1")
    );
    let listed = run(folder().path(), &listed);
    for (run, expected) in [
        (rendered, ["meant/catalog:v1 is a catalog", "--catalog"]),
        (listed, ["meant/bundle:v1 is a bundle", "render"]),
    ] {
        assert_eq!(run.code, 3, "{}", run.stderr);
        assert_eq!(run.stdout, "");
        for text in expected {
            assert!(run.stderr.contains(text), "{text}: {}", run.stderr);
        }
    }
}

#[test]
fn what_is_not_there_is_named() {
    registry::push_bundle(
        &root().join("testdata/bundles/minimal"),
        "missing/bundle:v1",
    );
    for name in ["missing/bundle:v2", "missing/other:v1"] {
        let run = run(
            folder().path(),
            &format!("render {} -n ops", plain().image(name)),
        );
        assert_eq!(run.code, 4, "{}", run.stderr);
        assert!(run.stderr.contains(name), "{}", run.stderr);
    }
}

#[test]
fn a_layer_that_cannot_hold_a_bundle_stays_where_it_is() {
    let (bundle, expected) = bundle("minimal");
    let image = Image::of_bundle(&bundle, Format::Oci, Compression::Gzip);
    let large = Layer::of_files(
        &[("bin/manager".to_owned(), vec![7; 1 << 20])],
        Compression::Plain,
    );
    let digest = large.digest();
    let image = image.with_layer("COPY manager /bin/manager # buildkit", large);
    registry::push(&image.parts(), "needed/bundle:v1");
    let words = format!("render {} -n ops", plain().image("needed/bundle:v1"));
    assert_eq!(printed(run(folder().path(), &words), "render"), expected);
    let log = plain().log("needed/bundle");
    assert!(
        !log.iter().any(|request| request.ends_with(&digest)),
        "{log:?}"
    );
}

#[test]
fn an_archive_of_two_images_needs_to_be_told_which() {
    let bundles = ["minimal", "queue-operator"].map(bundle);
    let layout = folder();
    let mut images = vec![];
    for ((bundle, _), reference) in bundles.iter().zip(["one", "two"]) {
        let parts = Image::of_bundle(bundle, Format::Oci, Compression::Gzip).parts();
        parts.write_oci_layout(layout.path(), reference);
        images.push((parts.top, reference));
    }
    let manifests = images.iter().map(|(top, reference)| entry(top, reference));
    let index = serde_json::json!({
        "schemaVersion": 2,
        "manifests": manifests.collect::<Vec<_>>(),
    });
    fs::write(layout.path().join("index.json"), index.to_string()).expect("a file");
    let source = layout.path().display();
    for ((_, expected), (_, reference)) in bundles.iter().zip(&images) {
        let words = format!("render oci:{source}:{reference} -n ops");
        assert_eq!(&printed(run(folder().path(), &words), reference), expected);
    }
    let hint = format!("hint: name one: oci:{source}:one");
    for (reference, texts) in [
        (
            "",
            [
                "holds 2 images, and none is named; there is one, two",
                &hint,
            ],
        ),
        (
            ":three",
            ["holds no image \"three\"; there is one, two", ""],
        ),
    ] {
        let refused = run(
            folder().path(),
            &format!("render oci:{source}{reference} -n ops"),
        );
        assert_eq!(refused.code, 3, "{}", refused.stdout);
        assert!(
            texts.iter().all(|text| refused.stderr.contains(text)),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn an_image_on_disk_that_is_not_what_it_says_is_refused() {
    let layout = folder();
    let (bundle, _) = bundle("minimal");
    let image = Image::of_bundle(&bundle, Format::Oci, Compression::Gzip);
    image.parts().write_oci_layout(layout.path(), "v1");
    let [layer, _] = image.layers() else {
        panic!("a bundle image has two layers");
    };
    let path = layout
        .path()
        .join("blobs")
        .join(layer.digest().replace(':', "/"));
    let mut other = layer.blob.clone();
    other[20] ^= 1;
    for (content, expected) in [
        (&layer.blob[..5], "bytes, and has 5"),
        (&[&layer.blob[..], b"more"].concat(), "bytes, and has"),
        (&other, "digest mismatch"),
    ] {
        fs::write(&path, content).expect("a file");
        let words = format!("render oci:{} -n ops", layout.path().display());
        let run = run(folder().path(), &words);
        assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{}", run.stderr);
        for text in [expected, &layer.digest(), "hint: make it anew"] {
            assert!(run.stderr.contains(text), "{text}: {}", run.stderr);
        }
    }
}

fn entry(top: &Document, reference: &str) -> serde_json::Value {
    serde_json::json!({
        "mediaType": top.media_type, "digest": top.digest(), "size": top.content.len(),
        "annotations": {"org.opencontainers.image.ref.name": reference},
    })
}

#[test]
fn the_image_of_the_examples_is_its_bundle() {
    let (_, expected) = bundle("queue-operator");
    let words = "render oci:testdata/images/queue-operator -n ops";
    assert_eq!(printed(run(folder().path(), words), words), expected);
}
