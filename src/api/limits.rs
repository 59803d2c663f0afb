//! Limits with a name.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use utoipa::ToSchema;
use windrow_core::settings::Rate;

/// What a limit allows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Limit {
    /// Its name in URLs.
    pub name: String,
    /// Attempts in a time; null is without a bound.
    pub rate: Option<String>,
    /// Items in flight; null is without a bound.
    pub concurrency: Option<u32>,
    /// Grows with each change; the tag.
    pub revision: u64,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was last changed.
    #[schema(format = DateTime)]
    pub updated_at: String,
}

/// A limit and who uses it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LimitInUse {
    #[serde(flatten)]
    pub limit: Limit,
    /// The businesses that name it for all their tasks.
    pub businesses: Vec<String>,
    /// The first 20 of the tasks that name it themselves and haven't ended.
    pub tasks: Vec<LimitedTask>,
    /// How many such tasks there are.
    pub tasks_total: u64,
    /// What each node may use of it now.
    pub parts: Vec<LimitPart>,
}

/// A task that names a limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LimitedTask {
    /// Its number.
    pub id: String,
    /// Its business.
    pub business: String,
    /// Where it stands.
    pub status: String,
}

/// What one node may use of a limit now.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LimitPart {
    /// Its name.
    pub node: String,
    /// Its runs that want something.
    pub runs: u64,
    /// Items per second; null where the limit has no rate.
    pub rate: Option<f64>,
    /// Items in flight; null where the limit has no concurrency.
    pub concurrency: Option<u64>,
}

/// A limit to be made; it has a rate, a concurrency, or both.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateLimit {
    /// Its name in URLs; never changes.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub name: String,
    /// Attempts in a time, such as `300/s`, of all that use it, on all nodes.
    #[schema(value_type = Option<String>, pattern = "^ *[0-9][0-9_]*k? */ *[0-9]*(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))* *$", max_length = 80)]
    pub rate: Option<Rate>,
    /// Items in flight, of all that use it, on all nodes.
    #[schema(value_type = Option<u32>, minimum = 1)]
    pub concurrency: Option<NonZeroU32>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// A change of a limit: what is named is set, null takes away, the rest stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditLimit {
    /// Attempts in a time; null is without a bound.
    #[serde(default, deserialize_with = "crate::read::some")]
    #[schema(value_type = Option<String>, pattern = "^ *[0-9][0-9_]*k? */ *[0-9]*(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))* *$", max_length = 80)]
    pub rate: Option<Option<Rate>>,
    /// Items in flight; null is without a bound.
    #[serde(default, deserialize_with = "crate::read::some")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    pub concurrency: Option<Option<NonZeroU32>>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
