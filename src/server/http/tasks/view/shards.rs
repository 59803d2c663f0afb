//! The shards of a task, in bodies.

use serde::Serialize;
use utoipa::ToSchema;

use crate::http::answer::time::rfc3339;
use crate::service::explain::ExplainedShard;
use windrow_core::ids::ShardId;
use windrow_core::task::lifecycle::ShardState;
use windrow_engine::ports::tasks::store::{ShardLife, TaskView};

/// One part of a task, that one node owns at a time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskShard)]
pub(crate) struct ShardJson {
    /// Its name, `t42.0`.
    shard: String,
    /// `idle`, `running`, `recovering`, `stopped` or `done`.
    state: &'static str,
    /// The node that owns it; null where none does, and in lists.
    node: Option<String>,
    /// Its newest run; 0 before the first.
    run: u64,
    /// Its first index.
    first: u64,
    /// One past the last index that is to be done.
    end: u64,
    /// First index that is neither settled nor parked.
    low_water: u64,
    /// Items succeeded, skipped or abandoned.
    settled: u64,
    /// Its part of the task's rate, burst and concurrency; 0 once it is done.
    rate_share: f64,
    /// When it may run again, where it recovers.
    next_at: Option<String>,
}

impl ShardJson {
    /// The shards of a task in the order of their ranges.
    pub(crate) fn of(task: &TaskView) -> Vec<ShardJson> {
        task.shards
            .iter()
            .map(|shard| ShardJson::new(task, shard))
            .collect()
    }

    fn new(task: &TaskView, shard: &ShardLife) -> ShardJson {
        let is_running = shard.state == ShardState::Running;
        ShardJson {
            shard: ShardId {
                task: task.id,
                no: shard.no,
            }
            .to_string(),
            state: shard.state.as_str(),
            node: task.owners.get(&shard.no).filter(|_| is_running).cloned(),
            run: shard.run.0.into(),
            first: shard.first.0,
            end: shard.end.0,
            low_water: shard.low_water.0,
            settled: shard.counters.settled(),
            rate_share: shard.part().map_or(0.0, |share| 1.0 / f64::from(share.parts())),
            next_at: shard.next_at().map(rfc3339),
        }
    }
}

/// Where a shard of a task stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExplainedShard)]
pub(crate) struct PlaceJson {
    /// Its name, `t42.0`.
    pub(crate) shard: String,
    /// `idle`, `running`, `recovering`, `stopped` or `done`.
    pub(crate) state: &'static str,
    /// The node that runs it; null where none does.
    pub(crate) node: Option<String>,
    /// The part of the rate that this node has no room for; null where it has what it should have.
    pub(crate) held_back: Option<HeldBackJson>,
}

/// A part of the rate that a node has no room for. It is asked for again every few seconds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExplainedHeldBack)]
pub(crate) struct HeldBackJson {
    /// How fast the shard may go meanwhile.
    pub(crate) rate: String,
    /// How fast it should go.
    pub(crate) wanted: String,
    /// For how long it has been refused.
    pub(crate) for_seconds: f64,
    /// What the node said last.
    pub(crate) why: String,
}

impl PlaceJson {
    pub(crate) fn new(place: &ExplainedShard) -> PlaceJson {
        let held_back = place.held_back.as_ref().map(|held| HeldBackJson {
            rate: held.rate.to_string(),
            wanted: held.wanted.to_string(),
            for_seconds: (held.age.as_secs_f64() * 1e3).round() / 1e3,
            why: held.why.clone(),
        });
        let (shard, node) = (place.shard.to_string(), place.node.clone());
        PlaceJson {
            shard,
            state: place.state.as_str(),
            node,
            held_back,
        }
    }
}
