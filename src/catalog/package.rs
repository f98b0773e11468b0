//! What a file-based catalog says of one package, as it says it: nothing is merged, dropped or judged here.
//!
//! The blobs are those of operator-registry's `alpha/declcfg/declcfg.go`; what they mean together is
//! [`check`](super::check)'s and the resolver's business.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::problem::Place;

/// The schema of a blob that defines a package.
pub const PACKAGE_SCHEMA: &str = "olm.package";
/// The schema of a blob that defines a channel.
pub const CHANNEL_SCHEMA: &str = "olm.channel";
/// The schema of a blob that defines a bundle.
pub const BUNDLE_SCHEMA: &str = "olm.bundle";
/// The schema of a blob that says what is deprecated.
pub const DEPRECATIONS_SCHEMA: &str = "olm.deprecations";

/// The property that names a bundle's package and version; also the name of a schema.
pub const PACKAGE_PROPERTY: &str = "olm.package";
/// The property that names a package which a bundle requires, and the versions of it that will do.
pub const PACKAGE_REQUIRED_PROPERTY: &str = "olm.package.required";
/// The property for an API that a bundle provides.
pub const GVK_PROPERTY: &str = "olm.gvk";
/// The property for an API that a bundle requires.
pub const GVK_REQUIRED_PROPERTY: &str = "olm.gvk.required";
/// The property for a label that a bundle requires another one to have.
pub const LABEL_REQUIRED_PROPERTY: &str = "olm.label.required";
/// The property for what a bundle requires in other words.
pub const CONSTRAINT_PROPERTY: &str = "olm.constraint";
/// The property that keeps OLM v0 from ever choosing a bundle.
pub const DEPRECATED_PROPERTY: &str = "olm.deprecated";
/// The property that holds a whole object of the bundle, in base64.
pub const BUNDLE_OBJECT_PROPERTY: &str = "olm.bundle.object";
/// The property that holds what a ClusterServiceVersion says for people.
pub const CSV_METADATA_PROPERTY: &str = "olm.csv.metadata";

/// The properties that people and installs need, and choosing does not.
pub(super) const FOR_PEOPLE: [&str; 2] = [BUNDLE_OBJECT_PROPERTY, CSV_METADATA_PROPERTY];

/// Every blob of one catalog that belongs to one package, in the order in which the catalog has them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Package {
    /// The name by which the blobs refer to it.
    pub name: String,
    /// The blobs that define it: one, in a valid catalog.
    pub definitions: Vec<PackageDefinition>,
    /// Its channels.
    pub channels: Vec<Channel>,
    /// Its bundles.
    pub bundles: Vec<CatalogBundle>,
    /// What of it is deprecated: one blob at most, in a valid catalog.
    pub deprecations: Vec<Deprecations>,
    /// Blobs of schemas that OLM does not know, kept as they are.
    pub others: Vec<OtherBlob>,
}

/// A blob of schema `olm.package`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackageDefinition {
    /// Where it stands.
    pub place: Place,
    /// The channel that is taken when none is asked for; empty when it is not set.
    pub default_channel: String,
    /// What it is, in Markdown; often empty.
    pub description: String,
    /// Its properties.
    pub properties: Vec<Property>,
}

/// A blob of schema `olm.channel`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Channel {
    /// Where it stands.
    pub place: Place,
    /// Its name, unique in the package of a valid catalog.
    pub name: String,
    /// The bundles in it and the upgrades between them.
    pub entries: Vec<ChannelEntry>,
    /// Its properties.
    pub properties: Vec<Property>,
}

/// One bundle in a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelEntry {
    /// The name of the bundle.
    pub name: String,
    /// The bundle that it replaces, which need not be in the channel; empty when there is none.
    pub replaces: String,
    /// Bundles that it can be installed over and that are not to be installed any more.
    pub skips: Vec<String>,
    /// The range of versions, in blang's syntax, that it can be installed over; empty when there is none.
    pub skip_range: String,
}

/// A blob of schema `olm.bundle`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CatalogBundle {
    /// Where it stands.
    pub place: Place,
    /// Its name, which is that of its ClusterServiceVersion.
    pub name: String,
    /// The image that holds its files; empty when the catalog holds the objects themselves.
    pub image: String,
    /// Its properties. Without those of types `olm.bundle.object` and `olm.csv.metadata` when the package was read
    /// with [`Detail::Choice`].
    pub properties: Vec<Property>,
    /// The images that it needs when it runs.
    pub related_images: Vec<RelatedImage>,
}

/// A typed statement about a package, channel or bundle.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Property {
    /// Its type, such as `olm.gvk`.
    pub kind: String,
    /// Its value, of a shape that the type decides.
    pub value: Value,
}

