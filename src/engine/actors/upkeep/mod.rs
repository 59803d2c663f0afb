//! What is left to be done beside the runs: hook calls, and what time makes due.

pub mod delivery;
pub mod maintenance;
pub mod outbox_dispatcher;
pub mod work;
