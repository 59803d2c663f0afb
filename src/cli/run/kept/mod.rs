//! State left by earlier runs: the directory of a job, the way to resume it, its failures, and related jobs.

pub(in crate::run) mod apart;
pub(crate) mod beside;
pub(crate) mod only_failed;
pub(crate) mod place;
pub(in crate::run) mod recall;
pub(in crate::run) mod refused;
pub(crate) mod resume;
