//! Windrow drives the N indexed items of a task through a business's handler at exactly the rate it was told.
