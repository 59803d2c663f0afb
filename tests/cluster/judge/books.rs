//! What the store took: claims and fenced writes, against what it may take.

use std::collections::{BTreeMap, BTreeSet};

use windrow_core::checkpoint;
use windrow_core::ids::{ClaimId, Epoch, ItemIndex, SessionId, ShardId};
use windrow_core::items::counters::Counters;
use windrow_core::items::verdict::{Outcome, SideRecord};
use windrow_core::task::lifecycle::Desired;
use windrow_engine::ports::ownership::run_store::{
    CheckpointAck, ClaimOutcome, ClaimRequest, ClaimedShard, RunClose, ShardCheckpoint,
};

use super::leases::short;
use super::pace::Pace;
use super::{Judge, Who};

/// What was received of one item, over all runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Item {
    pub(crate) departures: u32,
    /// A good end that a run heard of.
    pub(crate) good: Option<Outcome>,
    /// An end for good that a run heard of, by a failure.
    pub(crate) given_up: bool,
    /// What the store holds of it.
    pub(crate) saved: Option<Saved>,
    /// The run that saved it.
    pub(crate) saved_by: Option<Epoch>,
    /// What it came to, as each run heard it.
    pub(crate) answers: Vec<(Epoch, Box<str>)>,
    /// How often it may leave again after its end was received: a run that knew of it was lost.
    pub(crate) may_repeat: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saved {
    Succeeded,
    Skipped,
    Failed,
}

/// One ownership.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) who: Who,
    pub(crate) claim: ClaimId,
    pub(crate) session: SessionId,
    /// Unit: nanoseconds of the world.
    pub(crate) claimed_at: u64,
    /// Calls that are out, by item.
    pub(crate) flights: BTreeMap<u64, u32>,
    /// Ends that it heard of and that are not saved.
    pub(crate) unsaved: BTreeSet<u64>,
    /// Calls may be dropped: its process died, it was told to abort, or a handler panicked.
    pub(crate) may_abort: bool,
    pub(crate) pace: Pace,
}

/// One shard, as the store must have it.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) first: u64,
    pub(crate) end: u64,
    pub(crate) epoch: Epoch,
    /// Whether a run owns it.
    pub(crate) is_open: bool,
    /// The run claimed it only to commit that it is stopped.
    is_to_stop: bool,
    seq: u64,
    low: u64,
    parked: BTreeSet<u64>,
    pub(crate) items: Vec<Item>,
    pub(crate) runs: BTreeMap<Epoch, Run>,
}

impl Shard {
    fn new(claimed: &ClaimedShard) -> Shard {
        let (first, end) = (claimed.range.start.0, claimed.range.end.0);
        Shard {
            first,
            end,
            epoch: Epoch(0),
            is_open: false,
            is_to_stop: false,
            seq: 0,
            low: first,
            parked: BTreeSet::new(),
            items: vec![Item::default(); (end - first) as usize],
            runs: BTreeMap::new(),
        }
    }

    pub(crate) fn item(&mut self, index: u64) -> Option<&mut Item> {
        self.items.get_mut(index.checked_sub(self.first)? as usize)
    }

    /// The items that the store does not know as settled.
    pub(crate) fn unsaved(&self) -> impl Iterator<Item = u64> {
        let items = self.items.iter().zip(self.first..);
        items
            .filter(|(item, _)| item.saved.is_none())
            .map(|(_, index)| index)
    }

    pub(crate) fn saved(&self) -> Counters {
        let count = |what| self.items.iter().filter(|item| item.saved == Some(what)).count() as u64;
        Counters {
            succeeded: count(Saved::Succeeded),
            skipped: count(Saved::Skipped),
            failed: count(Saved::Failed),
            parked: self.parked.len() as u64,
            ..Counters::default()
        }
    }
}

impl Judge {
    /// A claim was judged by the store.
    pub(crate) fn on_claim(&mut self, who: Who, request: &ClaimRequest, outcome: Option<&ClaimOutcome>) {
        let Some(ClaimOutcome::Claimed(claimed)) = outcome else {
            self.seen("claim lost");
            return;
        };
        let id = request.shard;
        let mut shard = self.shards.remove(&id).unwrap_or_else(|| Shard::new(claimed));
        if shard.epoch == claimed.epoch {
            let own = shard
                .runs
                .get(&claimed.epoch)
                .is_some_and(|run| run.claim == request.claim);
            self.check(own, || {
                format!("{id} was claimed twice at epoch {}", claimed.epoch.0)
            });
            self.seen("lost ack of a claim recognised");
        } else {
            self.on_new_claim(who, request, claimed, &mut shard);
        }
        self.shards.insert(id, shard);
    }

