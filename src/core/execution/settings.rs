//! Settings in force: those of the task, and the shard's share of them.

use super::limits::Limits;
use super::part::part_of;
use super::shared::Shared;
use crate::task::Tuning;

/// Settings in force for a run.
#[derive(Debug)]
pub(super) struct Settings {
    /// Settings of the task.
    pub(super) whole: Tuning,
    /// Share of them for this shard.
    pub(super) tuning: Tuning,
    pub(super) shared: Shared,
    pub(super) limits: Limits,
}

impl Settings {
    /// Derives this shard's share from the task's settings.
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
