//! The flags about pull Secrets: names and docker config files, and what they lead to.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use clap::Args;

use super::failure::{Class, Failure};
use crate::{
    install::SecretRef,
    manifest::{Manifest, Origin, names},
    pull_secrets,
    source::credentials::{self, CredentialError},
};

/// Who names the Secrets of the flag, for messages.
pub(super) const FLAG: &str = "--pull-secret";

/// How a value of `--pull-secret` may look.
const FORMS: &str = "use [NAMESPACE/]NAME for a Secret, or [NAME=]FILE for a docker config file, which begins with `/`, \
                     `./` or `../`, ends in .json, or has NAME= in front";

/// Which pull Secrets there are besides those of catalogs, and who gets them.
#[derive(Debug, Args)]
pub(super) struct SecretArgs {
    /// Pull Secret for the operator's images: one of the input or of the install namespace, or a docker config file that
    /// becomes one, without what credential helpers keep; repeat for several
    #[arg(long, value_name = "[NS/]NAME|[NAME=]FILE")]
    pull_secret: Vec<PullSecretArg>,
    /// ServiceAccount that gets the pull Secrets besides those of the operator's deployments, for what the operator runs;
    /// repeat for several
    #[arg(long, value_name = "NAME", value_parser = account_name)]
    pub(super) also_service_account: Vec<String>,
}

/// A pull Secret that was given by flag.
#[derive(Debug)]
pub(super) enum PullSecretFlag {
    /// It is elsewhere.
    Named(SecretRef),
    /// A file became a Secret, which is in no namespace yet.
    Made(Manifest),
}

/// A value of `--pull-secret`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PullSecretArg {
    Named(SecretRef),
    File { name: String, path: PathBuf },
}

impl FromStr for PullSecretArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A name has no slash in it, and a path in another folder has one.
        if let Some((name, path)) = text.split_once('=')
            && !name.contains(['/', '\\'])
        {
            check_name(name)?;
            if path.is_empty() {
                return Err(FORMS.to_owned());
            }
            return Ok(Self::File {
                name: name.to_owned(),
                path: path.into(),
            });
        }
        let is_file = ["/", "./", "../"]
            .iter()
            .any(|start| text.starts_with(start))
            || text.ends_with(".json");
        if is_file {
            of_file(text)
        } else {
            of_name(text)
        }
    }
}

/// A Secret that is called as its file is.
fn of_file(text: &str) -> Result<PullSecretArg, String> {
    let path = PathBuf::from(text);
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let name = stem.unwrap_or_default().to_owned();
    check_name(&name)
        .map_err(|reason| format!("{reason}; give the Secret a name of its own: NAME={text}"))?;
    Ok(PullSecretArg::File { name, path })
}

fn of_name(text: &str) -> Result<PullSecretArg, String> {
    let (_, name) = text.split_once('/').unwrap_or(("", text));
    if name.is_empty() || name.contains('/') {
        return Err(FORMS.to_owned());
    }
    SecretRef::parse(text, FLAG).map(PullSecretArg::Named)
}

fn check_name(name: &str) -> Result<(), String> {
    match names::subdomain_error(name) {
        Some(reason) => Err(format!("no Secret can be called {name:?}: {reason}")),
        None => Ok(()),
    }
}

fn account_name(text: &str) -> Result<String, String> {
    match names::subdomain_error(text) {
        Some(reason) => Err(format!(
            "no ServiceAccount can be called {text:?}: {reason}"
        )),
        None => Ok(text.to_owned()),
    }
}

impl SecretArgs {
    /// The Secrets of `--pull-secret`, in their order; files are read.
    ///
    /// # Errors
    /// When a file cannot be read, is no docker config, or has no login in it.
    pub(super) fn read(&self) -> Result<Vec<PullSecretFlag>, Failure> {
        let given = self.pull_secret.iter().map(|secret| match secret {
            PullSecretArg::Named(secret) => Ok(PullSecretFlag::Named(secret.clone())),
            PullSecretArg::File { name, path } => read_file(name, path).map(PullSecretFlag::Made),
        });
        given.collect()
    }
}

fn read_file(name: &str, path: &Path) -> Result<Manifest, Failure> {
    let logins = credentials::docker_config(path).map_err(|error| failure(&error))?;
    let origin = Origin::File {
        path: Arc::from(path.to_string_lossy()),
        line: 1,
    };
    Ok(pull_secrets::of_logins(name, &logins, origin))
}

