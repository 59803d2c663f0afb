//! Real nodes on real servers, every link through a proxy, and a judge who knows only what the business saw, what the
//! database accepted, and what was acknowledged.
//!
//! The short set runs with all tests; `scripts/chaos.sh` plays as many rounds as one likes. A round that fails prints
//! the line that plays it again (as far as real processes can) and keeps its evidence.

#![allow(unreachable_pub, reason = "a test binary exports nothing")]
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]

mod api;
mod audit;
mod business;
mod check;
mod cluster;
mod evidence;
mod long;
mod measure;
mod node;
mod proxies;
#[path = "../servers/proxy.rs"]
mod proxy;
#[path = "../crash/rng.rs"]
mod rng;
mod round;
mod scenarios;
mod script;
#[path = "../servers/mod.rs"]
mod servers;
mod settings;
mod short;
mod store;
