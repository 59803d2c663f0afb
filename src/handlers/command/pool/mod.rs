//! Workers of one handler as seen by its calls: free slots, the items each worker holds, the announced slots.
//!
//! Never starts or kills a process (`worker` and `life` do), never reads a line. One lock, never held across a wait.
//! Invariants:
//! - each id is given to one worker once, and leaves the pool exactly once: answered, crashed or closed;
//! - the announced slots never exceed what workers can begin at once, so nothing queues here while its time runs;
//! - an item in flight in [`CRASHES_TOGETHER_MAX`] crashes is sent to an empty worker only.

mod starts;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::answer::{Answer, Judged};
use super::protocol;
use super::worker_state::{Awaited, Due, Oddity, Outstanding, Waiting, WorkerState};
use windrow_core::ids::{ItemIndex, Moment};
use windrow_core::items::verdict::{Failure, HandlerCommand};
use windrow_engine::ports::handling::handler::Workers;

/// Crashes that an item may share with others before it runs alone.
const CRASHES_TOGETHER_MAX: u32 = 3;
/// Consecutive lives that end before doing anything, after which the command itself is considered faulty. (Three, as
/// for every other handler that refuses.)
const FAILED_LIVES_MAX: u32 = 3;
/// Surplus answers after which the command itself is considered faulty: each may have settled an item that was not
/// done.
const SURPLUS_MAX: u32 = 3;
/// Answers after which a surplus one is forgiven.
const SURPLUS_FORGIVEN_AFTER: u64 = 10_000;
/// Maximum number of items whose crashes are remembered; above it, those seen in only one crash are forgotten.
const CRASHED_ITEMS_MAX: usize = 65_536;

/// Way in which a worker's life ended.
#[derive(Debug)]
pub(super) enum End {
    /// The worker left in good order.
    Left,
    /// We ended the worker; its items are not suspects.
    Ended(Failure),
    /// The worker died on its own; one of its items may be the cause.
    Crashed(Failure),
}

/// Result of an attempt to send an item.
pub(super) enum Sending {
    /// The item was sent to a worker.
    Sent {
        /// Position of the worker in the pool.
        worker: usize,
        /// Receiver of the item's answer.
        answer: oneshot::Receiver<Answer>,
    },
    /// No worker is free now.
    Wait,
    /// No worker will become free.
    Refused(Judged),
}

/// All workers of a handler, with their items and slots.
pub(super) struct Pool {
    state: Mutex<State>,
    slots: watch::Sender<Option<u32>>,
    closing: watch::Sender<bool>,
    /// Notified when a slot may have become free, or never will.
    freed: Notify,
    /// Per worker: notified when its items changed in a way that its supervisor should look at.
    stirred: Vec<Notify>,
    next_id: AtomicU64,
}

#[derive(Default)]
struct State {
    workers: Vec<Option<WorkerState>>,
    crashes: HashMap<ItemIndex, u32>,
    has_answered: bool,
    /// Consecutive lives that crashed with items and had answered none.
    mute_lives: u32,
    /// Consecutive lives that ended before they got an item.
    failed_starts: u32,
    /// Reason why no worker can be started; reset when one begins.
    broken: Option<Failure>,
    /// Reason why no worker's answers can be trusted; never reset.
    untrusted: Option<Failure>,
    surplus: u32,
    answers_since_surplus: u64,
    /// Commands given while no item was in flight; the next answer takes them.
    commands: Vec<HandlerCommand>,
    /// Number of slots last announced.
    announced: u32,
}

impl Pool {
    /// Creates a pool of `workers` workers, none of which has begun.
    pub(super) fn new(workers: usize) -> Pool {
        let state = State {
            workers: (0..workers).map(|_| None).collect(),
            ..State::default()
        };
        Pool {
            state: Mutex::new(state),
            slots: watch::Sender::new(Some(0)),
            closing: watch::Sender::new(false),
            freed: Notify::new(),
            stirred: (0..workers).map(|_| Notify::new()).collect(),
            next_id: AtomicU64::new(1),
        }
    }

