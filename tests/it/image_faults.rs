//! The program before a registry that lies: what the user is told, the exit code, and that nothing stays behind. What
//! the parts make of every single lie is in `hostile_registry`, `hostile_layers` and `cache`.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use flate2::{Compression as Level, write::GzEncoder};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    hostile::bounded_with,
    image_builder::{Compression, Format, Image, Layer, digest},
    lying::{Act, Liar, Request, answer, head},
    program::{Run, program, root},
};

const SOON: Duration = Duration::from_secs(1);

/// What an image is made of, by what a registry is asked for.
#[derive(Clone)]
struct Served {
    targets: BTreeMap<String, (String, Vec<u8>)>,
    layer: String,
}

impl Served {
    fn of(image: &Image) -> Self {
        let parts = image.parts();
        let mut targets = BTreeMap::new();
        let top = (parts.top.media_type.clone(), parts.top.content.clone());
        targets.insert("/v2/app/manifests/v1".to_owned(), top);
        for blob in &parts.blobs {
            let kind = "application/octet-stream".to_owned();
            let target = format!("/v2/app/blobs/{}", digest(blob));
            targets.insert(target, (kind, blob.clone()));
        }
        let layer = format!("/v2/app/blobs/{}", image.layers()[0].digest());
        Self { targets, layer }
    }

    /// The same with another manifest.
    fn with_manifest(mut self, change: impl Fn(&mut Value)) -> Self {
        let (_, body) = self
            .targets
            .get_mut("/v2/app/manifests/v1")
            .expect("a manifest");
        let mut manifest = serde_json::from_slice(body).expect("JSON");
        change(&mut manifest);
        *body = manifest.to_string().into_bytes();
        self
    }

    fn answer(&self, request: &Request) -> Vec<Act> {
        match self.targets.get(&request.target) {
            Some((kind, body)) => answer("200 OK", &[("Content-Type", kind)], body),
            None => answer("404 Not Found", &[], "there is no such thing"),
        }
    }
}

fn bundle() -> Image {
    let folder = root().join("testdata/bundles/minimal");
    Image::of_bundle(&folder, Format::Oci, Compression::Gzip)
}

/// A bundle with one layer, a tar archive as it is given.
fn bundle_of(tar: Vec<u8>) -> Image {
    let layer = Layer::of_tar(tar, Compression::Gzip);
    Image::scratch(Format::Oci).with_layer("COPY . / # buildkit", layer)
}

/// Renders what a server has, with time and memory bounded. Whatever comes of it, nothing half done stays, and no layer
/// that is not what its name says.
fn render(server: &Liar, cache: &Path) -> Run {
    let source = format!("docker://{}/app:v1", server.address());
    let arguments = ["render", &source, "-n", "ops", "--request-timeout", "1s"];
    let insecure = ["--insecure-registry", &server.address()];
    let words = [&arguments[..], &insecure[..]].concat();
    let run = bounded_with(cache, words.iter().map(OsStr::new));
    let left = fs::read_dir(cache.join("kubectl-olm/tmp"));
    let left: Vec<_> = left.into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    if let Some((_, meant)) = run.stderr.split_once("should be sha256:") {
        let kept = files(&cache.join("kubectl-olm"));
        let is_it = |path: &&PathBuf| path.to_string_lossy().contains(&meant[..64]);
        assert_eq!(kept.iter().find(is_it), None);
    }
    run
}

#[track_caller]
fn refused(script: impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static, code: i32, text: &str) {
    let server = Liar::plain(script);
    let cache = tempfile::tempdir().expect("a temporary folder");
    let run = render(&server, cache.path());
    assert_eq!(run.code, code, "{}", run.stderr);
    assert_eq!(run.stdout, "");
    let text = text.replace("HOST", &server.address());
    assert!(run.stderr.contains(&text), "{text:?}: {}", run.stderr);
    let requests = server.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.method == "GET" && !request.target.contains("..")),
        "{requests:?}"
    );
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(folder).into_iter().flatten();
    let files = entries.filter(|entry| !entry.file_type().is_dir());
    files.map(walkdir::DirEntry::into_path).collect()
}

#[test]
fn content_that_is_not_what_it_should_be_exits_3() {
    let image = bundle();
    let served = Served::of(&image);
    let layer = image.layers()[0].digest();
    refused(
        move |request| match request.target == served.layer {
            true => {
                let mut wrong = served.targets[&served.layer].1.clone();
                *wrong.last_mut().expect("a byte") ^= 1;
                answer("200 OK", &[], wrong)
            }
            false => served.answer(request),
        },
        3,
        &format!("digest mismatch: blob {layer} of app from HOST should be {layer}"),
    );
    let served = Served::of(&image);
    let other = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    refused(
        move |request| {
            let body = &served.targets[&request.target].1;
            answer("200 OK", &[("Docker-Content-Digest", other)], body)
        },
        3,
        "digest mismatch: manifest app:v1 from HOST",
    );
}

