//! What an earlier run left: where a job is kept, how it goes on, what it failed, and which others are beside it.

pub(in crate::run) mod apart;
pub(crate) mod beside;
pub(crate) mod only_failed;
pub(crate) mod place;
pub(in crate::run) mod recall;
pub(in crate::run) mod refused;
pub(crate) mod resume;
