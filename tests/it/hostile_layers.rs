//! Hostile layers: refused with the reason, in bounded time and memory.

use std::{
    io::{self, Cursor, Read, Write},
    time::{Duration, Instant},
};

use flate2::{Compression, write::GzEncoder};
use kubectl_olm::{
    archive::each_member,
    limits::Limits,
    oci::{
        layer::{self, EntryKind, LayerEntry},
        overlay::{Overlay, overlay},
    },
};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tar::{EntryType, Header};

use super::layers::Tar;

/// Reads a layer for the folder `configs`.
fn read(layer: impl Read, limits: &Limits) -> Result<(Vec<LayerEntry>, Vec<u8>), String> {
    let mut sink = vec![];
    let entries = layer::read(layer, &["configs".to_owned()], limits, &mut sink);
    entries
        .map(|entries| (entries, sink))
        .map_err(|error| error.to_string())
}

fn refused(layer: &[u8], expected: &str) {
    match read(Cursor::new(layer), &Limits::DEFAULT) {
        Ok((entries, _)) => panic!("{expected:?} was expected, not {entries:?}"),
        Err(why) => assert!(why.contains(expected), "{expected:?} is not in {why:?}"),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(vec![], Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn good() -> Vec<u8> {
    Tar::default().file("configs/catalog.json", "{}").end()
}

pub(crate) fn header(kind: u8, path: &str, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(EntryType::new(kind));
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    header
}

/// PAX records in front of the next entry.
pub(crate) fn records(tar: &mut Tar, kind: u8, records: &[(&str, &str)]) {
    let mut content = String::new();
    for (key, value) in records {
        let rest = key.len() + value.len() + 3;
        let length = (1..)
            .find(|length| length == &(rest + length.to_string().len()))
            .unwrap_or(0);
        content += &format!("{length} {key}={value}\n");
    }
    tar.raw(
        &header(kind, "pax", content.len() as u64),
        content.as_bytes(),
    );
}

#[test]
fn names_and_kinds_that_no_layer_needs() {
    let one = |kind, path: &str, link: &str| Tar::default().add(kind, path, link, b"").end();
    let file = EntryType::Regular;
    for (layer, expected) in [
        (
            one(file, "configs/../../etc/passwd", ""),
            "a part of its name is `..`",
        ),
        (one(file, "../configs/a", ""), "a part of its name is `..`"),
        (one(file, "./../a", ""), "a part of its name is `..`"),
        (one(file, "configs/a\u{1b}[2J", ""), "control characters"),
        (one(file, "", ""), "takes the place of the image's root"),
        (
            one(EntryType::Symlink, "/.", "/etc"),
            "takes the place of the image's root",
        ),
        (one(file, "configs/.wh...", ""), "hides no name"),
        (one(file, "configs/.wh.", ""), "hides no name"),
        (
            one(EntryType::Link, "configs/a", "../../etc/passwd"),
            "leads to a name with `..`",
        ),
        (one(EntryType::Link, "configs/a", ""), "leads to no path"),
        (one(EntryType::GNUSparse, "other", ""), "it has holes"),
        (
            one(EntryType::new(b'Z'), "other", ""),
            "its kind Z is not known",
        ),
        (
            Tar::default()
                .add(EntryType::Directory, "other/", "", b"x")
                .end(),
            "has a size and is not a file",
        ),
    ] {
        refused(&layer, expected);
    }
    let mut not_unicode = header(b'0', "configs/?", 0);
    not_unicode.as_mut_bytes()[8] = 0xff;
    not_unicode.set_cksum();
    refused(&Tar::default().raw(&not_unicode, b"").end(), "not Unicode");
    // Elsewhere it is nobody's business.
    let mut not_unicode = header(b'0', "Icon\r?", 0);
    not_unicode.as_mut_bytes()[5] = 0xff;
    not_unicode.set_cksum();
    assert!(
        read(
            Cursor::new(Tar::default().raw(&not_unicode, b"").end()),
            &Limits::DEFAULT
        )
        .is_ok()
    );
}

#[test]
fn paths_are_read_however_they_are_written() {
    let layer = Tar::default()
        .file("./configs/a", "1")
        .file("/configs//./b", "22")
        .file("configs\\c", "elsewhere")
        .file("C:/configs/d", "elsewhere")
        .file("configs/.wh.e", "")
        .file("configs/.wh..wh.plnk", "")
        .end();
    let (entries, sink) = read(Cursor::new(layer), &Limits::DEFAULT).expect("a layer");
    let found: Vec<_> = entries
        .iter()
        .map(|entry| (entry.path.as_str(), &entry.kind))
        .collect();
    assert_eq!(
        found,
        [
            (
                "configs/a",
                &EntryKind::File {
                    position: 0,
                    size: 1
                }
            ),
            (
                "configs/b",
                &EntryKind::File {
                    position: 1,
                    size: 2
                }
            ),
            ("configs/e", &EntryKind::Whiteout),
        ]
    );
    assert_eq!(sink, b"122");
}

#[test]
fn what_programs_read_differently_is_refused() {
    let with = |kind, of: &[(&str, &str)]| {
        let mut tar = Tar::default();
        records(&mut tar, kind, of);
        tar.file("configs/a", "0123456789").end()
    };
    for (layer, expected) in [
        (
            with(b'x', &[("size", "1024")]),
            "its size is told twice and differently",
        ),
        (
            with(b'x', &[("size", "0")]),
            "its size is told twice and differently",
        ),
        (with(b'x', &[("path", "a"), ("path", "b")]), "two names"),
        (with(b'x', &[("path", "")]), "malformed"),
        (with(b'x', &[("path", "a\0b")]), "malformed"),
        (with(b'x', &[("size", "+10")]), "malformed"),
        (with(b'x', &[("GNU.sparse.major", "1")]), "holes"),
        (
            with(b'g', &[("path", "configs/b")]),
            "for all of its entries",
        ),
    ] {
        refused(&layer, expected);
    }
    let mut tar = Tar::default();
    tar.raw(&header(b'x', "x", 12), b"12 path=abcd");
    refused(&tar.file("a", "").end(), "malformed");
    // A line break in a record is no end of it.
    let (entries, _) = read(
        Cursor::new(with(b'x', &[("a", "x\n\n"), ("path", "configs/b")])),
        &Limits::DEFAULT,
    )
    .expect("a layer");
    assert_eq!(
        entries.first().map(|entry| entry.path.as_str()),
        Some("configs/b")
    );
    let mut tar = Tar::default();
    records(&mut tar, b'x', &[("path", "configs/b")]);
    tar.raw(&header(b'L', "././@LongLink", 10), b"configs/c\0");
    refused(&tar.file("a", "").end(), "two names");
}

#[test]
fn damage_is_found_wherever_it_is() {
    let good = good();
    let packed = gzip(&good);
    assert!(read(Cursor::new(&packed), &Limits::DEFAULT).is_ok());
    // Members of gzip one after the other are one stream; an image may have an empty layer.
    let (first, second) = good.split_at(700);
    assert!(
        read(
            Cursor::new([gzip(first), gzip(second)].concat()),
            &Limits::DEFAULT
        )
        .is_ok()
    );
    assert!(
        read(Cursor::new(gzip(&[0; 1024])), &Limits::DEFAULT)
            .is_ok_and(|(entries, _)| entries.is_empty())
    );
    for end in [100, 512, 513] {
        let cut = good.get(..end).expect("is longer");
        assert!(read(Cursor::new(cut), &Limits::DEFAULT).is_err(), "{end}");
    }
    // As umoci writes layers: nothing follows the content of the last file.
    let unpadded = good.get(..1023).expect("is longer");
    assert!(read(Cursor::new(unpadded), &Limits::DEFAULT).is_ok());
    for end in [5, 20, packed.len() - 1] {
        assert!(
            read(Cursor::new(&packed[..end]), &Limits::DEFAULT).is_err(),
            "{end}"
        );
    }
    let mut flipped = packed.clone();
    let at = flipped.len() - 6;
    flipped[at] ^= 1;
    assert!(read(Cursor::new(flipped), &Limits::DEFAULT).is_err());
    assert!(
        read(
            Cursor::new([packed.as_slice(), b"garbage"].concat()),
            &Limits::DEFAULT
        )
        .is_err()
    );
    refused(
        &[&good[..1024], &[0; 512], &good[..1024]].concat(),
        "behind a mark of its end",
    );
    refused(b"{\"schema\": \"olm.package\"}", "cut off");
    refused(&[b'x'; 2048], "not a tar archive");
    refused(
        b"BZh91AY&SY and so on",
        "compressed by bzip2; only gzip and zstd",
    );
    refused(
        b"\xfd7zXZ\0 and so on",
        "compressed by xz; only gzip and zstd",
    );
}

#[test]
fn frames_of_zstd_are_one_stream_and_checked() {
    let good = good();
    let (first, second) = good.split_at(700);
    let pack = |bytes: &[u8]| compress_to_vec(bytes, CompressionLevel::Fastest);
    // What is skipped begins like this, then comes its length.
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let packed = [skipped.clone(), pack(first), skipped, pack(second)].concat();
    let read_whole = read(Cursor::new(&packed), &Limits::DEFAULT).expect("a layer");
    assert_eq!(read_whole.1, b"{}");
    let cut = &packed[..packed.len() - 2];
    assert!(read(Cursor::new(cut), &Limits::DEFAULT).is_err());
    assert!(
        read(
            Cursor::new([&packed, &b"garbage"[..]].concat()),
            &Limits::DEFAULT
        )
        .is_err()
    );
    let cut = [&packed, &[0x50, 0x2a, 0x4d, 0x18, 200, 0, 0, 0, 1][..]].concat();
    assert!(read(Cursor::new(cut), &Limits::DEFAULT).is_err());
}

/// A stream of the same piece, as often as it takes.
struct Repeated<'p> {
    piece: &'p [u8],
    given: u64,
    size: u64,
}

impl Read for Repeated<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let at = usize::try_from(self.given % self.piece.len() as u64).expect("small");
        let left = usize::try_from(self.size - self.given).unwrap_or(usize::MAX);
        let length = buffer.len().min(self.piece.len() - at).min(left);
        buffer[..length].copy_from_slice(&self.piece[at..at + length]);
        self.given += length as u64;
        Ok(length)
    }
}

