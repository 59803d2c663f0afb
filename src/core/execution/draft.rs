//! Checkpoint drafts: one at a time, each complete; anything not acknowledged stays unsaved.

use crate::execution::items::Items;
use std::collections::BTreeMap;

use super::Execution;
use super::charges::Saved;
use super::types::{Phase, RunEnd};
use crate::ids::ItemIndex;
use crate::items::counters::Counters;
use crate::items::verdict::{Outage, SideRecord};
use crate::meter::unit::Unit;
use crate::shards::Directives;
use crate::task::lifecycle::StopReason;

/// Maximum number of failures waiting to be written; beyond it, nothing is dispatched until a checkpoint has stored
/// them. (A statement carries at most 4,000 rows; five of them are one transaction of well under 1 s.)
pub const SIDE_RECORDS_MAX: usize = 20_000;

/// Checkpoint before it is encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointDraft {
    /// Sequence number given by the core, used to acknowledge the draft.
    pub no: u64,
    /// First index that is neither settled nor parked.
    pub watermark: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// Dispatch horizon: once the draft is stored, fresh items below it may be sent.
    pub horizon: ItemIndex,
    /// Counters as the store keeps them: items outside the window count as parked even while in flight.
    pub counters: Counters,
    /// Items settled above the watermark: bit `j` is index `watermark + 1 + j`.
    pub above: Vec<u64>,
    /// Number of valid bits in `above`.
    pub span: u32,
    /// Item rows that change.
    pub side: Vec<SideRecord>,
    /// Index at which an early finish cuts the shard.
    pub finish_at: Option<ItemIndex>,
    /// Set once the canary has passed: the task no longer has one.
    pub canary_passed: bool,
    /// Directives for all shards of the task.
    pub told: Directives,
    /// Current outage of the handler, if any.
    pub outage: Option<Outage>,
    /// Use of meters, and what may be spent until the next checkpoint.
    pub meters: Saved,
    /// Unit of which more than 1 % of the successful answers don't say the use; set once a run.
    pub cost_missing: Option<Unit>,
    /// End of the run, set in its last draft.
    pub end: Option<RunEnd>,
}

/// Changes that no checkpoint holds yet, and the outstanding draft.
#[derive(Debug)]
pub(super) struct Drafts {
    unsaved: u64,
    /// Items settled without a call: a crash now repeats none of them.
    passed: u64,
    side: BTreeMap<ItemIndex, SideRecord>,
    finish_at: Option<ItemIndex>,
    told: Directives,
    outstanding: Option<Outstanding>,
    no: u64,
    /// Watermark of the last draft.
    watermark: ItemIndex,
}

/// Contents of the draft that is not acknowledged yet.
#[derive(Debug)]
struct Outstanding {
    no: u64,
    horizon: ItemIndex,
    unsaved: u64,
    passed: u64,
    side: BTreeMap<ItemIndex, SideRecord>,
    finish_at: Option<ItemIndex>,
    told: Directives,
}

impl Drafts {
    pub(super) fn new(watermark: ItemIndex) -> Drafts {
        Drafts {
            unsaved: 0,
            passed: 0,
            side: BTreeMap::new(),
            finish_at: None,
            told: Directives::default(),
            outstanding: None,
            no: 0,
            watermark,
        }
    }

    /// Counts items that were settled or parked.
    #[inline]
    pub(super) fn on_completed(&mut self, items: u32) {
        self.unsaved += u64::from(items);
    }

    /// Counts items that were settled without a call.
    #[inline]
    pub(super) fn on_passed(&mut self, items: u64) {
        self.passed += items;
    }

    /// Records a change of the item's row; the latest one wins.
    pub(super) fn record(&mut self, record: SideRecord) {
        self.side.insert(record.index(), record);
    }

    /// Drops the change of a row that no checkpoint ever held.
    pub(super) fn forget(&mut self, index: ItemIndex) {
        self.side.remove(&index);
    }

    /// Cuts the shard at `end`.
    pub(super) fn finish(&mut self, end: ItemIndex) {
        self.finish_at = Some(end);
        self.unsaved += 1;
    }

    /// Adds directives for all shards.
    pub(super) fn tell(&mut self, news: Directives) {
        let earlier = std::mem::replace(&mut self.told, news);
        self.told.after(earlier);
    }

    /// Returns the number of completions that a crash now would repeat.
    #[inline]
    pub(super) fn unsaved(&self) -> u64 {
        self.unsaved
    }

    /// Returns the number of failures that may still wait to be written.
    pub(super) fn side_room(&self) -> u32 {
        u32::try_from(SIDE_RECORDS_MAX.saturating_sub(self.side.len())).unwrap_or(0)
    }

    /// True if an item has changed since the last draft.
    #[inline]
    pub(super) fn has_items(&self) -> bool {
        self.unsaved > 0 || self.passed > 0 || !self.side.is_empty()
    }

    /// Moves all changes into the newest draft.
    fn give_out(&mut self, horizon: ItemIndex) -> Outstanding {
        Outstanding {
            no: self.no,
            horizon,
            unsaved: self.unsaved,
            passed: self.passed,
            side: std::mem::take(&mut self.side),
            finish_at: self.finish_at.take(),
            told: std::mem::take(&mut self.told),
        }
    }

