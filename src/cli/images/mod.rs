//! `kubectl olm images`: every image that an install needs, and where it is named.

mod lists;

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::{
    digests,
    failure::{Class, Failure},
    inputs::Inputs,
    installs::{self, Purpose, Rendered},
    mirror_args::HEADING,
    output,
    parts::Parts,
    source_args::tell_notices,
    table::Table,
    text::printable,
    wanted_args::WantedArgs,
};
use crate::{
    image::{ImageReference, canonical},
    images::{
        self, ImageUse, Role,
        export::Registry,
        mirror::{MirrorRules, Mirrored},
        pin::{Pins, Unpinned},
    },
    install::{CatalogContent, Wanted},
    manifest::{Manifest, ObjectKey, Origin},
    near,
    problem::Problem,
    source::Sources,
};

/// List every image that an install needs, and where it is named
///
/// Renders what would be installed, with the ClusterServiceVersion and the catalogs, and lists the images that are named
/// in it: those of containers, of variables, of annotations, of relatedImages, and those of the bundles and catalogs
/// themselves. No cluster is contacted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Every image of a bundle, one a line
  kubectl olm images ./bundle

  # Where each is named, or one of them
  kubectl olm images ./bundle --why
  kubectl olm images ./bundle --why quay.io/example/operand

  # What to mirror for an install, by digests, as `oc image mirror -f` takes it
  kubectl olm images -f install/ --digests -o mapping --to registry.corp:5000

  # The rules that a cluster needs for that mirror
  kubectl olm images -f install/ --digests -o idms --to registry.corp:5000")]
pub(super) struct ImagesArgs {
    /// Output: text, json; mapping (`oc image mirror -f`), imageset (oc-mirror), skopeo (`skopeo sync --all --scoped --src
    /// yaml`), or an object with mirror rules: idms, itms, icsp
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        hide_possible_values = true
    )]
    output: Format,
    /// Registry, or a path in one, that images are mirrored to, for mapping, idms, itms and icsp; without it, those of
    /// --mirror
    #[arg(long, value_name = "REGISTRY[/PATH]", value_parser = Registry::parse, help_heading = HEADING)]
    to: Option<Registry>,
    /// Show where each image is named, or of IMAGE alone
    #[arg(long, value_name = "IMAGE", num_args = 0..=1, default_missing_value = "")]
    why: Option<String>,
    #[command(flatten)]
    wanted: WantedArgs,
}

/// How images are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Mapping,
    Idms,
    Itms,
    Icsp,
    Imageset,
    Skopeo,
}

impl Format {
    /// Whether the list says where images are copied to.
    fn has_destination(self) -> bool {
        matches!(self, Self::Mapping | Self::Idms | Self::Itms | Self::Icsp)
    }
}

/// An image, and everything that names it.
#[derive(Debug)]
struct Listed {
    /// As it was written first.
    image: String,
    /// The same by digest, once it is known.
    pinned: Option<String>,
    /// What it is called at its mirror.
    mirrored: Option<String>,
    uses: Vec<ImageUse>,
}

/// Runs the command.
///
/// # Errors
/// When something is refused, or the list cannot be printed.
pub(super) fn run(args: &ImagesArgs) -> Result<(), Failure> {
    check_flags(args)?;
    let parts = Parts::all(None);
    let mut problems = vec![];
    let inputs = Inputs::read(&args.wanted, &mut problems)?;
    let wanted = inputs.wanted(&args.wanted, &parts, &mut problems);
    let wanted = wanted.map_err(|failure| match args.why.as_deref() {
        Some(image) if !image.is_empty() && args.wanted.source.is_none() => failure.with_hint(
            format!("--why took {image} for an image; name what to install before it"),
        ),
        _ => failure,
    })?;
    let sources = inputs.open_sources(&wanted, &args.wanted.install)?;
    let run = inputs.run(&args.wanted, &sources, (Purpose::Look, &parts));
    let rendered = installs::render(&wanted, run)?;
    problems.extend(rendered.outcome.told());
    let listed = match args.why.as_deref() {
        None | Some("") => Ok(list(&rendered, &wanted)),
        Some(image) => only(list(&rendered, &wanted), image),
    };
    let made = listed.and_then(|mut listed| {
        let pins = match rendered.is_pinned {
            true => find_digests(&mut listed, known(&rendered), &sources, &mut problems)?,
            false => Pins::default(),
        };
        let (text, found) = text(args, &mut listed, &inputs.mirrors)?;
        problems.extend(found);
        Ok((pins, text))
    });
    tell_notices(&sources);
    output::tell_problems(&problems, "");
    let written = made.and_then(|(pins, text)| {
        output::print_text(&text)?;
        args.wanted.pins.files.write(&pins)
    });
    rendered.outcome.end_after(written, &wanted.installs)
}

