//! `windrow serve` as its users meet it: a real process, its façade over HTTP, and a scripted business.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::type_complexity,
    reason = "tests: real time, readable tables"
)]

mod access;
mod alerts;
#[path = "../servers/authority.rs"]
mod authority;
mod business;
mod businesses;
mod callbacks;
mod changes;
mod dashboard;
mod datasets;
mod deadlines;
mod dry_runs;
mod each;
mod explain;
mod first_calls;
mod hooks;
mod hostile;
mod hostile_requests;
mod joined_results;
mod life;
mod limits;
mod line;
mod mtls;
mod numbers;
mod open;
mod outages;
mod own_log;
mod proxy;
mod redrives;
mod replays;
mod requests;
mod results;
mod results_room;
mod schedules;
mod secrets;
mod shards;
mod siege;
mod sse;
mod statistics;
mod stats;
mod stops;
mod storm;
mod streams;
mod support;
mod tasks;
mod tls;
mod traces;
mod unconfirmed;
mod uploads;
mod url_sources;
mod visitors;
mod window;
