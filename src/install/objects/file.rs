//! One file of manifests: its objects are taken in one by one, and what is wrong with them is told.

use std::{collections::btree_map::Entry, path::Path, sync::Arc};

use serde_json::{Map, Value};

use super::{
    Objects,
    fault::Fault,
    fields::{self, Privacy},
    identity,
    kinds::{self, Kind, Meaning, Version},
    stream::{self, Item, TooMany},
};
use crate::{
    limits::Limits,
    manifest::{
        Manifest, ObjectKey, Origin,
        yaml::{self, Document, DuplicateKey, Lines},
    },
    problem::{Place, Problem},
};

/// The rule that one key stands once.
const DUPLICATE: &str = "duplicate-key";

/// As many problems of a file are told; the others are counted.
const TOLD: usize = 1000;

/// A file that is being read.
pub(super) struct File<'a> {
    objects: &'a mut Objects,
    path: Arc<str>,
    problems: &'a mut Vec<Problem>,
    /// How many problems of this file there are.
    told: usize,
}

impl<'a> File<'a> {
    /// A file of which nothing was read yet.
    pub(super) fn new(
        objects: &'a mut Objects,
        path: &str,
        problems: &'a mut Vec<Problem>,
    ) -> Self {
        Self {
            objects,
            path: path.into(),
            problems,
            told: 0,
        }
    }

    /// Reads all of it.
    pub(super) fn read(mut self, text: &[u8], limits: &Limits) {
        match yaml::read(text, limits) {
            Ok(documents) => self.take_documents(documents, text, limits),
            Err(error) => self.tell(error.in_file(&self.path)),
        }
        self.tell_how_many_more();
    }

