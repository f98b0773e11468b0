//! Manifests and histories of images, as tools write them and as nobody should: `testdata/oci`, to which one is added
//! without writing Rust.

use std::fs;

use kubectl_olm::oci::{
    config::{Config, Step},
    manifest::{Document, parse},
    needed::layers_with,
};

use super::program::root;

const DIGEST: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

/// A file there begins with two lines: `delivered:` and a media type, `expected:` and what becomes of it or a part of the
/// error. The rest is the body; DIGEST stands for one.
#[test]
fn manifests_become_what_their_files_say() {
    let folder = root().join("testdata/oci/manifests");
    let mut problems = vec![];
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the manifests") {
        let path = entry.expect("a file").path();
        let text = fs::read_to_string(&path)
            .expect("a file")
            .replace("DIGEST", DIGEST);
        let mut lines = text.splitn(3, '\n');
        let mut line = |name| {
            lines
                .next()
                .and_then(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let delivered = line("delivered:").expect("a media type");
        let expected = line("expected:").expect("what is expected");
        let body = lines.next().expect("a body");
        let delivered = Some(delivered).filter(|delivered| !delivered.is_empty());
        let found = match parse(body.as_bytes(), delivered) {
            Ok(document) => told(&document),
            Err(error) => format!("error: {error}"),
        };
        let fits = found == expected || found.starts_with("error: ") && found.contains(expected);
        if !fits {
            problems.push(format!("{}: {found}, not {expected}", path.display()));
        }
        count += 1;
    }
    assert!(
        problems.is_empty() && count > 40,
        "{count}\n{}",
        problems.join("\n")
    );
}

fn told(document: &Document) -> String {
    match document {
        Document::Image(image) => format!("image of {}", image.layers.len()),
        Document::Index(index) => {
            let platforms = index.images.iter().map(|entry| {
                let platform = entry.platform.as_ref();
                platform.map_or_else(|| "any".to_owned(), ToString::to_string)
            });
            format!("index of {}", platforms.collect::<Vec<_>>().join(" "))
        }
    }
}

/// A file there has a line for each step, what was done, with `-` in front when no layer came of it; before them
/// `folders:`, and after them `layers:` with the positions of those that are expected.
fn read(text: &str) -> (Config, usize, Vec<String>, Vec<usize>) {
    let mut config = Config::default();
    let (mut folders, mut expected, mut count) = (vec![], vec![], None);
    for line in text
        .lines()
        .filter(|line| !line.starts_with("//") && !line.is_empty())
    {
        let words = |list: &str| {
            list.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        if let Some(list) = line.strip_prefix("folders:") {
            folders = words(list);
        } else if let Some(list) = line.strip_prefix("layers:") {
            expected = words(list)
                .iter()
                .map(|number| number.parse().expect("a number"))
                .collect();
        } else if let Some(number) = line.strip_prefix("count:") {
            count = number.trim().parse().ok();
        } else {
            let (is_empty, created_by) = line.split_at(2);
            config.history.push(Step {
                created_by: created_by.to_owned(),
                is_empty: is_empty == "- ",
            });
        }
    }
    let made = config.history.iter().filter(|step| !step.is_empty).count();
    (config, count.unwrap_or(made), folders, expected)
}

#[test]
fn layers_that_cannot_hold_a_folder_are_left_out() {
    let folder = root().join("testdata/oci/histories");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the histories") {
        let path = entry.expect("a file").path();
        let text = fs::read_to_string(&path).expect("a file");
        let (config, layers, folders, expected) = read(&text);
        assert_eq!(
            layers_with(&config, layers, &folders),
            expected,
            "{}",
            path.display()
        );
        count += 1;
    }
    assert!(count > 8, "{count}");
}
