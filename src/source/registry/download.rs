//! The download of one blob: goes on where it broke off, at the same place or at the next, and compares size and digest
//! with what was promised. It runs on the runtime's threads and hands out chunks as they come; the reader is at most
//! [`CHUNKS`] of them behind, so that memory stays bounded and reading overlaps with downloading and hashing.
//!
//! Resuming follows containers/image (`docker/body_reader.go`): only with progress, and only where the server goes on at
//! the very byte. Unlike there, an answer with the whole blob is taken too: what was handed out already is passed over,
//! and the digest is of what was handed out.

use std::sync::Arc;

use bytes::Bytes;
use reqwest::{
    Response, StatusCode,
    header::{self, HeaderMap},
};
use tokio::{sync::mpsc::Sender, time::sleep};

use super::{
    Progress, access,
    answer::Answer,
    answer::{answered, giver},
    broken::Broken,
    error::{ErrorClass, RegistryError},
    pace::Pace,
    retry::{self, Trouble},
    wanted::{Repository, Wanted},
    world::World,
};
use crate::{
    image::ImageReference,
    oci::{digest::Hasher, manifest::Descriptor},
};

/// How many chunks wait for the reader.
pub(super) const CHUNKS: usize = 8;
/// How many attempts in a row may come to nothing.
const FRUITLESS: u32 = 2;
/// How often a download may break off, and once more for each of so many bytes that it gave.
const BREAKS: u64 = 10;
const BYTES_A_BREAK: u64 = 1 << 20;

/// What the reader is told.
#[derive(Debug)]
pub(super) enum Piece {
    /// More content.
    Content(Bytes),
    /// All content was handed out, and is what it should be.
    End,
    /// There will be no more.
    Failed(Box<RegistryError>),
}

/// One download, wherever it comes from.
struct Download<'a> {
    world: &'a World,
    blob: &'a Descriptor,
    /// Bytes that were handed out.
    done: u64,
    hasher: Hasher,
    /// Who gave something of it.
    givers: Vec<String>,
    sender: &'a Sender<Piece>,
    shown: Shown,
}

/// Downloads a blob from the first place that gives it, and hands it out. Places that cannot give it are passed over; one
/// that gives something else ends it. Nobody is told of the end but by what this gives.
pub(super) async fn download(
    world: &World,
    image: &ImageReference,
    places: &[Repository],
    blob: &Descriptor,
    sender: &Sender<Piece>,
) -> Result<(), RegistryError> {
    let mut download = Download {
        world,
        blob,
        done: 0,
        hasher: Hasher::new(blob.digest.algorithm()),
        givers: vec![],
        sender,
        shown: Shown::new(&world.progress, image, blob),
    };
    let mut reasons = vec![];
    for place in places {
        match download.from(place).await {
            Ok(()) => return Ok(()),
            Err(error) => error.pass_over(place.full_name(), &mut reasons)?,
        }
    }
    Err(RegistryError::of_places(image, reasons))
}

