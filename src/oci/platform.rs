//! What images run on.
//!
//! Names are Go's, and equal variants are as in containerd's `platforms` package (`database.go`, `normalizeArch`).

use std::{fmt, str::FromStr};

/// What an image runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    /// The operating system, as Go calls it.
    pub os: String,
    /// The processor, as Go calls it.
    pub architecture: String,
    /// The variant of the processor.
    pub variant: Option<String>,
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |part: &&str| {
            let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            !part.is_empty() && part.bytes().all(is_of_name)
        };
        let parts: Vec<&str> = text.split('/').collect();
        match parts.as_slice() {
            [os, architecture, variant @ ..] if parts.iter().all(is_name) && variant.len() < 2 => {
                Ok(Self {
                    os: os.to_ascii_lowercase(),
                    architecture: as_go_names(&architecture.to_ascii_lowercase()).to_owned(),
                    variant: variant.first().map(|variant| variant.to_ascii_lowercase()),
                })
            }
            _ => Err("use OS/ARCHITECTURE, such as linux/amd64, or OS/ARCHITECTURE/VARIANT, such as linux/arm/v7".to_owned()),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        match &self.variant {
            Some(variant) => write!(f, "/{variant}"),
            None => Ok(()),
        }
    }
}

impl Platform {
    /// Whether it is of this system and processor.
    pub(super) fn is(&self, os: &str, architecture: &str) -> bool {
        self.os == os && self.architecture == architecture
    }

    /// The variant, without the one that is meant when none is named.
    pub(super) fn telling_variant(&self) -> Option<&str> {
        let usual = match self.architecture.as_str() {
            "amd64" => "v1",
            "arm" => "v7",
            "arm64" => "v8",
            _ => "",
        };
        let variant = self.variant.as_deref()?;
        Some(variant).filter(|variant| !variant.is_empty() && *variant != usual)
    }
}

/// The name that Go has for a processor.
pub(super) fn as_go_names(processor: &str) -> &str {
    match processor {
        "x86_64" | "x86-64" => "amd64",
        "x86" | "i386" | "i686" => "386",
        "aarch64" => "arm64",
        // Nobody builds images for the other byte order.
        "powerpc64" | "powerpc64le" => "ppc64le",
        "loongarch64" => "loong64",
        other => other,
    }
}