/// Refuses flags that do not go together.
fn check_flags(args: &ImagesArgs) -> Result<(), Failure> {
    let package = &args.wanted.package;
    if package.lock.is_some() && !package.locked {
        let message = "a list of images is no choice, and is not written down in a lock";
        let hint = "add --locked to list what the lock says";
        return Err(Failure::new(Class::Usage, message).with_hint(hint));
    }
    if args.to.is_some() && !args.output.has_destination() {
        let message = "--to is for the lists that say where images are copied to";
        let hint = "add -o mapping, idms, itms or icsp";
        return Err(Failure::new(Class::Usage, message).with_hint(hint));
    }
    Ok(())
}

/// The images of everything that was rendered, each once, in the order of their normal forms.
fn list(rendered: &Rendered, wanted: &Wanted) -> Vec<Listed> {
    let mut uses = of_content(rendered, wanted);
    for install in &rendered.output.installs {
        let manifests = install.objects.iter().map(|owned| owned.manifest.clone());
        let manifests: Vec<Manifest> = manifests.collect();
        uses.extend(images::of_all(&manifests, &|_| false));
    }
    // Where images are pinned, parts of texts are not.
    let keeps_tag = |found: &ImageUse| rendered.is_pinned && found.role.is_part();
    let mut by_image: BTreeMap<(String, bool), Listed> = BTreeMap::new();
    for found in uses {
        let listed = by_image.entry((canonical(&found.text), keeps_tag(&found)));
        let listed = listed.or_insert_with(|| Listed {
            image: found.text.clone(),
            pinned: None,
            mirrored: None,
            uses: vec![],
        });
        listed.uses.push(found);
    }
    by_image.into_values().collect()
}

/// The images that content itself is in, which no object names.
fn of_content(rendered: &Rendered, wanted: &Wanted) -> Vec<ImageUse> {
    let used = |kind: &str, name: &str, pointer: &str, role, image: &str| ImageUse {
        object: Arc::new(ObjectKey {
            group: String::new(),
            kind: kind.to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
        }),
        origin: Origin::Generated("a catalog"),
        pointer: pointer.into(),
        role,
        name: "".into(),
        text: image.to_owned(),
        span: 0..image.len(),
    };
    // As in a catalog, where a bundle is an object of this schema.
    let bundles = rendered.bundles.iter().map(|locked| {
        let (name, image) = (&locked.bundle, &locked.image);
        used("olm.bundle", name, "/image", Role::Bundle, image)
    });
    let catalogs = wanted
        .catalogs
        .iter()
        .filter(|catalog| catalog.manifest.is_none());
    let catalogs = catalogs.filter_map(|catalog| match &catalog.content {
        CatalogContent::Image(image) => Some((catalog, image.as_str())),
        CatalogContent::Source(source) => {
            let image = source.to_str()?.strip_prefix("docker://")?;
            Some((catalog, image))
        }
        CatalogContent::Unresolved(_) | CatalogContent::Unreadable(_) => None,
    });
    let catalogs =
        catalogs.map(|(catalog, image)| used("catalog", &catalog.id, "", Role::Catalog, image));
    bundles.chain(catalogs).collect()
}

/// The one image that is asked for: by its whole reference, or by its name.
fn only(listed: Vec<Listed>, image: &str) -> Result<Vec<Listed>, Failure> {
    let whole = canonical(image);
    let name = |text: &str| {
        ImageReference::parse(text)
            .map(|image| image.normalized().name())
            .ok()
    };
    let asked = name(image);
    let has_version = ImageReference::parse(image)
        .is_ok_and(|image| image.tag.is_some() || image.digest.is_some());
    let (found, others): (Vec<_>, Vec<_>) = listed.into_iter().partition(|listed| {
        canonical(&listed.image) == whole
            || !has_version && asked.is_some() && name(&listed.image) == asked
    });
    if !found.is_empty() {
        return Ok(found);
    }
    let message = format!("the install does not need the image {image}");
    let failure = Failure::new(Class::Refused, message);
    let others: Vec<_> = others.into_iter().map(|listed| listed.image).collect();
    let near = near::names(image, others.iter().map(String::as_str));
    let all = "without a name, --why shows all of them".to_owned();
    Err(failure.with_hint(near::hint(&near).unwrap_or(all)))
}

/// The digests that are known without asking for them: those of bundles are known since they were read.
fn known(rendered: &Rendered) -> Pins {
    let mut pins = rendered.pins.clone();
    for locked in &rendered.bundles {
        let image = ImageReference::parse(&locked.image);
        if let (Ok(image), Some(digest)) = (image, &locked.image_digest) {
            pins.insert(&locked.image, format!("{}@{digest}", image.name()));
        }
    }
    pins
}

