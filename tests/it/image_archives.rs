//! Images in layouts and archives: whichever way they come, the same content; and a clear error for what is incomplete,
//! damaged, or leads elsewhere.

use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    io::Read,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use kubectl_olm::{
    limits::Limits,
    oci::{
        digest::Digest,
        manifest::{self, Document, ImageManifest},
    },
    source::layout::{self, Form, Store, StoreError, form_at, split},
};
use serde_json::json;
use tar::EntryType;
use tempfile::TempDir;

use super::{
    image_builder::{Compression, Format, Image, Layer},
    layers::Tar,
    program::{make_pipe, root, run},
};

/// An image whose layers are no archives, as nobody looks into them here. The second is worth a jump.
fn image() -> Image {
    let layer = |content: Vec<u8>| Layer::of_tar(content, Compression::Plain);
    Image::scratch(Format::Oci)
        .with_layer("COPY a /", layer(b"the lower layer".to_vec()))
        .with_layer("COPY b /", layer(vec![7; 3 << 20]))
}

fn write_folder(folder: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (path, content) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, content).expect("a file");
    }
}

fn tar_of(files: &BTreeMap<String, Vec<u8>>) -> Tar {
    let mut tar = Tar::default();
    for (path, content) in files {
        tar.add(EntryType::Regular, path, "", content);
    }
    tar
}

fn packed(content: &[u8], compression: Compression) -> Vec<u8> {
    Layer::of_tar(content.to_vec(), compression).blob
}

/// What `docker save` calls the configuration.
fn config_name(image: &Image) -> String {
    format!("{}.json", Digest::of(&image.config()).hex())
}

/// The `manifest.json` of `docker save`, with layers and a configuration of these names.
fn docker_manifest(config: &str, layers: &[&str], tags: &[&str]) -> Vec<u8> {
    let manifest = json!([{"Config": config, "RepoTags": tags, "Layers": layers}]);
    manifest.to_string().into_bytes()
}

type Opened = Result<Box<dyn Store>, StoreError>;

fn open(form: Form, path: &Path, reference: Option<&str>) -> Opened {
    layout::open(form, path, reference, &Limits::DEFAULT)
}

fn manifest_of(store: &dyn Store) -> Result<ImageManifest, StoreError> {
    let top = store.top()?;
    assert!(top.digest.fits(&top.body));
    match manifest::parse(&top.body, top.media_type.as_deref()) {
        Ok(Document::Image(image)) => Ok(image),
        other => panic!("{other:?} is no image"),
    }
}

/// Reads all of an image: the configuration and the layers, compared with their digests.
fn contents(store: &dyn Store) -> Vec<Vec<u8>> {
    let image = manifest_of(store).expect("a manifest");
    let blobs = [image.config].into_iter().chain(image.layers);
    let read = blobs.map(|blob| {
        let mut content = vec![];
        let mut reader = store.blob(&blob).expect("a blob");
        reader.read_to_end(&mut content).expect("its content");
        assert!(blob.digest.fits(&content), "{blob:?}");
        content
    });
    read.collect()
}

fn expected(image: &Image) -> Vec<Vec<u8>> {
    let layers = image.layers().iter().map(|layer| layer.blob.clone());
    [image.config()].into_iter().chain(layers).collect()
}

fn in_folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn file(folder: &TempDir, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, content).expect("a file");
    path
}

/// The error with its causes.
fn message(error: &StoreError) -> String {
    let cause = error.source().map(ToString::to_string);
    format!("{error}: {}", cause.unwrap_or_default())
}

fn refused<T>(opened: Result<T, StoreError>, texts: &[&str]) {
    let error = opened.err();
    let message = message(&error.unwrap_or_else(|| panic!("{texts:?} was not refused")));
    for text in texts {
        assert!(message.contains(text), "{text:?} is not in {message}");
    }
}

#[test]
fn the_same_image_in_every_form() {
    let (image, folder) = (image(), in_folder());
    let files = image.parts().layout("v1");
    write_folder(&folder.path().join("layout"), &files);
    let by_digest = format!("@{}", image.parts().top.digest());
    for reference in [None, Some("v1"), Some(by_digest.as_str())] {
        let layout =
            open(Form::Layout, &folder.path().join("layout"), reference).expect("a layout");
        assert_eq!(contents(&*layout), expected(&image));
    }
    for compression in [Compression::Plain, Compression::Gzip, Compression::Zstd] {
        let path = file(
            &folder,
            "archive",
            &packed(&tar_of(&files).end(), compression),
        );
        assert_eq!(form_at(&path), Some(Form::OciArchive), "{compression:?}");
        let archive = open(Form::OciArchive, &path, Some("v1")).expect("an archive");
        assert_eq!(contents(&*archive), expected(&image), "{compression:?}");
    }
    assert_eq!(form_at(&folder.path().join("layout")), Some(Form::Layout));
    assert_eq!(form_at(folder.path()), None);
}

