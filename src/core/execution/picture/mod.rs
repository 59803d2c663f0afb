//! View of a run for people: its progress, its window and its counters.

pub(super) mod meters;
pub(super) mod progress;
pub(super) mod window;
