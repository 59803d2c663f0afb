//! The pure core: no I/O, clock, async, randomness or logging. It decides; the crates above act.
//!
//! Vocabulary: `ids`, `invariants`, `settings`, `task`, `business`, `shards`, and of `items` the runs, verdicts and counts.
//! Mechanisms, each alone and property-tested against a naive twin: `items` (window, waits, retries, error budget),
//! `pace`, `capacity`, `limit`, `checkpoint`. `execution` composes them into a run, `life` what a task goes through over
//! all of its runs. For people who watch: `stats`, `handler`, `explain`.

#![warn(missing_docs)]

mod slugs;

pub mod business;
pub mod capacity;
pub mod checkpoint;
pub mod execution;
pub mod explain;
pub mod handler;
pub mod ids;
pub mod invariants;
pub mod items;
pub mod life;
pub mod limit;
pub mod pace;
pub mod settings;
pub mod shards;
pub mod stats;
pub mod task;
