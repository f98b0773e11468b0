//! Which of the rendered objects are output: `--parts`, `--scope`, and `--secrets` for what holds passwords and keys.
//!
//! That is copies of pull Secrets, and the Secrets of `--certs self-signed`. Secrets that a bundle ships are public
//! content, so `--secrets` is not about them. No code of OLM is reproduced.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};

use super::{
    failure::{Class, Failure},
    output::{Format, Output},
    scope::{DefinedScopes, Scope},
};
use crate::{
    manifest::{Manifest, ObjectKey},
    problem::Problem,
    pull_secrets,
    render::certificates,
};

/// The rule of notes about Secrets.
const RULE: &str = "secrets";

/// What is output of what was rendered.
#[derive(Debug, Clone, Args)]
pub(super) struct PartsArgs {
    /// What to output, with commas between: catalogs, pull-secrets, service-accounts, bundle (everything else that is
    /// installed), csv; or all
    #[arg(
        long,
        value_name = "PARTS",
        value_delimiter = ',',
        hide_possible_values = true,
        default_value = "pull-secrets,service-accounts,bundle"
    )]
    parts: Vec<PartsWord>,
    /// Output only objects of the whole cluster, such as Namespaces, CustomResourceDefinitions and ClusterRoles, or only
    /// those in namespaces (default: both)
    #[arg(long, value_name = "cluster|namespaced", hide_possible_values = true)]
    scope: Option<Scope>,
    /// Whether Secrets with passwords and private keys are output, copies of pull Secrets and those of --certs
    /// self-signed (default: include on standard output, omit in folders)
    #[arg(long, value_name = "include|omit", hide_possible_values = true)]
    secrets: Option<Secrets>,
}

/// A word of `--parts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PartsWord {
    Catalogs,
    PullSecrets,
    ServiceAccounts,
    Bundle,
    Csv,
    All,
}

/// What an object is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Catalogs, with their images resolved.
    Catalogs,
    /// Copies of pull Secrets.
    PullSecrets,
    /// The accounts that pods run under.
    ServiceAccounts,
    /// Everything else that an install results in.
    Bundle,
    /// The ClusterServiceVersion, as OLM stores it.
    Csv,
}

impl Part {
    const ALL: [Self; 5] = [
        Self::Catalogs,
        Self::PullSecrets,
        Self::ServiceAccounts,
        Self::Bundle,
        Self::Csv,
    ];

    /// The part that an object belongs to.
    pub(super) fn of(manifest: &Manifest) -> Self {
        match (manifest.group(), manifest.kind()) {
            ("operators.coreos.com", "CatalogSource")
            | ("olm.operatorframework.io", "ClusterCatalog") => Self::Catalogs,
            ("operators.coreos.com", "ClusterServiceVersion") => Self::Csv,
            ("", "ServiceAccount") => Self::ServiceAccounts,
            _ if pull_secrets::is_copy(manifest) => Self::PullSecrets,
            _ => Self::Bundle,
        }
    }
}

/// Whether Secrets with passwords and private keys are output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Secrets {
    Include,
    Omit,
}

/// What the user asked for, as [`PartsArgs`] say it.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    parts: BTreeSet<Part>,
    scope: Option<Scope>,
    secrets: Option<Secrets>,
}

impl PartsArgs {
    /// What is asked for.
    ///
    /// # Errors
    /// When `all` does not stand alone.
    pub(super) fn parts(&self) -> Result<Parts, Failure> {
        let is_all = self.parts.contains(&PartsWord::All);
        if is_all && self.parts.iter().any(|word| *word != PartsWord::All) {
            let message = "--parts: all takes no other part beside it";
            let hint = "name the parts, or say --parts all";
            return Err(Failure::new(Class::Usage, message).with_hint(hint));
        }
        let named = self.parts.iter().filter_map(|word| match word {
            PartsWord::Catalogs => Some(Part::Catalogs),
            PartsWord::PullSecrets => Some(Part::PullSecrets),
            PartsWord::ServiceAccounts => Some(Part::ServiceAccounts),
            PartsWord::Bundle => Some(Part::Bundle),
            PartsWord::Csv => Some(Part::Csv),
            PartsWord::All => None,
        });
        let parts = if is_all {
            Part::ALL.into()
        } else {
            named.collect()
        };
        Ok(Parts {
            parts,
            scope: self.scope,
            secrets: self.secrets,
        })
    }
}

