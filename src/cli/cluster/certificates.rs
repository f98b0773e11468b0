//! The certificates of `--certs self-signed`, kept in the Secrets that pods serve with.

use jiff::Timestamp;

use super::{
    super::{
        certificate_args::Supplier,
        failure::{Class, Failure},
    },
    failures::api_failure,
};
use crate::{
    cluster::{connection::Connection, live},
    render::certificates::{Certificate, Pair, Supply, keep_or_make},
};

/// The Secrets of a cluster: what is in one is used until a month before it expires.
pub(super) struct LiveSecrets<'c>(pub(super) &'c Connection);

impl Supplier for LiveSecrets<'_> {
    fn supply(&self, certificate: &Certificate) -> Result<Supply, Failure> {
        let key = live::secret_key(&certificate.namespace, &certificate.name);
        let live =
            live::get(self.0, &live::secrets(), &key).map_err(|error| api_failure(&error))?;
        let data = live.as_ref().and_then(|live| live.get("data")?.as_object());
        let found = data.map_or(Ok(None), Pair::of_secret);
        keep_or_make(found, &certificate.dns_names(), Timestamp::now())
            .map_err(|error| Failure::of(Class::Bug, &error))
    }

    fn place(&self) -> String {
        "in its Secret".to_owned()
    }
}
