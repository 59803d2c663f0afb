//! What the pool knows of one worker's life: which items it holds, and how many more it may get.
//!
//! Pure bookkeeping: never waits, never talks to a process. What holds:
//! - items stand in the order sent, so that a bare reply can answer the oldest;
//! - an item that nobody waits for any more (timed out, dropped, badly answered) still holds its slot until the
//!   worker answers it: a *held* item. The worker may still be busy with it;
//! - a worker that holds such an item too long retires: it gets no more items, and is killed as soon as the others
//!   have their answers.

use std::collections::VecDeque;

use tokio::sync::{mpsc, oneshot};

use super::answer::Answer;
use windrow_core::ids::{ItemIndex, Moment};
use windrow_core::items::verdict::HandlerCommand;

/// An item that was sent and not answered by the worker.
#[derive(Debug)]
pub(super) struct Outstanding {
    pub(super) id: u64,
    pub(super) index: ItemIndex,
    /// Whether it has the worker for itself, since it was in flight in too many crashes.
    pub(super) alone: bool,
    /// Commands that the worker gave while this was its oldest item.
    pub(super) commands: Vec<HandlerCommand>,
    pub(super) waiting: Waiting,
}

/// Who waits for an item.
#[derive(Debug)]
pub(super) enum Waiting {
    /// A call.
    Call(oneshot::Sender<Answer>),
    /// Nobody; the worker may take until then to answer anyway.
    Nobody {
        /// When patience ends.
        until: Moment,
    },
}

/// Who waited for an item that nobody waits for now.
pub(super) struct Awaited {
    pub(super) call: oneshot::Sender<Answer>,
    /// What the worker commanded meanwhile.
    pub(super) commands: Vec<HandlerCommand>,
}

impl Outstanding {
    /// Whether nobody waits for it any more.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.waiting, Waiting::Nobody { .. })
    }

    /// Answers the call, if one still waits, with the commands given meanwhile.
    pub(super) fn answer(self, mut answer: Answer) {
        if let Waiting::Call(call) = self.waiting {
            answer.commands.extend(self.commands);
            // The call may have been dropped a moment ago; then nobody wants the answer.
            drop(call.send(answer));
        }
    }
}

/// What is odd with a worker of which an answer is missing: the likely cause of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    /// Nothing.
    None,
    /// It hasn't printed a line in its life.
    Silent,
    /// It answered an id that no item ever had.
    StrangeId(u64),
}

/// One life of a worker, from its first item on.
#[derive(Debug)]
pub(super) struct WorkerState {
    /// Lines for the worker; none once stdin is to be closed.
    pub(super) outbox: Option<mpsc::UnboundedSender<String>>,
    /// How many items it works on at once.
    pub(super) concurrency: u32,
    /// Whether it understands more than items: it may be sent `cancel`, `ping` and the like. A worker that answers
    /// every line with a bare word would answer those too.
    pub(super) takes_orders: bool,
    /// Whether it has printed anything yet.
    pub(super) has_spoken: bool,
    /// The latest id that it answered and that was never given out.
    pub(super) strange_id: Option<u64>,
    /// Whether it has answered an item yet.
    pub(super) has_answered: bool,
    /// Gets no more items; killed at this time, once nobody waits for one of its items.
    pub(super) retiring: Option<Moment>,
    /// The call that waits for this worker to be empty.
    pub(super) reserved_for: Option<u64>,
    items: VecDeque<Outstanding>,
    /// How many of them nobody waits for any more.
    held: u32,
}

impl WorkerState {
    /// A worker that may get its first item.
    pub(super) fn new(outbox: mpsc::UnboundedSender<String>) -> WorkerState {
        WorkerState {
            outbox: Some(outbox),
            concurrency: 1,
            takes_orders: false,
            has_spoken: false,
            strange_id: None,
            has_answered: false,
            retiring: None,
            reserved_for: None,
            items: VecDeque::new(),
            held: 0,
        }
    }

    /// How many items it holds.
    pub(super) fn load(&self) -> usize {
        self.items.len()
    }

    /// An item that somebody waits for is sent to it.
    pub(super) fn push(&mut self, item: Outstanding) {
        self.items.push_back(item);
    }

    /// All its items, since its life is over.
    pub(super) fn into_items(self) -> VecDeque<Outstanding> {
        self.items
    }

    /// See [`Oddity`].
    pub(super) fn oddity(&self) -> Oddity {
        match self.strange_id {
            Some(id) => Oddity::StrangeId(id),
            None if self.has_spoken => Oddity::None,
            None => Oddity::Silent,
        }
    }

    /// How many items it can have in flight that somebody waits for.
    pub(super) fn slots(&self) -> u32 {
        if self.retiring.is_some() || self.outbox.is_none() {
            return 0;
        }
        if self.reserved_for.is_some() || self.is_exclusive() {
            return u32::from(self.held < self.concurrency);
        }
        self.concurrency.saturating_sub(self.held)
    }

    /// Whether it can take one more item, now.
    pub(super) fn has_room(&self) -> bool {
        self.is_serving()
            && self.reserved_for.is_none()
            && !self.is_exclusive()
            && self.items.len() < self.concurrency as usize
    }

    /// Whether it may get items at all.
    pub(super) fn is_serving(&self) -> bool {
        self.retiring.is_none() && self.outbox.is_some()
    }

