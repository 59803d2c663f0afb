//! Backoff for shards that this node was offered and did not get: not requested again at once, and never if it can't
//! read them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::actors::launcher::Unclaimable;
use crate::actors::runtime::new_ids::NewIds;
use crate::ports::ownership::run_store::{Candidate, MOVE_PATIENCE};
use windrow_core::ids::{Epoch, Moment, ShardId};
use windrow_core::items::retry::doubled;

/// First and longest rest before a shard that another node had is requested again. Doubled each time, plus a random
/// part: two nodes that collided don't collide again.
const REST: (Duration, Duration) = (Duration::from_millis(300), Duration::from_millis(2_400));
const REST_JITTER_MS: u64 = 200;
/// The rest while the lease store doesn't answer.
const REST_BLIND: Duration = Duration::from_secs(1);
/// Time for which shards left to other nodes are left alone. If no node takes one, this node continues with it.
const LEFT_TO_OTHERS: Duration = MOVE_PATIENCE;

#[derive(Debug)]
struct Rest {
    /// Epoch of the offer that was tried; a later one is a new offer.
    epoch: Option<Epoch>,
    /// End of the rest; `None` means for good.
    until: Option<Moment>,
    why: Option<Unclaimable>,
    /// Number of losses in a row.
    losses: u32,
}

#[derive(Debug, Default)]
pub(crate) struct ClaimBackoff(BTreeMap<ShardId, Rest>);

impl ClaimBackoff {
    /// Backs off from a shard that another node got first, or whose owner is back.
    pub(crate) fn was_lost(&mut self, shard: ShardId, now: Moment, ids: &NewIds) {
        let (random, _) = ids.make().as_u64_pair();
        let before = self.0.get(&shard).map_or(0, |rest| rest.losses);
        let wait = doubled(REST, before) + Duration::from_millis(random % REST_JITTER_MS);
        self.leave_alone(shard, Some(now.plus(wait)), None, before + 1);
    }

    /// Backs off from a shard that was left to other nodes.
    pub(crate) fn was_left(&mut self, shard: ShardId, now: Moment) {
        self.leave_alone(shard, Some(now.plus(LEFT_TO_OTHERS)), None, 0);
    }

    /// Backs off from a shard that can't be taken for now.
    pub(crate) fn was_unclaimable(&mut self, shard: ShardId, why: Unclaimable, now: Moment) {
        let until = match why {
            Unclaimable::NoWitness => Some(now.plus(REST_BLIND)),
            Unclaimable::Newer(_) => None,
        };
        self.leave_alone(shard, until, Some(why), 0);
    }

    fn leave_alone(&mut self, shard: ShardId, until: Option<Moment>, why: Option<Unclaimable>, losses: u32) {
        let epoch = None;
        self.0.insert(
            shard,
            Rest {
                epoch,
                until,
                why,
                losses,
            },
        );
    }

    /// Forgets shards that aren't offered any more, except those still resting: an offer may be older than the rest.
    pub(crate) fn retain(&mut self, is_offered: impl Fn(ShardId) -> bool, now: Moment) {
        let is_timed = |rest: &Rest| rest.until.is_some_and(|until| now < until);
        self.0.retain(|shard, rest| is_offered(*shard) || is_timed(rest));
    }

    /// True if a candidate must be left alone now.
    pub(crate) fn holds(&mut self, candidate: &Candidate, now: Moment) -> bool {
        let Some(rest) = self.0.get_mut(&candidate.rank.shard) else {
            return false;
        };
        if *rest.epoch.get_or_insert(candidate.epoch) != candidate.epoch {
            self.0.remove(&candidate.rank.shard);
            return false;
        }
        rest.until.is_none_or(|until| now < until)
    }

    /// Returns why a shard is not taken, if people should be told.
    pub(crate) fn why(&self, shard: ShardId) -> Option<Unclaimable> {
        self.0.get(&shard).and_then(|rest| rest.why)
    }
}