    fn on_new_claim(&mut self, who: Who, request: &ClaimRequest, claimed: &ClaimedShard, shard: &mut Shard) {
        let id = request.shard;
        let session = short(request.session);
        self.note(|| {
            format!(
                "n{}.{} ({session}) claims {id} at {}",
                who.0, who.1, claimed.epoch.0
            )
        });
        self.check(claimed.epoch > shard.epoch, || {
            format!("the epoch of {id} fell to {}", claimed.epoch.0)
        });
        let is_there = self.moves.remove(&id) == Some(who.0);
        self.count(is_there, "moved");
        let own = self.sessions.get(&request.session);
        self.check(own.is_some_and(|own| !own.fenced), || {
            format!("a fenced session claims {id}")
        });
        if shard.is_open {
            self.seen("take-over");
            let before = shard.runs.get(&shard.epoch).map(|run| run.session);
            let gone = before
                .and_then(|before| self.sessions.get(&before))
                .is_none_or(|s| s.fenced);
            self.check(gone, || format!("{id} is taken from a session that isn't fenced"));
            self.count(!shard.parked.is_empty(), "parked across a take-over");
            let is_blind = self.alone.is_some() && !self.leases.contains_key(&request.claim);
            self.count(is_blind, "take-over without a lease");
        } else if shard.epoch.0 > 0 {
            self.seen("claimed after a release");
        }
        let saved = shard.saved();
        let read = Counters {
            in_flight: 0,
            excluded: 0,
            ..claimed.counters
        };
        self.check(read == saved, || {
            format!("{id} is claimed with {read:?}, saved was {saved:?}")
        });
        let low = shard.low;
        self.check(claimed.watermark.0 == low, || {
            format!("{id} is claimed from {}, not {low}", claimed.watermark.0)
        });
        self.lose(id, shard);
        shard.epoch = claimed.epoch;
        (shard.is_open, shard.seq) = (true, 0);
        shard.is_to_stop = claimed.desired != Desired::Run;
        let run = Run {
            who,
            claim: request.claim,
            session: request.session,
            claimed_at: self.now(),
            flights: BTreeMap::new(),
            unsaved: BTreeSet::new(),
            may_abort: self.standing_by.contains(&who),
            pace: Pace::default(),
        };
        shard.runs.insert(claimed.epoch, run);
    }

    /// What the runs before knew and did not save is lost: so many items may leave again, and no more.
    fn lose(&mut self, id: ShardId, shard: &mut Shard) {
        let lost: BTreeSet<u64> = shard
            .runs
            .values_mut()
            .flat_map(|run| std::mem::take(&mut run.unsaved))
            .collect();
        let Some(task) = self.tasks.get(&id.task) else {
            return;
        };
        let most = task.unsaved_max + task.concurrency_max;
        let count = lost.len() as u64;
        self.check(count <= most, || {
            format!("{count} ends of {id} were lost, at most {most}")
        });
        for index in lost {
            if let Some(item) = shard.item(index) {
                item.may_repeat = true;
            }
        }
    }

    /// A checkpoint was judged by the store.
    pub(crate) fn on_checkpoint(&mut self, write: &ShardCheckpoint, ack: CheckpointAck) {
        let id = write.shard;
        let Some(mut shard) = self.shards.remove(&id) else {
            return self.check(ack == CheckpointAck::Fenced, || {
                format!("{id} was never claimed and is written")
            });
        };
        let is_current = shard.epoch == write.epoch
            && shard
                .runs
                .get(&write.epoch)
                .is_some_and(|run| run.claim == write.claim);
        match ack {
            CheckpointAck::Stored if is_current && write.seq.0 == shard.seq => {
                self.seen("repeat of a checkpoint recognised");
            }
            CheckpointAck::Stored => {
                let may = is_current && shard.is_open && write.seq.0 > shard.seq;
                let (epoch, seq) = (write.epoch.0, write.seq.0);
                self.check(may, || {
                    format!("{id} took write {seq} of epoch {epoch} that is over")
                });
                self.accept(&mut shard, write);
            }
            CheckpointAck::Fenced if is_current && shard.is_open && write.seq.0 > shard.seq => {
                self.fail(format!("{id} refused write {} of its owner", write.seq.0));
            }
            CheckpointAck::Fenced if is_current => self.seen("late write refused"),
            CheckpointAck::Fenced => self.seen("zombie write refused"),
        }
        self.shards.insert(id, shard);
    }

    fn accept(&mut self, shard: &mut Shard, write: &ShardCheckpoint) {
        let id = write.shard;
        let low = write.watermark.0;
        self.check(low >= shard.low, || {
            format!("watermark of {id} fell from {} to {low}", shard.low)
        });
        (shard.seq, shard.low) = (write.seq.0, low);
        let mut given_up = BTreeSet::new();
        for record in &write.side {
            let index = record.index().0;
            shard.parked.remove(&index);
            match record {
                SideRecord::Parked { .. } => drop(shard.parked.insert(index)),
                SideRecord::Failed(retrying) => {
                    given_up.insert(index);
                    let by_crash = retrying
                        .failure
                        .as_ref()
                        .is_some_and(|f| f.code.starts_with("NODE_CRASH"));
                    self.count(by_crash, "item that kills nodes failed");
                }
                SideRecord::Retrying(_) | SideRecord::Cleared(_) => {}
            }
        }
        self.settle(shard, write, &given_up);
        let saved = shard.saved();
        let said = Counters {
            in_flight: 0,
            excluded: 0,
            ..write.counters
        };
        self.check(saved == said, || {
            format!("{id} says {said:?}, its items make {saved:?}")
        });
        self.check_kept(shard, write);
        if let Some(close) = &write.close {
            self.close(id, shard, write.epoch, close);
        }
    }

