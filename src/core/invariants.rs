//! The numbered invariants of the core. One check serves tests and production: a test panics on a violation,
//! production counts it and stops that task, never the node.

crate::slugs! {
    /// A rule of the core that must never be broken.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Invariant {
        /// W1: every index below watermark is settled, parked or excluded, and watermark itself is not.
        WatermarkIsFirstOpen = "W1",
        /// W2: the counters agree with the bitmap: settled + parked + evicted = watermark − start + bits set.
        CountersMatchWindow = "W2",
        /// W3: watermark never falls below that of a checkpoint.
        WatermarkNeverFalls = "W3",
        /// W4: nothing at or above the high water is settled, and the high water is inside the window.
        HighWaterInsideWindow = "W4",
        /// F1: nothing leaves beyond the concurrency, and in flight never goes below zero.
        InFlightBounded = "F1",
        /// F2: a report names an item that was in flight with that attempt.
        ReportWasInFlight = "F2",
        /// S1: the terms add up to the total.
        TermsAddUp = "S1",
        /// U1: nothing leaves while more than `unsaved_max` completions are unsaved.
        UnsavedBounded = "U1",
    }
}
