//! The blocking end of a download.

use std::{
    io::{self, Read},
    sync::Arc,
};

use bytes::{Buf, Bytes};
use tokio::{sync::mpsc::Receiver, task::AbortHandle};

use super::{download::Piece, runtime::Engine};

/// Reads what a download hands out. Dropping it stops the download.
#[derive(Debug)]
pub(super) struct BlobReader {
    pieces: Receiver<Piece>,
    current: Bytes,
    is_at_end: bool,
    task: AbortHandle,
    /// What the download runs on has to live as long as somebody reads.
    _engine: Arc<Engine>,
}

impl BlobReader {
    /// Reads the pieces that a task hands out.
    pub(super) fn new(pieces: Receiver<Piece>, task: AbortHandle, engine: Arc<Engine>) -> Self {
        Self {
            pieces,
            current: Bytes::new(),
            is_at_end: false,
            task,
            _engine: engine,
        }
    }
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.is_at_end && !buffer.is_empty() {
            match self.pieces.blocking_recv() {
                Some(Piece::Content(chunk)) => self.current = chunk,
                Some(Piece::End) => self.is_at_end = true,
                Some(Piece::Failed(error)) => return Err(io::Error::other(*error)),
                // Also whenever it is read again after a failure.
                None => return Err(io::Error::other("the download was stopped")),
            }
        }
        let bytes = buffer.len().min(self.current.len());
        self.current
            .copy_to_slice(buffer.get_mut(..bytes).unwrap_or_default());
        Ok(bytes)
    }
}

impl Drop for BlobReader {
    fn drop(&mut self) {
        self.task.abort();
    }
}
