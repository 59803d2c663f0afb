//! Bodies of the HTTP API, declared once: nodes write them, clients read the same types.
//!
//! Words from closed sets (a status, a stop reason) are strings here, so that a client can also read those of a newer
//! node; `windrow_core` has the enums, with `parse`. Times are RFC 3339 in UTC. This crate knows nothing of HTTP and
//! makes no decisions.

mod alerts;
mod attributes;
mod body;
mod businesses;
mod datasets;
mod events;
mod limits;
mod logs;
mod message;
mod nodes;
mod page;
mod problem;
mod read;
mod schedules;
mod schema;
mod settings;
mod statistics;
mod task;
mod tokens;

pub use self::alerts::*;
pub use self::attributes::TaskAttributes;
pub use self::body::*;
pub use self::businesses::*;
pub use self::datasets::*;
pub use self::events::*;
pub use self::limits::*;
pub use self::logs::*;
pub use self::message::*;
pub use self::nodes::*;
pub use self::page::*;
pub use self::problem::*;
pub use self::read::*;
pub use self::schedules::*;
pub use self::schema::*;
pub use self::settings::*;
pub use self::statistics::*;
pub use self::task::*;
pub use self::tokens::*;
