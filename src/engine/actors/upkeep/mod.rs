//! What is left to be done beside the runs: hook calls, and what time makes due.

pub mod delivery;
pub(crate) mod firing;
pub mod maintenance;
pub mod outbox_dispatcher;
pub mod scheduler;
pub mod work;