/// An entry that announces more content than anyone would write to disk for a test.
fn announces(header: &Header) -> impl Read + use<> {
    let start = Cursor::new(header.as_bytes().to_vec());
    start.chain(io::repeat(b'x').take(8 << 30))
}

#[test]
fn entries_that_announce_much_take_no_memory() {
    let begun = Instant::now();
    for kind in [b'L', b'K', b'x', b'g'] {
        let bomb = announces(&header(kind, "././@LongLink", 1 << 30));
        let why = read(bomb, &Limits::DEFAULT).expect_err("is too long");
        assert!(
            why.contains("1073741824 bytes of names and attributes"),
            "{why}"
        );
        let bomb = announces(&header(kind, "././@LongLink", 1 << 30));
        let why = each_member(bomb, u64::MAX, |_| Ok(())).expect_err("is too long");
        assert!(
            why.to_string().contains("1073741824 bytes of names"),
            "{why}"
        );
    }
    let bomb = announces(&header(b'0', "configs/a", 2 << 30));
    let why = read(bomb, &Limits::DEFAULT).expect_err("is too much");
    assert!(
        why.contains("over the limit of 1073741824 bytes of files"),
        "{why}"
    );
    let mut sparse = header(b'S', "a", 512);
    sparse.as_gnu_mut().expect("of GNU").set_real_size(6 << 30);
    sparse.set_cksum();
    let why = each_member(announces(&sparse), u64::MAX, |_| Ok(())).expect_err("has holes");
    assert!(why.to_string().contains("it has holes"), "{why}");
    let long = header(b'L', "././@LongLink", 5000);
    let mut tar = Tar::default();
    tar.raw(&long, &[b'a'; 5000]);
    refused(&tar.file("a", "").end(), "longer than 4096 bytes");
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn streams_that_grow_are_stopped() {
    // Ten gigabytes of zeros, in members of gzip.
    let member = gzip(&vec![0; 16 << 20]);
    assert!(member.len() < 120 << 10, "{}", member.len());
    let start = gzip(header(b'0', "other", 10 << 30).as_bytes());
    let size = member.len() as u64 * 640;
    let zeros = Repeated {
        piece: &member,
        given: 0,
        size,
    };
    let why = read(Cursor::new(start).chain(zeros), &Limits::DEFAULT).expect_err("grows");
    assert!(
        why.contains("over the limit of 100 times its compressed size (--no-limits"),
        "{why}"
    );
    let small = Limits {
        layer_bytes: 1 << 20,
        ..Limits::DEFAULT
    };
    let zeros = header(b'0', "other", 1 << 30);
    let why = read(announces(&zeros), &small).expect_err("is too long");
    assert!(why.contains("over the limit of 1048576 bytes"), "{why}");
    // Millions of empty files.
    let entry = header(b'0', "other", 0);
    let entries = || Repeated {
        piece: entry.as_bytes(),
        given: 0,
        size: 10_000_000 * 512,
    };
    let why = read(entries(), &Limits::DEFAULT).expect_err("are too many");
    assert!(
        why.contains("over the limit of 1000000 entries (--no-limits"),
        "{why}"
    );
    let few = Limits {
        layer_names: 1000,
        ..Limits::DEFAULT
    };
    let mut links = Tar::default();
    for _ in 0..10 {
        links.add(EntryType::Symlink, "configs/a", &"b".repeat(99), b"");
    }
    let why = read(Cursor::new(links.end()), &few).expect_err("lead too far");
    assert!(why.contains("1000 bytes of names"), "{why}");
    let entry = header(b'5', "configs/a", 0);
    let entries = Repeated {
        piece: entry.as_bytes(),
        given: 0,
        size: 1 << 20,
    };
    let why = read(entries, &few).expect_err("are too many");
    assert!(
        why.contains("over the limit of 1000 bytes of names"),
        "{why}"
    );
}

/// What is below `configs` when a file there is hidden by a layer of these entries.
fn laid_over(entries: Vec<(String, EntryKind)>) -> Result<Overlay, String> {
    let layer = |entries: Vec<(String, EntryKind)>| {
        let entries = entries.into_iter();
        entries
            .map(|(path, kind)| LayerEntry { path, kind })
            .collect()
    };
    let layers: [Vec<_>; 2] = [layer(vec![file("configs/old")]), layer(entries)];
    let folders = ["configs".to_owned()];
    overlay(&layers, &folders, &folders)
}

fn file(path: &str) -> (String, EntryKind) {
    let (position, size) = (0, 1);
    (path.to_owned(), EntryKind::File { position, size })
}

#[test]
fn layers_that_are_long_to_lay_over_each_other_are_not() {
    let begun = Instant::now();
    let files = (0..20_000).map(|number| file(&format!("configs/{number}")));
    let hides = |kind| ("configs".to_owned(), kind);
    let marks = [EntryKind::OpaqueWhiteout, EntryKind::Whiteout].map(hides);
    let marks = marks.into_iter().cycle().take(20_000);
    let made = laid_over(files.chain(marks).collect()).expect("a folder");
    assert_eq!(made.files.len(), 20_000);
    let round = EntryKind::SymbolicLink("x/../".repeat(800));
    let link = ("configs/link".to_owned(), round);
    let through = (0..200_000).map(|_| file("configs/link/1"));
    let why = laid_over([link].into_iter().chain(through).collect()).expect_err("is too long");
    assert!(why.contains("lead over too many others"), "{why}");
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
}