impl Parts {
    /// What is applied: what a cluster without OLM can take, with all Secrets.
    pub(super) fn applied(scope: Option<Scope>) -> Self {
        Self {
            parts: [Part::PullSecrets, Part::ServiceAccounts, Part::Bundle].into(),
            scope,
            secrets: Some(Secrets::Include),
        }
    }

    /// All parts, of both scopes.
    pub(super) fn all(secrets: Option<Secrets>) -> Self {
        Self {
            parts: Part::ALL.into(),
            scope: None,
            secrets,
        }
    }

    /// Which scope is output; both where none is named.
    pub(super) fn scope(&self) -> Option<Scope> {
        self.scope
    }

    /// Whether anything of a part is output.
    pub(super) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    /// Leaves what is to be output in this form, in its order, and gives what there is to say about it.
    ///
    /// Standard output gets Secrets with passwords and private keys, since the user asked for objects that can be applied;
    /// folders, which end up in Git, do not. Both are told. Names alone give nothing away, so of them nothing is told.
    pub(super) fn select(&self, output: &mut Output, format: &Format) -> Option<Problem> {
        let default = match format {
            Format::Folder(_) | Format::Kustomize(_) => Secrets::Omit,
            Format::Yaml | Format::Json | Format::Name => Secrets::Include,
        };
        let secrets = self.secrets.unwrap_or(default);
        let scopes = DefinedScopes::of(output.manifests());
        let mut private = vec![];
        for install in &mut output.installs {
            install.objects.retain(|owned| {
                let manifest = &owned.manifest;
                let is_scope = |scope| scopes.scope(manifest) == scope;
                if !self.has(Part::of(manifest)) || !self.scope.is_none_or(is_scope) {
                    return false;
                }
                if !pull_secrets::is_copy(manifest) && !certificates::is_pair(manifest) {
                    return true;
                }
                private.push(manifest.key());
                secrets == Secrets::Include
            });
        }
        note(private, secrets, format)
    }
}

