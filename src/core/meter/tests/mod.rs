//! Property tests of the mechanisms, each beside a naive twin.

mod allowance;
mod expr;
mod owing;
mod total;
