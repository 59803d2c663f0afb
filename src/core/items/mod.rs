//! What becomes of items: the window they move in, attempts, verdicts, waits, counts, the budget of errors.

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