impl Download<'_> {
    /// Downloads what is missing from one place.
    async fn from(&mut self, place: &Repository) -> Result<(), RegistryError> {
        let wanted = Wanted::Blob(self.blob.digest.clone());
        let what = wanted.name(&place.name);
        let (mut fruitless, mut breaks) = (0, 0);
        loop {
            let before = self.done;
            let given = access::get(self.world, place, &wanted, before).await;
            let mut answer = given.map_err(|error| self.broke_off(error, &what, place))?;
            let host = giver(&answer);
            let Some(response) = answer.stream.take() else {
                return Err(answered(&answer));
            };
            let skip = self.skip(&answer, &what, &host)?;
            if !self.givers.contains(&host) {
                self.givers.push(host.clone());
            }
            let Some(broken) = self.hand_out(response, skip, &what).await? else {
                return self.check(&what);
            };
            let is_fruitful = self.done > before && broken.trouble != Trouble::Silence;
            fruitless = if is_fruitful { 0 } else { fruitless + 1 };
            breaks += 1;
            if fruitless >= FRUITLESS || breaks > BREAKS + self.done / BYTES_A_BREAK {
                return Err(self.incomplete(&what, host, broken.reason));
            }
            sleep(retry::backoff(fruitless + 1, fastrand::f64())).await;
        }
    }

    /// Hands out what an answer gives, but for so many bytes at its beginning; gives why it broke off, if it did.
    async fn hand_out(
        &mut self,
        mut response: Response,
        mut skip: u64,
        what: &str,
    ) -> Result<Option<Broken>, RegistryError> {
        let mut pace = Pace::new(self.world.clients.timeout);
        loop {
            let mut chunk = match pace.chunk(&mut response).await {
                Ok(Some(chunk)) => chunk,
                _ if self.done == self.blob.size && skip == 0 => return Ok(None),
                Ok(None) => return Ok(Some(Broken::early())),
                Err(broken) => return Ok(Some(broken)),
            };
            let passed = usize::try_from(skip).unwrap_or(usize::MAX).min(chunk.len());
            skip -= passed as u64;
            let chunk = chunk.split_off(passed);
            let bytes = chunk.len() as u64;
            if bytes > self.blob.size - self.done {
                return Err(self.wrong_size(what, self.givers.join(" and "), None));
            }
            if bytes > 0 {
                self.hasher.update(&chunk);
                self.done += bytes;
                self.shown.advance(bytes);
                // When nobody reads any more, this task is about to be stopped.
                let _ = self.sender.send(Piece::Content(chunk)).await;
            }
        }
    }

    /// Compares the digest.
    fn check(&self, what: &str) -> Result<(), RegistryError> {
        let actual = self.hasher.clone().finish();
        if actual == self.blob.digest {
            return Ok(());
        }
        Err(RegistryError::Digest {
            what: what.to_owned(),
            host: self.givers.join(" and "),
            expected: self.blob.digest.clone(),
            actual,
        })
    }

    /// How many bytes of an answer were handed out already.
    fn skip(&self, answer: &Answer, what: &str, host: &str) -> Result<u64, RegistryError> {
        let is_whole = answer.status == StatusCode::OK;
        let range = match answer.status {
            StatusCode::OK => Some((0, content_length(&answer.headers))),
            StatusCode::PARTIAL_CONTENT => content_range(&answer.headers),
            _ => return Err(answered(answer)),
        };
        let total = range.and_then(|(_, total)| total);
        if total.is_some_and(|total| total != self.blob.size) {
            return Err(self.wrong_size(what, host.to_owned(), total));
        }
        match range {
            Some(_) if is_whole => Ok(self.done),
            Some((begin, _)) if begin == self.done => Ok(0),
            other => {
                let begin =
                    other.map_or("nowhere".to_owned(), |(begin, _)| format!("byte {begin}"));
                let reason = format!("it goes on at {begin} instead of byte {}", self.done);
                Err(self.incomplete(what, host.to_owned(), reason))
            }
        }
    }

    fn wrong_size(&self, what: &str, host: String, actual: Option<u64>) -> RegistryError {
        RegistryError::Size {
            what: what.to_owned(),
            host,
            expected: self.blob.size,
            actual,
        }
    }

    /// Says how much there is, for an error that comes after something was handed out.
    fn broke_off(&self, error: RegistryError, what: &str, place: &Repository) -> RegistryError {
        if self.done == 0 || error.class() != ErrorClass::Network {
            return error;
        }
        self.incomplete(what, place.registry.clone(), error.to_string())
    }

    fn incomplete(&self, what: &str, host: String, reason: String) -> RegistryError {
        RegistryError::Incomplete {
            what: what.to_owned(),
            host,
            done: self.done,
            size: self.blob.size,
            reason,
        }
    }
}

/// A download that is shown until this is dropped.
struct Shown {
    progress: Arc<dyn Progress>,
    id: u64,
}

impl Shown {
    fn new(progress: &Arc<dyn Progress>, image: &ImageReference, blob: &Descriptor) -> Self {
        let digits = blob.digest.hex().get(..12).unwrap_or_default();
        let what = format!("{digits} of {}", image.name());
        let id = progress.begin(&what, Some(blob.size));
        let progress = Arc::clone(progress);
        Self { progress, id }
    }

    fn advance(&self, bytes: u64) {
        self.progress.advance(self.id, bytes);
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.progress.end(self.id);
    }
}

/// Where the content of an answer begins, and how much there is in all.
fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (begin, end) = range.split_once('-')?;
    let begin: u64 = begin.parse().ok()?;
    let end: u64 = end.parse().ok()?;
    (begin <= end).then(|| (begin, total.parse().ok()))
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(header::CONTENT_LENGTH)?.to_str().ok()?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_strictly() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_RANGE, text.parse().expect("a header"));
            content_range(&headers)
        };
        assert_eq!(read("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(read("bytes 5-9/*"), Some((5, None)));
        for text in [
            "",
            "bytes",
            "bytes 5-9",
            "bytes */10",
            "bytes 9-5/10",
            "items 5-9/10",
            "bytes -5/10",
            "bytes 5-/10",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
