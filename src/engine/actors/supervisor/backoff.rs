//! Shards that this node was offered and did not get: not asked for again at once, nor ever where it can't read them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::actors::launcher::Bar;
use crate::actors::runtime::new_ids::NewIds;
use crate::ports::ownership::run_store::{Candidate, MOVE_PATIENCE};
use windrow_core::ids::{Epoch, Moment, ShardId};

/// The rest before a shard is asked for again that somebody else had, doubled with each time up to the longest, and some
/// more by chance: two nodes that met don't meet again.
const REST: Duration = Duration::from_millis(300);
const REST_MAX: Duration = Duration::from_millis(2_400);
const REST_JITTER_MS: u64 = 200;
/// The rest while the lease store doesn't answer.
const REST_BLIND: Duration = Duration::from_secs(1);
/// How long what was left to other nodes is left to them. Where nobody takes it, this node goes on probing.
const LEFT_TO_OTHERS: Duration = MOVE_PATIENCE;

#[derive(Debug)]
struct Barred {
    /// The epoch of the offer that was tried; a later one is another matter.
    epoch: Option<Epoch>,
    /// None is for good.
    until: Option<Moment>,
    why: Option<Bar>,
    /// How often it was lost in a row.
    losses: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Bars(BTreeMap<ShardId, Barred>);

impl Bars {
    /// Somebody else was quicker, or the owner is back.
    pub(crate) fn was_lost(&mut self, shard: ShardId, now: Moment, ids: &NewIds) {
        let (random, _) = ids.make().as_u64_pair();
        let before = self.0.get(&shard).map_or(0, |barred| barred.losses);
        let rest = REST.saturating_mul(1 << before.min(8)).min(REST_MAX);
        let until = Some(now.plus(rest + Duration::from_millis(random % REST_JITTER_MS)));
        self.0.insert(
            shard,
            Barred {
                epoch: None,
                until,
                why: None,
                losses: before + 1,
            },
        );
    }

    /// It was left to other nodes.
    pub(crate) fn was_left(&mut self, shard: ShardId, now: Moment) {
        let until = Some(now.plus(LEFT_TO_OTHERS));
        self.0.insert(
            shard,
            Barred {
                epoch: None,
                until,
                why: None,
                losses: 0,
            },
        );
    }

    /// It may not be had for now.
    pub(crate) fn was_barred(&mut self, shard: ShardId, bar: Bar, now: Moment) {
        let until = match bar {
            Bar::NoWitness => Some(now.plus(REST_BLIND)),
            Bar::Newer(_) => None,
        };
        self.0.insert(
            shard,
            Barred {
                epoch: None,
                until,
                why: Some(bar),
                losses: 0,
            },
        );
    }

    /// Forgets what isn't offered any more, unless it may be offered yet: an offer may be older than the bar.
    pub(crate) fn retain(&mut self, is_offered: impl Fn(ShardId) -> bool, now: Moment) {
        let is_timed = |barred: &Barred| barred.until.is_some_and(|until| now < until);
        self.0
            .retain(|shard, barred| is_offered(*shard) || is_timed(barred));
    }

    /// Whether a candidate is to be left alone now.
    pub(crate) fn holds(&mut self, candidate: &Candidate, now: Moment) -> bool {
        let Some(barred) = self.0.get_mut(&candidate.shard) else {
            return false;
        };
        if *barred.epoch.get_or_insert(candidate.epoch) != candidate.epoch {
            self.0.remove(&candidate.shard);
            return false;
        }
        barred.until.is_none_or(|until| now < until)
    }

    /// Why a shard is not had, where that is to be told.
    pub(crate) fn why(&self, shard: ShardId) -> Option<Bar> {
        self.0.get(&shard).and_then(|barred| barred.why)
    }
}
