//! Windrow drives the N indexed items of a task through a business's handler at exactly the rate it was told.
//!
//! Read the modules in this order: `domain` (decides), `ports` (what the core's driver needs), `actors` (drive),
//! `adapters` (implement ports), `config`, then what people touch: `http`, `client`, `node` and `cli`. `docs/architecture.md`
//! draws the map and states the import rule, which `tests/tidy.rs` enforces.

pub mod domain;
pub mod ports;

pub mod actors;
pub mod adapters;
pub mod config;
pub mod telemetry;
mod tls;

pub mod service;

pub mod client;
pub mod http;

pub mod node;

pub mod cli;
