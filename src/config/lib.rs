//! Checked options of a node, and their loading. Each layer receives its options by value.
//!
//! `config.toml` at the root of the repository documents every key. [`load()`] merges file and environment over the
//! defaults and returns a [`Config`] or *all* of its faults. Nothing here reads a file that an option names, opens a
//! connection, or uses a global. Each layer imports only its own options type.
//!
//! `sections` declares every key once. `layers` holds the raw values by key with their origin; `read` converts them
//! to these types; `check` compares keys with one another.

#![warn(missing_docs)]

mod built;
mod check;
mod command;
mod fault;
mod grant;
mod keys;
mod layers;
mod load;
mod read;
mod redis_url;
mod reload;
mod sections;
mod shown;
mod table;
mod values;
mod written;

pub use command::Command;
pub use fault::{Fault, Origin};
pub use grant::Grant;
pub use keys::{documented, keys, sections};
pub use load::{load, process_env, process_env_os};
pub use redis_url::{RedisHost, RedisServers, RedisUrl};
pub use reload::Reload;
pub use sections::{
    Auth, Cluster, CommandHandler, Config, DataLog, Datasets, Http, HttpHandler, Log, Node, Retention, Store,
    TaskDefaults, Telemetry,
};
pub use shown::{Shown, shown};
pub use table::Key;
pub use values::{ActorTree, AuthMode, DataLogLevel, LogFormat, StoreUrl};
