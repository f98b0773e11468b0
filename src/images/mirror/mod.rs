//! Where the images of a registry are mirrored, as administrators say it to OpenShift, to oc-mirror and to `oc image
//! mirror`; and images as they are called there.
//!
//! Reproduces openshift/runtime-utils `pkg/registries` (`EditRegistriesConfig`, `mergedMirrors`, `topoSortRepos`), and
//! go.podman.io/image `pkg/sysregistriesv2` in that one source, the longest, decides alone: when it has no mirrors for
//! references of the form that is asked for, a shorter one is not looked at. Nothing is asked here.
//!
//! | File | What it does |
//! | --- | --- |
//! | `file.rs` | reads a file, of objects or of lines |
//! | `objects.rs` | reads the three kinds of objects |
//! | `lines.rs` | reads lines, and knows of images one by one |
//! | `names.rs` | what may be a source or a mirror |
//! | `merge.rs` | one list of mirrors for each source |
//! | `matching.rs` | which source an image has, and its name at a mirror |

mod file;
mod lines;
pub mod matching;
mod merge;
mod names;
mod objects;

use std::{collections::BTreeMap, sync::OnceLock};

use serde_json::{Map, Value};

pub use self::objects::{Fault, RULE};
use self::{
    lines::Line,
    matching::{longest, matched, moved},
    objects::Entry,
};
use crate::{
    image::ImageReference,
    limits::Limits,
    manifest::Manifest,
    problem::{Place, Problem},
};

/// Rules that say where images are mirrored.
#[derive(Debug, Clone, Default)]
pub struct MirrorRules {
    /// What objects say, and lines of whole repositories, by source.
    sets: BTreeMap<String, Lists>,
    /// What lines say of images one by one.
    images: lines::Images,
    /// The sets, merged when they are first asked for.
    merged: OnceLock<BTreeMap<String, MirroredSource>>,
}

impl PartialEq for MirrorRules {
    fn eq(&self, other: &Self) -> bool {
        self.sets == other.sets && self.images == other.images
    }
}

impl Eq for MirrorRules {}

/// The lists of mirrors of one source, none of them empty, in the order in which they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Lists {
    digest: Vec<Vec<String>>,
    tag: Vec<Vec<String>>,
    never_contact_source: bool,
}

/// Which references rules are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Those with a digest.
    Digest,
    /// All others.
    Tag,
}

impl Form {
    fn of(image: &ImageReference) -> Self {
        match image.digest {
            Some(_) => Self::Digest,
            None => Self::Tag,
        }
    }
}

/// What becomes of a reference by the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mirrored {
    /// It is called so at its mirror.
    At(ImageReference),
    /// Rules speak of it, but only of references with a digest (or only of those with a tag), which this one is not.
    OtherForm,
    /// No rule speaks of it.
    Nowhere,
}

/// One source as a node has it after merging: what images begin with, and where they are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredSource {
    /// What the images begin with: `registry/repository`, `registry`, or `*.domain`.
    pub source: String,
    /// Where references with a digest are asked for, in order.
    pub digest_mirrors: Vec<String>,
    /// Where references with a tag are asked for, in order.
    pub tag_mirrors: Vec<String>,
    /// Whether the source itself must never be asked.
    pub never_contact_source: bool,
}

/// What is wrong with the rules of an ImageDigestMirrorSet, ImageTagMirrorSet or ImageContentSourcePolicy: nothing for
/// any other object.
#[must_use]
pub fn faults(object: &Map<String, Value>) -> Vec<Fault> {
    match objects::kind(object) {
        Ok(Some(kind)) => objects::entries(object, kind).1,
        Ok(None) => vec![],
        Err(fault) => vec![fault],
    }
}

impl MirrorRules {
    /// Adds the rules of an ImageDigestMirrorSet, ImageTagMirrorSet or ImageContentSourcePolicy; any other object has
    /// none.
    ///
    /// # Errors
    /// Everything in it that is no rule. Then nothing is added.
    pub fn add_object(&mut self, object: &Manifest) -> Result<(), Vec<Problem>> {
        let fields = object.object();
        let faults = faults(fields);
        if !faults.is_empty() {
            let place = Place::from(&object.origin);
            let key = object.key();
            let told = |fault| file::problem(fault, &key, place.clone());
            return Err(faults.into_iter().map(told).collect());
        }
        if let Ok(Some(kind)) = objects::kind(fields) {
            for entry in objects::entries(fields, kind).0 {
                self.add(kind.form, entry);
            }
        }
        Ok(())
    }

