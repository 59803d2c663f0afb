//! What of the node's capacity is booked. Admitting and booking are one step, so that concurrent starts can't exceed it.

use tokio::sync::oneshot;

use crate::actors::launcher::share::{Booked, Part};
use crate::actors::runtime::context::RoomBoard;
use windrow_core::capacity::{Ledger, Refusal};
use windrow_core::ids::{ShardId, TaskId};
use windrow_core::settings::RateLimit;
use windrow_core::shards::Share;

/// Who asked to book a rate hears whether it fits.
pub(crate) type Answer = oneshot::Sender<Result<(), Refusal>>;

pub(crate) struct Booking {
    pub(crate) ledger: Ledger,
    room: RoomBoard,
}

impl Booking {
    pub(crate) fn new(ledger: Ledger, room: RoomBoard) -> Booking {
        Booking { ledger, room }
    }

    /// Writes how much is taken where others read it.
    pub(crate) fn publish(&self, waiting: usize) {
        self.room.write(&self.ledger, waiting);
    }

    /// Books another rate for what runs of a task; says whether less is booked than before.
    pub(crate) fn rebook(&mut self, task: TaskId, rate: RateLimit, share: Share, answer: Answer) -> bool {
        let before = self.ledger.held_sum();
        send(
            task,
            answer,
            self.ledger.change_task(task, rate, share).map(|_| ()),
        );
        self.ledger.held_sum() < before
    }

    pub(crate) fn try_book(&self, task: TaskId, rate: RateLimit, share: Share, answer: Answer) {
        let outcome = self.ledger.clone().change_task(task, rate, share);
        send(task, answer, outcome.map(|_| ()));
    }

    /// Books another part for one shard; says whether less is booked than before.
    pub(crate) fn book(&mut self, shard: ShardId, part: Part, answer: Booked) -> bool {
        let before = self.ledger.held_sum();
        answer(self.ledger.change_share(shard, part.share, part.rate).map(|_| ()));
        self.ledger.held_sum() < before
    }
}

fn send(task: TaskId, answer: Answer, outcome: Result<(), Refusal>) {
    if answer.send(outcome).is_err() {
        tracing::debug!(%task, "nobody waits for the answer to a change of the booking");
    }
}
