//! Which Secret of the input a name means, and which images no Secret is for.

use super::super::failure::{Class, Failure};
use crate::{
    install::SecretRef,
    logins,
    manifest::Manifest,
    problem::Problem,
    pull_secrets::{self, PullSecret},
};

/// The Secret that is meant: of its namespace where that is said; else of the install's, else of the only one that has
/// it. Where the one that is meant is not in the input, the install's own of that name is what its pods will use.
///
/// # Errors
/// When several namespaces have one, or the install's own is another one.
pub(super) fn found(
    secret: &SecretRef,
    secrets: &[Manifest],
    namespace: &str,
) -> Result<PullSecret, Failure> {
    let SecretRef { name, named_by, .. } = secret;
    let named: Vec<_> = secrets
        .iter()
        .filter(|other| other.name() == *name)
        .collect();
    let of = |namespace: &str| {
        let is_there = |other: &&&Manifest| other.namespace() == namespace;
        named.iter().find(is_there).copied()
    };
    let own = of(namespace);
    let meant = match &secret.namespace {
        // One without a namespace is wherever it is applied.
        Some(wanted) => of(wanted).or_else(|| of("")).or(own),
        None => match (own, named.as_slice()) {
            (Some(own), _) => Some(own),
            (None, []) => None,
            (None, [only]) => Some(*only),
            (None, several) => {
                let namespaces: Vec<_> = several.iter().map(|other| other.namespace()).collect();
                let message = format!(
                    "{named_by} names the Secret {name}, which is in several namespaces: {}",
                    namespaces.join(", ")
                );
                let hint = format!("say which one is meant: NAMESPACE/{name}");
                return Err(Failure::new(Class::Usage, message).with_hint(hint));
            }
        },
    };
    if let (Some(meant), Some(own)) = (meant, own)
        && meant.object().get("data") != own.object().get("data")
    {
        let message = format!(
            "{named_by} names the Secret {name}, and {namespace} has another one of that name"
        );
        let hint = "give one of the two another name; a copy would take the other's place";
        return Err(Failure::new(Class::Refused, message).with_hint(hint));
    }
    Ok(PullSecret {
        name: name.clone(),
        source: meant.cloned(),
        named_by: named_by.clone(),
    })
}

/// Warnings of images that no pull Secret is for. Without any Secret nobody expects one, and of one that is not in the
/// input it is not known what it is for.
pub(super) fn uncovered(manifests: &[Manifest], secrets: &[PullSecret]) -> Vec<Problem> {
    let logins = secrets.iter().map(|secret| {
        let source = secret.source.as_ref()?;
        logins::PullSecret::from_manifest(source.object().clone()).ok()
    });
    match logins.collect::<Option<Vec<_>>>() {
        Some(logins) if !logins.is_empty() => pull_secrets::uncovered(manifests, &|image| {
            logins.iter().any(|logins| logins.covers(image))
        }),
        _ => vec![],
    }
}
