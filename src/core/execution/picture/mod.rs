//! What people see of a run: its progress, its window, and what is counted for them.

pub(super) mod meters;
pub(super) mod progress;
pub(super) mod window;
