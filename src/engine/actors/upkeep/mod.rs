//! Work other than the runs: hook calls, and whatever becomes due with time.

pub(crate) mod copying;
pub mod delivery;
pub(crate) mod firing;
pub mod maintenance;
pub mod outbox_dispatcher;
pub mod scheduler;
pub mod sink_follower;
pub mod work;
