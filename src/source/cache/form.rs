//! The form of a file that holds what was kept of a layer. Pure: values to bytes and back.
//!
//! Such a file is a line that names the form, the content, a table, a SHA-256 of every [`PIECE`] of the content, and an
//! end of fixed size: how long content and table are, and a SHA-256 of all but the content. So the content is written
//! as it comes, a file that was cut or changed anywhere is never taken for a whole one, and a part of the content is
//! verified without reading the rest.

use std::io;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::oci::layer::LayerEntry;

/// Bytes of content that are verified together: little enough for one small file, and enough to be read quickly.
pub(super) const PIECE: usize = 256 << 10;

/// What a file begins with. A new form gets another line.
pub(super) const HEADER: &[u8] = b"kubectl-olm layer 1\n";

/// Bytes of the end of a file.
pub(super) const END: usize = 8 + 8 + 32;

/// No table is larger, so that a damaged file cannot fill the memory.
pub(super) const LONGEST_TABLE: u64 = 64 << 20;

/// The SHA-256 of a piece.
pub(super) type Checksum = [u8; 32];

/// What a file says of its content.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Table {
    /// The digest of the layer.
    pub(super) layer: String,
    /// The paths that were wanted of it, sorted.
    pub(super) wanted: Vec<String>,
    /// What the layer says of them.
    pub(super) entries: Vec<LayerEntry>,
}

impl Table {
    /// The table of a layer's entries.
    pub(super) fn new(layer: &str, wanted: &[String], entries: &[LayerEntry]) -> Self {
        Self {
            layer: layer.to_owned(),
            wanted: sorted(wanted),
            entries: entries.to_vec(),
        }
    }
}

/// Wanted paths in an order of their own, as it does not matter in which they were named.
pub(super) fn sorted(wanted: &[String]) -> Vec<String> {
    let mut wanted = wanted.to_vec();
    wanted.sort();
    wanted.dedup();
    wanted
}

/// What stands behind `length` bytes of content.
///
/// # Errors
/// When the table would be too large to be read again.
pub(super) fn tail(table: &Table, length: u64, checksums: &[Checksum]) -> io::Result<Vec<u8>> {
    let mut tail = serde_json::to_vec(table)?;
    let table_length = tail.len() as u64;
    if table_length > LONGEST_TABLE {
        return Err(io::Error::other("it has too many entries to be kept"));
    }
    tail.extend(checksums.as_flattened());
    tail.extend(length.to_le_bytes());
    tail.extend(table_length.to_le_bytes());
    let checksum = checksum_of_tail(&tail);
    tail.extend(checksum);
    Ok(tail)
}

/// Where the parts of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    /// Bytes of content.
    pub(super) length: u64,
    /// Bytes of the table.
    table: u64,
    /// Bytes of the checksums.
    checksums: u64,
}

impl Parts {
    /// Reads the end of a file of `size` bytes; nothing when they do not fit together.
    pub(super) fn read(size: u64, end: &[u8; END]) -> Option<Self> {
        let (length, rest) = end.split_first_chunk::<8>()?;
        let (table, _) = rest.split_first_chunk::<8>()?;
        let (length, table) = (u64::from_le_bytes(*length), u64::from_le_bytes(*table));
        let checksums = length.div_ceil(PIECE as u64).checked_mul(32)?;
        let parts = Self {
            length,
            table,
            checksums,
        };
        let fixed = (HEADER.len() + END) as u64;
        let all = [length, table, checksums]
            .iter()
            .try_fold(fixed, |sum, part| sum.checked_add(*part))?;
        (all == size && table <= LONGEST_TABLE).then_some(parts)
    }

    /// Where the tail begins, and its size in bytes.
    pub(super) fn tail(self) -> (u64, u64) {
        let start = HEADER.len() as u64 + self.length;
        (start, self.table + self.checksums + END as u64)
    }

    /// The table and the checksums that a tail holds; nothing when it was changed.
    pub(super) fn decode(self, tail: &[u8]) -> Option<(Table, Vec<Checksum>)> {
        let (covered, checksum) = tail.split_last_chunk::<32>()?;
        if checksum_of_tail(covered) != *checksum {
            return None;
        }
        let (table, rest) = covered.split_at_checked(usize::try_from(self.table).ok()?)?;
        let checksums = rest.get(..usize::try_from(self.checksums).ok()?)?;
        let (checksums, _) = checksums.as_chunks::<32>();
        Some((serde_json::from_slice(table).ok()?, checksums.to_vec()))
    }
}

fn checksum_of_tail(tail: &[u8]) -> Checksum {
    let mut hasher = Sha256::new_with_prefix(HEADER);
    hasher.update(tail);
    hasher.finalize().into()
}

/// The checksum of a piece.
pub(super) fn checksum(piece: &[u8]) -> Checksum {
    Sha256::digest(piece).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oci::layer::EntryKind;

    fn entries() -> Vec<LayerEntry> {
        let kinds = [
            EntryKind::File {
                position: 3,
                size: 4,
            },
            EntryKind::Folder,
            EntryKind::HardLink("a/b".to_owned()),
            EntryKind::SymbolicLink("../\n\u{202e}".to_owned()),
            EntryKind::Special,
            EntryKind::Whiteout,
            EntryKind::OpaqueWhiteout,
        ];
        let entry = |kind| LayerEntry {
            path: "configs/a".to_owned(),
            kind,
        };
        kinds.map(entry).to_vec()
    }

    fn read(length: u64, tail: &[u8]) -> Option<(Table, Vec<Checksum>)> {
        let size = HEADER.len() as u64 + length + tail.len() as u64;
        let parts = Parts::read(size, tail.last_chunk()?)?;
        assert_eq!(
            parts.tail(),
            (HEADER.len() as u64 + length, tail.len() as u64)
        );
        parts.decode(tail)
    }

    #[test]
    fn what_was_written_is_read_again() {
        let wanted = ["b", "a", "b"].map(str::to_owned);
        let table = || Table::new("sha256:00", &wanted, &entries());
        for pieces in [0, 1, 2] {
            let checksums = vec![[7; 32]; pieces];
            let length = (pieces * PIECE).saturating_sub(1) as u64;
            let tail = tail(&table(), length, &checksums).expect("a small table");
            assert_eq!(read(length, &tail), Some((table(), checksums)));
        }
        assert_eq!(table().wanted, ["a", "b"]);
    }

    #[test]
    fn every_changed_or_missing_byte_is_noticed() {
        let table = Table::new("sha256:00", &[], &entries());
        let whole = tail(&table, 5, &[[7; 32]]).expect("a small table");
        assert!(read(5, &whole).is_some());
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            assert_eq!(read(5, &changed), None, "byte {at}");
            assert_eq!(read(5, &whole[at + 1..]), None, "from byte {at}");
            assert_eq!(read(5, &whole[..at]), None, "to byte {at}");
        }
    }
}
