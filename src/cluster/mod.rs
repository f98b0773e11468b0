//! The API server: what an install would change, and changing it.
//!
//! What decides takes values and gives values, and knows nothing of connections; what touches the world is
//! marked I/O. A dry run is the same code with the writes left out.
//!
//! | File | What it does | |
//! | --- | --- | --- |
//! | `request.rs` | what is asked of an API server, as a value | pure |
//! | `answer.rs` | what it answers, and what kind of failure that is | pure |
//! | `resource.rs` | the kinds that it serves | pure |
//! | `desired/` | the objects of an install, as they are sent | pure |
//! | `list_keys.rs` | lists whose items have an identity | pure |
//! | `asked.rs` | which fields that are asked for a live object has otherwise, without a dry run | pure |
//! | `checksum.rs` | checksums of what is sent and stored | pure |
//! | `inventory/` | what an install owns, to and from its stored form | pure |
//! | `owner.rs` | whose a live object is | pure |
//! | `metadata.rs` | what the metadata of a live object says | pure |
//! | `managed_fields.rs` | which fields are ours, and who has those that conflict | pure |
//! | `defaulted.rs` | fields that a server filled in and that keep it from taking what is asked for | pure |
//! | `accounts.rs` | entries in the lists of ServiceAccounts | pure |
//! | `plan/` | desired objects, live ones and the inventory become changes | pure |
//! | `diff/` | a change as text, Secrets masked | pure |
//! | `health/` | whether an object is ready, and why not | pure |
//! | `lease.rs` | who may change an install now | pure |
//! | `connection/` | sends requests, again where that helps, and collects warnings | I/O |
//! | `live.rs` | reads what there is, and asks for dry runs | I/O |
//! | `served.rs` | asks for objects in the version that is served by now | I/O |
//! | `stored.rs` | reads inventories | I/O |
//! | `rights.rs` | asks for the rights that no dry run shows | I/O |
//! | `survey/` | asks what a plan has to know, and makes it | I/O |
//! | `lock/` | holds the Lease of an install for the time of a run | I/O |
//! | `apply/` | carries out a plan | I/O |
//! | `wait.rs`, `wait/` | until what was applied is ready, or what was deleted is gone | I/O |

pub mod accounts;
pub mod answer;
pub mod apply;
pub mod asked;
mod checksum;
pub mod connection;
pub mod defaulted;
pub mod desired;
pub mod diff;
pub mod health;
pub mod inventory;
pub mod lease;
mod list_keys;
pub mod live;
pub mod lock;
pub mod managed_fields;
pub mod metadata;
pub mod owner;
pub mod plan;
pub mod request;
pub mod resource;
pub mod rights;
pub mod served;
pub mod stored;
pub mod survey;
pub mod wait;

/// As many requests are waited for at the same time. A connection lets no more through, but for those that renew Leases.
pub const AT_ONCE: usize = 16;
/// What the API server calls us where it keeps whose a field is.
pub const FIELD_MANAGER: &str = "kubectl-olm";
