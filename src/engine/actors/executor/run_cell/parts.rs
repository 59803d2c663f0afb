//! What a run is made of, and what is known of it beside its progress.

use std::sync::Arc;

use tokio::sync::Notify;

use super::{LimitSlots, LogSink};
use crate::actors::executor::row_feed::RowFeed;
use crate::ports::clock::Clock;
use crate::ports::handling::handler::Handler;
use crate::ports::ownership::gate::Gate;
use windrow_core::ids::{Moment, RunNo, ShardId};
use windrow_core::settings::RateLimit;

/// A part of the rate that a run's node has no room for.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) rate: RateLimit,
    pub(crate) wanted: RateLimit,
    /// What was said when it was last asked for.
    pub(crate) why: String,
    pub(crate) since: Moment,
}

/// What people want to know of a run beside its progress.
#[derive(Clone, Debug)]
pub(crate) struct RunAbout {
    pub(crate) run: RunNo,
    pub(crate) business: String,
    pub(crate) task_name: Option<String>,
    /// `http`, `command` or `rust`.
    pub(crate) kind: &'static str,
    /// Whether what items come to is kept.
    pub(crate) keeps_results: bool,
}

/// What a run drives, and whom it is driven for.
pub(crate) struct Drives {
    pub(crate) shard: ShardId,
    pub(crate) about: RunAbout,
    pub(crate) gate: Arc<Gate>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) rows: Option<Arc<RowFeed>>,
    pub(crate) logs: LogSink,
    /// Its places under limits that it shares with other runs.
    pub(crate) limits: LimitSlots,
    /// What wakes its parked lanes.
    pub(crate) wake: Arc<Notify>,
}

/// What an exchange tells beside its effects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchanged {
    /// The time that it was made at.
    pub(crate) moment: Moment,
    /// Whether this node may still believe that it owns the shard.
    pub(crate) gate_open: bool,
    /// What the executor should be told, each once.
    pub(crate) ask: Option<Ask>,
    /// When a shared limit may let more leave.
    pub(crate) ask_at: Option<Moment>,
}

/// What an exchange asks its executor for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A checkpoint before its time.
    Checkpoint,
    /// To look at its usual intervals again: there is something to save.
    Tick,
}
