//! The command line: parses it, runs one command, tells the user. The only code that talks to a person.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "I/O edge"
)]

mod apply;
mod cache;
mod candidates;
mod catalog;
mod catalog_args;
mod certificate_args;
mod certificate_folder;
mod check;
mod choice_args;
mod cleanup;
mod cluster;
mod compare;
mod completion;
mod connection_args;
mod diff;
mod diff_output;
mod digests;
mod explain;
mod failure;
mod filename_args;
mod folder;
mod images;
mod inputs;
mod install_args;
mod installs;
mod interrupt;
mod locked;
mod mirror_args;
mod newer;
mod output;
mod package;
mod parts;
mod pin;
mod pin_args;
mod progress;
mod rbac;
mod read_args;
mod render;
mod run;
mod scope;
mod secret_args;
mod source_args;
mod status;
mod table;
mod text;
mod threads;
mod version;
mod wanted_args;
mod whole_file;

use clap::{Parser, Subcommand};

pub use self::run::run;

/// Does on your machine what the Operator Lifecycle Manager does inside a cluster
#[derive(Debug, Parser)]
#[command(name = "kubectl-olm", bin_name = "kubectl olm", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Render(Box<render::RenderArgs>),
    Diff(Box<diff::DiffArgs>),
    Apply(Box<apply::ApplyArgs>),
    Cleanup(Box<cleanup::CleanupArgs>),
    Status(Box<status::StatusArgs>),
    Rbac(Box<rbac::RbacArgs>),
    Images(Box<images::ImagesArgs>),
    Pin(pin::PinCommand),
    Catalog(catalog::CatalogCommand),
    Explain(Box<explain::ExplainArgs>),
    Check(check::CheckArgs),
    Cache(cache::CacheCommand),
    Completion(completion::CompletionArgs),
    Version(version::VersionArgs),
}

/// The stack of every thread that handles content: without limits, content may nest 10,000 deep.
const STACK_BYTES: usize = 256 << 20;

/// What `kubectl olm` alone prints.
const OVERVIEW: &str = "\
kubectl olm does on your machine what the Operator Lifecycle Manager does inside a cluster.

  render      print or write every object that installing an operator results in
  diff        show what an install would change in a cluster, or between two versions
  apply       install or upgrade an operator
  status      show what is installed, and how it is
  cleanup     remove what an install owns
  rbac        print the rights that applying an install takes, or those that it grants
  images      list every image that an install needs, and where it is named
  pin         put digests in the place of tags in a bundle
  catalog     list, search, show, draw and check what catalogs have
  explain     tell why a version of a package is chosen
  check       show every problem of a bundle
  cache       show or remove what is kept between runs
  completion  print a completion script
  version     print the version

Examples:
  kubectl olm render ./bundle -n ops
  kubectl olm render ./bundle -n ops -o dir:out
  kubectl olm apply ./bundle -n ops --create-namespace --wait
  kubectl olm check ./bundle
  kubectl olm images ./bundle --why
  kubectl olm catalog search queue --catalog ./catalog
  kubectl olm render queue-operator --catalog ./catalog -n ops

`kubectl olm COMMAND --help` tells more.
";
