//! Middleware and extractors in front of the routes: authentication, size and memory limits, idempotency, dry runs.

pub mod access;
pub mod body;
pub(crate) mod bounds;
pub(crate) mod call;
pub mod caller;
pub(crate) mod dry_run;
pub(crate) mod headers;
pub(crate) mod idempotency;
pub(crate) mod intake;
pub(super) mod measure;
pub(crate) mod outside;
pub(crate) mod parameters;
pub(crate) mod shares;
pub(crate) mod visitor;

pub(crate) use self::body::{Body, Params, ReasonQuery, reason_of, time, time_option};
pub(crate) use self::call::Call;
pub(crate) use self::caller::Caller;
pub(crate) use self::dry_run::DryRunQuery;