    /// Adds the rules of a file or of the files in a folder, each with its own path: a stream of the objects above (others
    /// in it are passed over), or lines `src=dst`. Some files of a folder may have none. `path` is that of the file or
    /// folder.
    ///
    /// # Errors
    /// Everything in them that is no rule, with file and line, or that there is no rule in all of them. Then nothing is
    /// added.
    pub fn add_files(
        &mut self,
        path: &str,
        files: &[(impl AsRef<str>, impl AsRef<[u8]>)],
        limits: &Limits,
    ) -> Result<(), Vec<Problem>> {
        let mut content = file::Content::default();
        let mut problems = vec![];
        for (path, text) in files {
            let read = file::read(path.as_ref(), text.as_ref(), limits, &mut content);
            problems.extend(read.err().unwrap_or_default());
        }
        if problems.is_empty() {
            problems.extend(file::without_rule(path, &content));
        }
        if !problems.is_empty() {
            problems.sort();
            return Err(problems);
        }
        for (form, entry) in content.entries {
            self.add(form, entry);
        }
        for line in content.lines {
            self.add_line(line);
        }
        Ok(())
    }

    fn add_line(&mut self, line: Line) {
        match line {
            Line::Image {
                source,
                destination,
            } => self.images.add(&source, destination),
            Line::Prefix { source, mirror } => {
                for form in [Form::Digest, Form::Tag] {
                    let entry = Entry {
                        source: source.clone(),
                        mirrors: vec![mirror.clone()],
                        never_contact_source: false,
                    };
                    self.add(form, entry);
                }
            }
        }
    }

    /// Adds a rule, unless it has no mirror but the source, with which nodes do nothing.
    fn add(&mut self, form: Form, entry: Entry) {
        if entry.mirrors.iter().all(|mirror| *mirror == entry.source) {
            return;
        }
        self.merged = OnceLock::new();
        let lists = self.sets.entry(entry.source).or_default();
        lists.never_contact_source |= entry.never_contact_source;
        match form {
            Form::Digest => lists.digest.push(entry.mirrors),
            Form::Tag => lists.tag.push(entry.mirrors),
        }
    }

    /// Whether there is none at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.images.is_empty()
    }

    /// What a reference becomes: at the first mirror that is not its source. Lines that are about the very image, or by
    /// which everything else of its repository is in one place, come first.
    ///
    /// A reference without a registry is Docker's, one without tag and digest is one with a tag. Tag and digest are kept,
    /// but where a line gives the image another tag, or the image has a digest and its line a tag.
    #[must_use]
    pub fn mirrored(&self, image: &ImageReference) -> Mirrored {
        if let Some(place) = self.places_of_lines(image).into_iter().next() {
            return Mirrored::At(place);
        }
        let image = image.normalized();
        let text = image.to_string();
        let Some((prefix, source)) = longest(self.sources(), &text) else {
            return if self.images.has_only_other_form(&image) {
                Mirrored::OtherForm
            } else {
                Mirrored::Nowhere
            };
        };
        let mirrors = match Form::of(&image) {
            Form::Digest => &source.digest_mirrors,
            Form::Tag => &source.tag_mirrors,
        };
        if mirrors.is_empty() {
            return Mirrored::OtherForm;
        }
        let length = matched(prefix, &text).unwrap_or_default();
        let others = mirrors.iter().filter(|mirror| *mirror != prefix);
        let mut moved = others.filter_map(|mirror| moved(&text, length, mirror));
        moved.next().map_or(Mirrored::Nowhere, Mirrored::At)
    }

    /// Where lines say that an image is: those that name it, or, of a reference with a digest, those that name others of
    /// its repository and all lead to one place.
    #[must_use]
    pub fn places_of_lines(&self, image: &ImageReference) -> Vec<ImageReference> {
        self.images.places(&image.normalized())
    }

    /// Every source of which a rule speaks as a whole, by its name, with its mirrors merged. Images that lines name one
    /// by one are not in it.
    #[must_use]
    pub fn sources(&self) -> &BTreeMap<String, MirroredSource> {
        self.merged.get_or_init(|| {
            let sources = self.sets.iter();
            let sources = sources.map(|(source, lists)| (source.clone(), lists.merged(source)));
            sources.collect()
        })
    }
}

impl Lists {
    fn merged(&self, source: &str) -> MirroredSource {
        MirroredSource {
            source: source.to_owned(),
            digest_mirrors: merge::merged(source, &self.digest),
            tag_mirrors: merge::merged(source, &self.tag),
            never_contact_source: self.never_contact_source,
        }
    }
}
