//! Several real nodes on one PostgreSQL server: any of them answers for all, and what can't be asked is said.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::type_complexity,
    dead_code,
    unreachable_pub,
    reason = "tests: real time, readable tables; each uses its own part of what is shared"
)]

mod answers;
#[path = "../api/business.rs"]
mod business;
mod cluster;
mod database_away;
mod database_verbs;
mod datasets;
mod explained;
mod keys;
mod limits;
mod limits_in_units;
mod moves;
mod open;
#[path = "../client/program.rs"]
mod program;
#[path = "../servers/proxy.rs"]
mod proxy;
mod questions;
mod redis_away;
mod restored;
mod results;
mod schedules;
#[path = "../servers/mod.rs"]
mod servers;
mod sharing;
mod sinks;
#[path = "../api/sse.rs"]
mod sse;
mod statistics;
mod steering;
#[path = "../api/support.rs"]
mod support;
