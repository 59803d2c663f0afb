//! Status of a task after one of its shards changed, and the proof that a task whose shards are all done is complete.

use windrow_words::life as say;

use super::{Author, Deeds, Life, Record, ShardLife, status_json};
use crate::ids::WallMs;
use crate::task::lifecycle::{
    Ending, Note, ShardState, Shards, Status, StopReason, TaskResult, note_after, status_of,
};

/// Reason of a task whose owner is silent and whose lease nobody can check. Also set for a running task, since its
/// shard isn't released.
pub const COORDINATOR_DOWN: &str = "coordinator_down";

/// Counts from the store that the proof needs, over the items of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Sum of its failure groups.
    pub failures: u64,
    /// True if any item is parked.
    pub is_parked: bool,
    /// Number of results that its shards claim to have.
    pub results_said: u64,
    /// Number of results that are stored.
    pub results_stored: u64,
}

impl Life {
    /// Returns the way in which the task ended, or `None` if it hasn't.
    pub fn ending(&self) -> Option<Ending> {
        match self.status {
            Status::Finished if self.result == Some(TaskResult::WithFailures) => Some(Ending::WithFailures),
            Status::Finished => Some(Ending::Succeeded),
            Status::Cancelled => Some(Ending::Cancelled),
            Status::Stopped => Some(match self.stop_reason {
                None | Some(StopReason::Operator | StopReason::Business | StopReason::CanaryDone) => {
                    Ending::ByPeople
                }
                Some(reason) => Ending::Stopped(reason),
            }),
            _ => None,
        }
    }

    /// Returns true if the task was to publish its results but ended for good without.
    pub fn has_withheld(&self) -> bool {
        let is_over = matches!(self.status, Status::Finished | Status::Cancelled);
        is_over && self.publishing.is_some() && self.publication().is_none()
    }

    /// Returns true if every item is settled, so that [`Life::refresh`] needs evidence; for a task that publishes,
    /// true again after the publication.
    pub fn is_settled(&self) -> bool {
        self.status_of_shards() == Status::Finalizing && !self.awaits_publication()
    }

    fn status_of_shards(&self) -> Status {
        let of_items = self.shards.iter().filter(|shard| !shard.is_publication());
        let states: Vec<ShardState> = of_items.map(|shard| shard.state).collect();
        let awaiting_business = self.status == Status::AwaitingBusiness;
        status_of(
            self.desired,
            &Shards {
                states: &states,
                publication: self.publication().map(|shard| shard.state),
                awaiting_business,
                finalized: false,
            },
        )
    }

    /// Derives the status from the shards; `news` is the note of the shard that changed. `evidence` is used only if
    /// the task
    /// [is settled](Life::is_settled).
    pub fn refresh(&mut self, news: Option<Note>, evidence: Evidence, now: WallMs) -> Deeds {
        let before = self.status;
        let mut status = self.status_of_shards();
        let (mut proof, mut withheld) = (None, None);
        if self.is_settled() {
            match self.proven(evidence) {
                Ok(result) => (status, withheld) = self.concluded(result, now),
                Err(text) => proof = Some(Note::because("proof_failed", text)),
            }
        }
        let note = proof.or_else(|| note_after(before, self.note.clone(), status, news));
        if status == before {
            // The status is the same; only its note may change.
            self.note = note.or_else(|| self.note.take());
            return Deeds::default();
        }
        let next_at = note.as_ref().and_then(|_| self.recovers_at(status));
        self.enter(status, (note, next_at), now);
        if matches!(status, Status::Finished | Status::Stopped | Status::Cancelled) {
            let withholds = withheld.or_else(|| self.withheld_since(before));
            Deeds {
                withholds,
                ..self.ended(before)
            }
        } else {
            Deeds::default()
        }
    }

