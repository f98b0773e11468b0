//! Archives with a few damages: the entries that Go's `archive/tar` finds, or a refusal. The oracle is the program in
//! `tests/tools/layers-oracle`.

use std::io::{self, Cursor, Read};

use kubectl_olm::archive::{Kind, Members};
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

use super::{
    hostile_layers::{header, records},
    layers::{Answer, Question, Tar},
    oracle::Oracle,
    random::Random,
};

/// An entry: path, kind, link, size and digest; names in hexadecimal digits.
type Listed = (String, char, String, u64, String);

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The entries that our reader finds, as the oracle lists Go's.
fn entries(layer: &[u8]) -> io::Result<Vec<Listed>> {
    let mut members = Members::new(Cursor::new(layer), 1000);
    let mut found = vec![];
    while let Some(entry) = members.next_entry()? {
        let (kind, link) = match entry.kind {
            Kind::File => ('0', vec![]),
            Kind::Folder => ('5', vec![]),
            Kind::HardLink(link) => ('1', link),
            Kind::SymbolicLink(link) => ('2', link),
            Kind::Special => ('s', vec![]),
        };
        let mut content = vec![];
        members.read_to_end(&mut content)?;
        let digest = hex(&Sha256::digest(&content));
        let size = content.len() as u64;
        found.push((hex(&entry.path), kind, hex(&link), size, digest));
    }
    Ok(found)
}

/// Archives of all kinds, to be damaged.
fn archives() -> Vec<Vec<u8>> {
    let mut long = Tar::default();
    long.raw(
        &header(b'L', "././@LongLink", 120),
        &[[b'n'; 119].as_slice(), b"\0"].concat(),
    );
    long.file("short", "content");
    long.raw(&header(b'K', "././@LongLink", 12), b"long/target\0");
    long.add(EntryType::Symlink, "link", "short", b"");
    let mut pax = Tar::default();
    records(&mut pax, b'g', &[("comment", "0123")]);
    records(
        &mut pax,
        b'x',
        &[("path", "dir/a name"), ("mtime", "1.5"), ("size", "7")],
    );
    pax.file("other", "content");
    records(&mut pax, b'x', &[("linkpath", "dir/b")]);
    pax.add(EntryType::Link, "hard", "x", b"");
    let mut plain = Tar::default();
    plain.add(EntryType::Directory, "dir/", "", b"");
    plain
        .file("dir/a", &"x".repeat(600))
        .file("dir/b", "")
        .add(EntryType::Fifo, "pipe", "", b"");
    for (path, content) in [("old/", ""), ("old/file", "y")] {
        let mut old = header(b'0', path, content.len() as u64);
        old.as_mut_bytes()[156] = 0;
        old.set_cksum();
        plain.raw(&old, content.as_bytes());
    }
    [long, pax, plain].map(|tar| tar.end()).into()
}

#[test]
fn a_damaged_archive_is_what_it_is_to_go_or_refused() {
    let rounds = std::env::var("ROUNDS").map_or(4000, |rounds| rounds.parse().expect("a number"));
    let mut oracle = Oracle::start("layers-oracle", &[]);
    let mut random = Random::new(20_261_123);
    let archives = archives();
    let (mut both, mut only_go, mut neither) = (0, 0, 0);
    for round in 0..rounds {
        let mut layer = archives[round % archives.len()].clone();
        for _ in 0..usize::from(round >= archives.len()) * (1 + random.below(3)) {
            damage(&mut random, &mut layer);
        }
        let answer: Answer = oracle.ask(&Question::new("list", std::slice::from_ref(&layer), &[]));
        let Ok(ours) = entries(&layer) else {
            if answer.refused.is_empty() {
                only_go += 1
            } else {
                neither += 1
            }
            assert!(round >= archives.len(), "what is whole is read");
            continue;
        };
        assert_eq!(answer.refused, "", "{round}: we find {ours:?}");
        let theirs = answer
            .entries
            .unwrap_or_default()
            .into_iter()
            .filter(|entry| entry.kind != "g");
        let theirs: Vec<Listed> = theirs
            .map(|entry| {
                let kind = entry.kind.chars().next().unwrap_or_default();
                let is_link = matches!(kind, '1' | '2');
                let link = if is_link { entry.link } else { String::new() };
                let kind = if matches!(kind, '3' | '4' | '6') {
                    's'
                } else {
                    kind
                };
                (entry.path, kind, link, entry.size, entry.sha256)
            })
            .collect();
        assert_eq!(ours, theirs, "{round}");
        both += 1;
    }
    eprintln!(
        "{rounds} archives: {both} the same, {only_go} refused by us alone, {neither} by both"
    );
    assert!(both * 10 > rounds);
}

/// Changes a byte or a field of a header, and its checksum with it; or leaves blocks out.
fn damage(random: &mut Random, layer: &mut Vec<u8>) {
    const VALUES: &[u8] = b"\0\0 0177/LKxgS52.=\n\x80\xff";
    let block = random.below(layer.len() / 512) * 512;
    match random.below(8) {
        0 => {
            layer.drain(block..block + 512);
        }
        1 => {
            let copy = layer[block..block + 512].to_vec();
            let at = random.below(layer.len() / 512 + 1) * 512;
            layer.splice(at..at, copy);
        }
        2 => layer.truncate(block + random.below(512)),
        _ => {
            let fields = [
                0..100,
                100..108,
                124..136,
                136..148,
                156..157,
                157..257,
                257..265,
                345..370,
                500..512,
                0..40,
            ];
            let field = fields[random.below(fields.len())].clone();
            let at = block + field.start + random.below(field.len());
            layer[at] = VALUES[random.below(VALUES.len())];
        }
    }
    if layer.len() < 1024 {
        layer.resize(1024, 0);
    }
    // A block that was a header is one again.
    if let Some(bytes) = layer.get_mut(block..block + 512)
        && bytes[148..156].iter().any(u8::is_ascii_digit)
    {
        let mut header = Header::new_old();
        header.as_mut_bytes().copy_from_slice(bytes);
        header.set_cksum();
        bytes.copy_from_slice(header.as_bytes());
    }
}
