//! The certificates of `--certs self-signed`, kept in the Secrets that pods serve with.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use super::{
    super::{
        certificate_args::Supplier,
        failure::{Class, Failure},
        scope::Scope,
    },
    failures::api_failure,
    rendering::Holding,
};
use crate::{
    cluster::{answer::RefusalKind, connection::Connection, live},
    problem::Problem,
    render::certificates::{Certificate, Pair, Supply, keep_or_make},
};

/// The rule of what there is to say about certificates.
const RULE: &str = "certificates";

/// The Secrets of a cluster: what is in one is used until a month before it expires.
pub(super) struct LiveSecrets<'c> {
    connection: &'c Connection,
    /// The part of the install that is meant. The Secret is in the namespaced part, and the cluster's part trusts it.
    scope: Option<Scope>,
    /// Whether what is made will be in the cluster.
    holding: Holding,
    told: Mutex<Vec<Problem>>,
    made: Mutex<Vec<Problem>>,
}

impl<'c> LiveSecrets<'c> {
    pub(super) fn new(connection: &'c Connection, scope: Option<Scope>, holding: Holding) -> Self {
        Self {
            connection,
            scope,
            holding,
            told: Mutex::default(),
            made: Mutex::default(),
        }
    }

    /// What there is to say at once, and what once the Secrets are written.
    pub(super) fn told(self) -> (Vec<Problem>, Vec<Problem>) {
        let all =
            |told: Mutex<Vec<Problem>>| told.into_inner().unwrap_or_else(PoisonError::into_inner);
        (all(self.told), all(self.made))
    }
}

fn tell(problems: &Mutex<Vec<Problem>>, problem: Problem) {
    let mut problems = problems.lock().unwrap_or_else(PoisonError::into_inner);
    problems.push(problem);
}

impl Supplier for LiveSecrets<'_> {
    fn supply(&self, certificate: &Certificate) -> Result<Supply, Failure> {
        let Certificate {
            namespace,
            name,
            service,
            ..
        } = certificate;
        let key = live::secret_key(namespace, name);
        let live = match live::get(self.connection, &live::secrets(), &key) {
            // Who may write it without reading it has to be told; who may not write it either is told with all the rest.
            Err(error) if error.kind() == Some(RefusalKind::Forbidden) => {
                let message =
                    format!("{error}; so a certificate is made that may not be the one in use");
                tell(&self.told, Problem::warning(RULE, message));
                None
            }
            read => read.map_err(|error| api_failure(&error))?,
        };
        let data = live.as_ref().and_then(|live| live.get("data")?.as_object());
        let found = data.map_or(Ok(None), Pair::of_secret);
        let supply = keep_or_make(found, &certificate.dns_names(), Timestamp::now())
            .map_err(|error| Failure::of(Class::Bug, &error))?;
        let reason = match &supply {
            Supply::Kept(_) => return Ok(supply),
            Supply::New(_) => "there was none".to_owned(),
            Supply::Renewed(_, reason) => reason.to_string(),
        };
        if self.scope == Some(Scope::Cluster) {
            return Err(not_there(certificate, &reason));
        }
        if self.holding == Holding::Lease {
            let mut message = format!(
                "secret/{name} in {namespace} has a new certificate of the Service {service}: {reason}"
            );
            if self.scope == Some(Scope::Namespaced) {
                message += "; its webhooks trust it once --scope cluster is applied after this";
            }
            tell(&self.made, Problem::note(RULE, message));
        }
        Ok(supply)
    }

    fn place(&self) -> Option<String> {
        None
    }
}

/// The cluster's part of an install cannot keep a certificate, and one that it made would not be that of the other part.
fn not_there(certificate: &Certificate, reason: &str) -> Failure {
    let Certificate {
        namespace, name, ..
    } = certificate;
    let message = format!(
        "the certificate that the webhooks are to trust, in secret/{name} in {namespace}: {reason}"
    );
    Failure::new(Class::ClusterRefused, message).with_hint(
        "apply --scope namespaced first, which makes it; or name a folder by --cert-dir in both runs, which keeps it",
    )
}