/// An image that a bundle needs when it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelatedImage {
    /// What the bundle calls it.
    pub name: String,
    /// Its reference.
    pub image: String,
}

/// A blob of schema `olm.deprecations`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Deprecations {
    /// Where it stands.
    pub place: Place,
    /// What is deprecated, and why.
    pub entries: Vec<Deprecation>,
}

/// One deprecated thing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deprecation {
    /// What kind of thing: `olm.package`, `olm.channel` or `olm.bundle`.
    pub schema: String,
    /// The name of the channel or bundle; empty for the package.
    pub name: String,
    /// Why, and what to use instead, in the author's words.
    pub message: String,
}

/// A blob of a schema that OLM does not know.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OtherBlob {
    /// Where it stands.
    pub place: Place,
    /// Its schema.
    pub schema: String,
    /// Its name; often empty.
    pub name: String,
    /// All of it.
    pub value: Value,
}

/// How much of a package is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// The package, its channels and what is deprecated: no bundles.
    Outline,
    /// What choosing a version needs: also bundles, but no embedded objects, no texts for people.
    Choice,
    /// Everything.
    Full,
}

/// An API, as catalogs name it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gvk {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version of the API.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl Package {
    /// The channel that is taken when none is asked for; empty when the package sets none.
    #[must_use]
    pub fn default_channel(&self) -> &str {
        let definition = self.definitions.first();
        definition.map_or("", |definition| &definition.default_channel)
    }

    /// The channel of this name; the first, should there be several.
    #[must_use]
    pub fn channel(&self, name: &str) -> Option<&Channel> {
        self.channels.iter().find(|channel| channel.name == name)
    }

    /// The bundle of this name; the first, should there be several.
    #[must_use]
    pub fn bundle(&self, name: &str) -> Option<&CatalogBundle> {
        self.bundles.iter().find(|bundle| bundle.name == name)
    }

    /// Why something is deprecated: `schema` is `olm.package` with an empty name, `olm.channel` or `olm.bundle`.
    /// Only the first blob of deprecations counts, as for OLM v1.
    #[must_use]
    pub fn deprecation(&self, schema: &str, name: &str) -> Option<&str> {
        let entries = &self.deprecations.first()?.entries;
        let entry = entries
            .iter()
            .find(|entry| entry.schema == schema && entry.name == name)?;
        Some(&entry.message)
    }
}

impl CatalogBundle {
    /// The values of the properties of one type, in order.
    pub fn properties_of<'b>(&'b self, kind: &'b str) -> impl Iterator<Item = &'b Value> {
        let of_kind = move |property: &&Property| property.kind == kind;
        let properties = self.properties.iter().filter(of_kind);
        properties.map(|property| &property.value)
    }

    /// The version as the first `olm.package` property has it, which need not be a version.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        let property = self.properties_of(PACKAGE_PROPERTY).next()?;
        field(property.as_object()?, "version")?.as_str()
    }

    /// Type and value of each property that a resolver is given: all but those for people and installs.
    #[must_use]
    pub fn for_resolver(&self) -> Vec<(String, Value)> {
        let properties = self.properties.iter();
        let properties =
            properties.filter(|property| !FOR_PEOPLE.contains(&property.kind.as_str()));
        let pair = |property: &Property| (property.kind.clone(), property.value.clone());
        properties.map(pair).collect()
    }

    /// Whether OLM v0 never chooses it.
    #[must_use]
    pub fn is_prohibited(&self) -> bool {
        self.properties_of(DEPRECATED_PROPERTY).next().is_some()
    }

    /// The APIs that it provides, in order; a property that names none is left out.
    pub fn provided(&self) -> impl Iterator<Item = Gvk> {
        self.properties_of(GVK_PROPERTY).filter_map(Gvk::parse)
    }
}

impl Gvk {
    /// The API that the value of an `olm.gvk` or `olm.gvk.required` property names. Fields that are missing are
    /// empty, as in Go.
    #[must_use]
    pub fn parse(value: &Value) -> Option<Self> {
        let fields = value.as_object()?;
        let text = |key: &str| match field(fields, key) {
            None => Some(String::new()),
            Some(value) => value.as_str().map(str::to_owned),
        };
        Some(Self {
            group: text("group")?,
            version: text("version")?,
            kind: text("kind")?,
        })
    }
}

/// As OLM's messages have it: `Kind (group/version)`.
impl std::fmt::Display for Gvk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}/{})", self.kind, self.group, self.version)
    }
}

/// The value of a key in any case, the exact spelling first; nothing for null.
pub(crate) fn field<'v>(fields: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    let folded = || {
        let mut fields = fields.iter();
        fields.find_map(|(name, value)| name.eq_ignore_ascii_case(key).then_some(value))
    };
    let value = fields.get(key).or_else(folded);
    value.filter(|value| !value.is_null())
}
