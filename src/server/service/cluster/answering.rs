//! What other nodes are told: only of what runs here, and nothing that they could ask of the store.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::service::Service;
use crate::service::stats::of_task::POINTS_MAX;
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::settings::RateLimit;
use windrow_core::shards::Share;
use windrow_engine::ports::ownership::peers::{Answer, LiveTask, PastSlice, Question};

impl Service {
    /// The answer to a question; none for those that are about the process and not about tasks.
    pub async fn answer(&self, question: &Question) -> Option<Answer> {
        Some(match question {
            Question::Tasks(tasks) => Answer::Tasks(self.tasks_here(tasks)),
            Question::Windows(task, cells) => {
                let cells = NonZeroU32::new(*cells).unwrap_or(NonZeroU32::MIN);
                Answer::Windows(self.supervisor().windows(*task, cells))
            }
            Question::Past(task, from, to, step_ms) => {
                Answer::Past(self.past_here(*task, *from, *to, Duration::from_millis(*step_ms)))
            }
            Question::Explain(task, seconds) => Answer::Explain(Box::new(self.explain_part(*task, *seconds))),
            Question::Book { task, rate, is_trial } => self.book_here(*task, *rate, *is_trial).await,
            Question::Node | Question::Actors(_) | Question::Change(_) => return None,
        })
    }

    fn tasks_here(&self, tasks: &[TaskId]) -> Vec<LiveTask> {
        tasks.iter().filter_map(|task| self.live_here(*task)).collect()
    }

    /// What was counted of a task on this node.
    pub(in crate::service) fn past_here(
        &self,
        task: TaskId,
        from: WallMs,
        to: WallMs,
        step: Duration,
    ) -> Vec<PastSlice> {
        let slices = self
            .stats()
            .slices(task, self.moment_of(from), self.moment_of(to), step);
        let newest = slices
            .len()
            .saturating_sub(usize::try_from(POINTS_MAX).unwrap_or(usize::MAX) + 2);
        let slices = slices.into_iter().skip(newest);
        let past = |slice: windrow_core::stats::series::Slice| PastSlice {
            from: self.wall_of(slice.from),
            to: self.wall_of(slice.to),
            point: slice.point,
        };
        slices.map(past).collect()
    }

    async fn book_here(&self, task: TaskId, rate: RateLimit, is_trial: bool) -> Answer {
        let supervisor = self.supervisor();
        // Only asked of a node that runs a part of the task, which knows its share; a run that ended meanwhile books nothing.
        let booked = match is_trial {
            true => supervisor.would_book(task, rate, Share::ALL).await,
            false => supervisor.rebook(task, rate, Share::ALL).await,
        };
        match booked {
            Ok(()) => Answer::Booked,
            Err(refusal) => Answer::NoRoom {
                why: refusal.to_string(),
                free: refusal.free.to_string(),
            },
        }
    }
}
