//! What people and businesses do to tasks.

use windrow_core::ids::{ItemCount, ItemIndex, WallMs};
use windrow_core::task::lifecycle::StopReason;
use windrow_core::task::spec::{Shards, SpecPatch, TaskSpec};
use windrow_engine::ports::tasks::store::{NewTask, TaskCommand, TaskEdit};

use super::{ITEMS, Twins, both, comparable};
use crate::fixture::{task, tuning, wait_note, write};

impl Twins {
    pub(super) async fn create(&mut self, step: u32) {
        let key = self.below(8);
        let new = NewTask {
            idempotency_key: (self.below(2) == 0).then(|| format!("key{key}")),
            total: ItemCount(ITEMS - self.below(2)),
            spec: TaskSpec {
                name: (self.below(2) == 0).then(|| format!("name{key}")),
                skip_first: ItemIndex(self.below(3)),
                priority: self.below(3) as i32,
                shards: Shards(windrow_core::settings::Auto::Fixed(std::num::NonZeroU32::MIN)),
                ..TaskSpec::default()
            },
            ..task(ITEMS)
        };
        let now = self.now;
        both!(self, step, store => async {
            store.create(&new, &write(), now).await.map(comparable)
        })
        .ok();
    }

    pub(super) async fn command(&mut self, step: u32) {
        let (id, now) = (self.task(), self.now);
        let command = match self.below(20) {
            0..=9 => TaskCommand::Start,
            10..=11 => TaskCommand::Stop {
                reason: StopReason::Business,
            },
            12 => TaskCommand::StopNow,
            13 => TaskCommand::Tune(Box::new(tuning())),
            14 => TaskCommand::Finish {
                end: ItemIndex(ITEMS / 2 + self.below(ITEMS / 2 + 1)),
            },
            15 => TaskCommand::Recover,
            16 => self.edit(),
            17 => self.start_or_answer(),
            _ if self.below(3) == 0 => TaskCommand::Cancel,
            _ => {
                both!(self, step, store => store.explain_waits(&[wait_note(id, "waits")], now)).unwrap();
                both!(self, step, store => store.release_name(id, &write(), now)).ok();
                if self.below(12) == 0 {
                    both!(self, step, store => store.delete(id, &write(), now)).ok();
                }
                return;
            }
        };
        both!(self, step, store => async {
            store.command(id, &command, &write(), now).await.map(comparable)
        })
        .ok();
    }

    fn edit(&mut self) -> TaskCommand {
        let total = (self.below(2) == 0).then(|| ItemCount(ITEMS - 2 + self.below(4)));
        let skip_first = (self.below(3) == 0).then(|| ItemIndex(self.below(3)));
        let name = (self.below(3) == 0).then(|| format!("name{}", self.below(8)));
        TaskCommand::Edit(Box::new(TaskEdit {
            total,
            spec: SpecPatch {
                skip_first,
                name: name.map(Some),
                ..SpecPatch::default()
            },
            ..TaskEdit::default()
        }))
    }

    fn start_or_answer(&mut self) -> TaskCommand {
        let start_no = 1 + self.below(3) as u32;
        match self.below(5) {
            3 => TaskCommand::Fail {
                code: format!("C{}", self.below(4)),
            },
            4 => TaskCommand::StartJudging(None),
            0 => TaskCommand::StartAt(WallMs(self.now.0 + self.below(60).cast_signed())),
            1 => TaskCommand::Ready {
                start_no,
                edit: Box::default(),
            },
            _ => TaskCommand::NotReady {
                start_no,
                text: "not today".to_owned(),
            },
        }
    }
}
