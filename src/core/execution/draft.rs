//! Checkpoints: one at a time, each a whole truth; what is not acknowledged stays unsaved.

use std::collections::BTreeMap;

use super::Execution;
use super::types::{Phase, RunEnd, SIDE_RECORDS_MAX};
use crate::ids::ItemIndex;
use crate::items::counters::Counters;
use crate::items::verdict::{Outage, SideRecord};
use crate::shards::Told;
use crate::task::lifecycle::StopReason;

/// A checkpoint before it is encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointDraft {
    /// The core's own number of it, to be acknowledged.
    pub no: u64,
    /// First index that is neither settled nor parked.
    pub low_water: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// Once it is stored, fresh items may leave below it.
    pub reach: ItemIndex,
    /// As the store keeps them: items outside the window count as parked even while in flight.
    pub counters: Counters,
    /// Settled above low water: bit `j` is index `low_water + 1 + j`.
    pub above: Vec<u64>,
    /// Bits of `above` that count.
    pub span: u32,
    /// Item rows that change.
    pub side: Vec<SideRecord>,
    /// Where an early finish cuts the shard.
    pub finish_at: Option<ItemIndex>,
    /// The canary has passed: the task has none any more.
    pub canary_passed: bool,
    /// What all shards of the task should know.
    pub told: Told,
    /// The outage of the handler that the run is in.
    pub outage: Option<Outage>,
    /// Set in the last draft of a run.
    pub end: Option<RunEnd>,
}

/// What was given to a checkpoint and not acknowledged yet.
#[derive(Debug)]
pub(super) struct Outstanding {
    no: u64,
    reach: ItemIndex,
    unsaved: u64,
    side: BTreeMap<ItemIndex, SideRecord>,
    finish_at: Option<ItemIndex>,
    told: Told,
}

impl Execution {
    /// Half of what may be unsaved is: do not wait for the tick.
    pub(super) fn is_checkpoint_due(&self) -> bool {
        self.outstanding.is_none()
            && (self.side.len() >= SIDE_RECORDS_MAX / 2
                || self.unsaved > 0 && self.unsaved >= self.unsaved_max() / 2
                || self.is_mark_due()
                || self.is_reach_due()
                || self.is_pass_due()
                || self.is_outage_due()
                || !self.told.is_empty())
    }

    /// Whether nothing has happened that a checkpoint would hold, and none is on its way.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        matches!(self.phase, Phase::Running)
            && self.unsaved == 0
            && self.side.is_empty()
            && self.outstanding.is_none()
            && !self.is_mark_due()
            && !self.is_reach_due()
            && !self.is_pass_due()
            && !self.is_outage_due()
            && self.told.is_empty()
    }

    /// Whether an outage began or ended since the last draft: a take-over should know.
    fn is_outage_due(&self) -> bool {
        let since = |outage: Option<Outage>| outage.map(|outage| outage.since);
        since(self.judge.circuit.outage()) != since(self.judge.drafted)
    }

    /// How many completions may be unsaved.
    pub(super) fn unsaved_max(&self) -> u64 {
        let most = self.limits.unsaved_max(&self.tuning, &self.speed);
        if self.careful {
            most.min(u64::from(self.limits.concurrency))
        } else {
            most
        }
    }

    /// A draft, unless one is outstanding, nothing changed, or the run may write nothing more.
    pub(super) fn draft(&mut self) -> Option<CheckpointDraft> {
        let end = match &self.phase {
            Phase::Ended(RunEnd::Fenced) | Phase::Stopping(RunEnd::Fenced) => return None,
            Phase::Ended(end) => Some(end.clone()),
            // Were what led to the stop saved before the stop itself, a crash in between would lose the stop.
            Phase::Stopping(RunEnd::Stopped { reason, .. }) if *reason != StopReason::Operator => {
                return None;
            }
            Phase::Running | Phase::Stopping(_) => None,
        };
        let told = !self.told.is_empty();
        let news = self.is_reach_due() || self.is_pass_due() || self.is_outage_due() || told;
        let changed = self.unsaved > 0 || !self.side.is_empty() || news || end.is_some();
        if self.outstanding.is_some() || !changed {
            return None;
        }
        self.draft_no += 1;
        self.drafted_low = self.window.low_water();
        self.judge.drafted = self.judge.circuit.outage();
        self.on_mark_drafted(self.draft_no);
        let side = std::mem::take(&mut self.side);
        side.keys().for_each(|index| self.troubles.mark_row(*index));
        let reach = self.draft_reach();
        let mut above = Vec::new();
        let span = self.window.copy_above(self.high, &mut above);
        let draft = CheckpointDraft {
            no: self.draft_no,
            low_water: self.window.low_water(),
            high_water: self.high,
            reach,
            counters: self.stored_counters(),
            above,
            span,
            side: side.values().cloned().collect(),
            finish_at: self.finish_at,
            canary_passed: self.draft_pass(self.draft_no),
            told: self.told,
            outage: self.judge.circuit.outage(),
            end,
        };
        let (finish_at, told) = (self.finish_at.take(), std::mem::take(&mut self.told));
        self.outstanding = Some(Outstanding {
            no: self.draft_no,
            reach,
            unsaved: self.unsaved,
            side,
            finish_at,
            told,
        });
        Some(draft)
    }

    /// Only what the acknowledged draft held is saved; what settled meanwhile stays unsaved.
    pub(super) fn on_checkpoint_stored(&mut self, no: u64) {
        if let Some(outstanding) = self.outstanding.take_if(|outstanding| outstanding.no == no) {
            self.unsaved = self.unsaved.saturating_sub(outstanding.unsaved);
            self.on_reach_stored(outstanding.reach);
            self.on_mark_stored(no);
            self.on_pass_stored(no);
        }
    }

    /// Nobody will acknowledge the outstanding draft any more: all of it goes into the next one.
    pub(super) fn merge_outstanding(&mut self) {
        if let Some(outstanding) = self.outstanding.take() {
            for (index, record) in outstanding.side {
                self.side.entry(index).or_insert(record);
            }
            self.finish_at = self.finish_at.or(outstanding.finish_at);
            self.told.after(outstanding.told);
            self.on_reach_lost();
            self.on_mark_lost(outstanding.no);
            self.on_pass_lost(outstanding.no);
        }
    }

    fn stored_counters(&self) -> Counters {
        Counters {
            parked: self.troubles.outside(),
            in_flight: 0,
            ..self.counters
        }
    }
}
