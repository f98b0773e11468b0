//! Which image of an index is taken.

use super::{
    manifest::{Descriptor, ImageIndex, IndexEntry},
    platform::{Platform, as_go_names},
};

/// The image to take of an index: that for the platform asked for; else the one for Linux on `here`, the processor of
/// this machine as Rust or Go calls it; else any, as content is the same on all of them: `linux/amd64`, the first for
/// Linux, the first.
///
/// # Errors
/// When there is none for the platform asked for, with those that there are; or none at all.
pub fn choose<'i>(
    index: &'i ImageIndex,
    asked: Option<&Platform>,
    here: &str,
) -> Result<&'i Descriptor, String> {
    let find = |fits: &dyn Fn(&Platform) -> bool| {
        let fits = |entry: &&IndexEntry| entry.platform.as_ref().is_some_and(fits);
        index.images.iter().find(fits)
    };
    let Some(first) = index.images.first() else {
        return Err("the index lists no images".to_owned());
    };
    let entry = if let Some(asked) = asked {
        let same = |platform: &Platform| platform.is(&asked.os, &asked.architecture);
        let exact = |platform: &Platform| platform.telling_variant() == asked.telling_variant();
        // Who names no variant takes any.
        find(&|platform| same(platform) && exact(platform))
            .or_else(|| find(&same).filter(|_| asked.variant.is_none()))
            .ok_or_else(|| format!("there is no image for {asked}; there are {}", listed(index)))?
    } else {
        find(&|platform| platform.is("linux", as_go_names(here)))
            .or_else(|| find(&|platform| platform.is("linux", "amd64")))
            .or_else(|| find(&|platform| platform.os == "linux"))
            .unwrap_or(first)
    };
    Ok(&entry.manifest)
}

/// As many platforms are listed.
const LISTED: usize = 20;

fn listed(index: &ImageIndex) -> String {
    let mut names: Vec<String> = vec![];
    for entry in &index.images {
        let name = entry.platform.as_ref().map_or_else(
            || "one without a platform".to_owned(),
            |platform| platform.to_string().chars().take(60).collect(),
        );
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() == LISTED {
            names.push("others".to_owned());
            break;
        }
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oci::digest::Digest;

    fn index(platforms: &[&str]) -> ImageIndex {
        let entry = |platform: &&str| IndexEntry {
            manifest: Descriptor {
                media_type: (*platform).to_owned(),
                digest: Digest::of(platform.as_bytes()),
                size: 1,
            },
            platform: platform.parse().ok(),
        };
        ImageIndex {
            images: platforms.iter().map(entry).collect(),
        }
    }

    #[test]
    fn the_platform_asked_for_is_taken_and_no_other() {
        let index = index(&["linux/amd64", "linux/arm/v6", "linux/arm64", "linux/arm/v7"]);
        let chosen = |asked: &str| {
            let asked: Platform = asked.parse().expect("a platform");
            choose(&index, Some(&asked), "x86_64").map(|chosen| chosen.media_type.as_str())
        };
        for (asked, expected) in [
            ("linux/amd64", "linux/amd64"),
            ("linux/x86_64", "linux/amd64"),
            ("linux/arm64/v8", "linux/arm64"),
            ("linux/arm", "linux/arm/v7"),
            ("linux/arm/v6", "linux/arm/v6"),
        ] {
            assert_eq!(chosen(asked), Ok(expected), "{asked}");
        }
        let refused = chosen("linux/arm/v5").expect_err("is not there");
        assert_eq!(
            refused,
            "there is no image for linux/arm/v5; there are linux/amd64, linux/arm/v6, linux/arm64, linux/arm/v7"
        );
        assert!(chosen("windows/amd64").is_err());
    }

    #[test]
    fn without_asking_content_comes_from_the_likeliest() {
        for (platforms, here, expected) in [
            (
                &["linux/amd64", "linux/arm64"][..],
                "aarch64",
                "linux/arm64",
            ),
            (&["linux/arm64", "linux/amd64"], "riscv64", "linux/amd64"),
            (&["windows/amd64", "linux/s390x"], "x86_64", "linux/s390x"),
            (&["windows/amd64", "none"], "x86_64", "windows/amd64"),
            (&["none"], "x86_64", "none"),
        ] {
            let index = index(platforms);
            let chosen = choose(&index, None, here).expect("there is one");
            assert_eq!(chosen.media_type, expected);
        }
        assert!(choose(&index(&[]), None, "x86_64").is_err());
    }

    #[test]
    fn what_is_no_platform_is_refused() {
        for text in [
            "",
            "linux",
            "linux/",
            "/amd64",
            "linux/arm/v7/x",
            "linux/a b",
        ] {
            assert!(text.parse::<Platform>().is_err(), "{text:?}");
        }
    }
}
