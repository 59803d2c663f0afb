//! Items of a job: the source, the list of files of a pattern, and the preview of the first row before anything is
//! dispatched.

mod empty;
pub(crate) mod first_row;
mod fit;
pub(crate) mod introduction;
mod listed;
pub(crate) mod source;
