//! Paths inside of images, as text: how they stand to the folders that are wanted.

/// How a path stands to some wanted ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is one of them, or below one.
    Within,
    /// One of them is below it.
    Above,
    /// None of them is below it, and it is below none.
    Apart,
}

/// A path as the user or a label writes it, without slashes or `./` at either end; the root is the empty path.
pub(super) fn tidy(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.collect::<Vec<_>>().join("/")
}

/// How a tidy path stands to tidy wanted ones. It need not be Unicode.
pub(super) fn standing<P: AsRef<str>>(path: &[u8], wanted: &[P]) -> Standing {
    let is_within = |wanted: &P| is_at_or_below(path, wanted.as_ref().as_bytes());
    let is_above = |wanted: &P| is_at_or_below(wanted.as_ref().as_bytes(), path);
    if wanted.iter().any(is_within) {
        Standing::Within
    } else if wanted.iter().any(is_above) {
        Standing::Above
    } else {
        Standing::Apart
    }
}

/// Whether a path is a folder's, or of something below the folder.
pub(super) fn is_at_or_below(path: &[u8], folder: &[u8]) -> bool {
    let Some(rest) = path.strip_prefix(folder) else {
        return false;
    };
    rest.is_empty() || folder.is_empty() || rest.starts_with(b"/")
}

/// Where a link at `path` leads, going by the text alone: `..` at the root stays there, as in a container.
pub(super) fn target(path: &str, link: &str) -> String {
    let folder = match path.rsplit_once('/') {
        Some((folder, _)) if !link.starts_with('/') => folder,
        _ => "",
    };
    let mut parts: Vec<&str> = vec![];
    for part in folder.split('/').chain(link.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The folder that a path is in, and its last part.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// A path below a folder.
pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}
