//! Settings in force: the task's, and the shard's part of them.

use super::part::part_of;
use super::shared::Shared;
use super::types::Limits;
use crate::task::Tuning;

/// Settings of a run.
#[derive(Debug)]
pub(super) struct Settings {
    /// Settings of the task.
    pub(super) whole: Tuning,
    /// This shard's part of them.
    pub(super) tuning: Tuning,
    pub(super) shared: Shared,
    pub(super) limits: Limits,
}

impl Settings {
    /// This shard's part of the task's settings.
    pub(super) fn new(whole: Tuning, shared: Shared) -> Settings {
        let tuning = part_of(&whole, shared.share);
        let limits = Limits::of(&tuning);
        Settings {
            whole,
            tuning,
            shared,
            limits,
        }
    }
}
