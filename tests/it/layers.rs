//! Layers over each other: what ours make must be what containerd makes, with which OLM v1 unpacks images. The oracle is
//! the program in `tests/tools/layers-oracle`.

use std::{collections::BTreeMap, io::Cursor};

use base64::{Engine, engine::general_purpose::STANDARD};
use kubectl_olm::{
    limits::Limits,
    oci::{
        layer::{self, LayerEntry},
        overlay::overlay,
    },
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

use super::{oracle::Oracle, random::Random};

/// What is asked of the oracle.
#[derive(Serialize)]
pub(crate) struct Question<'q> {
    ask: &'q str,
    layers: Vec<String>,
    folders: &'q [String],
}

impl<'q> Question<'q> {
    pub(crate) fn new(ask: &'q str, layers: &[Vec<u8>], folders: &'q [String]) -> Self {
        let layers = layers.iter().map(|layer| STANDARD.encode(layer)).collect();
        Self {
            ask,
            layers,
            folders,
        }
    }
}

/// What it answers.
#[derive(Debug, Deserialize)]
pub(crate) struct Answer {
    /// Why the layers are refused.
    pub(crate) refused: String,
    /// Why what they make is.
    spoilt: String,
    pub(crate) entries: Option<Vec<Entry>>,
}

/// An entry, or a file that the layers make.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) kind: String,
    pub(crate) link: String,
    pub(crate) size: u64,
    pub(crate) sha256: String,
}

/// Writes a tar archive entry by entry, names as they are given.
#[derive(Default)]
pub(crate) struct Tar(pub(crate) Vec<u8>);

impl Tar {
    pub(crate) fn add(
        &mut self,
        kind: EntryType,
        path: &str,
        link: &str,
        content: &[u8],
    ) -> &mut Self {
        let mut header = Header::new_ustar();
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.set_link_name_literal(link).expect("a short link");
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(if kind.is_dir() { 0o755 } else { 0o644 });
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_cksum();
        self.raw(&header, content)
    }

    pub(crate) fn raw(&mut self, header: &Header, content: &[u8]) -> &mut Self {
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(crate) fn file(&mut self, path: &str, content: &str) -> &mut Self {
        self.add(EntryType::Regular, path, "", content.as_bytes())
    }

    pub(crate) fn end(&self) -> Vec<u8> {
        let mut bytes = self.0.clone();
        bytes.resize(bytes.len() + 1024, 0);
        bytes
    }
}

/// What stands below folders: the digest of each file, nothing for a folder.
type Content = BTreeMap<String, Option<String>>;

/// What was read of a layer: the entries, and the content of files.
type Read = (Vec<LayerEntry>, Vec<u8>);

/// What our side makes of layers, read as often as it says that something is missing.
fn ours(layers: &[Vec<u8>], folders: &[String]) -> Result<(Content, Vec<String>, usize), String> {
    let mut wanted = folders.to_vec();
    for round in 1..10 {
        let read: Result<Vec<Read>, String> = layers
            .iter()
            .map(|layer| {
                let mut sink = vec![];
                let read = layer::read(Cursor::new(layer), &wanted, &Limits::DEFAULT, &mut sink);
                read.map(|entries| (entries, sink))
                    .map_err(|error| error.to_string())
            })
            .collect();
        let (entries, sinks): (Vec<_>, Vec<_>) = read?.into_iter().unzip();
        let made = overlay(&entries, folders, &wanted)?;
        if made.missing.is_empty() {
            let mut content: Content = made.folders.into_iter().map(|path| (path, None)).collect();
            for (path, place) in made.files {
                let start = usize::try_from(place.position).expect("small");
                let end = start + usize::try_from(place.size).expect("small");
                let digest = Sha256::digest(&sinks[place.layer][start..end]);
                let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                content.insert(path, Some(digest));
            }
            return Ok((content, made.notes, round));
        }
        wanted.extend(made.missing);
    }
    Err(format!("still missing: {wanted:?}"))
}

fn theirs(answer: Answer) -> Content {
    let entries = answer.entries.unwrap_or_default().into_iter();
    entries
        .map(|entry| (entry.path, (entry.kind == "file").then_some(entry.sha256)))
        .collect()
}

/// A path of one to three parts, below `a` more often than not.
fn path(random: &mut Random) -> String {
    let first = ["a", "a", "a", "b", "c"][random.below(5)];
    let rest = (0..random.below(3)).map(|_| ["a", "b", "c", "d"][random.below(4)]);
    [first]
        .into_iter()
        .chain(rest)
        .collect::<Vec<_>>()
        .join("/")
}

fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| folder.is_empty() || rest.is_empty() || rest.starts_with('/'))
}

/// The folders that a path is in, the outermost first.
fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

