//! Packages of catalogs, from where they are to what is rendered of them.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use super::{
    corpus::corpus,
    program::{Run, program, root, run},
};

const EXAMPLE: &str = "testdata/catalogs/example";

/// Everything that the example catalog shows of its packages, however it is given.
fn shown(catalog: &str) -> String {
    let run = run([
        "catalog",
        "list",
        "--bundles",
        "-o",
        "json",
        "--catalog",
        catalog,
    ]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    run.stdout
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Packs a folder by tar, so that the archives are not of our own making.
fn pack(folder: &Path, archive: &Path, flags: &[&str]) {
    let packed = Command::new("tar")
        .args(flags)
        .arg("-cf")
        .arg(archive)
        .arg("-C")
        .arg(folder)
        .arg(".")
        .status();
    assert!(packed.expect("tar starts").success());
}

fn with_input(arguments: &[&str], input: &[u8]) -> Run {
    let mut program = program();
    program.args(arguments).stdin(Stdio::piped());
    let mut child = program
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it ends").into()
}

#[test]
fn a_catalog_is_the_same_from_wherever_it_comes() {
    let folder = folder();
    let catalog = root().join(EXAMPLE);
    let named = |path: &Path| format!("example={}", path.display());
    let expected = shown(&named(&catalog));
    let (plain, packed) = (folder.path().join("a.tar"), folder.path().join("a.tgz"));
    pack(&catalog, &plain, &[]);
    pack(&catalog, &packed, &["-z"]);
    assert_eq!(shown(&named(&plain)), expected);
    assert_eq!(shown(&named(&packed)), expected);
    let list = [
        "catalog",
        "list",
        "--bundles",
        "-o",
        "json",
        "--catalog",
        "example=-",
    ];
    for archive in [&plain, &packed] {
        let run = with_input(&list, &fs::read(archive).expect("an archive"));
        assert_eq!(
            (run.stdout.as_str(), run.stderr.as_str()),
            (expected.as_str(), "")
        );
    }
    // All documents in one stream, YAML and JSON apart, as `opm render` prints them.
    let texts = [
        "minimal.yaml",
        "mail/mail-operator.yaml",
        "queues/bundles.yaml",
        "queues/channels.yaml",
        "queues/deprecations.yaml",
        "queues/package.yaml",
    ];
    let texts = texts.map(|path| fs::read_to_string(catalog.join(path)).expect("a text"));
    let stream = with_input(&list, texts.join("---\n").as_bytes());
    assert_eq!(stream.stderr, "");
    let without_json: Vec<_> = expected
        .lines()
        .filter(|line| line.contains("\"name\""))
        .filter(|line| !line.contains("mail-archive"))
        .collect();
    let names: Vec<_> = stream
        .stdout
        .lines()
        .filter(|line| line.contains("\"name\""))
        .collect();
    assert_eq!(names, without_json);
}

#[test]
fn the_old_form_of_a_catalog_is_refused_by_name() {
    let folder = folder();
    let database = folder.path().join("index.db");
    let mut content = b"SQLite format 3\0".to_vec();
    content.resize(8192, 0);
    fs::write(&database, content).expect("a file");
    for source in [database.as_path(), folder.path()] {
        let run = run([
            "catalog",
            "list",
            "--catalog",
            source.to_str().expect("a path"),
        ]);
        assert_eq!(run.code, 3, "{}", run.stderr);
        let told = run
            .stderr
            .contains("index.db: it is a catalog in the old SQLite form")
            && run.stderr.contains("opm migrate");
        assert!(told, "{}", run.stderr);
    }
}

/// The folders of the corpus that hold a bundle whose catalog entry names an image with a tag, with what stands for it.
fn renders_as_from_its_folder(catalog: &Path, package: &str, version: &str, bundle: &Path) {
    let text = |path: &Path| path.to_str().expect("a path").to_owned();
    let images = bundle.parent().and_then(Path::parent).expect("a folder");
    let from_catalog = run([
        "render".to_owned(),
        package.to_owned(),
        "--catalog".to_owned(),
        text(catalog),
        "--version".to_owned(),
        version.to_owned(),
        "--no-dependencies".to_owned(),
        "--image-source".to_owned(),
        format!("quay.io/community-operator-pipeline-prod/={}", text(images)),
        "-n".to_owned(),
        "ops".to_owned(),
    ]);
    let from_folder = run(["render", &text(bundle), "-n", "ops"]);
    assert_eq!(
        from_catalog.code, from_folder.code,
        "{package} {version}: {}",
        from_catalog.stderr
    );
    assert_eq!(
        from_catalog.stdout, from_folder.stdout,
        "{package} {version}"
    );
}

#[test]
fn real_packages_render_as_their_bundles_do() {
    let Some(corpus) = corpus() else {
        return;
    };
    let mut compared = 0;
    for version in ["v4.14", "v4.19"] {
        let catalog = corpus.join("catalogs").join(version);
        let list = run([
            "catalog",
            "list",
            "--bundles",
            "-o",
            "json",
            "--catalog",
            catalog.to_str().expect("a path"),
        ]);
        let list: serde_json::Value = serde_json::from_str(&list.stdout).expect("JSON");
        let mut done = std::collections::BTreeSet::new();
        for row in list["bundles"].as_array().expect("bundles") {
            let text = |key: &str| row[key].as_str().unwrap_or_default();
            let image = text("image").strip_prefix("quay.io/community-operator-pipeline-prod/");
            let Some((name, tag)) = image.and_then(|image| image.split_once(':')) else {
                continue;
            };
            let bundle = corpus.join("bundles").join(name).join(tag);
            if !bundle.is_dir() || !done.insert(image) {
                continue;
            }
            let range = format!("={}", text("version"));
            renders_as_from_its_folder(&catalog, text("package"), &range, &bundle);
            compared += 1;
        }
    }
    eprintln!("{compared} bundles of the corpus are in its catalogs");
    assert!(compared > 10, "{compared}");
}

#[test]
fn an_archive_stands_for_an_image() {
    let folder = folder();
    let bundle = root().join("testdata/bundles/minimal");
    let archive = folder.path().join("minimal.tar.gz");
    pack(&bundle, &archive, &["-z"]);
    let expected = run(["render", bundle.to_str().expect("a path"), "-n", "ops"]);
    assert_eq!(expected.code, 0);
    let images = [
        format!("example.com/minimal={}", archive.display()),
        format!("example.com/={}", folder.path().display()),
        format!("example.com={}", folder.path().display()),
    ];
    for image in images {
        let run = run([
            "render",
            "minimal",
            "--catalog",
            EXAMPLE,
            "-n",
            "ops",
            "--image-source",
            &image,
        ]);
        assert_eq!(run.stdout, expected.stdout, "{image}: {}", run.stderr);
    }
    // And a bundle by itself, also through a pipe.
    let alone = run(["render", archive.to_str().expect("a path"), "-n", "ops"]);
    assert_eq!(alone.stdout, expected.stdout, "{}", alone.stderr);
    let piped = with_input(
        &["render", "-", "-n", "ops"],
        &fs::read(&archive).expect("an archive"),
    );
    assert_eq!(piped.stdout, expected.stdout, "{}", piped.stderr);
}

#[test]
fn dependencies_are_marked_wherever_they_are_written() {
    let needed = "# mail-operator.v1.0.0, which mail-archive.v0.3.1 needs\n";
    let printed = run(["render", "mail-archive", "--catalog", EXAMPLE, "-n", "ops"]);
    let documents: Vec<_> = printed.stdout.split("---\n").skip(1).collect();
    let marked = documents
        .iter()
        .take_while(|text| text.starts_with(needed))
        .count();
    assert!(marked > 0, "{}", printed.stdout);
    let rest = documents.iter().skip(marked);
    assert!(rest.clone().count() > 0 && rest.clone().all(|text| !text.contains("# ")));
    let folder = folder();
    let out = format!("dir:{}", folder.path().join("out").display());
    let written = run([
        "render",
        "mail-archive",
        "--catalog",
        EXAMPLE,
        "-n",
        "ops",
        "-o",
        &out,
    ]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    let files = fs::read_dir(folder.path().join("out"))
        .expect("files")
        .flatten();
    let texts = files.map(|file| fs::read_to_string(file.path()).expect("a text"));
    assert_eq!(texts.filter(|text| text.contains(needed)).count(), marked);
}

/// The arguments that render a package of the example catalog with a lock.
fn with_lock<'a>(lock: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec![
        "render",
        "queue-operator",
        "--catalog",
        EXAMPLE,
        "-n",
        "ops",
        "--image-source",
        "example.com/=testdata/bundles",
        "--lock",
        lock,
    ];
    arguments.extend(more);
    arguments
}

#[test]
fn a_lock_holds_what_was_chosen() {
    let folder = folder();
    let path = folder.path().join("olm.lock");
    let lock = path.to_str().expect("a path");
    let first = run(with_lock(lock, &["--version", ">=1.3 <2"]));
    assert_eq!(first.code, 0, "{}", first.stderr);
    insta::assert_snapshot!("lock", fs::read_to_string(&path).expect("a lock"));
    let again = run(with_lock(lock, &["--version", ">=1.3 <2", "--locked"]));
    assert_eq!(
        (again.code, &again.stdout),
        (0, &first.stdout),
        "{}",
        again.stderr
    );
    let other = run(with_lock(lock, &["--version", ">=1.2 <2", "--locked"]));
    assert_eq!(other.code, 3);
    assert!(
        other.stderr.contains("with other flags that choose"),
        "{}",
        other.stderr
    );
    // What stands for the image is no longer what it was.
    let text = fs::read_to_string(&path).expect("a lock");
    let digest = text
        .rsplit_once("digest: sha256:")
        .expect("a digest")
        .1
        .split_at(64)
        .0
        .to_owned();
    fs::write(&path, text.replace(&digest, &"0".repeat(64))).expect("a file");
    let changed = run(with_lock(lock, &["--version", ">=1.3 <2", "--locked"]));
    assert_eq!(changed.code, 3);
    assert!(
        changed
            .stderr
            .contains("are not those that the lock was made of"),
        "{}",
        changed.stderr
    );
    for (broken, why) in [
        ("", "is no lock"),
        ("lockVersion: 2\n", "its lockVersion is 2"),
        (
            "lockVersion: 1\ncatalogs: []\ninstalls: []\nx: 1\n",
            "unknown field",
        ),
        (
            &text.replace(&format!("sha256:{digest}"), "''"),
            "it has no digest of queue-operator",
        ),
    ] {
        fs::write(&path, broken).expect("a file");
        let run = run(with_lock(lock, &["--locked"]));
        assert!(run.code == 3 && run.stderr.contains(why), "{}", run.stderr);
    }
}

/// A catalog that is large enough to be remembered, and settled enough.
fn large_catalog(folder: &Path) -> PathBuf {
    let path = folder.join("large.json");
    let mut text = String::new();
    for number in 0..3 {
        let package = format!("package-{number}");
        let filler = "x".repeat(4 << 20);
        let blobs = [
            serde_json::json!({"schema": "olm.package", "name": package, "defaultChannel": "c", "description": filler}),
            serde_json::json!({"schema": "olm.channel", "package": package, "name": "c", "entries": [{"name": format!("{package}.v1")}]}),
            serde_json::json!({"schema": "olm.bundle", "package": package, "name": format!("{package}.v1"), "image": "example.com/a:1",
                "properties": [{"type": "olm.package", "value": {"packageName": package, "version": "1.0.0"}}]}),
        ];
        text.extend(blobs.iter().map(|blob| format!("{blob}\n")));
    }
    fs::write(&path, text).expect("a file");
    settle();
    path
}

/// Waits until a file that was just written counts as one that does not change.
fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(2_100));
}

