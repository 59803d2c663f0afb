//! The checked options of a node: what every layer is given by value, and how they are loaded.
//!
//! `config.toml` at the root of the repository documents every key. [`load()`] merges file and environment over the
//! defaults and answers with a [`Config`] or with *all* its faults. Nothing here reads a file that an option
//! names, opens a connection or knows a global. Each layer imports only its own options type.
//!
//! `sections` declares every key once. `layers` holds what was written, key by key with its origin; `read` turns it into
//! these types; `check` compares keys with one another.

#![warn(missing_docs)]

mod check;
mod command;
mod fault;
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