    fn is_exclusive(&self) -> bool {
        self.items.front().is_some_and(|item| item.alone)
    }

    /// Writes a line to the worker. A worker that is gone is noticed by whoever waits for its process.
    pub(super) fn tell(&self, line: String) {
        if let Some(outbox) = &self.outbox {
            // Closed: the worker's stdin is; its end is being handled.
            drop(outbox.send(line));
        }
    }

    /// Takes the item that an answer with this id means; without an id the oldest.
    pub(super) fn take(&mut self, id: Option<u64>) -> Option<Outstanding> {
        // Ids are given before items are sent, so neighbours may stand the other way round.
        let at = match id {
            None => 0,
            Some(id) => self.items.iter().position(|item| item.id == id)?,
        };
        let item = self.items.remove(at)?;
        self.held -= u32::from(item.is_held());
        Some(item)
    }

    /// Nobody waits for this item any more: it keeps its slot until it is answered, or until then. Says who waited, and
    /// which commands came meanwhile; none where nobody did.
    pub(super) fn hold(&mut self, id: u64, until: Moment) -> Option<Awaited> {
        let item = self.items.iter_mut().find(|item| item.id == id)?;
        match std::mem::replace(&mut item.waiting, Waiting::Nobody { until }) {
            Waiting::Call(call) => {
                self.held += 1;
                let commands = std::mem::take(&mut item.commands);
                Some(Awaited { call, commands })
            }
            before @ Waiting::Nobody { .. } => {
                item.waiting = before;
                None
            }
        }
    }

    /// The oldest item that somebody waits for.
    pub(super) fn oldest_awaited(&mut self) -> Option<&mut Outstanding> {
        self.items.iter_mut().find(|item| !item.is_held())
    }

    /// Retires the worker when its patience with a held item is over; says what is due.
    pub(super) fn review(&mut self, now: Moment) -> Due {
        let patience = self.patience();
        if self.retiring.is_none() && patience.is_some_and(|until| until <= now) {
            self.retiring = Some(now);
        }
        let is_awaited = self.items.len() > self.held as usize;
        match self.retiring {
            None => Due::At(patience),
            Some(_) if is_awaited => Due::At(None),
            Some(at) if at <= now => Due::Kill,
            Some(at) => Due::At(Some(at)),
        }
    }

    /// Until when it may take for the item that it may take least for.
    fn patience(&self) -> Option<Moment> {
        if self.held == 0 {
            return None;
        }
        let until = self.items.iter().filter_map(|item| match item.waiting {
            Waiting::Nobody { until } => Some(until),
            Waiting::Call(_) => None,
        });
        until.min()
    }
}

/// What a worker has coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Another look at that time, if nothing happens before.
    At(Option<Moment>),
    /// Its end.
    Kill,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker_state(concurrency: u32) -> WorkerState {
        WorkerState {
            concurrency,
            ..WorkerState::new(mpsc::unbounded_channel().0)
        }
    }

    fn item(id: u64) -> (Outstanding, oneshot::Receiver<Answer>) {
        let (call, answer) = oneshot::channel();
        let waiting = Waiting::Call(call);
        (
            Outstanding {
                id,
                index: ItemIndex(id),
                alone: false,
                commands: Vec::new(),
                waiting,
            },
            answer,
        )
    }

    #[test]
    fn a_held_item_keeps_its_slot_until_it_is_answered() {
        let mut worker_state = worker_state(2);
        let (first, _first) = item(1);
        worker_state.push(first);
        assert_eq!((worker_state.slots(), worker_state.has_room()), (2, true));
        assert!(worker_state.hold(1, Moment(10)).is_some());
        assert_eq!((worker_state.slots(), worker_state.has_room()), (1, true));
        assert!(worker_state.take(Some(1)).is_some_and(|item| item.is_held()));
        assert_eq!(worker_state.slots(), 2);
    }

    #[test]
    fn a_worker_that_holds_an_item_too_long_lets_the_others_finish_before_it_dies() {
        let mut worker_state = worker_state(2);
        let ((first, _first), (second, _second)) = (item(1), item(2));
        for item in [first, second] {
            worker_state.push(item);
        }
        assert!(worker_state.hold(1, Moment(10)).is_some());
        assert_eq!(worker_state.review(Moment(9)), Due::At(Some(Moment(10))));
        assert_eq!(worker_state.review(Moment(10)), Due::At(None));
        assert_eq!((worker_state.slots(), worker_state.has_room()), (0, false));
        assert_eq!(worker_state.take(Some(2)).map(|item| item.id), Some(2));
        assert_eq!(worker_state.review(Moment(11)), Due::Kill);
    }

    #[test]
    fn an_answer_without_id_means_the_oldest_even_when_nobody_waits_for_it() {
        let mut worker_state = worker_state(2);
        let ((first, _first), (second, _second)) = (item(1), item(2));
        for item in [first, second] {
            worker_state.push(item);
        }
        assert!(worker_state.hold(1, Moment(10)).is_some());
        assert!(
            worker_state
                .take(None)
                .is_some_and(|item| item.id == 1 && item.is_held())
        );
        assert!(worker_state.take(Some(1)).is_none(), "an id is answered once");
    }
}
