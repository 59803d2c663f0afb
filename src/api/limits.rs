//! Named limits, shared by businesses and tasks.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use utoipa::ToSchema;
use windrow_core::meter::metering::Metering;
use windrow_core::settings::Rate;

/// A named limit on rate and concurrency.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Limit {
    /// Name, as used in URLs.
    pub name: String,
    /// Maximum attempts per period; null means unlimited.
    pub rate: Option<String>,
    /// Maximum items in flight; null means unlimited.
    pub concurrency: Option<u32>,
    /// Limits in units, and what calls cost in them; missing if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = crate::attributes::shared_metering)]
    pub metering: Option<Metering>,
    /// Revision number, also the ETag; grows with each change.
    pub revision: u64,
    /// Time when it was created.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = DateTime)]
    pub updated_at: String,
}

/// A limit with its users.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LimitInUse {
    #[serde(flatten)]
    pub limit: Limit,
    /// Businesses that use it for all their tasks.
    pub businesses: Vec<String>,
    /// First 20 unfinished tasks that name it themselves.
    pub tasks: Vec<LimitedTask>,
    /// Number of such tasks in total.
    pub tasks_total: u64,
    /// Current share of each node.
    pub parts: Vec<LimitPart>,
    /// Use of each total.
    #[serde(default)]
    pub uses: Vec<LimitUse>,
}

/// Use of a total by all users of a limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LimitUse {
    /// Total, or allowance with its use in the present period, such as `500 eur` or `2k/day`.
    pub limit: String,
    /// Certain use, a decimal number.
    pub spent: String,
    /// Use that calls may have had, a decimal number.
    pub unsure: String,
    /// Amount that nodes hold to be used next, a decimal number.
    pub held: String,
    /// True if at least 80 % of it is used.
    #[serde(default)]
    pub nearly_used: bool,
    /// Beginning of the next period of an allowance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub next: Option<String>,
}

/// A task that names the limit itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LimitedTask {
    /// Id of the task.
    pub id: String,
    /// Business of the task.
    pub business: String,
    /// Status of the task.
    pub status: String,
}

/// Current share of one node in a limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LimitPart {
    /// Name of the node.
    pub node: String,
    /// Runs on the node that currently have demand.
    pub runs: u64,
    /// Share of the rate, in items per second; null if the limit has no rate.
    pub rate: Option<f64>,
    /// Share of the items in flight; null if the limit has no concurrency.
    pub concurrency: Option<u64>,
}

/// A limit to create, with a rate, a concurrency, limits in units, or several of them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateLimit {
    /// Name used in URLs; never changes.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub name: String,
    /// Maximum attempts per period, such as `300/s`, across all users and all nodes.
    #[schema(value_type = Option<String>, pattern = "^ *[0-9][0-9_]*k? */ *[0-9]*(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))* *$", max_length = 80)]
    pub rate: Option<Rate>,
    /// Maximum items in flight, across all users and all nodes.
    #[schema(value_type = Option<u32>, minimum = 1)]
    pub concurrency: Option<NonZeroU32>,
    /// Limits in units that all users share, and what calls cost in them.
    #[serde(default)]
    #[schema(schema_with = crate::attributes::shared_metering)]
    pub metering: Option<Metering>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Change of a limit: members that are present are set, null removes one, the rest stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditLimit {
    /// Maximum attempts per period; null removes the bound.
    #[serde(default, deserialize_with = "crate::read::some")]
    #[schema(value_type = Option<String>, pattern = "^ *[0-9][0-9_]*k? */ *[0-9]*(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))* *$", max_length = 80)]
    pub rate: Option<Option<Rate>>,
    /// Maximum items in flight; null removes the bound.
    #[serde(default, deserialize_with = "crate::read::some")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    pub concurrency: Option<Option<NonZeroU32>>,
    /// Limits in units and costs, set as a whole; null removes them.
    #[serde(default, deserialize_with = "crate::read::some")]
    #[schema(schema_with = crate::attributes::shared_metering)]
    pub metering: Option<Option<Metering>>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
