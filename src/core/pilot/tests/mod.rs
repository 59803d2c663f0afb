//! Simulated services that judge the autopilot, and fuzzing of its invariants.
//!
//! `PILOT_SEEDS=100` runs more seeds a plant, `PILOT_SEED=7` begins with another one. `cargo nextest run -p windrow-core
//! pilot --no-capture` prints the figures.

#![allow(clippy::disallowed_methods, reason = "the seeds are given by the environment")]

mod accept;
mod fuzz;
mod headers;
mod nodes;
mod own;
mod plant;
mod rng;
mod world;
