//! Outcomes of tasks that last ran on this node. Each is counted once, from its stored row.

use super::families as f;
use super::text::Page;
use windrow_core::life::Life;
use windrow_core::task::lifecycle::Ending;

/// Counts since the node started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    /// Number of tasks per outcome, in the order of [`Ending::SLUGS`].
    by_slug: [u64; Ending::SLUGS.len()],
    withheld: u64,
}

impl Ends {
    /// Counts a task that no longer runs, if it has ended.
    pub(super) fn note(&mut self, task: &Life) {
        let Some(ending) = task.ending() else { return };
        let counts = Ending::SLUGS.iter().zip(&mut self.by_slug);
        for (_, count) in counts.filter(|(slug, _)| **slug == ending.slug()) {
            *count += 1;
        }
        self.withheld += u64::from(task.has_withheld());
    }

    pub(super) fn write(&self, page: &mut Page) {
        page.by(
            f::TASKS_ENDED,
            "outcome",
            Ending::SLUGS.into_iter().zip(self.by_slug),
        );
        page.one(f::PUBLICATIONS_WITHHELD, self.withheld);
    }
}
