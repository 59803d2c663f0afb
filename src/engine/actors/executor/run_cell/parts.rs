//! Parts of a run, and facts about it other than its progress.

use std::sync::Arc;

use tokio::sync::Notify;

use super::{LimitSlots, LogSink};
use crate::actors::executor::gauge::Gauge;
use crate::actors::executor::row_feed::RowFeed;
use crate::ports::clock::Clock;
use crate::ports::handling::handler::Handler;
use crate::ports::ownership::gate::Gate;
use windrow_core::ids::{Moment, RunNo, ShardId};
use windrow_core::settings::RateLimit;

/// Rate that a run's node has no room for, and the rate in force instead.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) rate: RateLimit,
    pub(crate) wanted: RateLimit,
    /// Reason given at the last refusal.
    pub(crate) why: String,
    pub(crate) since: Moment,
}

/// Facts about a run other than its progress, for display.
#[derive(Clone, Debug)]
pub(crate) struct RunAbout {
    pub(crate) run: RunNo,
    pub(crate) business: String,
    pub(crate) task_name: Option<String>,
    /// Handler kind: `http`, `command` or `rust`.
    pub(crate) kind: &'static str,
    /// Origin of the service that the handler calls, if it calls one.
    pub(crate) service: Option<String>,
    /// True if the outputs of items are kept.
    pub(crate) keeps_results: bool,
}

/// Shard and task of a run, and everything that the run drives.
pub(crate) struct Drives {
    pub(crate) shard: ShardId,
    pub(crate) about: RunAbout,
    pub(crate) gate: Arc<Gate>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) rows: Option<Arc<RowFeed>>,
    pub(crate) logs: LogSink,
    /// Slots under limits that are shared with other runs.
    pub(crate) limits: LimitSlots,
    /// Gauge of what calls use, if the task counts it.
    pub(crate) gauge: Option<Gauge>,
    /// Notifier that wakes the parked lanes.
    pub(crate) wake: Arc<Notify>,
}

/// Result of an exchange in addition to its effects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchanged {
    /// Time at which it was made.
    pub(crate) moment: Moment,
    /// True if this node may still assume that it owns the shard.
    pub(crate) gate_open: bool,
    /// Request to pass to the executor; each is made once.
    pub(crate) ask: Option<Ask>,
    /// Time at which a shared limit may allow more items.
    pub(crate) ask_at: Option<Moment>,
}

/// Request of an exchange to its executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Make a checkpoint before the next tick.
    Checkpoint,
    /// Return to the usual tick interval: there is something to save.
    Tick,
}
