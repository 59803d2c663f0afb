//! Checkpoints: one at a time, each a whole truth; what is not acknowledged stays unsaved.

use crate::execution::items::Items;
use std::collections::BTreeMap;

use super::Execution;
use super::types::{Phase, RunEnd};
use crate::ids::ItemIndex;
use crate::items::counters::Counters;
use crate::items::verdict::{Outage, SideRecord};
use crate::shards::Directives;
use crate::task::lifecycle::StopReason;

/// Failures that wait to be written: above this nothing more is dispatched until a checkpoint took them.
/// (A statement carries at most 4,000 rows; five of them are one transaction of well under 1 s.)
pub const SIDE_RECORDS_MAX: usize = 20_000;

/// A checkpoint before it is encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointDraft {
    /// The core's own number of it, to be acknowledged.
    pub no: u64,
    /// First index that is neither settled nor parked.
    pub watermark: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// Once it is stored, fresh items may leave below it.
    pub reach: ItemIndex,
    /// As the store keeps them: items outside the window count as parked even while in flight.
    pub counters: Counters,
    /// Settled above watermark: bit `j` is index `watermark + 1 + j`.
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
    pub told: Directives,
    /// The outage of the handler that the run is in.
    pub outage: Option<Outage>,
    /// Set in the last draft of a run.
    pub end: Option<RunEnd>,
}

/// What no checkpoint holds yet, and the draft that is on its way.
#[derive(Debug)]
pub(super) struct Drafts {
    unsaved: u64,
    /// Items that were settled without a call: a crash now repeats none of them.
    passed: u64,
    side: BTreeMap<ItemIndex, SideRecord>,
    finish_at: Option<ItemIndex>,
    told: Directives,
    outstanding: Option<Outstanding>,
    no: u64,
    /// Watermark of the last draft.
    watermark: ItemIndex,
}

/// What was given to a checkpoint and not acknowledged yet.
#[derive(Debug)]
struct Outstanding {
    no: u64,
    reach: ItemIndex,
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

    /// So many items were settled, or parked.
    #[inline]
    pub(super) fn on_completed(&mut self, items: u32) {
        self.unsaved += u64::from(items);
    }

    /// So many items were settled without a call.
    #[inline]
    pub(super) fn on_passed(&mut self, items: u64) {
        self.passed += items;
    }

    /// The item's row changes; the last word counts.
    pub(super) fn record(&mut self, record: SideRecord) {
        self.side.insert(record.index(), record);
    }

    /// The item's row, which no checkpoint ever held, need not be written.
    pub(super) fn forget(&mut self, index: ItemIndex) {
        self.side.remove(&index);
    }

    /// The shard is cut here.
    pub(super) fn finish(&mut self, end: ItemIndex) {
        self.finish_at = Some(end);
        self.unsaved += 1;
    }

    /// All shards should know this, too.
    pub(super) fn tell(&mut self, news: Directives) {
        let earlier = std::mem::replace(&mut self.told, news);
        self.told.after(earlier);
    }

    /// Completions that would be repeated after a crash now.
    #[inline]
    pub(super) fn unsaved(&self) -> u64 {
        self.unsaved
    }

    /// How many failures more may wait to be written.
    pub(super) fn side_room(&self) -> u32 {
        u32::try_from(SIDE_RECORDS_MAX.saturating_sub(self.side.len())).unwrap_or(0)
    }

    /// Whether an item has changed since the last draft.
    #[inline]
    pub(super) fn has_items(&self) -> bool {
        self.unsaved > 0 || self.passed > 0 || !self.side.is_empty()
    }

    /// All of it, for the newest draft.
    fn give_out(&mut self, reach: ItemIndex) -> Outstanding {
        Outstanding {
            no: self.no,
            reach,
            unsaved: self.unsaved,
            passed: self.passed,
            side: std::mem::take(&mut self.side),
            finish_at: self.finish_at.take(),
            told: std::mem::take(&mut self.told),
        }
    }

    /// Watermark of the last draft.
    pub(super) fn watermark(&self) -> ItemIndex {
        self.watermark
    }
}

impl Execution {
    /// Half of what may be unsaved is: do not wait for the tick.
    pub(super) fn is_checkpoint_due(&self) -> bool {
        let drafts = &self.items.drafts;
        drafts.outstanding.is_none()
            && (drafts.side.len() >= SIDE_RECORDS_MAX / 2
                || drafts.unsaved > 0 && drafts.unsaved >= self.unsaved_max() / 2
                || self.items.is_mark_due()
                || self.has_news())
    }

    /// Whether nothing has happened that a checkpoint would hold, and none is on its way.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        matches!(self.phase, Phase::Running)
            && !self.items.drafts.has_items()
            && self.items.drafts.outstanding.is_none()
            && !self.items.is_mark_due()
            && !self.has_news()
    }

    /// Whether a checkpoint would say something beside what became of items.
    #[inline]
    fn has_news(&self) -> bool {
        self.is_reach_due()
            || self.items.canary.is_pass_due()
            || self.judge.is_outage_due()
            || !self.items.drafts.told.is_empty()
    }

    /// How many completions may be unsaved.
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
        let changed = self.items.drafts.has_items() || self.has_news() || end.is_some();
        if self.items.drafts.outstanding.is_some() || !changed {
            return None;
        }
        self.items.drafts.no += 1;
        let (no, reach) = (self.items.drafts.no, self.draft_reach());
        self.items.solo.on_drafted(no);
        let mut above = Vec::new();
        let span = self.items.window.copy_above(self.items.high, &mut above);
        let outage = self.judge.saved_outage();
        self.judge.on_drafted(outage);
        self.items.drafts.watermark = self.items.window.watermark();
        let outstanding = self.items.drafts.give_out(reach);
        let rows = outstanding.side.keys();
        rows.for_each(|index| self.items.troubles.mark_row(*index));
        let draft = CheckpointDraft {
            no,
            watermark: self.items.drafts.watermark,
            high_water: self.items.high,
            reach,
            counters: self.items.stored_counters(),
            above,
            span,
            side: outstanding.side.values().cloned().collect(),
            finish_at: outstanding.finish_at,
            canary_passed: self.items.canary.on_drafted(no),
            told: outstanding.told,
            outage,
            end,
        };
        self.items.drafts.outstanding = Some(outstanding);
        Some(draft)
    }
}

impl Items {
    pub(in crate::execution) fn stored_counters(&self) -> Counters {
        Counters {
            parked: self.troubles.outside(),
            in_flight: 0,
            ..self.counters
        }
    }

    /// Only what the acknowledged draft held is saved; what settled meanwhile stays unsaved.
    pub(in crate::execution) fn on_checkpoint_stored(&mut self, no: u64) {
        let outstanding = &mut self.drafts.outstanding;
        if let Some(stored) = outstanding.take_if(|outstanding| outstanding.no == no) {
            self.drafts.unsaved = self.drafts.unsaved.saturating_sub(stored.unsaved);
            self.drafts.passed = self.drafts.passed.saturating_sub(stored.passed);
            self.ahead.on_stored(stored.reach);
            self.solo.on_stored(no);
            self.canary.on_stored(no);
        }
    }

    /// Nobody will acknowledge the outstanding draft any more: all of it goes into the next one.
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
