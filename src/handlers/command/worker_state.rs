//! State of one worker's life as the pool knows it: the items it holds, and the number it may still get.
//!
//! Pure bookkeeping: never waits, never talks to a process. Invariants:
//! - items are in the order sent, so that a bare reply can answer the oldest;
//! - an item that nobody waits for any more (timed out, dropped, badly answered) keeps its slot until the worker
//!   answers it: a *held* item. The worker may still be busy with it;
//! - a worker that holds such an item too long retires: it gets no more items, and is killed as soon as the others
//!   have their answers.

use std::collections::VecDeque;

use tokio::sync::{mpsc, oneshot};

use super::answer::Answer;
use windrow_core::ids::{ItemIndex, Moment};
use windrow_core::items::verdict::HandlerCommand;

/// Item that was sent and that the worker has not answered.
#[derive(Debug)]
pub(super) struct Outstanding {
    pub(super) id: u64,
    pub(super) index: ItemIndex,
    /// True if the item has the worker to itself, since it was in flight in too many crashes.
    pub(super) alone: bool,
    /// Commands that the worker gave while this was its oldest item.
    pub(super) commands: Vec<HandlerCommand>,
    pub(super) waiting: Waiting,
}

/// Recipient of an item's answer.
#[derive(Debug)]
pub(super) enum Waiting {
    /// A call that waits for the answer.
    Call(oneshot::Sender<Answer>),
    /// Nobody; the worker may answer anyway for some time.
    Nobody {
        /// Time at which patience with the worker ends.
        until: Moment,
    },
}

/// Call that waited for an item which nobody waits for now.
pub(super) struct Awaited {
    pub(super) call: oneshot::Sender<Answer>,
    /// Commands that the worker gave in the meantime.
    pub(super) commands: Vec<HandlerCommand>,
}

impl Outstanding {
    /// Returns true if nobody waits for the item any more.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.waiting, Waiting::Nobody { .. })
    }

    /// Answers the call, if one still waits, with the commands given in the meantime.
    pub(super) fn answer(self, mut answer: Answer) {
        if let Waiting::Call(call) = self.waiting {
            answer.commands.extend(self.commands);
            // The call may have been dropped a moment ago; then nobody wants the answer.
            drop(call.send(answer));
        }
    }
}

/// Oddity of a worker that owes an answer: the likely cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    /// Nothing odd is known.
    None,
    /// The worker hasn't printed a line in its life.
    Silent,
    /// The worker answered an id that no item ever had.
    StrangeId(u64),
}

/// One life of a worker, from its first item on.
#[derive(Debug)]
pub(super) struct WorkerState {
    /// Queue of lines for the worker; `None` once stdin is to be closed.
    pub(super) outbox: Option<mpsc::UnboundedSender<String>>,
    /// Number of items the worker works on at once.
    pub(super) concurrency: u32,
    /// True if the worker may be sent `cancel`, `ping` and the like, since it understands more than items. A worker
    /// that answers every line with a bare word would answer those too.
    pub(super) takes_orders: bool,
    /// True once the worker has printed anything.
    pub(super) has_spoken: bool,
    /// Latest id that the worker answered and that was never given out.
    pub(super) strange_id: Option<u64>,
    /// True once the worker has answered an item.
    pub(super) has_answered: bool,
    /// Set once the worker gets no more items: it is killed at this time, as soon as nobody waits for one of its
    /// items.
    pub(super) retiring: Option<Moment>,
    /// Id of the item that waits for this worker to be empty.
    pub(super) reserved_for: Option<u64>,
    items: VecDeque<Outstanding>,
    /// Number of `items` that nobody waits for any more.
    held: u32,
}

impl WorkerState {
    /// Creates the state of a worker that may get its first item.
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

    /// Returns the number of items it holds.
    pub(super) fn load(&self) -> usize {
        self.items.len()
    }

    /// Adds an item that is sent to the worker and that a call waits for.
    pub(super) fn push(&mut self, item: Outstanding) {
        self.items.push_back(item);
    }

    /// Returns all items of a life that is over.
    pub(super) fn into_items(self) -> VecDeque<Outstanding> {
        self.items
    }

    /// Returns the likely cause of a missing answer, see [`Oddity`].
    pub(super) fn oddity(&self) -> Oddity {
        match self.strange_id {
            Some(id) => Oddity::StrangeId(id),
            None if self.has_spoken => Oddity::None,
            None => Oddity::Silent,
        }
    }

    /// Returns the number of items it can have in flight that somebody waits for.
    pub(super) fn slots(&self) -> u32 {
        if self.retiring.is_some() || self.outbox.is_none() {
            return 0;
        }
        if self.reserved_for.is_some() || self.is_exclusive() {
            return u32::from(self.held < self.concurrency);
        }
        self.concurrency.saturating_sub(self.held)
    }

    /// Returns true if it can take one more item now.
    pub(super) fn has_room(&self) -> bool {
        self.is_serving()
            && self.reserved_for.is_none()
            && !self.is_exclusive()
            && self.items.len() < self.concurrency as usize
    }

    /// Returns true if it may get items at all.
    pub(super) fn is_serving(&self) -> bool {
        self.retiring.is_none() && self.outbox.is_some()
    }

    fn is_exclusive(&self) -> bool {
        self.items.front().is_some_and(|item| item.alone)
    }

    /// Writes a line to the worker. If the worker is gone, the code that waits for its process notices.
    pub(super) fn tell(&self, line: String) {
        if let Some(outbox) = &self.outbox {
            // Closed: so is the worker's stdin, and its end is being handled.
            drop(outbox.send(line));
        }
    }

    /// Takes the item that an answer with this id refers to; without an id, the oldest.
    pub(super) fn take(&mut self, id: Option<u64>) -> Option<Outstanding> {
        // Ids are assigned before items are sent, so neighbors may be swapped.
        let at = match id {
            None => 0,
            Some(id) => self.items.iter().position(|item| item.id == id)?,
        };
        let item = self.items.remove(at)?;
        self.held -= u32::from(item.is_held());
        Some(item)
    }

    /// Makes this an item that nobody waits for: it keeps its slot until it is answered, or until `until`. Returns
    /// the call that waited, with the commands given in the meantime; `None` if none did.
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

    /// Returns the oldest item that somebody waits for.
    pub(super) fn oldest_awaited(&mut self) -> Option<&mut Outstanding> {
        self.items.iter_mut().find(|item| !item.is_held())
    }

    /// Retires the worker when its patience with a held item is over. Returns what is due.
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

    /// Returns the earliest time at which patience with a held item ends.
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

/// Action due for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Another look at this time, if nothing happens before.
    At(Option<Moment>),
    /// The worker is to be killed.
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
