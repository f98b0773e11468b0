//! What became of each bundle that was considered, in one sentence each.

use std::fmt;

/// What became of a bundle that was considered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was chosen.
    Chosen,
    /// It is better, but what it needs cannot be had.
    PassedOver,
    /// Another one stands above it.
    OlderThan(String),
    /// This channel comes first.
    OtherChannel(String),
    /// This catalog comes first.
    OtherCatalog(String),
    /// It is installed, and only stays when nothing can replace it.
    Installed,
    /// Another bundle of the channel skips it.
    SkippedBy(String),
    /// No chain of replacements leads to it.
    Stranded,
    /// It is in none of these channels.
    NotInChannels(Vec<String>),
    /// It is not the bundle to start from.
    NotStartingCsv(String),
    /// Its version is outside this range.
    OutsideRange(String),
    /// It cannot be installed over this bundle.
    NotAnUpgradeOf(String),
    /// It is deprecated, and another one is not.
    Deprecated,
    /// It has the property `olm.deprecated`, with which a bundle is never chosen.
    Prohibited,
    /// Its version is no semantic version.
    NoVersion,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chosen => f.write_str("chosen"),
            Self::PassedOver => f.write_str("passed over, since what it needs cannot be had"),
            Self::OlderThan(chosen) => write!(f, "older than {chosen}"),
            Self::OtherChannel(channel) => write!(f, "channel {channel} comes first"),
            Self::OtherCatalog(catalog) => write!(f, "catalog {catalog} comes first"),
            Self::Installed => f.write_str("installed"),
            Self::SkippedBy(by) => write!(f, "skipped by {by}"),
            Self::Stranded => f.write_str("no chain of replacements leads to it"),
            Self::NotInChannels(channels) => match channels.as_slice() {
                [channel] => write!(f, "not in channel {channel}"),
                channels => write!(f, "not in channels {}", channels.join(", ")),
            },
            Self::NotStartingCsv(name) => write!(f, "not the starting CSV {name}"),
            Self::OutsideRange(range) => write!(f, "outside the range {range}"),
            Self::NotAnUpgradeOf(installed) => {
                write!(f, "not an upgrade of the installed {installed}")
            }
            Self::Deprecated => f.write_str("deprecated, comes last"),
            Self::Prohibited => f.write_str("has the property olm.deprecated, is never chosen"),
            Self::NoVersion => f.write_str("has no semantic version"),
        }
    }
}
