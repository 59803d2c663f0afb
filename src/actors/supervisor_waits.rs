//! Why tasks wait: told to the store once for each reason, many at a time, never from the mailbox.

use std::collections::BTreeMap;

use super::supervisor::{Msg, State};
use crate::domain::capacity::{Obstacle, Refusal};
use crate::domain::ids::{TaskId, WallMs};
use crate::ports::task_store::WaitNote;

/// Reasons of one write; what is left is told after the next scan.
const REASONS_PER_WRITE: usize = 1_000;

/// Why a task waits, and since when: one that is stopped and started again lost the reason that was stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(super) refusal: Refusal,
    pub(super) since: WallMs,
}

/// What the store was told.
#[derive(Default)]
pub(super) struct Waits {
    /// Only of tasks that the last scan found waiting.
    told: BTreeMap<TaskId, Wait>,
    /// How many the last scan found waiting.
    waiting: usize,
    telling: bool,
}

impl Waits {
    /// How many tasks wait.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }
}

/// The slug of a reason.
fn slug(obstacle: Obstacle) -> &'static str {
    match obstacle {
        Obstacle::TooBig => "too_big",
        Obstacle::BusinessFull | Obstacle::BusinessTooBig => "business_limit",
        Obstacle::Behind(_) => "behind",
        Obstacle::Full | Obstacle::Held | Obstacle::NotHeld => "capacity",
    }
}

fn note((task, Wait { refusal, .. }): &(TaskId, Wait)) -> WaitNote {
    let reason = slug(refusal.obstacle).to_owned();
    WaitNote { task: *task, reason, text: refusal.waiting_text() }
}

/// Whether people would read the same.
fn is_same(one: &Wait, other: &Wait) -> bool {
    let read = |Wait { refusal, since }: &Wait| (refusal.obstacle, refusal.need, refusal.capacity, *since);
    read(one) == read(other)
}

impl State {
    /// Says why tasks wait, once per reason. `refused` is everything that waits now.
    pub(super) fn explain(&mut self, refused: BTreeMap<TaskId, Wait>) {
        self.waits.waiting = refused.len();
        self.waits.told.retain(|task, _| refused.contains_key(task));
        if self.waits.telling {
            return;
        }
        let is_new = |(task, wait): &(TaskId, Wait)| {
            !self.waits.told.get(task).is_some_and(|told| is_same(told, wait))
        };
        let news: Vec<_> = refused.into_iter().filter(is_new).take(REASONS_PER_WRITE).collect();
        if news.is_empty() {
            return;
        }
        self.waits.telling = true;
        let (node, me) = (self.node.clone(), self.me.clone());
        tokio::spawn(self.me.guard(async move {
            let notes: Vec<WaitNote> = news.iter().map(note).collect();
            let told = match node.tasks.explain_waits(&notes, node.clock.wall()).await {
                Ok(()) => news,
                Err(error) => {
                    tracing::warn!(%error, "reasons for waiting were not stored; again after the next scan");
                    Vec::new()
                }
            };
            me.tell(Msg::Explained(told));
        }));
    }

    /// A task that was started meanwhile lost its reason with that.
    pub(super) fn on_explained(&mut self, reasons: Vec<(TaskId, Wait)>) {
        self.waits.telling = false;
        let waiting = reasons.into_iter().filter(|(task, _)| !self.runs.holds_task(*task));
        self.waits.told.extend(waiting);
    }
}
