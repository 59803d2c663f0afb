//! Item state: the window, attempts, verdicts, waits, counters and the error budget.

pub mod counters;
pub mod error_budget;
pub mod output;
pub mod retry;
pub mod run;
pub mod stretches;
pub mod trace;
pub mod verdict;
pub mod waiting;
pub mod window;
