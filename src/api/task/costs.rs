//! Use of the units that a task counts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Use of a unit by the calls of a task. Amounts are decimal numbers in strings, exact to nine places: `"1234567"`,
/// `"0.71"`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskCost {
    /// Use that is certain.
    #[schema(example = "1234567")]
    pub actual: String,
    /// Use that calls may have had beyond it: they ended without an answer that says it, or a crash lost it. It counts
    /// against limits.
    pub unsure: String,
    /// Estimates of the calls in flight.
    pub out: String,
    /// Total that the task may use; null without one.
    pub total: Option<String>,
    /// True from 80 % of the total on.
    pub nearly_used: bool,
    /// Allowance of a calendar period; null without one.
    #[serde(default)]
    pub allowance: Option<TaskAllowance>,
}

/// Use of an allowance in the calendar period in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskAllowance {
    /// Limit as people write it.
    #[schema(example = "2k/day Europe/Berlin")]
    pub limit: String,
    /// Amount that a period allows.
    pub amount: String,
    /// Use in the period, certain or not.
    pub used: String,
    /// Time at which the next period begins, in RFC 3339.
    pub next: String,
    /// True if nothing more is sent in this period.
    pub used_up: bool,
}
