//! What the audit says of runs that didn't end calmly.

use std::time::Duration;

use super::state::{Shard, State};
use windrow_core::ids::{RunNo, TaskId, WallMs};
use windrow_core::life::succession::{Episode, Fate};
use windrow_engine::ports::tasks::store::Actor;

/// The newest run of a shard, as far as it is told.
#[derive(Clone, Debug)]
pub(super) struct Past {
    shard: u32,
    run: RunNo,
    node: Option<String>,
    updated_at: WallMs,
    may_repeat: u64,
}

impl Past {
    pub(super) fn of(shard: &Shard) -> Past {
        Past {
            shard: shard.no,
            run: shard.run,
            node: shard.node.clone(),
            updated_at: shard.updated_at,
            may_repeat: shard.may_repeat(),
        }
    }

    pub(super) fn tell(&self, state: &mut State, task: TaskId, fate: Fate<'_>, now: WallMs) {
        let silent = u64::try_from(now.0 - self.updated_at.0).unwrap_or_default();
        let silent = Duration::from_millis(silent);
        let episode = Episode {
            shard: self.shard,
            run: self.run,
            node: self.node.as_deref(),
            silent,
            may_repeat: self.may_repeat,
            fate,
        };
        let change = (Some(episode.before()), Some(episode.after()));
        let actor = Actor::windrow(Some(episode.sentence().to_string()));
        state.record(Some(task), &actor, now, episode.action().to_owned(), change);
    }
}
