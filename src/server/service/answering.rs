//! Replies to other nodes, only about runs on this node. Peers read everything else from the store.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::service::Service;
use windrow_core::ids::TaskId;
use windrow_core::settings::RateLimit;
use windrow_core::shards::Share;
use windrow_engine::ports::ownership::peers::{PeerReply, Question};

impl Service {
    /// Answers a question from a peer; `None` for questions about the process instead of tasks.
    pub async fn answer(&self, question: &Question) -> Option<PeerReply> {
        Some(match question {
            Question::Tasks(tasks) => PeerReply::Tasks(
                tasks
                    .iter()
                    .filter_map(|task| self.stats.live_here(*task))
                    .collect(),
            ),
            Question::Windows(task, cells) => {
                let cells = NonZeroU32::new(*cells).unwrap_or(NonZeroU32::MIN);
                PeerReply::Windows(self.node.supervisor.windows(*task, cells))
            }
            Question::Past(task, from, to, step_ms) => PeerReply::Past(self.stats.past_here(
                Some(*task),
                *from,
                *to,
                Duration::from_millis(*step_ms),
            )),
            Question::PastOfAll(from, to, step_ms) => {
                PeerReply::Past(
                    self.stats
                        .past_here(None, *from, *to, Duration::from_millis(*step_ms)),
                )
            }
            Question::Explain(task, seconds) => {
                PeerReply::Explain(Box::new(self.explain.part(*task, *seconds)))
            }
            Question::Book { task, rate, is_trial } => self.book_here(*task, *rate, *is_trial).await,
            Question::Node | Question::Actors(_) | Question::Change(_) => return None,
        })
    }

    async fn book_here(&self, task: TaskId, rate: RateLimit, is_trial: bool) -> PeerReply {
        let supervisor = self.supervisor();
        // Peers ask only nodes that run a part of the task, and the node knows its share. If the run has ended,
        // nothing is booked.
        let booked = match is_trial {
            true => supervisor.would_book(task, rate, Share::ALL).await,
            false => supervisor.rebook(task, rate, Share::ALL).await,
        };
        match booked {
            Ok(()) => PeerReply::Booked,
            Err(refusal) => PeerReply::NoRoom {
                why: refusal.to_string(),
                free: refusal.free.to_string(),
            },
        }
    }
}
