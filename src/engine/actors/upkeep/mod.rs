//! What is left to be done beside the runs: hook calls, and what time makes due.

pub(crate) mod copying;
pub mod delivery;
pub(crate) mod firing;
pub mod maintenance;
pub mod outbox_dispatcher;
pub mod scheduler;
pub mod sink_follower;
pub mod work;