    /// Refreshes the status after a shard was claimed, and drops the note that nobody could check a silent owner. If
    /// that still holds for another shard, it is noted again.
    pub fn refresh_claimed(&mut self, evidence: Evidence, now: WallMs) -> Deeds {
        self.note
            .take_if(|note| note.reason.as_deref() == Some(COORDINATOR_DOWN));
        self.started_at = self.started_at.or(Some(now));
        self.refresh(None, evidence, now)
    }

    /// Returns the status of a task whose end adds up, and the reason why its results are not published if they were
    /// to be. If they are to be published, adds the shard whose owner does it.
    fn concluded(&mut self, result: TaskResult, now: WallMs) -> (Status, Option<String>) {
        let is_published = self.publication().is_some();
        if let Some(publishing) = self.publishing.as_ref().filter(|_| !is_published) {
            let items = self.whole().len().0;
            match publishing.publish.condition.judge(&self.counters(), items) {
                Ok(()) => {
                    let shard = ShardLife::of_publication(self.total, self.desired, now);
                    self.shards.push(shard);
                    return (self.status_of_shards(), None);
                }
                Err(why) => {
                    self.result = Some(result);
                    return (Status::Finished, Some(why));
                }
            }
        }
        self.result = Some(result);
        (Status::Finished, None)
    }

    /// Returns the reason why its results will not be published, if it was cancelled just now.
    pub(super) fn withheld_since(&self, before: Status) -> Option<String> {
        let is_cancelled = self.status == Status::Cancelled && before != Status::Cancelled;
        let was_to_publish = self.publishing.is_some();
        (is_cancelled && was_to_publish).then(|| say::cancelled().to_string())
    }

    fn recovers_at(&self, status: Status) -> Option<WallMs> {
        let waiting = self
            .shards
            .iter()
            .filter(|shard| shard.state == ShardState::Recovering);
        waiting
            .map(|shard| shard.not_before)
            .min()
            .filter(|_| status == Status::Recovering)
    }

    fn ended(&self, before: Status) -> Deeds {
        let record = Record {
            by: Author::Windrow(self.stop_reason),
            action: format!("task.{}", self.status),
            before: status_json(before),
            after: status_json(self.status),
        };
        Deeds {
            records: vec![record],
            ends_start: true,
            ..Deeds::default()
        }
    }

    /// Returns the result of a complete task, or else what doesn't add up.
    fn proven(&self, evidence: Evidence) -> Result<TaskResult, String> {
        let mut next = self.whole().start;
        for shard in &self.shards {
            if shard.first != next {
                return Err(say::shards_apart(next.0.to_string()).to_string());
            }
            whole(shard)?;
            next = shard.range_end;
        }
        if next.0 != self.total.0 {
            let (end, total) = (next.0.to_string(), self.total.0.to_string());
            return Err(say::shards_end(end, total).to_string());
        }
        let failed: u64 = self.shards.iter().map(|shard| shard.counters.failed).sum();
        if evidence.failures != failed {
            return Err(say::failures_differ(failed, evidence.failures).to_string());
        }
        if evidence.is_parked {
            return Err(say::still_parked().to_string());
        }
        let (said, stored) = (evidence.results_said, evidence.results_stored);
        if said != stored {
            return Err(say::results_differ(said, stored).to_string());
        }
        let is_early = self.shards.iter().any(|shard| shard.end < shard.range_end);
        Ok(match (failed, is_early) {
            (1.., _) => TaskResult::WithFailures,
            (_, true) => TaskResult::Early,
            (_, false) => TaskResult::Succeeded,
        })
    }
}

/// Checks that every item of a shard is accounted for.
fn whole(shard: &ShardLife) -> Result<(), String> {
    let (done, parked) = (shard.counters.settled(), shard.counters.parked);
    if shard.watermark == shard.end && parked == 0 && done == shard.end.0 - shard.first.0 {
        return Ok(());
    }
    let ShardLife {
        no, watermark, end, ..
    } = shard;
    let (no, at, end) = (no.to_string(), watermark.0.to_string(), end.0.to_string());
    Err(say::shard_incomplete(no, at, end, done, parked).to_string())
}
