//! Digests: what content is known by. One that is not well formed never becomes a [`Digest`], so that no request and
//! no path is ever made of it.

use std::{
    fmt::{self, Write as _},
    io,
};

use sha2::{Digest as _, Sha256, Sha512};

/// The digest of some content, as `sha256:…` or `sha512:…`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    text: String,
}

/// How a digest is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// What nearly all content is known by.
    Sha256,
    /// The other one that the OCI image specification registers.
    Sha512,
}

impl Algorithm {
    /// What stands before the colon.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// The digest of content.
    #[must_use]
    pub fn digest(self, content: &[u8]) -> Digest {
        let mut hasher = Hasher::new(self);
        hasher.update(content);
        hasher.finish()
    }

    /// As many hexadecimal digits a digest has.
    fn digits(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

/// A text is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no digest: use sha256: or sha512:, and as many lower case hexadecimal digits as it has"
)]
pub struct BadDigest(String);

impl Digest {
    /// Reads a digest.
    ///
    /// # Errors
    /// When the algorithm is another, or the digits are not as many as it has or not lower case.
    pub fn parse(text: &str) -> Result<Self, BadDigest> {
        let known = [Algorithm::Sha256, Algorithm::Sha512];
        let is_hex = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
        let fits = text.split_once(':').is_some_and(|(name, digits)| {
            known.iter().any(|algorithm| {
                algorithm.name() == name
                    && digits.len() == algorithm.digits()
                    && digits.bytes().all(is_hex)
            })
        });
        // What is refused may be as long as a manifest.
        let start = || text.chars().take(160).collect();
        if fits {
            let text = text.to_owned();
            Ok(Self { text })
        } else {
            Err(BadDigest(start()))
        }
    }

    /// The SHA-256 digest of content.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Algorithm::Sha256.digest(content)
    }

    /// How it is computed.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        if self.text.starts_with("sha512") {
            Algorithm::Sha512
        } else {
            Algorithm::Sha256
        }
    }

    /// The digits behind the colon.
    #[must_use]
    pub fn hex(&self) -> &str {
        self.text
            .split_once(':')
            .map_or("", |(_algorithm, digits)| digits)
    }

    /// The whole text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether content is what this is the digest of.
    #[must_use]
    pub fn fits(&self, content: &[u8]) -> bool {
        self.algorithm().digest(content) == *self
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Computes a digest of content that comes in pieces.
#[derive(Debug, Clone)]
pub enum Hasher {
    /// For [`Algorithm::Sha256`].
    Sha256(Sha256),
    /// For [`Algorithm::Sha512`].
    Sha512(Sha512),
}

impl Hasher {
    /// Of no content yet.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Sha256 => Self::Sha256(Sha256::new()),
            Algorithm::Sha512 => Self::Sha512(Sha512::new()),
        }
    }

    /// Adds content.
    pub fn update(&mut self, content: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(content),
            Self::Sha512(hasher) => hasher.update(content),
        }
    }

    /// The digest of all that was added.
    #[must_use]
    pub fn finish(self) -> Digest {
        let (algorithm, bytes) = match self {
            Self::Sha256(hasher) => (Algorithm::Sha256, hasher.finalize().to_vec()),
            Self::Sha512(hasher) => (Algorithm::Sha512, hasher.finalize().to_vec()),
        };
        let mut text = format!("{}:", algorithm.name());
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        Digest { text }
    }
}

/// Takes content as [`Hasher::update`] does.
impl io::Write for Hasher {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        self.update(content);
        Ok(content.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
