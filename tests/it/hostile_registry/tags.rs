//! Tags that do not stay what they are.

use std::collections::BTreeMap;

use super::{Act, Liar, answer};
use crate::{
    image_builder::{Compression, Format, Image, Parts, index},
    program::{program, root},
};

/// The image of a bundle, in an index.
fn bundle(name: &str) -> Parts {
    let folder = root().join("testdata/bundles").join(name);
    index(
        Format::Oci,
        &[Image::of_bundle(&folder, Format::Oci, Compression::Gzip)],
    )
}

/// A registry that has images by their digests, and whose tag means the first of them when it is asked for first.
fn server(images: [Parts; 2], afterwards: fn(&Parts) -> Vec<Act>) -> Liar {
    let [first, second] = images.clone();
    let mut content = BTreeMap::new();
    for image in images {
        let documents = image.below.into_iter().chain([image.top]);
        content.extend(documents.map(|document| (document.digest(), document.content)));
        let blobs = image.blobs.into_iter();
        content.extend(blobs.map(|blob| (crate::image_builder::digest(&blob), blob)));
    }
    Liar::plain(move |request| {
        let name = request.target.rsplit('/').next().unwrap_or_default();
        match content.get(name) {
            Some(content) => answer("200 OK", &[], content),
            None if request.before == 0 => answer("200 OK", &[], &first.top.content),
            None => afterwards(&second),
        }
    })
}

#[test]
fn a_tag_that_moves_or_goes_is_asked_for_once() {
    let moves: fn(&Parts) -> Vec<Act> = |other| answer("200 OK", &[], &other.top.content);
    let goes: fn(&Parts) -> Vec<Act> = |_| answer("404 Not Found", &[], "");
    for afterwards in [moves, goes] {
        let server = server([bundle("minimal"), bundle("queue-operator")], afterwards);
        let cache = tempfile::tempdir().expect("a temporary folder");
        let render = |source: &str| {
            let run = program()
                .env("XDG_CACHE_HOME", cache.path())
                .args(["render", source, "-n", "ops"])
                .args(["--insecure-registry", &server.address()])
                .output()
                .expect("the program starts");
            assert!(
                run.status.success(),
                "{}",
                String::from_utf8_lossy(&run.stderr)
            );
            String::from_utf8(run.stdout).expect("UTF-8")
        };
        let given = render(&format!("docker://{}/org/app:v1", server.address()));
        assert_eq!(given, render("testdata/bundles/minimal"));
        let requests = server.requests();
        let tags = requests
            .iter()
            .filter(|request| request.target.ends_with("/v1"));
        assert_eq!(tags.count(), 1, "{requests:?}");
        assert!(requests.len() >= 4, "{requests:?}");
    }
}
