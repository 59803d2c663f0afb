//! Numbered invariants of the core. Tests and production use the same check: a test panics on a violation, production
//! counts it and stops that task, never the node.

crate::slugs! {
    /// Rule of the core that must never be broken.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Invariant {
        /// W1: every index below the watermark is settled, parked or excluded, and the watermark itself is not.
        WatermarkIsFirstOpen = "W1",
        /// W2: the counters agree with the bitmap: settled + parked + evicted = watermark − start + bits set.
        CountersMatchWindow = "W2",
        /// W3: the watermark never falls below that of a checkpoint.
        WatermarkNeverFalls = "W3",
        /// W4: nothing at or above the high water is settled, and the high water is inside the window.
        HighWaterInsideWindow = "W4",
        /// F1: nothing is sent beyond the concurrency, and the number in flight never falls below zero.
        InFlightBounded = "F1",
        /// F2: a report names an item that was in flight with that attempt.
        ReportWasInFlight = "F2",
        /// S1: the terms add up to the total.
        TermsAddUp = "S1",
        /// U1: nothing is sent while more than `unsaved_max` completions are unsaved.
        UnsavedBounded = "U1",
    }
}