    fn settle(&mut self, shard: &mut Shard, write: &ShardCheckpoint, given_up: &BTreeSet<u64>) {
        let (id, low) = (write.shard, write.watermark);
        let above = match write.blob.is_empty() {
            true => checkpoint::Snapshot::default(),
            false => match checkpoint::decode(&write.blob, low) {
                Ok(above) => above,
                Err(error) => return self.fail(format!("{id}: {error}")),
            },
        };
        let first = shard.first;
        let run = shard.runs.get_mut(&write.epoch);
        let mut unsaved = run
            .map(|run| std::mem::take(&mut run.unsaved))
            .unwrap_or_default();
        for (at, item) in shard.items.iter_mut().enumerate() {
            let index = first + at as u64;
            let passed = index < low.0 || above.contains(ItemIndex(index));
            let settled = passed && !shard.parked.contains(&index);
            match (item.saved, settled) {
                (Some(_), true) | (None, false) => continue,
                (Some(_), false) => self.fail(format!("{id}: item {index} was settled and is not any more")),
                (None, true) => {
                    unsaved.remove(&index);
                    item.saved_by = Some(write.epoch);
                    item.saved = Some(match (given_up.contains(&index), item.good) {
                        (true, _) => Saved::Failed,
                        (false, Some(Outcome::Succeeded)) => Saved::Succeeded,
                        (false, Some(Outcome::Skipped)) => Saved::Skipped,
                        (false, None) => {
                            self.fail(format!("{id}: item {index} is saved as done and nobody heard so"));
                            Saved::Succeeded
                        }
                    });
                    let departed = item.departures > 0;
                    self.check(departed, || {
                        format!("{id}: item {index} is settled and never left")
                    });
                }
            }
        }
        if let Some(run) = shard.runs.get_mut(&write.epoch) {
            run.unsaved = unsaved;
        }
    }

    /// A run gave its shard back in the store.
    fn close(&mut self, id: ShardId, shard: &mut Shard, epoch: Epoch, close: &RunClose) {
        self.note(|| format!("{id} of epoch {} ends: {close:?}", epoch.0));
        shard.is_open = false;
        match close {
            RunClose::Released => self.seen("handed over"),
            RunClose::Done => self.seen("done"),
            RunClose::Stopped { .. } => self.seen("stopped by its run"),
            RunClose::Recovering { .. } => self.seen("recovering"),
        }
        let Some(run) = shard.runs.get(&epoch) else { return };
        let (unsaved, flights) = (run.unsaved.len(), run.flights.len());
        if !run.may_abort {
            self.check(unsaved == 0, || {
                format!("{id} was given back with {unsaved} ends unsaved: {close:?}")
            });
            self.check(flights == 0, || {
                format!("{id} was given back with {flights} calls out: {close:?}")
            });
        }
        if *close == RunClose::Done {
            let end = self
                .tasks
                .get(&id.task)
                .and_then(|task| task.finish_at)
                .unwrap_or(shard.end);
            let left: Vec<u64> = shard.unsaved().filter(|index| *index < end).collect();
            self.check(left.is_empty(), || {
                format!("{id} is done and these are not: {left:?}")
            });
        }
    }

    /// A shard was given back without progress.
    pub(crate) fn on_release(
        &mut self,
        id: ShardId,
        epoch: Epoch,
        claim: ClaimId,
        close: &RunClose,
        ack: CheckpointAck,
    ) {
        let Some(mut shard) = self.shards.remove(&id) else {
            return;
        };
        let is_current = shard.epoch == epoch && shard.runs.get(&epoch).is_some_and(|run| run.claim == claim);
        let stored = ack == CheckpointAck::Stored;
        self.check(stored == is_current, || {
            format!("release of {id} by epoch {}: {ack:?}", epoch.0)
        });
        if stored && shard.is_open {
            self.note(|| format!("{id} of epoch {} is released: {close:?}", epoch.0));
            let what = if shard.is_to_stop {
                "stop committed by a claimant"
            } else {
                "released without progress"
            };
            self.seen(what);
            shard.is_open = false;
        } else if stored {
            self.seen("lost ack of a release recognised");
        }
        self.shards.insert(id, shard);
    }

    /// Maintenance asked to take these shards away, which is done to those of fenced sessions.
    pub(crate) fn on_disowned(&mut self, asked: &[ShardId]) {
        for (id, shard) in self.shards.iter_mut().filter(|(id, _)| asked.contains(id)) {
            let session = shard.runs.get(&shard.epoch).map(|run| run.session);
            let fenced = session
                .and_then(|session| self.sessions.get(&session))
                .is_none_or(|s| s.fenced);
            if shard.is_open && fenced {
                shard.is_open = false;
                *self.tally.entry("disowned").or_default() += 1;
                if let Some(log) = &mut self.log {
                    log.push(format!("          {id} is taken from a fenced session"));
                }
            }
        }
    }
}
