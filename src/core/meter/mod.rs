//! Meters: what calls use, counted in units, and limits in these units.
//!
//! A *meter* counts one unit: tokens, euros, calls. An [`expr`] says what a call costs in it, before the call (the
//! estimate) and after it (the actual); [`class`] says which of the two counts, by the call's end; [`estimate`] learns
//! from past calls what an estimate is worth. A [`limit`] is a pace, kept by a bucket that may owe ([`owing`]), or a
//! total, kept with the store ([`total`]); an [`allowance`] is a total of each [`period`]. Each stands alone; money and amounts are whole numbers of 10⁻⁹ units
//! ([`amount`]) and never floats.
//!
//! ```
//! use windrow_core::meter::expr::{self, Kind, Values};
//! use windrow_core::meter::{amount::Amount, limit::Limit};
//!
//! struct Row;
//! impl Values for Row {
//!     fn column(&self, _name: &str) -> Option<std::borrow::Cow<'_, str>> {
//!         Some("Translate this".into())
//!     }
//! }
//!
//! let limit: Limit = "90000 tokens/60s".parse()?;
//! assert_eq!(limit.to_string(), "90k tokens/min");
//! let (unit, estimate) = expr::parse("tokens = {prompt:bytes}/4 + 300", Kind::Estimate)?;
//! assert_eq!((unit.as_str(), estimate.cost(&Row)?), ("tokens", Amount::parse("303.5").unwrap()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod allowance;
pub mod amount;
pub mod class;
pub mod estimate;
pub mod expr;
pub mod fit;
pub mod limit;
pub mod metering;
pub mod meterings;
pub mod owing;
pub mod period;
pub mod priced;
pub mod row;
#[cfg(test)]
mod tests;
pub mod total;
pub mod unit;

/// Code of an item whose cost can't be computed.
pub const COST_VALUE: &str = "COST_VALUE";
/// Code of an item that costs more than a limit ever allows.
pub const COST_TOO_LARGE: &str = "COST_TOO_LARGE";
