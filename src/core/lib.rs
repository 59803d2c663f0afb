//! The pure core: no I/O, clock, async, randomness or logging. It decides; the crates above act.
//!
//! Vocabulary: `ids`, `run`, `verdict`, `counters`, `invariants`, `settings` (written as `settings_text`,
//! `settings_serde`, declared in `settings_table`), `task` (checked by `tuning_check`, changed by `tuning_patch`),
//! `business`, `business_secrets`, `access`, `lifecycle`, `abandonment`, `meaning`, `network`, `shards`.
//! Mechanisms, each alone and property-tested against a naive twin: `window`, `pace`, `retry`, `waiting`,
//! `error_budget`, `capacity`, `trust`, `checkpoint`, `stall`. `execution` composes them into a run, `life` what a task goes
//! through over all of its runs.
//! For people who watch: `handler_text`, `handler_sight`, `handler_journal`, `failed_calls`, `latency`, `histogram`, `tally`,
//! `permits`, `series`, `explain`, `deadline`.

#![warn(missing_docs)]

pub mod abandonment;
pub mod access;
pub mod business;
pub mod business_secrets;
pub mod capacity;
pub mod checkpoint;
pub mod counters;
pub mod deadline;
pub mod elsewhere;
pub mod error_budget;
pub mod execution;
pub mod explain;
pub mod failed_calls;
pub mod handler_journal;
pub mod handler_sight;
pub mod handler_text;
pub mod histogram;
pub mod ids;
pub mod invariants;
pub mod latency;
pub mod life;
pub mod lifecycle;
pub mod limit;
pub mod meaning;
pub mod network;
pub mod pace;
pub mod permits;
pub mod retry;
pub mod run;
pub mod series;
pub mod settings;
pub mod settings_serde;
pub mod settings_table;
pub mod settings_text;
pub mod shards;
pub mod stall;
pub mod succession;
pub mod tally;
pub mod task;
pub mod trust;
pub mod tuning_check;
pub mod tuning_patch;
pub mod verdict;
pub mod waiting;
pub mod window;
