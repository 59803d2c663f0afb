//! What leaves a node, and what comes back: who may send, how fast, and what is known of each item afterwards.

use windrow_core::ids::{Attempt, Epoch, ItemIndex, Moment, ShardId};
use windrow_core::items::verdict::Outcome;

use super::{Judge, Who};

/// A node that heard that its session is fenced has dropped its calls after this.
const ABORTS_WITHIN: u64 = 5_000_000;
/// A run that read that it is to stop sends nothing after this.
const OBEYS_WITHIN: u64 = 30_000_000;

/// One call that leaves.
pub(crate) struct Departure<'a> {
    pub(crate) who: Who,
    pub(crate) shard: ShardId,
    pub(crate) epoch: Epoch,
    pub(crate) items: &'a [(ItemIndex, Attempt)],
    /// On the node's own clock.
    pub(crate) at: Moment,
}

/// What a run heard of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Good(Outcome),
    GivenUp,
    /// Another attempt may follow.
    Failed,
}

impl Judge {
    /// A call passes the gate.
    pub(crate) fn on_departure(&mut self, call: &Departure<'_>) {
        let (id, epoch, now) = (call.shard, call.epoch, self.now());
        let items: Vec<(u64, u32)> = call
            .items
            .iter()
            .map(|(index, attempt)| (index.0, attempt.get()))
            .collect();
        let who = call.who;
        self.note(|| format!("n{}.{} sends {id} of epoch {}: {items:?}", who.0, who.1, epoch.0));
        let Some(mut shard) = self.shards.remove(&id) else {
            return self.fail(format!("{id} was never claimed and is sent"));
        };
        let owns = shard.epoch == epoch && shard.is_open;
        let who = call.who;
        self.check(owns, || {
            format!(
                "n{}.{} sends {id} of epoch {}, which is over",
                who.0, who.1, epoch.0
            )
        });
        self.check_trust(call, &shard);
        let attempts_max = self.tasks.get(&id.task).map_or(0, |task| task.attempts_max);
        for (index, attempt) in &items {
            self.check(*attempt <= attempts_max, || {
                format!("attempt {attempt} of {id} item {index}")
            });
            let end = shard.end;
            let Some(item) = shard.item(*index).filter(|_| *index < end) else {
                self.fail(format!("{id}: item {index} is not to be sent"));
                continue;
            };
            item.departures += 1;
            let (saved, known, may_repeat) =
                (item.saved, item.good.is_some() || item.given_up, item.may_repeat);
            self.check(saved.is_none(), || {
                format!("{id}: item {index} is saved and is sent again")
            });
            let may_abort = shard.runs.values().any(|run| run.may_abort);
            self.check(!known || may_repeat || may_abort, || {
                format!("{id}: item {index} is repeated for nothing")
            });
            self.count(known, "repeat");
        }
        if let Some(run) = shard.runs.get_mut(&epoch) {
            let late = run.pace.stopped_at.is_some_and(|at| now > at + OBEYS_WITHIN);
            run.pace.departures.push((now, items.len() as u32));
            for (index, _) in &items {
                *run.flights.entry(*index).or_default() += 1;
            }
            let twice = items
                .iter()
                .any(|(index, _)| run.flights.get(index).is_some_and(|n| *n > 1));
            let (flights, may_abort) = (run.flights.len() as u64, run.may_abort);
            self.check(!late, || {
                format!("{id} of epoch {} read that it is to stop and sends", epoch.0)
            });
            self.check(!twice || may_abort, || {
                format!("{id}: an item is in flight twice: {items:?}")
            });
            let most = self.tasks.get(&id.task).map_or(0, |task| task.concurrency_max);
            self.check(flights <= most || may_abort, || {
                format!("{id} has {flights} in flight, at most {most}")
            });
        }
        self.shards.insert(id, shard);
    }

    /// The node could still believe that it owns the shard: one of its witnesses answered recently.
    fn check_trust(&mut self, call: &Departure<'_>, shard: &super::Shard) {
        let Some(run) = shard.runs.get(&call.epoch) else {
            return;
        };
        let Some(session) = self.sessions.get(&run.session) else {
            return;
        };
        let lease = self.leases.get(&run.claim).copied().unwrap_or(Moment(0));
        let by_lease = self
            .alone
            .map_or(lease, |alone| lease.min(session.trusted_until.plus(alone)));
        let until = session.trusted_until.max(by_lease);
        let (is_over, who, epoch) = (session.over_at.is_some(), call.who, call.epoch.0);
        let over = call.at.since(until);
        self.check(call.at < until, || {
            format!(
                "n{}.{} sends epoch {epoch} of {} {over:?} after its trust",
                who.0, who.1, call.shard
            )
        });
        self.check(!is_over, || {
            format!("n{}.{} sends although it heard of its fence", who.0, who.1)
        });
    }

    /// A call is over as its node sees it: what it heard of each item, or nothing where the call was dropped.
    pub(crate) fn on_return(
        &mut self,
        id: ShardId,
        epoch: Epoch,
        items: &[(ItemIndex, Attempt)],
        heard: &[Heard],
    ) {
        self.note(|| format!("{id} of epoch {} hears {heard:?} of {items:?}", epoch.0));
        let session = self
            .shards
            .get(&id)
            .and_then(|shard| shard.runs.get(&epoch))
            .map(|run| run.session);
        let over_at = session
            .and_then(|session| self.sessions.get(&session))
            .and_then(|s| s.over_at);
        let is_late = over_at.is_some_and(|at| self.now() > at + ABORTS_WITHIN);
        self.check(!is_late || heard.is_empty(), || {
            format!(
                "{id}: calls of epoch {} go on although its session is fenced",
                epoch.0
            )
        });
        let Some(shard) = self.shards.get_mut(&id) else {
            return;
        };
        for (at, (index, _)) in items.iter().enumerate() {
            let heard = heard.get(at).copied();
            let is_end = matches!(heard, Some(Heard::Good(_) | Heard::GivenUp));
            if let Some(item) = shard.item(index.0) {
                match heard {
                    Some(Heard::Good(outcome)) => item.good = Some(outcome),
                    Some(Heard::GivenUp) => item.given_up = true,
                    Some(Heard::Failed) | None => {}
                }
            }
            // Whoever took the shard over can't know what its zombie hears.
            let is_zombie = shard.epoch != epoch;
            if let Some(item) = shard.item(index.0).filter(|_| is_zombie) {
                item.may_repeat = true;
            }
            let is_saved = shard.item(index.0).is_some_and(|item| item.saved.is_some());
            let Some(run) = shard.runs.get_mut(&epoch) else {
                continue;
            };
            if let Some(flights) = run.flights.get_mut(&index.0) {
                *flights -= 1;
                if *flights == 0 {
                    run.flights.remove(&index.0);
                }
            }
            if is_end && !is_saved {
                run.unsaved.insert(index.0);
            }
        }
    }

    /// A handler panics: its lane is lost, and what it had in flight leaves again.
    pub(crate) fn on_panic(&mut self, id: ShardId, epoch: Epoch) {
        self.seen("handler panicked");
        if let Some(run) = self
            .shards
            .get_mut(&id)
            .and_then(|shard| shard.runs.get_mut(&epoch))
        {
            run.may_abort = true;
        }
    }
}