#[test]
fn downloads_that_come_to_nothing_exit_4() {
    let image = bundle();
    for (say, text) in [
        (
            vec![Act::Send(head("200 OK", &[])), Act::Send(vec![0; 10])],
            "broke off at 10 of",
        ),
        (
            answer("503 Service Unavailable", &[], [0xff, 0xfe, 0x00]),
            "answered 503 Service Unavailable after 5 tries",
        ),
        (
            answer("429 Too Many Requests", &[("Retry-After", "3600")], ""),
            "answered 429 Too Many Requests and asks to wait 3600 s",
        ),
        (answer("404 Not Found", &[], ""), "404 Not Found"),
    ] {
        let served = Served::of(&image);
        refused(
            move |request| match request.target == served.layer {
                true => say.clone(),
                false => served.answer(request),
            },
            4,
            text,
        );
    }
}

#[test]
fn token_servers_that_are_none_exit_4() {
    for (say, text) in [
        (
            answer("200 OK", &[], "{\"token\": \"abc\\ndef\"}"),
            "gave no token that can be used",
        ),
        (
            answer("503 Service Unavailable", &[], "down"),
            "token server http://HOST/token answered 503",
        ),
    ] {
        refused(
            move |request| match request.target.starts_with("/token") {
                true => say.clone(),
                false => {
                    let host = request.header("host").expect("a host");
                    let challenge = format!("Bearer realm=\"http://{host}/token\",service=\"s\"");
                    let headers = [("WWW-Authenticate", challenge.as_str())];
                    answer("401 Unauthorized", &headers, "")
                }
            },
            4,
            text,
        );
    }
}