#[test]
fn what_was_found_in_a_large_catalog_is_kept_until_the_catalog_changes() {
    let folder = folder();
    let cache = folder.path().join("cache");
    let catalog = large_catalog(folder.path());
    let show = || {
        let mut program = program();
        program.env("XDG_CACHE_HOME", &cache);
        program
            .args(["catalog", "list", "--bundles", "--catalog"])
            .arg(&catalog);
        let run = Run::from(program.output().expect("the program starts"));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        run.stdout
    };
    let kept = || {
        let entries = fs::read_dir(cache.join("kubectl-olm/indexes")).expect("a cache");
        let paths: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
        assert_eq!(paths.len(), 1, "{paths:?}");
        paths[0].clone()
    };
    let first = show();
    let index = kept();
    let text = fs::read_to_string(&index).expect("an index");
    assert_eq!(show(), first);
    // Damage is noticed, and mended.
    fs::write(&index, &text[..text.len() / 2]).expect("a file");
    assert_eq!(show(), first);
    assert_eq!(fs::read_to_string(kept()).expect("an index"), text);
    // A changed catalog is looked through anew, and the old index goes.
    let changed = fs::read_to_string(&catalog)
        .expect("a catalog")
        .replace("package-1", "package-9");
    fs::write(&catalog, changed).expect("a file");
    settle();
    assert_eq!(
        show(),
        first
            .replace("package-1", "package-9")
            .lines()
            .fold(vec![], sorted)
            .join("\n")
            + "\n"
    );
    assert_ne!(kept(), index);
}

/// Puts a line where it belongs among those after the headers.
fn sorted<'l>(mut lines: Vec<&'l str>, line: &'l str) -> Vec<&'l str> {
    lines.push(line);
    if let Some(rows) = lines.get_mut(1..) {
        rows.sort_unstable();
    }
    lines
}