/// Finds the digests of images that have none: what is known, else what registries say. Gives what was found.
///
/// # Errors
/// As [`digests::complete`].
fn find_digests(
    listed: &mut [Listed],
    mut pins: Pins,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) -> Result<Pins, Failure> {
    let has_digest =
        |image: &str| ImageReference::parse(image).is_ok_and(|image| image.digest.is_some());
    let wanted = listed
        .iter()
        .filter(|image| !image.keeps_tag() && !has_digest(&image.image));
    let wanted = wanted.map(|image| Unpinned {
        image: image.image.clone(),
        uses: image.uses.clone(),
    });
    let wanted: Vec<_> = wanted.collect();
    digests::complete(&mut pins, &wanted, sources, problems)?;
    let mut found = Pins::default();
    for image in listed.iter_mut().filter(|image| !image.keeps_tag()) {
        if let Some(pinned) = pins.get(&image.image) {
            found.insert(&image.image, pinned.to_owned());
            image.pinned = Some(pinned.to_owned());
        }
    }
    Ok(found)
}

/// What is printed, and what there is to tell about it.
///
/// # Errors
/// As [`lists::list`].
fn text(
    args: &ImagesArgs,
    listed: &mut [Listed],
    rules: &MirrorRules,
) -> Result<(String, Vec<Problem>), Failure> {
    if !matches!(args.output, Format::Text | Format::Json) {
        return lists::list(args.output, listed, args.to.as_ref(), rules);
    }
    for image in listed.iter_mut() {
        image.mirrored = match ImageReference::parse(image.pinned()) {
            Ok(reference) => match rules.mirrored(&reference) {
                Mirrored::At(there) => Some(there.to_string()),
                Mirrored::OtherForm | Mirrored::Nowhere => None,
            },
            Err(_) => None,
        };
    }
    let text = match args.output {
        Format::Json => {
            let images: Vec<_> = listed.iter().map(Listed::json).collect();
            output::json(&json!({"images": images}))
        }
        _ if args.why.is_some() => why(listed),
        _ => shown(listed)
            .values()
            .map(|(name, _)| format!("{}\n", printable(name)))
            .collect(),
    };
    Ok((text, vec![]))
}

/// Each image, with everything that names it below.
fn why(listed: &[Listed]) -> String {
    let mut text = String::new();
    for (name, uses) in shown(listed).values() {
        let mut table = Table::new([""; 3], 3).without_headers();
        for found in uses {
            let role = format!("{} {}", found.role.words(), found.name);
            let cells = [role.trim_end(), &found.object.to_string(), &found.pointer];
            table.push(cells.map(str::to_owned));
        }
        let _ = writeln!(text, "{}", printable(name));
        text += &table.text("  ", None);
    }
    text
}

/// What images are called in the list and what names them, in the order of their normal forms. A tag and the digest that
/// it has are one image there.
fn shown(listed: &[Listed]) -> BTreeMap<String, (&str, Vec<&ImageUse>)> {
    let mut shown: BTreeMap<_, (&str, Vec<_>)> = BTreeMap::new();
    for image in listed {
        let name = image.shown();
        let (_, uses) = shown.entry(canonical(name)).or_insert((name, vec![]));
        uses.extend(&image.uses);
    }
    shown
}

impl Listed {
    /// Whether only parts of texts name it, which are not pinned.
    fn keeps_tag(&self) -> bool {
        self.uses.iter().all(|found| found.role.is_part())
    }

    /// What it is called in the list: as the cluster will pull it.
    fn shown(&self) -> &str {
        self.mirrored.as_deref().unwrap_or_else(|| self.pinned())
    }

    fn pinned(&self) -> &str {
        self.pinned.as_ref().unwrap_or(&self.image)
    }

    fn json(&self) -> Value {
        let uses = self.uses.iter().map(|found| {
            let ObjectKey {
                group,
                kind,
                namespace,
                name,
            } = &*found.object;
            let fields = [
                ("group", group),
                ("kind", kind),
                ("namespace", namespace),
                ("name", name),
            ];
            let fields = fields.into_iter().filter(|(_, text)| !text.is_empty());
            let object: Map<_, _> = fields
                .map(|(field, text)| (field.to_owned(), text.as_str().into()))
                .collect();
            let mut value =
                json!({"role": found.role.word(), "object": object, "pointer": &*found.pointer});
            if !found.name.is_empty() {
                value["name"] = (&*found.name).into();
            }
            value
        });
        let mut value = json!({"image": self.image, "uses": uses.collect::<Vec<_>>()});
        for (field, text) in [("pinned", &self.pinned), ("mirrored", &self.mirrored)] {
            if let Some(text) = text {
                value[field] = text.as_str().into();
            }
        }
        value
    }
}