/// Tells which Secrets hold data that is output, or were left out.
fn note(mut private: Vec<ObjectKey>, secrets: Secrets, format: &Format) -> Option<Problem> {
    private.sort();
    let names: Vec<_> = private
        .iter()
        .map(|key| format!("{key} -n {}", key.namespace))
        .collect();
    let names = names.join(", ");
    let message = match (secrets, format) {
        _ if private.is_empty() => return None,
        (_, Format::Name) => return None,
        // Whoever asks for it in a folder knows.
        (Secrets::Include, Format::Folder(_) | Format::Kustomize(_)) => return None,
        (Secrets::Include, _) => format!("the output holds the data of {names}"),
        (Secrets::Omit, Format::Folder(_) | Format::Kustomize(_)) => format!(
            "left out, because files end up in Git: {names}; `--secrets include` writes them"
        ),
        (Secrets::Omit, _) => format!("left out: {names}; `--secrets include` prints them"),
    };
    Some(Problem::note(RULE, message))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::{cli::output::Install, render::Owned};

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        args: PartsArgs,
    }

    fn parse(arguments: &[&str]) -> Result<Program, String> {
        let arguments = ["program"].iter().chain(arguments);
        Program::try_parse_from(arguments).map_err(|error| error.to_string())
    }

    fn parts(arguments: &[&str]) -> Parts {
        parse(arguments).unwrap().args.parts().unwrap()
    }

    fn object(api_version: &str, kind: &str, name: &str) -> Manifest {
        Manifest::generated(
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "ops"}}),
            "a test",
        )
    }

    fn copy(name: &str) -> Manifest {
        Manifest::generated(object("v1", "Secret", name).into_value(), "a pull Secret")
    }

    fn everything() -> Vec<Manifest> {
        vec![
            object("operators.coreos.com/v1alpha1", "CatalogSource", "catalog"),
            object(
                "olm.operatorframework.io/v1",
                "ClusterCatalog",
                "cluster-catalog",
            ),
            copy("pull"),
            object("v1", "Secret", "shipped"),
            object("v1", "ServiceAccount", "account"),
            object("example.com/v1", "ServiceAccount", "other-account"),
            object(
                "operators.coreos.com/v1alpha1",
                "ClusterServiceVersion",
                "csv",
            ),
            object("example.com/v1", "CatalogSource", "other-catalog"),
        ]
    }

    /// The names of what is output, and the note.
    fn selected(arguments: &[&str], format: &Format) -> (String, Option<String>) {
        let owned = |manifest| Owned {
            owners: BTreeSet::new(),
            brought_by: BTreeSet::new(),
            manifest,
        };
        let install = Install {
            objects: everything().into_iter().map(owned).collect(),
            ..Install::default()
        };
        let mut output = Output {
            installs: vec![install],
            ..Output::default()
        };
        let note = parts(arguments).select(&mut output, format);
        let objects = output.installs.iter().flat_map(|install| &install.objects);
        let names: Vec<_> = objects.map(|owned| owned.manifest.name()).collect();
        (names.join(" "), note.map(|note| note.to_string()))
    }

    #[test]
    fn each_object_is_in_one_part_and_the_order_stays() {
        let names = |words: &str| selected(&["--parts", words], &Format::Name).0;
        assert_eq!(names("catalogs"), "catalog cluster-catalog");
        assert_eq!(names("pull-secrets"), "pull");
        assert_eq!(names("service-accounts"), "account");
        assert_eq!(names("bundle"), "shipped other-account other-catalog");
        assert_eq!(names("csv"), "csv");
        assert_eq!(names("csv,catalogs,csv"), "catalog cluster-catalog csv");
        let all: Vec<_> = everything()
            .iter()
            .map(|object| object.name().to_owned())
            .collect();
        assert_eq!(names("all"), all.join(" "));
        let default = "pull shipped account other-account other-catalog";
        assert_eq!(selected(&[], &Format::Name).0, default);
    }

    #[test]
    fn all_stands_alone_and_a_typo_is_told() {
        let program = parse(&["--parts", "bundle,all"]).unwrap();
        let failure = program.args.parts().unwrap_err();
        assert_eq!(failure.class(), Class::Usage);
        let error = parse(&["--parts", "bundel"]).unwrap_err();
        assert!(
            error.contains("a similar value exists: 'bundle'"),
            "{error}"
        );
        assert!(parse(&["--parts", ""]).is_err());
    }

    #[test]
    fn copies_are_printed_with_a_note_and_left_out_of_folders() {
        let folder = Format::Folder("out".into());
        let (with, without) = ("pull", "");
        let printed = "note[secrets]: the output holds the data of secret/pull -n ops";
        let not_printed =
            "note[secrets]: left out: secret/pull -n ops; `--secrets include` prints them";
        let not_written = "note[secrets]: left out, because files end up in Git: secret/pull -n ops; \
                           `--secrets include` writes them";
        for (secrets, format, names, note) in [
            ("", &Format::Yaml, with, Some(printed)),
            ("include", &Format::Json, with, Some(printed)),
            ("omit", &Format::Yaml, without, Some(not_printed)),
            ("", &Format::Name, with, None),
            ("omit", &Format::Name, without, None),
            ("", &folder, without, Some(not_written)),
            (
                "",
                &Format::Kustomize("out".into()),
                without,
                Some(not_written),
            ),
            ("omit", &folder, without, Some(not_written)),
            ("include", &folder, with, None),
        ] {
            let mut arguments = vec!["--parts", "pull-secrets"];
            if !secrets.is_empty() {
                arguments.extend(["--secrets", secrets]);
            }
            let selected = selected(&arguments, format);
            assert_eq!(
                selected,
                (names.to_owned(), note.map(str::to_owned)),
                "{secrets} {format:?}"
            );
        }
        // What is no part of the output holds no data.
        assert_eq!(selected(&["--parts", "bundle"], &Format::Yaml).1, None);
    }
}