#[test]
fn archives_of_docker_save_old_and_new() {
    let (image, folder) = (image(), in_folder());
    let [lower, upper] = image.layers() else {
        panic!("there are two layers");
    };
    let hex = |layer: &Layer| layer.digest().replace("sha256:", "");
    let [lower_tar, upper_tar] = [lower, upper].map(|layer| format!("{}.tar", hex(layer)));
    let config = (config_name(&image), image.config());
    let tags = ["docker.io/library/queue:v1", "quay.io/a/b:v2"];
    let [file_of, link, hard] = [EntryType::Regular, EntryType::Symlink, EntryType::Link];
    // skopeo and podman: what older programs look for are links.
    let mut skopeo = Tar::default();
    skopeo
        .add(file_of, &lower_tar, "", &lower.tar)
        .add(link, "1/layer.tar", &format!("../{lower_tar}"), b"")
        .add(file_of, &upper_tar, "", &upper.tar)
        .add(file_of, &config.0, "", &config.1);
    let manifest = docker_manifest(&config.0, &[&lower_tar, &upper_tar], &tags);
    skopeo.add(file_of, "manifest.json", "", &manifest);
    // docker until 24, where a layer that is there twice is a link.
    let mut docker = Tar::default();
    docker
        .add(file_of, "0/layer.tar", "", &lower.tar)
        .add(link, "1/layer.tar", "../0/layer.tar", b"")
        .add(file_of, "3/layer.tar", "", &upper.tar)
        .add(hard, "2/layer.tar", "3/layer.tar", b"")
        .file("manifest.json", "the last one of a name counts")
        .add(file_of, &config.0, "", &config.1);
    let manifest = docker_manifest(&config.0, &["1/layer.tar", "./2/layer.tar"], &tags);
    docker.add(file_of, "manifest.json", "", &manifest);
    // docker since 25.
    let mut both = tar_of(&image.parts().layout("v1"));
    let [lower_blob, upper_blob] =
        [lower, upper].map(|layer| format!("blobs/sha256/{}", hex(layer)));
    let config_blob = format!("blobs/sha256/{}", Digest::of(&config.1).hex());
    let manifest = docker_manifest(&config_blob, &[&lower_blob, &upper_blob], &tags);
    both.add(file_of, "manifest.json", "", &manifest);
    let forms = [
        (skopeo.end(), Form::DockerArchive),
        (
            packed(&skopeo.end(), Compression::Gzip),
            Form::DockerArchive,
        ),
        (docker.end(), Form::DockerArchive),
        (both.end(), Form::OciArchive),
    ];
    for (number, (form, at)) in forms.iter().enumerate() {
        let path = file(&folder, "archive.tar", form);
        for reference in [None, Some("queue:v1"), Some("quay.io/a/b:v2")] {
            let archive = open(Form::DockerArchive, &path, reference);
            let archive = archive.unwrap_or_else(|error| panic!("{number}: {}", message(&error)));
            assert_eq!(contents(&*archive), expected(&image), "form {number}");
        }
        let opened = open(Form::DockerArchive, &path, Some("queue:v2"));
        refused(opened, &["holds no image \"queue:v2\"", tags[0], tags[1]]);
        assert_eq!(form_at(&path), Some(*at), "form {number}");
    }
}

#[test]
fn compressed_layers_of_a_docker_archive_are_compared_with_what_they_should_hold() {
    let (image, folder) = (image(), in_folder());
    let manifest = docker_manifest(&config_name(&image), &["a", "b"], &[]);
    let [lower, upper] = [(0, Compression::Gzip), (1, Compression::Zstd)]
        .map(|(layer, compression)| packed(&image.layers()[layer].tar, compression));
    let archive = |first: &[u8]| {
        let mut tar = Tar::default();
        for (path, content) in [
            ("a", first),
            ("b", &upper),
            (&config_name(&image), &image.config()),
            ("manifest.json", &manifest),
        ] {
            tar.add(EntryType::Regular, path, "", content);
        }
        file(&folder, "archive", &tar.end())
    };
    let opened = open(Form::DockerArchive, &archive(&lower), None);
    let opened = opened.expect("an archive");
    assert_eq!(contents(&*opened)[1..], [lower, upper.clone()]);
    let other = archive(&packed(b"another layer", Compression::Gzip));
    let opened = open(Form::DockerArchive, &other, None);
    refused(
        opened,
        &["digest mismatch: a in", &image.layers()[0].digest()],
    );
}