/// A change of a manifest, and what is said of it.
type Change = (fn(&mut Value), &'static str);

#[test]
fn manifests_that_are_none_exit_3() {
    let changes: [Change; 7] = [
        (
            |manifest| {
                manifest["layers"][0]["urls"] = json!(["http://169.254.169.254/latest"]);
            },
            "is foreign",
        ),
        (
            |manifest| {
                let kind = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";
                manifest["layers"][0]["mediaType"] = kind.into();
            },
            "is foreign",
        ),
        (
            |manifest| {
                let digest = "sha256:/../../../../other/private/manifests/latest";
                manifest["layers"][0]["digest"] = digest.into();
            },
            "is no digest",
        ),
        (|manifest| manifest["manifests"] = json!([]), "manifests"),
        (|manifest| manifest["schemaVersion"] = 1.into(), "schema"),
        (
            |manifest| {
                let layer = manifest["layers"][0].clone();
                manifest["layers"] = vec![layer; 10_000].into();
            },
            "128",
        ),
        (
            |manifest| {
                let kind = "application/vnd.cncf.helm.config.v1+json";
                manifest["config"]["mediaType"] = kind.into();
            },
            "helm",
        ),
    ];
    for (change, text) in changes {
        let served = Served::of(&bundle()).with_manifest(change);
        refused(move |request| served.answer(request), 3, text);
    }
}

/// A header of a tar entry, whatever it says.
fn entry(path: &str, kind: tar::EntryType, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    let name = &mut header.as_gnu_mut().expect("GNU's form").name;
    name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

fn tar(entries: &[(tar::Header, &[u8])]) -> Vec<u8> {
    let mut tar = vec![];
    for (header, content) in entries {
        tar.extend_from_slice(header.as_bytes());
        tar.extend_from_slice(content);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.extend([0; 1024]);
    tar
}

#[test]
fn layers_that_no_image_needs_exit_3() {
    let climbs = entry(
        "manifests/../../../etc/cron.d/x",
        tar::EntryType::Regular,
        1,
    );
    let device = entry("manifests/tty", tar::EntryType::Char, 0);
    let holes = {
        let mut header = entry("manifests/a.yaml", tar::EntryType::GNUSparse, 0);
        let gnu = header.as_gnu_mut().expect("GNU's form");
        gnu.realsize = *b"60000000000\0";
        header.set_cksum();
        header
    };
    let long_name = entry("././@LongLink", tar::EntryType::GNULongName, 1 << 30);
    for (tar, text) in [
        (tar(&[(climbs, b"x")]), "manifests/../../../etc/cron.d/x"),
        (tar(&[(device, b"")]), "manifests/tty"),
        (tar(&[(holes, b"")]), "holes"),
        (tar(&[(long_name, &[b'a'; 4096])]), "limit"),
    ] {
        let image = bundle_of(tar);
        let served = Served::of(&image);
        refused(move |request| served.answer(request), 3, text);
    }
}

#[test]
fn a_layer_that_grows_without_end_exits_3() {
    // Ten megabytes that become ten gigabytes.
    let mut packed = GzEncoder::new(vec![], Level::best());
    let manifest = entry("manifests/a.yaml", tar::EntryType::Regular, 10 << 30);
    packed.write_all(manifest.as_bytes()).expect("memory");
    let mebibyte = vec![0; 1 << 20];
    for _ in 0..400 {
        packed.write_all(&mebibyte).expect("memory");
    }
    let mut layer = Layer::of_tar(vec![], Compression::Gzip);
    layer.blob = packed.finish().expect("memory");
    let image = Image::scratch(Format::Oci).with_layer("COPY . / # buildkit", layer);
    let served = Served::of(&image);
    refused(move |request| served.answer(request), 3, "--no-limits");
}

#[test]
fn signals_end_a_download_at_once() {
    for signals in [&["TERM"][..], &["HUP"], &["INT", "INT"]] {
        let server = Liar::plain(|_| vec![Act::Wait]);
        let cache = tempfile::tempdir().expect("a temporary folder");
        let mut program = program();
        let source = format!("docker://{}/app:v1", server.address());
        program.args(["render", &source, "--insecure-registry", &server.address()]);
        program.env("XDG_CACHE_HOME", cache.path());
        let child = program
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        while server.requests().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let begun = Instant::now();
        for signal in signals {
            let kill = format!("kill -{signal} {} 2> /dev/null || true", child.id());
            let killed = Command::new("sh").args(["-c", &kill]).status();
            assert!(killed.expect("a shell").success());
        }
        let run: Run = child.wait_with_output().expect("it ends").into();
        assert_eq!(run.code, 130, "{signals:?}: {}", run.stderr);
        assert!(begun.elapsed() < SOON, "{signals:?}: {:?}", begun.elapsed());
        assert!(run.stderr.contains("interrupted"), "{}", run.stderr);
    }
}

/// A cache that was filled once, and a command that answers from it or the server.
struct Filled {
    cache: TempDir,
    server: Liar,
    words: Vec<String>,
    expected: String,
}

impl Filled {
    fn new(image: &Image, words: &[&str]) -> Self {
        let served = Served::of(image);
        let server = Liar::plain(move |request| served.answer(request));
        let cache = tempfile::tempdir().expect("a temporary folder");
        let source = format!("docker://{}/app:v1", server.address());
        let words = words.iter().map(|word| word.replace("SOURCE", &source));
        let words = words.chain(["--insecure-registry".to_owned(), server.address()]);
        let mut filled = Self {
            words: words.collect(),
            cache,
            server,
            expected: String::new(),
        };
        filled.expected = filled.answer("no damage");
        filled
    }

    fn answer(&self, what: &str) -> String {
        let words = self.words.iter().map(OsStr::new);
        let run = bounded_with(self.cache.path(), words);
        assert_eq!(run.code, 0, "{what}: {}", run.stderr);
        run.stdout
    }

    fn files(&self) -> Vec<PathBuf> {
        files(self.cache.path())
    }
}

#[test]
fn a_damaged_cache_changes_no_answer() {
    let filled = Filled::new(&bundle(), &["render", "SOURCE", "-n", "ops"]);
    let damages: [fn(&Path, &[u8]); 4] = [
        |path, whole| {
            let mut flipped = whole.to_vec();
            flipped[whole.len() / 2] ^= 0x40;
            fs::write(path, flipped).expect("a file");
        },
        |path, whole| fs::write(path, &whole[..whole.len() / 3]).expect("a file"),
        |path, _| {
            fs::remove_file(path).expect("a file");
            fs::create_dir(path).expect("a folder");
        },
        |path, _| {
            fs::remove_file(path).expect("a file");
            let made = Command::new("mkfifo").arg(path).status().expect("mkfifo");
            assert!(made.success());
        },
    ];
    let files = filled.files();
    assert!(files.len() >= 4, "{files:?}");
    for damage in damages {
        for path in &files {
            let whole = fs::read(path).expect("a file");
            damage(path, &whole);
            let what = path.display().to_string();
            assert_eq!(filled.answer(&what), filled.expected, "{what}");
            assert_eq!(fs::read(path).expect("it is there again"), whole, "{what}");
        }
    }
}

#[test]
fn a_part_of_a_large_layer_that_is_damaged_is_fetched_again() {
    let noise = "x".repeat(20 << 20);
    let catalog = format!(
        "---\nschema: olm.package\nname: first\ndefaultChannel: stable\n\
         ---\nschema: olm.channel\npackage: first\nname: stable\nentries:\n- name: first.v1.0.0\n\
         ---\nschema: olm.bundle\npackage: first\nname: first.v1.0.0\nimage: example.com/first:1\n\
         properties:\n- type: olm.package\n  value: {{packageName: first, version: 1.0.0}}\n\
         - type: example.noise\n  value: {noise}\n"
    );
    let files = [(
        "configs/first/catalog.yaml".to_owned(),
        catalog.into_bytes(),
    )];
    let image = Image::of_catalog_files(&files, Compression::Gzip);
    let words = ["catalog", "show", "first", "--catalog", "one=SOURCE"];
    let filled = Filled::new(&image, &words);
    let before = filled.server.requests().len();
    let size = |path: &PathBuf| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let layer = filled.files().into_iter().max_by_key(size).expect("a file");
    let mut content = fs::read(&layer).expect("a file");
    let start = content
        .windows(12)
        .position(|window| window == b"schema: olm.");
    content[start.expect("the catalog") + 40] ^= 1;
    fs::write(&layer, &content).expect("a file");
    assert_eq!(filled.answer("the damage"), filled.expected);
    assert!(
        filled.server.requests().len() > before + 1,
        "it was taken from the cache"
    );
}
