//! JSON form of a task's shards.

use crate::http::answer::Of;
use crate::http::answer::time::rfc3339;
use crate::service::explain::ExplainedShard;
use windrow_core::ids::ShardId;
use windrow_core::task::lifecycle::ShardState;
use windrow_engine::ports::tasks::store::{ShardLife, TaskView};

/// Returns the shards of a task in range order.
pub(crate) fn show_shards(task: &TaskView) -> Vec<api::TaskShard> {
    task.shards.iter().map(|shard| show_shard(task, shard)).collect()
}

pub(crate) fn show_shard(task: &TaskView, shard: &ShardLife) -> api::TaskShard {
    let is_running = shard.state == ShardState::Running;
    api::TaskShard {
        shard: ShardId {
            task: task.id,
            no: shard.no,
        }
        .to_string(),
        state: shard.state.as_str().to_owned(),
        node: task.owners.get(&shard.no).filter(|_| is_running).cloned(),
        run: shard.run.0.into(),
        first: shard.first.0,
        end: shard.end.0,
        watermark: shard.watermark.0,
        settled: shard.counters.settled(),
        rate_share: shard.part().map_or(0.0, |share| 1.0 / f64::from(share.parts())),
        next_at: shard.next_at().map(rfc3339),
    }
}

impl Of<&ExplainedShard> for api::ExplainedShard {
    fn of(place: &ExplainedShard) -> Self {
        let held_back = place.held_back.as_ref().map(|held| api::ExplainedHeldBack {
            rate: held.rate.to_string(),
            wanted: held.wanted.to_string(),
            for_seconds: (held.age.as_secs_f64() * 1e3).round() / 1e3,
            why: held.why.clone(),
        });
        let (shard, node) = (place.shard.to_string(), place.node.clone());
        api::ExplainedShard {
            shard,
            state: place.state.as_str().to_owned(),
            node,
            held_back,
        }
    }
}
