//! JSON form of a task and its parts.

pub(crate) mod autopilot;
pub(crate) mod cut_off;
pub(crate) mod handler;
pub(crate) mod history;
pub(crate) mod redriven;
pub(crate) mod shards;
pub(crate) mod shown;
pub(crate) mod stats;
pub(crate) mod window;
