//! End of a run: outcome, exit code, and the files of failures and results.

mod ending;
pub(in crate::run) mod failures_out;
mod out_file;
pub(in crate::run) mod outcome;
pub(in crate::run) mod results_out;
mod stop_hint;
