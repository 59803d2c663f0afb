//! The mechanisms of the core beside naive twins that are too simple to be wrong, under random operations.

mod error_budget;
mod latency;
mod limit;
mod pace;
mod permits;
mod skips;
mod supply;
mod waiting;
mod window;
mod window_picture;