    /// Returns an id for an item or a call that was never used before.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Subscribes to the number of items that may be in flight.
    pub(super) fn slots(&self) -> watch::Receiver<Option<u32>> {
        self.slots.subscribe()
    }

    /// Returns the workers that have begun, by whether they hold an item.
    pub(super) fn workers(&self) -> Workers {
        let state = self.lock();
        let begun = state.workers.iter().flatten();
        begun.fold(Workers::default(), |sum, worker| {
            let busy = u32::from(worker.load() > 0);
            sum.plus(Workers { busy, idle: 1 - busy })
        })
    }

    /// Subscribes to the closing of the handler.
    pub(super) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Refuses further items and asks the supervisors to end.
    pub(super) fn close(&self) {
        self.closing.send_replace(true);
        self.change(|_| ());
    }

    /// Completes when a slot may have become free. Create it before asking for a slot: it notices whatever becomes
    /// free from then on.
    pub(super) fn freed(&self) -> tokio::sync::futures::Notified<'_> {
        self.freed.notified()
    }

    /// Completes when a worker's items need another look. Cancel safe.
    pub(super) async fn stirred(&self, worker: usize) {
        self.stirred[worker].notified().await;
    }

    /// Sends an item to a worker with room. Takes `line` if it was sent.
    pub(super) fn try_send(&self, id: u64, index: ItemIndex, line: &mut String) -> Sending {
        if *self.closing.borrow() {
            return Sending::Refused(Judged::NotSent);
        }
        // Quietly: a caller that waits for a slot asks here again and again, and must not wake itself.
        self.change_quietly(|state| {
            if let Some(why) = state.fault() {
                let judged = match (&state.untrusted, state.has_answered) {
                    (Some(_), _) => Judged::Rejected,
                    (None, true) => Judged::Unreached,
                    (None, false) => Judged::Unstarted,
                };
                return Sending::Refused(judged(why.clone()));
            }
            let alone = state
                .crashes
                .get(&index)
                .is_some_and(|crashes| *crashes >= CRASHES_TOGETHER_MAX);
            let found = if alone {
                state.empty_worker(id)
            } else {
                state.free_worker()
            };
            let Some((worker, worker_state)) = found else {
                return Sending::Wait;
            };
            let (call, answer) = oneshot::channel();
            let waiting = Waiting::Call(call);
            worker_state.push(Outstanding {
                id,
                index,
                alone,
                commands: Vec::new(),
                waiting,
            });
            worker_state.tell(std::mem::take(line));
            Sending::Sent { worker, answer }
        })
    }

    /// Removes the reservation under this id, since nobody waits for a slot any more.
    pub(super) fn unreserve(&self, id: u64) {
        self.change(|state| {
            let reserved = state
                .live()
                .find(|worker_state| worker_state.reserved_for == Some(id));
            reserved
                .into_iter()
                .for_each(|worker_state| worker_state.reserved_for = None);
        });
    }

    /// Marks an item that nobody waits for any more. Returns what is odd about its worker.
    pub(super) fn give_up(&self, worker: usize, id: u64, until: Moment) -> Oddity {
        let oddity = self.change(|state| {
            let Some(worker_state) = state.workers[worker].as_mut() else {
                return Oddity::None;
            };
            let oddity = worker_state.oddity();
            let Some(awaited) = worker_state.hold(id, until) else {
                return oddity;
            };
            if worker_state.takes_orders {
                worker_state.tell(protocol::cancel(id));
            }
            state.commands.extend(awaited.commands);
            oddity
        });
        self.stirred[worker].notify_one();
        oddity
    }

    pub(super) fn has_given_out(&self, id: u64) -> bool {
        (1..self.next_id.load(Ordering::Relaxed)).contains(&id)
    }

    /// Records that a worker may get its first item.
    pub(super) fn began(
        &self,
        worker: usize,
        outbox: mpsc::UnboundedSender<String>,
        takes_orders: bool,
        has_spoken: bool,
    ) {
        self.change(|state| {
            state.broken = None;
            let mut begun = WorkerState::new(outbox);
            (begun.takes_orders, begun.has_spoken) = (takes_orders, has_spoken);
            state.workers[worker] = Some(begun);
        });
    }

    /// Edits the state of a worker's life, if it has begun.
    pub(super) fn edit<T>(&self, worker: usize, edit: impl FnOnce(&mut WorkerState) -> T) -> Option<T> {
        self.change(|state| state.workers[worker].as_mut().map(edit))
    }

    /// Takes the item that an answer with this id (or without one) refers to; it is no longer outstanding.
    pub(super) fn take(&self, worker: usize, id: Option<u64>) -> Option<Outstanding> {
        self.change(|state| {
            let worker_state = state.workers[worker].as_mut()?;
            let item = worker_state.take(id)?;
            worker_state.has_answered = true;
            state.on_answered(item.index);
            Some(item)
        })
    }

    /// Passes a worker's answer to the item's call, with the commands that had no item to go with.
    pub(super) fn answer(&self, item: Outstanding, mut answer: Answer) {
        if !item.is_held() {
            answer.commands.extend(std::mem::take(&mut self.lock().commands));
        }
        item.answer(answer);
    }

    /// Fails the oldest awaited item, whose worker printed something that is no answer. Returns false if there is no
    /// such item. The item keeps its slot until `until`, since the answer may follow.
    pub(super) fn on_garbage(&self, worker: usize, failure: Failure, until: Moment) -> bool {
        let known = self.edit(worker, |worker_state| {
            let id = worker_state.oldest_awaited()?.id;
            let Awaited { call, commands } = worker_state.hold(id, until)?;
            // The call may have been dropped a moment ago.
            drop(call.send(Answer {
                commands,
                ..Judged::BadReply(failure).into()
            }));
            Some(())
        });
        self.stirred[worker].notify_one();
        known.flatten().is_some()
    }

    /// Counts an answer that nobody asked for.
    pub(super) fn on_surplus_answer(&self, why: &Failure) {
        self.change(|state| {
            let forgiven = std::mem::take(&mut state.answers_since_surplus) >= SURPLUS_FORGIVEN_AFTER;
            state.surplus = if forgiven { 1 } else { state.surplus + 1 };
            if state.surplus >= SURPLUS_MAX {
                state.untrusted = Some(why.clone());
            }
        });
    }

    /// Attaches a command to the answer of the item that the worker has worked on longest.
    pub(super) fn on_command(&self, worker: usize, command: HandlerCommand) {
        self.change(|state| {
            let item = state.workers[worker]
                .as_mut()
                .and_then(WorkerState::oldest_awaited);
            match item {
                Some(item) => item.commands.push(command),
                None => state.commands.push(command),
            }
        });
    }

    /// Returns what is due for a worker at `now`.
    pub(super) fn review(&self, worker: usize, now: Moment) -> Due {
        self.edit(worker, |worker_state| worker_state.review(now))
            .unwrap_or(Due::At(None))
    }

    /// Ends a worker's life and answers its items.
    pub(super) fn ended(&self, worker: usize, end: &End) {
        let judged = self.change(|state| state.on_ended(worker, end));
        for (item, judged) in judged {
            item.answer(judged.into());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes callers that wait for a slot.
    fn change<T>(&self, edit: impl FnOnce(&mut State) -> T) -> T {
        let result = self.change_quietly(edit);
        self.freed.notify_waiters();
        result
    }

    /// Changes the state and announces the slots if their number changed.
    fn change_quietly<T>(&self, edit: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = edit(&mut state);
        let slots = if *self.closing.borrow() { 0 } else { state.slots() };
        if std::mem::replace(&mut state.announced, slots) != slots {
            self.slots.send_replace(Some(slots));
        }
        result
    }
}

impl State {
    fn live(&mut self) -> impl Iterator<Item = &mut WorkerState> {
        self.workers.iter_mut().flatten()
    }

    /// Returns the slots to announce. A broken pool announces one, so that a caller learns why it is broken.
    fn slots(&self) -> u32 {
        let slots = self.workers.iter().flatten().fold(0_u32, |sum, worker_state| {
            sum.saturating_add(worker_state.slots())
        });
        slots.max(u32::from(self.fault().is_some()))
    }

    /// Returns the failure that makes the command itself unusable.
    fn fault(&self) -> Option<&Failure> {
        self.untrusted.as_ref().or(self.broken.as_ref())
    }

    /// Returns the least loaded worker with room.
    fn free_worker(&mut self) -> Option<(usize, &mut WorkerState)> {
        let workers = self.workers.iter_mut().enumerate();
        let free = workers.filter_map(|(worker, worker_state)| {
            worker_state
                .as_mut()
                .filter(|worker_state| worker_state.has_room())
                .map(|worker_state| (worker, worker_state))
        });
        free.min_by_key(|(_, worker_state)| worker_state.load())
    }

    /// Returns a worker that holds nothing. If there is none, reserves the least loaded one, which gets no more items
    /// until it is empty.
    fn empty_worker(&mut self, call: u64) -> Option<(usize, &mut WorkerState)> {
        let workers = self.workers.iter_mut().enumerate();
        let usable = workers.filter_map(|(worker, worker_state)| {
            let worker_state = worker_state
                .as_mut()
                .filter(|worker_state| worker_state.is_serving());
            worker_state
                .filter(|worker_state| worker_state.reserved_for.is_none_or(|other| other == call))
                .map(|worker_state| (worker, worker_state))
        });
        let (worker, worker_state) = usable
            .min_by_key(|(_, worker_state)| (worker_state.reserved_for.is_none(), worker_state.load()))?;
        let is_empty = worker_state.load() == 0;
        worker_state.reserved_for = (!is_empty).then_some(call);
        is_empty.then_some((worker, worker_state))
    }

    fn on_answered(&mut self, index: ItemIndex) {
        self.has_answered = true;
        self.mute_lives = 0;
        self.failed_starts = 0;
        self.answers_since_surplus += 1;
        self.crashes.remove(&index);
    }

    fn on_ended(&mut self, worker: usize, end: &End) -> Vec<(Outstanding, Judged)> {
        let worker_state = self.workers[worker].take();
        let has_answered = worker_state
            .as_ref()
            .is_some_and(|worker_state| worker_state.has_answered);
        let items = worker_state.map(WorkerState::into_items).unwrap_or_default();
        if let (End::Crashed(why), false) = (end, has_answered) {
            self.on_futile_life(items.is_empty(), why);
        }
        let judged = items.into_iter().map(|item| {
            let judged = self.judge(&item, end);
            (item, judged)
        });
        judged.collect()
    }

    fn judge(&mut self, item: &Outstanding, end: &End) -> Judged {
        match end {
            End::Left => Judged::Lost(Failure::new(
                "WORKER_CLOSED",
                "the workers were closed before the item was answered",
            )),
            End::Ended(why) => Judged::Lost(why.clone()),
            End::Crashed(_) if item.is_held() => Judged::NotSent,
            End::Crashed(why) if item.alone => {
                let message = format!("the item crashed its worker again, alone in it: {}", why.message);
                let mut failure = Failure::new(why.code.clone(), message);
                failure.output.clone_from(&why.output);
                Judged::Lost(failure)
            }
            End::Crashed(why) => {
                self.on_crashed(item.index);
                let is_hopeless = !self.has_answered && self.mute_lives >= FAILED_LIVES_MAX;
                if is_hopeless {
                    Judged::Rejected(why.clone())
                } else {
                    Judged::Lost(why.clone())
                }
            }
        }
    }

    fn on_crashed(&mut self, index: ItemIndex) {
        if self.crashes.len() >= CRASHED_ITEMS_MAX {
            self.crashes.retain(|_, crashes| *crashes > 1);
        }
        *self.crashes.entry(index).or_insert(0) += 1;
    }
}