/// A layer of a few entries; `files` are the paths of the files so far.
fn random_layer(random: &mut Random, files: &mut Vec<String>) -> Vec<u8> {
    let mut tar = Tar::default();
    // Some tools write every folder that something is in.
    let all_folders = random.below(2) == 0;
    let (mut written, mut links): (Vec<String>, Vec<String>) = (vec![], vec![]);
    let holds =
        |written: &[String], folder: &str| written.iter().any(|path| is_below(path, folder));
    for _ in 0..=random.below(7) {
        let path = path(random);
        let kind = random.below(16);
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
        if files.iter().any(|file| is_below(folder, file)) && !all_folders {
            continue;
        }
        for above in folders_of(&path) {
            if all_folders || random.below(8) == 0 {
                tar.add(EntryType::Directory, &format!("{above}/"), "", b"");
                files.retain(|file| file != above);
            }
        }
        let in_folder = |other: &str| path[..path.len() - name.len()].to_owned() + other;
        match kind {
            0..7 => {
                tar.file(&path, &random.below(1000).to_string());
            }
            7 | 8 => {
                tar.add(EntryType::Directory, &format!("{path}/"), "", b"");
            }
            9 | 10 => {
                let up = ["", "/", "../", "../../"][random.below(4)];
                let link = format!("{up}{}", self::path(random));
                tar.add(EntryType::Symlink, &path, &link, b"");
                links.push(path.clone());
            }
            11 if !files.is_empty() => {
                let other = files[random.below(files.len())].clone();
                tar.add(EntryType::Link, &path, &other, b"");
            }
            // A mark that hides something of its own layer is not for containerd what it is for the specification.
            12 | 13
                if !holds(&written, &path) && !links.iter().any(|link| is_below(&path, link)) =>
            {
                tar.file(&in_folder(&format!(".wh.{name}")), "");
            }
            // Nor does containerd keep a folder there that is only written by what is in it.
            14 if all_folders || !holds(&written, folder) => {
                tar.file(&in_folder(".wh..wh..opq"), "");
            }
            15 if random.below(8) == 0 => {
                tar.add(EntryType::Fifo, &path, "", b"");
            }
            _ => continue,
        }
        files.retain(|file| !is_below(file, if kind == 14 { folder } else { &path }));
        if matches!(kind, 0..7 | 11) {
            files.push(path.clone());
        }
        written.push(path);
    }
    tar.end()
}

#[test]
fn layers_make_what_containerd_makes_of_them() {
    let rounds = std::env::var("ROUNDS").map_or(800, |rounds| rounds.parse().expect("a number"));
    let mut oracle = Oracle::start("layers-oracle", &[]);
    let mut random = Random::new(20_261_122);
    let folders = ["a".to_owned()];
    let (mut equal, mut spoilt, mut refused, mut with_links, mut contested) = (0, 0, 0, 0, 0);
    for round in 0..rounds {
        let mut files = vec![];
        let layers: Vec<_> = (0..=random.below(4))
            .map(|_| random_layer(&mut random, &mut files))
            .collect();
        let answer: Answer = oracle.ask(&Question::new("apply", &layers, &folders));
        let ours = ours(&layers, &folders);
        // Links may still make it so that a mark hides something of its own layer.
        if ours
            .as_ref()
            .is_ok_and(|(_, notes, _)| notes.iter().any(|note| note.contains("hides it")))
        {
            contested += 1;
        } else if !answer.refused.is_empty() {
            // It may be refused for something that is not below the folder.
            refused += 1;
        } else if !answer.spoilt.is_empty() {
            let why = answer.spoilt;
            assert!(
                ours.is_err(),
                "{round}: containerd {why}, we {ours:?}\n{}",
                shown(&layers)
            );
            spoilt += 1;
        } else {
            let expected = theirs(answer);
            match ours {
                Ok((content, _, times)) => {
                    assert_eq!(content, expected, "{round}\n{}", shown(&layers));
                    equal += usize::from(!content.is_empty());
                    with_links += usize::from(times > 1);
                }
                Err(why) => panic!(
                    "{round}: {why}, containerd {expected:?}\n{}",
                    shown(&layers)
                ),
            }
        }
    }
    eprintln!(
        "{rounds} stacks: {equal} equal ({with_links} read again for links), {spoilt} refused by both, {refused} by containerd, {contested} contested"
    );
    assert!(equal * 4 > rounds && with_links * 100 > rounds && spoilt > 0);
}

fn shown(layers: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for (number, layer) in layers.iter().enumerate() {
        let mut archive = tar::Archive::new(Cursor::new(layer));
        for entry in archive.entries().expect("a tar") {
            let entry = entry.expect("an entry");
            let link = entry.link_name_bytes().unwrap_or_default().into_owned();
            text += &format!(
                "{number} {:?} {} -> {}\n",
                entry.header().entry_type(),
                String::from_utf8_lossy(&entry.path_bytes()),
                String::from_utf8_lossy(&link)
            );
        }
    }
    text
}
