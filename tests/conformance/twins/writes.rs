//! What runs save, honest ones and zombies.

use windrow_core::ids::{CheckpointSeq, ItemIndex, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::items::verdict::SideRecord;
use windrow_core::shards::Directives;
use windrow_core::task::lifecycle::StopReason;
use windrow_engine::ports::ownership::run_store::{CheckpointAck, RunClose, ShardCheckpoint};

use windrow_engine::ports::tasks::results::{ItemOutput, Segment};

use super::{ITEMS, Run, Twins, both};
use crate::fixture::{NOW, parked, retrying};

const CODES: [&str; 3] = ["BAD", "ODD", "TIMEOUT"];

impl Twins {
    pub(super) async fn checkpoint(&mut self, step: u32) {
        let repeats = self.below(6) == 0;
        let batch = match &self.last_write {
            Some(last) if repeats => vec![last.clone()],
            _ => {
                let mut drafts = Vec::new();
                for _ in 0..=self.below(2) {
                    drafts.extend(self.draft().await);
                }
                drafts
            }
        };
        let Some(last) = batch.last() else { return };
        self.last_write = Some(last.clone());
        let acks = both!(self, step, store => store.checkpoint(&batch)).unwrap();
        self.stored += acks.iter().filter(|ack| **ack == CheckpointAck::Stored).count() as u32;
    }

    /// A checkpoint of some run, mostly the newest; now and then one that lies.
    async fn draft(&mut self) -> Option<ShardCheckpoint> {
        let newest = self.runs.len().checked_sub(1)?;
        let at = if self.below(4) == 0 {
            self.below(newest as u64 + 1) as usize
        } else {
            newest
        };
        let moved = self.below(4);
        let run = &mut self.runs[at];
        run.seq += 1;
        run.watermark = (run.watermark + moved).min(run.end);
        let run = *run;
        let side: Vec<SideRecord> = (0..self.below(4)).map(|_| self.side()).collect();
        let parked = self.below(8) / 7;
        let close = self.close();
        if matches!(close, Some(RunClose::Done)) && self.below(4) > 0 {
            return Some(self.whole(&run).await);
        }
        let (kept, results) = (self.below(3), self.results());
        let watermark = if matches!(close, Some(RunClose::Done)) {
            ITEMS
        } else {
            run.watermark
        };
        Some(ShardCheckpoint {
            shard: run.shard,
            epoch: run.epoch,
            claim: run.claim,
            seq: CheckpointSeq(run.seq - self.below(8) / 7),
            watermark: ItemIndex(watermark - self.below(10) / 9 * watermark.min(1)),
            high_water: ItemIndex(watermark),
            horizon: ItemIndex(watermark + self.below(4)),
            counters: Counters {
                succeeded: watermark - parked.min(watermark),
                parked,
                ..Counters::default()
            },
            blob: vec![1, 2, 3],
            side,
            finish_at: (self.below(10) == 0).then(|| ItemIndex(self.below(ITEMS))),
            canary_passed: false,
            told: Directives::default(),
            outage: None,
            lines: Vec::new(),
            results_kept: kept,
            results,
            close,
            now: self.now,
        })
    }

    /// The honest end of a run: everything is settled and the counters are those of the recorded failures.
    async fn whole(&self, run: &Run) -> ShardCheckpoint {
        let groups = self.memory.store.groups(run.shard.task).await.unwrap();
        let failed = groups
            .iter()
            .map(|group| group.count)
            .sum::<u64>()
            .min(run.end - run.start);
        let succeeded = run.end - run.start - failed;
        let sums = self.memory.store.result_sums(run.shard.task).await.unwrap();
        let kept = sums.iter().find(|one| one.shard == run.shard);
        let results_kept = kept.map_or(0, |one| one.items);
        ShardCheckpoint {
            shard: run.shard,
            epoch: run.epoch,
            claim: run.claim,
            seq: CheckpointSeq(run.seq),
            watermark: ItemIndex(run.end),
            high_water: ItemIndex(run.end),
            horizon: ItemIndex(run.end),
            counters: Counters {
                succeeded,
                failed,
                ..Counters::default()
            },
            blob: Vec::new(),
            side: (0..ITEMS)
                .map(|index| SideRecord::Cleared(ItemIndex(index)))
                .collect(),
            finish_at: None,
            canary_passed: false,
            told: Directives::default(),
            outage: None,
            lines: Vec::new(),
            results_kept,
            results: Vec::new(),
            close: Some(RunClose::Done),
            now: self.now,
        }
    }

    /// A few segments; numbers come again, as those of a segment that grows do.
    fn results(&mut self) -> Vec<Segment> {
        let segment = |no, first: u64, len: u64| Segment {
            no,
            outputs: (first..=first + len)
                .map(|index| ItemOutput {
                    index: ItemIndex(index),
                    json: format!("{{\"n\":{index}}}").into(),
                })
                .collect(),
        };
        let count = self.below(3) as u32;
        (0..count)
            .map(|no| segment(no, self.below(ITEMS), self.below(4)))
            .collect()
    }

    fn side(&mut self) -> SideRecord {
        let index = self.below(ITEMS);
        let code = CODES[self.below(3) as usize];
        match self.below(8) {
            0..=2 => SideRecord::Retrying(retrying(index, code)),
            3..=4 => parked(index, WallMs(NOW.0 + self.below(50).cast_signed())),
            5 => SideRecord::Failed(retrying(index, code)),
            _ => SideRecord::Cleared(ItemIndex(index)),
        }
    }

    fn close(&mut self) -> Option<RunClose> {
        let not_before = WallMs(self.now.0 + 60);
        match self.below(16) {
            0 => Some(RunClose::Released),
            1 => Some(RunClose::Done),
            2 => Some(RunClose::stopped(StopReason::ErrorBudget, "too many".into())),
            3 => Some(RunClose::Recovering {
                not_before,
                reason: "r".into(),
                text: "t".into(),
                nth: Some(1),
            }),
            _ => None,
        }
    }

    pub(super) async fn release(&mut self, step: u32) {
        let Some(run) = self.runs.last().copied() else {
            return;
        };
        let now = self.now;
        let close = self.close().unwrap_or(RunClose::Released);
        if self.below(3) == 0 && close != RunClose::Done {
            both!(self, step, store => store.release(run.shard, run.epoch, run.claim, &close, now)).unwrap();
        }
    }
}
