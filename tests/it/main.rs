//! One test binary. `tests/run` builds what the tests need and starts them.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests touch the world, and say so when it is not as they need it"
)]

mod api_faults;
mod api_server_faults;
mod architecture;
mod bundle_properties;
mod cache;
mod cases;
mod catalog;
mod catalog_check;
mod catalog_reading;
mod certificates;
mod cli;
mod cluster;
mod command_lines;
mod compare;
mod connection;
mod corpus;
mod crd_safety;
mod credentials;
mod damaged_archives;
mod desired;
mod diff_text;
mod digests;
mod entangled;
mod faults;
mod health;
mod hostile;
mod hostile_catalogs;
mod hostile_layers;
mod hostile_registry;
mod image;
mod image_access;
mod image_archives;
mod image_builder;
mod image_faults;
mod image_lists;
mod image_template;
mod images;
mod images_found;
mod install;
mod inventory;
mod kill_matrix;
mod kill_runs;
mod layers;
mod limited_users;
mod live;
mod live_commands;
mod live_packages;
mod locks;
mod lying;
mod mirror_pulls;
mod mirror_rules;
mod mirrors;
mod objects;
mod oci;
mod oci_client;
mod oracle;
mod owners;
mod ownership;
mod package;
mod packages;
mod parts;
mod pin;
mod program;
mod pull_secrets;
mod random;
mod real_installs;
mod registry;
mod render_options;
mod request_counts;
mod resolve;
mod rights;
mod scope;
mod served_versions;
mod snapshot;
mod tap;
mod token_server;
mod two_actors;
mod typed;
mod upgrade_path;
mod versions;
mod yaml;
mod yaml_edit;
