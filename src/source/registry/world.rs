//! What all requests share, and the places where an image may be.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    Progress,
    access::Access,
    address::{self, HostPort},
    client::Clients,
    error::RegistryError,
    wanted::{Checked, Repository},
};
use crate::{
    image::ImageReference,
    source::{credentials::Credentials, mirrors::Mirrors},
};

/// What requests share.
#[derive(Debug)]
pub(super) struct World {
    pub(super) clients: Clients,
    pub(super) access: Access,
    pub(super) credentials: Arc<Credentials>,
    pub(super) auth_hosts: Vec<HostPort>,
    pub(super) mirrors: Mirrors,
    pub(super) progress: Arc<dyn Progress>,
    /// By the name of an image, the repository that gave its manifest.
    pub(super) found: Mutex<BTreeMap<String, String>>,
}

impl World {
    /// Where to ask for an image, in order; the place that gave its manifest before comes first.
    ///
    /// # Errors
    /// When that cannot be told, or a place is none.
    pub(super) fn places(
        &self,
        image: &ImageReference,
    ) -> Result<Vec<(Repository, ImageReference)>, RegistryError> {
        let places = self.mirrors.places(image);
        let places = places.map_err(|source| RegistryError::Mirrors {
            image: Box::new(image.clone()),
            source,
        })?;
        let mut all = vec![];
        for place in places {
            let mut repository = self.repository(&place.image)?;
            if place.insecure {
                repository.checked = Checked::No;
            }
            all.push((repository, place.image));
        }
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let first = found.get(&image.name());
        // The order stays as it was among the others.
        all.sort_by_key(|(place, _)| first != Some(&place.full_name()));
        Ok(all)
    }

    /// The repository of a reference, which is checked once more as its parts may come from anywhere.
    fn repository(&self, image: &ImageReference) -> Result<Repository, RegistryError> {
        let bad = |reason: &str| RegistryError::Reference {
            image: Box::new(image.clone()),
            reason: reason.to_owned(),
        };
        let is_whole = ImageReference::parse(&image.to_string()).is_ok_and(|same| same == *image);
        let Some(registry) = image.registry.clone().filter(|_| is_whole) else {
            return Err(bad("it is no whole reference"));
        };
        let url = format!("https://{}", address::endpoint(&registry));
        let Ok(url) = reqwest::Url::parse(&url) else {
            return Err(bad("its registry is no host"));
        };
        Ok(Repository {
            checked: self.clients.checked(&url),
            registry,
            name: image.repository.clone(),
        })
    }

    /// Remembers which place gave the manifest of an image.
    pub(super) fn remember(&self, image: &ImageReference, place: &Repository) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.insert(image.name(), place.full_name());
    }
}