fn failure(error: &CredentialError) -> Failure {
    let failure = Failure::of(Class::Usage, error);
    failure.with_hint(
        "log in to a file of its own with `podman login --authfile FILE REGISTRY`, and name that one",
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        secrets: SecretArgs,
    }

    fn parsed(text: &str) -> Result<PullSecretArg, String> {
        text.parse()
    }

    #[test]
    fn names_and_files_are_told_apart_by_how_they_are_written() {
        let named = |namespace: Option<&str>, name: &str| {
            Ok(PullSecretArg::Named(SecretRef {
                namespace: namespace.map(str::to_owned),
                name: name.to_owned(),
                named_by: FLAG.to_owned(),
            }))
        };
        let file = |name: &str, path: &str| {
            Ok(PullSecretArg::File {
                name: name.to_owned(),
                path: path.into(),
            })
        };
        for (text, expected) in [
            ("team", named(None, "team")),
            ("team.v1", named(None, "team.v1")),
            ("olm/team", named(Some("olm"), "team")),
            ("/home/a/config.json", file("config", "/home/a/config.json")),
            ("./team", file("team", "./team")),
            ("../a=b/team.auth", file("team", "../a=b/team.auth")),
            ("auth.json", file("auth", "auth.json")),
            ("olm/auth.json", file("auth", "olm/auth.json")),
            ("team=auth", file("team", "auth")),
            ("team=/a=b/C.json", file("team", "/a=b/C.json")),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_neither_is_refused_with_the_way_to_write_it() {
        for (text, reason) in [
            ("", FORMS),
            ("a/b/c", FORMS),
            ("olm/", FORMS),
            ("team=", FORMS),
            ("Team", "no Secret can be called \"Team\""),
            ("A=b", "no Secret can be called \"A\""),
            ("=b", "no Secret can be called \"\""),
            ("a.b/team", "no namespace can be called \"a.b\""),
            ("./My.json", "NAME=./My.json"),
            ("/", "NAME=/"),
            (".json", "NAME=.json"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn accounts_are_names() {
        let parse = |name| Program::try_parse_from(["x", "--also-service-account", name]);
        let parsed = parse("operand").expect("a name");
        assert_eq!(parsed.secrets.also_service_account, ["operand"]);
        let error = parse("Operand").expect_err("no name").to_string();
        assert!(
            error.contains("no ServiceAccount can be called \"Operand\""),
            "{error}"
        );
    }

    /// What a file with this text becomes: the docker config of its Secret, or what is told.
    fn read(text: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("team.json");
        fs::write(&path, text).expect("a file");
        let value = path.display().to_string();
        let program = Program::try_parse_from(["x", "--pull-secret", &value]).expect("a path");
        let given = program.secrets.read();
        assert!(!format!("{given:?}").contains("CANARY"), "{given:?}");
        let given = given.map_err(|failure| failure.text("").replace(&value, "FILE"))?;
        let [PullSecretFlag::Made(secret)] = given.as_slice() else {
            panic!("no file: {given:?}");
        };
        let object = secret.object();
        assert_eq!(object["metadata"], json!({"name": "team"}));
        assert_eq!(object["type"], "kubernetes.io/dockerconfigjson");
        let data = object["data"][".dockerconfigjson"].as_str().expect("text");
        let data = crate::manifest::decode_base64(data).expect("base64");
        Ok(String::from_utf8(data).expect("UTF-8"))
    }

    #[test]
    fn a_file_becomes_a_secret_of_its_logins_alone() {
        let config = r#"{
            "auths": {
                "quay.io/org": {"auth": "YW5uOkNBTkFSWQ==", "email": "ann@example.com"},
                "https://index.docker.io/v1/": {"username": "bob", "password": "CANARY"},
                "gcr.io": {"username": "a:b", "password": "CANARY", "identitytoken": "CANARY"},
                "kept.elsewhere.io": {}
            },
            "credsStore": "desktop", "credHelpers": {"ecr.io": "ecr-login"},
            "HttpHeaders": {"X": "CANARY"}, "proxies": {"default": {"httpProxy": "http://a:CANARY@b"}}
        }"#;
        let expected = json!({"auths": {
            "gcr.io": {"identitytoken": "CANARY", "password": "CANARY", "username": "a:b"},
            "https://index.docker.io/v1/": {"auth": "Ym9iOkNBTkFSWQ=="},
            "quay.io/org": {"auth": "YW5uOkNBTkFSWQ=="},
        }});
        assert_eq!(read(config), Ok(expected.to_string()));
        let older = read(r#"{"quay.io": {"auth": "YW5uOkNBTkFSWQ=="}}"#);
        let expected = json!({"auths": {"quay.io": {"auth": "YW5uOkNBTkFSWQ=="}}});
        assert_eq!(older, Ok(expected.to_string()));
    }

    #[test]
    fn a_file_without_logins_is_refused_with_what_to_do() {
        for (text, told) in [
            (
                r#"{"auths": {"quay.io": {}}, "credsStore": "desktop"}"#,
                "there is no login in the auth file FILE; what a credential helper keeps is not taken out of it",
            ),
            (
                r#"{"auths": {"quay.io": {"auth": "CANARY"}}}"#,
                "FILE is not a valid auth file: auth of \"quay.io\" in auths is base64 of something without a colon between user and password",
            ),
            (
                r#"{"kind": "Secret", "stringData": {"a": "CANARY"}}"#,
                "FILE is not a valid auth file: it is a manifest, which is given by -f",
            ),
            (
                "CANARY",
                "FILE is not a valid auth file: line 1, column 1: it is not valid JSON in UTF-8",
            ),
        ] {
            let hint = "hint: log in to a file of its own with `podman login --authfile FILE REGISTRY`, and name that one";
            assert_eq!(
                read(text),
                Err(format!("error: {told}\n{hint}\n")),
                "{text}"
            );
        }
    }
}