#[test]
fn an_incomplete_layout_says_what_is_missing() {
    let image = image();
    let whole = image.parts().layout("v1");
    let path_of = |digest: &str| format!("blobs/{}", digest.replace(':', "/"));
    let (top, layer) = (image.parts().top.digest(), image.layers()[1].digest());
    let without = |path: &str| {
        let mut files = whole.clone();
        files.remove(path).expect("it is there");
        files
    };
    let changed = |path: &str, content: &[u8]| {
        let mut files = whole.clone();
        *files.get_mut(path).expect("it is there") = content.to_vec();
        files
    };
    let mut other = image.parts().top.content;
    other[10] ^= 1;
    let huge = vec![b' '; (4 << 20) + 1];
    let incomplete = "is incomplete: it has no blobs/sha256/";
    let cases: [(_, &[&str]); 8] = [
        (without("oci-layout"), &["it has no file oci-layout"]),
        (without("index.json"), &["it has no file index.json"]),
        (without(&path_of(&top)), &[incomplete, &top]),
        (without(&path_of(&layer)), &[incomplete, &layer]),
        (
            changed(&path_of(&top), &other),
            &["digest mismatch: blobs/sha256/", &top],
        ),
        (
            changed("index.json", b"{"),
            &["its index.json cannot be read"],
        ),
        (
            changed("index.json", &huge),
            &["index.json is over the limit of 4194304 bytes"],
        ),
        (
            changed("oci-layout", br#"{"imageLayoutVersion": "2.0.0"}"#),
            &["version is \"2.0.0\""],
        ),
    ];
    for (files, texts) in cases {
        let folder = in_folder();
        write_folder(&folder.path().join("layout"), &files);
        refused(
            read(open(Form::Layout, &folder.path().join("layout"), None)),
            texts,
        );
        let path = file(&folder, "archive.tar", &tar_of(&files).end());
        refused(read(open(Form::OciArchive, &path, None)), texts);
    }
}

/// Opens every blob, as far as that goes.
fn read(store: Opened) -> Result<(), StoreError> {
    let store = store?;
    let mut layers = manifest_of(&*store)?.layers.into_iter();
    layers.try_for_each(|layer| store.blob(&layer).map(drop))
}

#[test]
fn nothing_is_read_from_outside_of_a_layout() {
    let (image, folder) = (image(), in_folder());
    let dir = folder.path().join("layout");
    let blob = dir
        .join("blobs")
        .join(image.layers()[0].digest().replace(':', "/"));
    let outside = file(&folder, "outside", &image.layers()[0].blob);
    let fresh = || {
        let _ = fs::remove_dir_all(&dir);
        write_folder(&dir, &image.parts().layout("v1"));
        fs::remove_file(&blob).expect("a file");
    };
    fresh();
    symlink(&outside, &blob).expect("a link");
    refused(
        read(open(Form::Layout, &dir, None)),
        &["cannot read", "it is a link"],
    );
    fresh();
    make_pipe(&blob);
    refused(
        read(open(Form::Layout, &dir, None)),
        &["it is not a plain file"],
    );
    fresh();
    fs::rename(dir.join("blobs"), folder.path().join("blobs")).expect("a folder");
    symlink(folder.path().join("blobs"), dir.join("blobs")).expect("a link");
    refused(
        read(open(Form::Layout, &dir, None)),
        &["its folder is a link that leads out"],
    );
}

#[test]
fn archives_that_are_no_images() {
    let (image, folder) = (image(), in_folder());
    let limits = Limits::DEFAULT;
    let plain = tar_of(&image.parts().layout("v1")).end();
    let small = Limits {
        catalog_bytes: 1 << 20,
        ..limits
    };
    let cut_off = file(&folder, "cut", &plain[..plain.len() / 2]);
    let text = file(&folder, "text", b"not an archive");
    let packed = file(&folder, "packed", &packed(&plain, Compression::Gzip));
    let pipe = folder.path().join("pipe");
    make_pipe(&pipe);
    for (path, limits, texts) in [
        (&cut_off, &limits, &["cannot read", "cut"][..]),
        (&text, &limits, &["it is not a tar archive"]),
        (&packed, &small, &["over the limit of 1048576 bytes"]),
        (&pipe, &limits, &["it is not a plain file"]),
    ] {
        refused(layout::open(Form::OciArchive, path, None, limits), texts);
    }
    for path in [&text, &cut_off, &pipe] {
        assert_eq!(form_at(path), None, "{}", path.display());
    }
}

#[test]
fn archives_of_docker_save_that_do_not_fit_together() {
    let (image, folder) = (image(), in_folder());
    let (config, whole) = (config_name(&image), image.config());
    let cases: [(&[&str], &str, &[u8], &str); 6] = [
        (
            &["a"],
            &config,
            &whole,
            "names 1 layers, and its configuration 2",
        ),
        (&["a", "b"], &config, &whole, "is incomplete: it has no b"),
        (
            &["a", "out"],
            &config,
            &whole,
            "is incomplete: it has no out",
        ),
        (
            &["a", "round"],
            &config,
            &whole,
            "is incomplete: it has no round",
        ),
        (&["a", "a"], &config, b"{}", "digest mismatch"),
        (
            &["a", "a"],
            "c.json",
            b"{}",
            "its configuration cannot be read",
        ),
    ];
    for (layers, name, content, text) in cases {
        let mut tar = Tar::default();
        tar.add(EntryType::Regular, "a", "", &image.layers()[0].blob)
            .add(EntryType::Symlink, "out", "../../etc/passwd", b"")
            .add(EntryType::Symlink, "round", "round", b"")
            .add(EntryType::Regular, name, "", content);
        let manifest = docker_manifest(name, layers, &[]);
        tar.add(EntryType::Regular, "manifest.json", "", &manifest);
        let path = file(&folder, "archive.tar", &tar.end());
        refused(open(Form::DockerArchive, &path, None), &[text]);
    }
}

#[test]
fn an_image_without_its_scheme_is_told_which_to_write() {
    let folder = in_folder();
    let at = |name: &str| folder.path().join(name);
    let bundle = root().join("testdata/bundles/minimal");
    let image = Image::of_bundle(&bundle, Format::Oci, Compression::Gzip);
    image.parts().write_oci_layout(&at("layout"), "v1");
    image.parts().write_oci_archive(&at("oci.tar"), "v1");
    image.write_docker_archive(&at("docker.tar"), "example.com/minimal:v1");
    for (name, scheme) in [
        ("layout", "oci:"),
        ("oci.tar", "oci-archive:"),
        ("docker.tar", "docker-archive:"),
    ] {
        let source = at(name).display().to_string();
        for words in [
            &["render", "-n", "ops"][..],
            &["catalog", "list", "--catalog"],
        ] {
            let run = run(words.iter().copied().chain([source.as_str()]));
            assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{}", run.stderr);
            let hint = format!("hint: this is an image: write {scheme}{source}\n");
            assert!(run.stderr.contains(&hint), "{words:?} {}", run.stderr);
        }
    }
}

#[test]
fn the_longest_path_that_is_there_is_meant() {
    let folder = in_folder();
    let at = |name: &str| format!("{}/{name}", folder.path().display());
    for name in ["a", "a:b", "c@d"] {
        fs::create_dir(at(name)).expect("a folder");
    }
    let digest = Digest::of(b"").to_string();
    let cases = [
        ("a".to_owned(), "a", None),
        ("a:v1".to_owned(), "a", Some("v1".to_owned())),
        ("a:b".to_owned(), "a:b", None),
        (
            "a:b:quay.io/x:v1".to_owned(),
            "a:b",
            Some("quay.io/x:v1".to_owned()),
        ),
        (format!("a@{digest}"), "a", Some(format!("@{digest}"))),
        (format!("a:@{digest}"), "a", Some(format!("@{digest}"))),
        ("c@d:v1".to_owned(), "c@d", Some("v1".to_owned())),
        (
            "missing:v1:v2".to_owned(),
            "missing",
            Some("v1:v2".to_owned()),
        ),
        ("a:".to_owned(), "a", None),
    ];
    for (text, path, reference) in cases {
        assert_eq!(
            split(&at(&text)),
            (PathBuf::from(at(path)), reference),
            "{text}"
        );
    }
    assert_eq!(split("-:v1"), (PathBuf::from("-"), Some("v1".to_owned())));
}
