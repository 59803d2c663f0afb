//! Leases and hints in Redis: one suite of facts over the memory twin and every way to run Redis, and what happens when
//! Redis is lost, empty, slow, full, locked or fails over.
//!
//! Every server is a private one on a free port.

#![allow(unreachable_pub, reason = "a test binary exports nothing")]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "a test measures real time and is given its seed by the environment"
)]

mod faults;
mod fixture;
mod groups;
mod hints;
mod leases;
mod rights;
mod sinks;
mod twin;

#[path = "../servers/mod.rs"]
mod servers;
