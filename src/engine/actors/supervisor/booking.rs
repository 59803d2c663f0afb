//! Bookings of the node's capacity. Admitting and booking are one step, so that concurrent starts can't exceed it.

use std::collections::{BTreeMap, HashSet};

use tokio::sync::oneshot;

use crate::actors::launcher::share::{Booked, Part};
use crate::actors::runtime::context::RoomBoard;
use windrow_core::capacity::{Admission, Ledger, Refusal, Request};
use windrow_core::ids::{Moment, ShardId, TaskId};
use windrow_core::settings::RateLimit;
use windrow_core::shards::Share;

/// Channel for the result of a booking: whether the rate fits.
pub(crate) type Answer = oneshot::Sender<Result<(), Refusal>>;

pub(crate) struct Booking {
    pub(crate) ledger: Ledger,
    room: RoomBoard,
    /// Requests still waiting after the last scan.
    line: Vec<Request>,
}

impl Booking {
    pub(crate) fn new(ledger: Ledger, room: RoomBoard) -> Booking {
        Booking {
            ledger,
            room,
            line: Vec::new(),
        }
    }

    /// Books every waiting request that fits, and remembers the others.
    pub(crate) fn admit(
        &mut self,
        waiting: Vec<Request>,
        ends: impl FnOnce() -> BTreeMap<ShardId, Moment>,
        now: Moment,
    ) -> Vec<Admission> {
        let admissions = self.ledger.admit(&waiting, ends, now);
        let refused = admissions.iter().filter(|admission| admission.outcome.is_err());
        let refused: HashSet<ShardId> = refused.map(|admission| admission.shard).collect();
        self.line = waiting;
        self.line.retain(|request| refused.contains(&request.rank.shard));
        admissions
    }

    /// Checks whether a shard would be booked if it stood in the line now.
    pub(crate) fn try_admit(
        &self,
        request: Request,
        ends: impl FnOnce() -> BTreeMap<ShardId, Moment>,
        now: Moment,
        answer: Answer,
    ) {
        let task = request.rank.shard.task;
        let others = self.line.iter().filter(|other| other.rank.shard.task != task);
        let line: Vec<Request> = others.cloned().chain([request]).collect();
        let admissions = self.ledger.clone().admit(&line, ends, now);
        let own = admissions
            .into_iter()
            .find(|admission| admission.shard.task == task);
        send(task, answer, own.map_or(Ok(()), |own| own.outcome.map(drop)));
    }

    /// Writes the use of the capacity where others read it.
    pub(crate) fn publish(&self, waiting: usize) {
        self.room.write(&self.ledger, waiting);
    }

    /// Books another rate for the running shards of a task. Returns true if less is booked than before.
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

    /// Books another share for one shard. Returns true if less is booked than before.
    pub(crate) fn book(&mut self, shard: ShardId, part: Part, answer: Booked) -> bool {
        let before = self.ledger.held_sum();
        answer(self.ledger.change_share(shard, part.share, part.rate).map(|_| ()));
        self.ledger.held_sum() < before
    }
}

fn send(task: TaskId, answer: Answer, outcome: Result<(), Refusal>) {
    if answer.send(outcome).is_err() {
        tracing::debug!(%task, "booking changed; no one waits for the answer");
    }
}