    /// Returns the watermark of the last draft.
    pub(super) fn watermark(&self) -> ItemIndex {
        self.watermark
    }
}

impl Execution {
    /// True if half of what may be unsaved is, so the checkpoint must not wait for the tick.
    pub(super) fn is_checkpoint_due(&self) -> bool {
        let drafts = &self.items.drafts;
        drafts.outstanding.is_none()
            && (drafts.side.len() >= SIDE_RECORDS_MAX / 2
                || drafts.unsaved > 0 && drafts.unsaved >= self.unsaved_max() / 2
                || self.items.is_mark_due()
                || self.has_news())
    }

    /// True if a checkpoint would hold nothing new and none is outstanding.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        matches!(self.phase, Phase::Running)
            && !self.items.drafts.has_items()
            && self.items.drafts.outstanding.is_none()
            && !self.items.is_mark_due()
            && !self.has_news()
    }

    /// True if a checkpoint would record something besides the outcomes of items.
    #[inline]
    fn has_news(&self) -> bool {
        self.is_horizon_due()
            || self.items.canary.is_pass_due()
            || self.judge.is_outage_due()
            || self.charges.is_draft_due()
            || !self.items.drafts.told.is_empty()
    }

    /// Returns the maximum number of unsaved completions.
    pub(super) fn unsaved_max(&self) -> u64 {
        let most = self
            .settings
            .limits
            .unsaved_max(&self.settings.tuning, self.meters.speed());
        if self.careful {
            most.min(u64::from(self.settings.limits.concurrency))
        } else {
            most
        }
    }

    /// Makes a draft, unless one is outstanding, nothing changed, or the run may write nothing more.
    pub(super) fn draft(&mut self) -> Option<CheckpointDraft> {
        let end = match &self.phase {
            Phase::Ended(RunEnd::Fenced) | Phase::Stopping(RunEnd::Fenced) => return None,
            Phase::Ended(end) => Some(end.clone()),
            // If the cause of the stop were saved before the stop itself, a crash in between would lose the stop.
            Phase::Stopping(RunEnd::Stopped { reason, .. }) if *reason != StopReason::Operator => {
                return None;
            }
            Phase::Running | Phase::Stopping(_) => None,
        };
        let changed = self.items.drafts.has_items() || self.has_news() || end.is_some();
        if self.items.drafts.outstanding.is_some() || !changed {
            return None;
        }
        self.items.drafts.no += 1;
        let (no, horizon) = (self.items.drafts.no, self.draft_horizon());
        self.items.solo.on_drafted(no);
        let mut above = Vec::new();
        let span = self.items.window.copy_above(self.items.high, &mut above);
        let outage = self.judge.saved_outage();
        self.judge.on_drafted(outage);
        self.items.drafts.watermark = self.items.window.watermark();
        let outstanding = self.items.drafts.give_out(horizon);
        let rows = outstanding.side.keys();
        rows.for_each(|index| self.items.retrying_items.mark_row(*index));
        let draft = CheckpointDraft {
            no,
            watermark: self.items.drafts.watermark,
            high_water: self.items.high,
            horizon,
            counters: self.items.stored_counters(),
            above,
            span,
            side: outstanding.side.values().cloned().collect(),
            finish_at: outstanding.finish_at,
            canary_passed: self.items.canary.on_drafted(no),
            told: outstanding.told,
            outage,
            meters: self.charges.draft(no, end.is_some()),
            cost_missing: self.charges.alert(),
            end,
        };
        self.items.drafts.outstanding = Some(outstanding);
        Some(draft)
    }
}

impl Items {
    pub(in crate::execution) fn stored_counters(&self) -> Counters {
        Counters {
            parked: self.retrying_items.outside(),
            in_flight: 0,
            ..self.counters
        }
    }

    /// Marks only the contents of the acknowledged draft as saved; items settled since stay unsaved.
    pub(in crate::execution) fn on_checkpoint_stored(&mut self, no: u64) {
        let outstanding = &mut self.drafts.outstanding;
        if let Some(stored) = outstanding.take_if(|outstanding| outstanding.no == no) {
            self.drafts.unsaved = self.drafts.unsaved.saturating_sub(stored.unsaved);
            self.drafts.passed = self.drafts.passed.saturating_sub(stored.passed);
            self.ahead.on_stored(stored.horizon);
            self.solo.on_stored(no);
            self.canary.on_stored(no);
        }
    }

    /// Merges the outstanding draft, which will never be acknowledged, into the next one.
    pub(in crate::execution) fn merge_outstanding(&mut self) {
        if let Some(lost) = self.drafts.outstanding.take() {
            for (index, record) in lost.side {
                self.drafts.side.entry(index).or_insert(record);
            }
            self.drafts.finish_at = self.drafts.finish_at.or(lost.finish_at);
            self.drafts.told.after(lost.told);
            self.ahead.on_lost(self.high);
            self.solo.on_lost(lost.no);
            self.canary.on_lost(lost.no);
        }
    }
}