    fn take_documents(&mut self, documents: Vec<Document>, text: &[u8], limits: &Limits) {
        let mut lines = Lines::new(text, &documents, limits);
        let mut budget = limits.file_objects;
        for document in documents {
            let duplicates = document.duplicate_keys.clone();
            // What two objects say that stand in one document is not worth telling.
            if self.tell_of_missing_separator(&duplicates) {
                continue;
            }
            let mut private = false;
            let take = |item: Item, lines: &mut Lines<'_>| {
                private |= self.take(item, lines) == Privacy::Private;
            };
            let done = stream::each_item(document, &mut lines, &mut budget, take);
            self.tell_of_duplicates(&duplicates, private);
            if let Err(TooMany) = done {
                let limit = limits.file_objects;
                let message = format!(
                    "the file has more objects than the limit of {limit} (--no-limits lifts it for content you trust)"
                );
                self.tell(Problem::error("limit", message).at(self.place(0)));
                return;
            }
        }
    }

    /// Takes one object in, and says whether its text may be told.
    fn take(&mut self, item: Item, lines: &mut Lines<'_>) -> Privacy {
        let Value::Object(object) = &item.value else {
            let found = fields::type_of(&item.value);
            let message = format!("expected an object with `apiVersion` and `kind`, found {found}");
            self.tell(Problem::error("no-kind", message).at(self.place(item.line)));
            return Privacy::Private;
        };
        let (api_version, kind) = match self.type_of(object) {
            Ok(Some(found)) => found,
            Ok(None) => return Privacy::Private,
            Err(fault) => {
                self.tell_faults(vec![fault], &item, "", lines);
                return Privacy::Private;
            }
        };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        match kinds::meaning(group, version, kind) {
            Meaning::Known(kind, version) => self.take_known(item, kind, version, lines),
            Meaning::Nothing => {
                self.leave_out(group, kind);
                Privacy::Private
            }
            Meaning::Refused(fault) => {
                self.tell_faults(vec![fault], &item, "", lines);
                Privacy::Private
            }
        }
    }

    /// `apiVersion` and `kind`; nothing for a kustomization, which need not have them.
    fn type_of<'o>(
        &mut self,
        object: &'o Map<String, Value>,
    ) -> Result<Option<(&'o str, &'o str)>, Fault> {
        let text = |field: &str| {
            object
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let name = Path::new(&*self.path)
            .file_name()
            .and_then(|name| name.to_str());
        let kustomizes = matches!(
            name,
            Some("kustomization.yaml" | "kustomization.yml" | "Kustomization")
        );
        if kustomizes && !object.contains_key("kind") {
            self.leave_out("kustomize.config.k8s.io", "Kustomization");
            return Ok(None);
        }
        for (field, example) in [
            ("apiVersion", "operators.coreos.com/v1alpha1"),
            ("kind", "Subscription"),
        ] {
            if text(field).is_empty() {
                let message = match object.get(field) {
                    None | Some(Value::Null | Value::String(_)) => {
                        format!("`{field}` is missing, for example {example}")
                    }
                    Some(other) => format!(
                        "{field}: expected a string, found {}",
                        fields::type_of(other)
                    ),
                };
                return Err(Fault::error("no-kind", field, message));
            }
        }
        Ok(Some((text("apiVersion"), text("kind"))))
    }

    fn take_known(
        &mut self,
        item: Item,
        kind: &'static Kind,
        version: &'static Version,
        lines: &mut Lines<'_>,
    ) -> Privacy {
        let privacy = if kind.name == "Secret" {
            Privacy::Private
        } else {
            item.privacy
        };
        let Value::Object(object) = &item.value else {
            return privacy;
        };
        let mut faults = fields::faults(object, kind, version, privacy);
        let origin = Origin::File {
            path: self.path.clone(),
            line: item.line,
        };
        let key = identity::key(object, kind);
        let of_name = identity::faults(object, kind, privacy);
        let shown = identity::shown(&key, of_name.is_empty());
        faults.extend(of_name);
        let refused = faults.iter().any(Fault::is_error);
        self.tell_faults(faults, &item, &shown, lines);
        if !refused {
            self.keep(Manifest::new(item.value, origin), key, kind);
        }
        privacy
    }

    /// Keeps an object, unless it is there already.
    fn keep(&mut self, manifest: Manifest, key: ObjectKey, kind: &Kind) {
        let list = (kind.kept_in)(self.objects);
        let index = list.len();
        let first = match self.objects.known.entry(key.clone()) {
            Entry::Vacant(place) => {
                place.insert(index);
                (kind.kept_in)(self.objects).push(manifest);
                return;
            }
            Entry::Occupied(place) => *place.get(),
        };
        let Some(first) = (kind.kept_in)(self.objects).get(first) else {
            return;
        };
        if first.object() != manifest.object() {
            let message = format!(
                "it stands twice and differs: see {}; keep one of the two",
                first.origin
            );
            self.tell(
                Problem::error("two-objects", message)
                    .at(&manifest.origin)
                    .on(key),
            );
        }
    }

    fn leave_out(&mut self, group: &str, kind: &str) {
        let kind = kinds::shown(kind).to_ascii_lowercase();
        let name = match group {
            "" => kind,
            group => format!("{kind}.{}", kinds::shown(group)),
        };
        *self.objects.left_out.entry(name).or_default() += 1;
    }

    fn tell_faults(
        &mut self,
        faults: Vec<Fault>,
        item: &Item,
        object: &str,
        lines: &mut Lines<'_>,
    ) {
        for fault in faults {
            // Beyond the bound nobody sees the line.
            let line = match self.told < TOLD {
                true => lines.line(item.document, &item.path_of(&fault.path)),
                false => item.line,
            };
            self.tell(fault.into_problem(self.place(line), object));
        }
    }

    fn tell_of_duplicates(&mut self, duplicates: &[DuplicateKey], private: bool) {
        for duplicate in duplicates {
            let what = match private {
                true => "a key".to_owned(),
                false => format!("`{}`", duplicate.key),
            };
            let message = format!("{what} stands twice in one map; leave one of them");
            self.tell(Problem::error(DUPLICATE, message).at(self.place(duplicate.line)));
        }
    }

    /// Tells that two objects stand in one document, as they do when files without a `---` are put behind each other.
    /// Gives whether they do.
    fn tell_of_missing_separator(&mut self, duplicates: &[DuplicateKey]) -> bool {
        let mut heads = duplicates.iter().filter(|duplicate| {
            ["apiVersion", "kind", "metadata"].contains(&duplicate.key.as_str())
        });
        let Some(first) = heads.next() else {
            return false;
        };
        let message = format!(
            "`{}` stands twice in one object; there may be a line `---` missing before the second one",
            first.key
        );
        self.tell(Problem::error(DUPLICATE, message).at(self.place(first.line)));
        true
    }

    fn tell(&mut self, problem: Problem) {
        self.told += 1;
        if self.told <= TOLD {
            self.problems.push(problem);
        }
    }

    fn tell_how_many_more(&mut self) {
        if let Some(more) = self.told.checked_sub(TOLD).filter(|more| *more > 0) {
            let message = format!("{more} more problems of this file are not shown");
            let problem = Problem::error("too-many", message).at(self.place(0));
            self.problems.push(problem);
        }
    }

    fn place(&self, line: usize) -> Place {
        Place {
            path: self.path.to_string(),
            line,
        }
    }
}
