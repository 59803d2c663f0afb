//! What a job goes over: its source, the list of files of a pattern, and the first row, looked at before anything leaves.

mod empty;
pub(crate) mod first_row;
pub(crate) mod introduction;
mod listed;
pub(crate) mod source;
