//! `kubectl olm` does on your machine what the Operator Lifecycle Manager does inside a cluster.
//!
//! This library is for the binary and its own tests; it promises nothing to others. Boxes with double lines touch the
//! world, everything else takes values and returns values:
//!
//! ```text
//!   ./bundle  x.tgz  ./catalog  oci:DIR  docker://IMAGE      OLM's own objects (-f), flags
//!       │                                                          │
//!  ╔════▼═════╗  Content   ┌─────────┐  Catalog   ┌─────────┐ ┌────▼────┐
//!  ║          ║───────────▶│ catalog │───────────▶│ resolve │◀│ install │ Install, the one value for all
//!  ║  source  ║            └────┬────┘            └────┬────┘ └────┬────┘
//!  ║          ║◀── image ───────┼──────────────────────┘           │ overrides, namespaces, pull Secrets
//!  ╚════╤═════╝                 │ objects that it embeds           │
//!       │ FileTree              │                                  │
//!       └───────────┬───────────┘                                  │
//!              ┌────▼───┐  Bundle  ┌────────┐  Manifests  ┌────────▼─────┐
//!              │ bundle │─────────▶│ render │────────────▶│ pull_secrets │
//!              └────────┘          └────────┘             └────────┬─────┘
//!                                                         ┌────────▼─────┐  ╔═══════╗
//!                         digests, rules for mirrors ────▶│    images    │─▶║  cli  ║──▶ stdout, files, olm.lock
//!                                                         └──────────────┘  ╚═══╤═══╝
//!  ╔═══════════════════════╗  live objects, inventory   ┌──────────────┐        │ objects that are wanted
//!  ║ cluster: connection,  ║───────────────────────────▶│ plan, diff   │◀───────┘
//!  ║ live, survey, lock    ║                            └──────┬───────┘──▶ stdout (diff)
//!  ║ apply, wait           ║◀───────── Plan ───────────────────┘
//!  ╚═══════════════════════╝ ▲
//!       API server ──────────┘
//! ```
//!
//! Where to look, from the bottom up; a module uses only ones that stand above it:
//! - [`limits`], [`problem`]: how much content may cost, and what is told when something is wrong with it; [`near`]: names
//!   like one that was mistyped; [`concurrent`]: several things at once;
//! - [`files`]: a tree of files in memory; [`image`]: references to images; [`kube_version`]: versions of Kubernetes;
//! - [`archive`]: tar archives as streams; [`oci`]: manifests, configurations and layers of images, and what layers make
//!   together;
//! - [`versions`]: versions and both dialects of ranges, as OLM reads them;
//! - [`manifest`]: one Kubernetes object, and YAML in and out, the same bytes every time;
//! - [`logins`]: what auth files and pull Secrets say, and which images it is for;
//! - [`images`]: the one walk over the images in objects, to list them, to name them by digest and as their mirrors do;
//! - [`bundle`]: files become a bundle, and what is wrong with it; [`render`]: a bundle becomes objects;
//! - [`pull_secrets`]: copies of pull Secrets, and the accounts that use them;
//! - [`catalog`]: file-based catalogs: an index first, packages when they are asked for; lists, searches, graphs, checks;
//! - [`resolve`]: which version is chosen and why, what it needs, the way of an upgrade, and [`resolve::lock`];
//! - [`review`]: what a person should know before saying yes: rights, what definitions break, how two versions differ;
//! - [`cluster`]: what is in a cluster and what an install changes there: the plan, carrying it out, and what is kept of it;
//! - [`install`]: what is wanted, and how: OLM's own objects, read and checked, become installs and catalogs;
//! - [`source`]: what the user named is read, from disk, standard input, image layouts and archives, and registries, with
//!   what these gave kept in a cache; [`cli`]: everything that talks to a person. `cli/installs` is the way through.
//!
//! What stays true:
//! - the same input gives the same bytes: no clock, no randomness, no order of hash maps;
//! - what is rendered equals what OLM's own renderer makes, except where a comment says why not;
//! - an object never appears twice, and all problems are told at once;
//! - what is wrong with one install of several stops only that one, and leaves alone what was written for it;
//! - nothing is changed in a cluster before it is planned for and written down, and nothing that is not the install's;
//! - data of Secrets stands in the Secrets that are asked for, and nowhere else;
//! - content is hostile until proven otherwise: bounded, never unpacked to disk, never able to panic the program.

pub mod archive;
pub mod bundle;
pub mod catalog;
pub mod cli;
pub mod cluster;
pub mod concurrent;
pub mod files;
pub mod image;
pub mod images;
pub mod install;
pub mod kube_version;
pub mod limits;
pub mod logins;
pub mod manifest;
pub mod near;
pub mod oci;
pub mod problem;
pub mod pull_secrets;
pub mod render;
pub mod resolve;
pub mod review;
pub mod source;
pub mod versions;
