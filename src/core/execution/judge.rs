//! What calls without success mean: for the circuit, and for the items that they were for.
//!
//! An item may be given up for what *it* did, never for what happened to everybody. Calls that can't have had an effect, and
//! refusals of us as such, are never charged. Calls of which nobody knows what they did are charged provisionally: an outage
//! excuses those that departed after the last answered call, and an item that has used all its attempts on them is *held*
//! until a call for another item that departed later was answered. `alone` decides when nothing else is left.

use std::time::Duration;

use super::Execution;
use super::circuit::{Circuit, Others, Turn, Unanswered};
use super::errors::Errors;
use super::types::{Effects, Now, Reports, RunEnd, Start};
use crate::ids::{ItemIndex, Moment};
use crate::items::retry::mix;
use crate::items::verdict::{AnsweredCalls, Failed, FailedCall, Failure, FailureClass, Outage};
use crate::items::waiting::{Doing, Place, Trouble};
use crate::task::lifecycle::StopReason;

/// So many calls in a row that refuse us, or that can't be understood, stop the task.
const REFUSALS_MAX: usize = 3;
/// So many answers of 400 and the like, before the first verdict, do: the first items may be bad ones.
const FAULTS_MAX: usize = 10;
/// Probes that reached the handler after which a task without any success stops.
const REACHED_PROBES_MAX: u32 = 20;
/// So many after which its attempts are believed, where people have decided that it is the items (`judge_after` is zero).
const DECIDED_PROBES_MAX: u32 = 3;
/// The code of an item that may not be tried again and whose only attempt an outage swallowed.
const OUTCOME_UNKNOWN: &str = "OUTCOME_UNKNOWN";

/// See the module.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) circuit: Circuit,
    pub(super) errors: Errors,
    /// The handler has given a verdict about an item.
    pub(super) contacted: bool,
    /// Something other than a definite fault came back before that.
    unclear_contact: bool,
    first_contact: Option<Moment>,
    refusals: Refusals,
    /// Unclear attempts that are charged and not yet counted against the error budget.
    doubtful: u64,
    reached_probes: u32,
    pub(super) alone: super::alone::Alone,
    pub(super) given_up: super::given_up::GivenUp,
    /// The probe that was sent one window ahead.
    pub(super) ahead: Option<ItemIndex>,
    /// The outage as the last draft told it.
    pub(super) drafted: Option<Outage>,
}

/// Refusals in a row, and the items that they were for.
#[derive(Debug, Default)]
struct Refusals {
    calls: usize,
    strict: usize,
    items: Vec<ItemIndex>,
}

impl Judge {
    pub(super) fn new(start: &Start, now: Moment) -> Judge {
        let (shard, outage) = (start.shard, start.restored.outage);
        let salt = mix(shard.task.0.unsigned_abs().rotate_left(32) ^ u64::from(shard.no));
        let contacted = start.restored.counters.settled() > 0;
        Judge {
            circuit: Circuit::new(outage, salt, now),
            errors: Errors::default(),
            contacted,
            unclear_contact: false,
            first_contact: start.first_contact.map(|span| now.plus(span)),
            refusals: Refusals::default(),
            doubtful: 0,
            reached_probes: 0,
            alone: super::alone::Alone::default(),
            given_up: super::given_up::GivenUp::default(),
            ahead: None,
            drafted: outage,
        }
    }

    /// When the run ends because its handler was never reached, or only ever found fault.
    pub(super) fn first_contact(&self) -> Option<Moment> {
        self.first_contact.filter(|_| !self.contacted)
    }

    /// Whether an answered call would change anything.
    #[inline]
    fn is_stirred(&self) -> bool {
        !self.contacted
            || self.circuit.is_stirred()
            || self.doubtful > 0
            || self.refusals.calls > 0
            || self.alone.is_on()
    }
}

impl Execution {
    /// Takes in what calls say of the handler, in the order in which they came back.
    #[inline]
    pub(super) fn on_calls(&mut self, reports: &mut Reports, now: Now, fx: &mut Effects) {
        let last = std::mem::take(&mut reports.answered);
        for call in reports.calls.drain(..) {
            self.on_answered(call.before, now, fx);
            self.on_failed_call(&call, now, fx);
        }
        self.on_answered(last, now, fx);
    }

    #[inline]
    fn on_answered(&mut self, answered: AnsweredCalls, now: Now, fx: &mut Effects) {
        let matters =
            self.judge.is_stirred() || self.pauses_in_a_row > 0 || self.troubles.held_first().is_some();
        if answered.calls > 0 && matters {
            self.on_verdicts(answered, now, fx);
        }
    }

    /// The handler answers: what failed before it did is explained, or isn't.
    fn on_verdicts(&mut self, answered: AnsweredCalls, now: Now, fx: &mut Effects) {
        self.pauses_in_a_row = 0;
        self.judge.contacted = true;
        self.judge.refusals = Refusals::default();
        self.judge.alone.end();
        let most = self.calls_at_most();
        let turn = self
            .judge
            .circuit
            .on_answered(answered.calls, answered.departed, most, now.moment);
        if turn == Turn::Answered {
            self.on_handler_back(now);
        }
        for _ in 0..std::mem::take(&mut self.judge.doubtful) {
            if self.budget.on_failed_attempt(now.moment) {
                self.recover_from_failures();
            }
        }
        while let Some((_, index)) = self
            .troubles
            .held_first()
            .filter(|(since, _)| *since <= answered.departed)
        {
            self.give_up_held(index, now, fx);
        }
    }

    /// Calls that may be in flight.
    fn calls_at_most(&self) -> u32 {
        self.limits.concurrency.div_ceil(self.tuning.batch.get()).max(1)
    }

    fn on_failed_call(&mut self, call: &FailedCall, now: Now, fx: &mut Effects) {
        self.judge.errors.note(call, now.wall);
        let class = match call.class {
            FailureClass::Faulty if self.judge.contacted => FailureClass::Answered,
            class => class,
        };
        match class {
            FailureClass::Answered => {
                let one = AnsweredCalls {
                    calls: 1,
                    departed: call.departed,
                };
                return self.on_answered(one, now, fx);
            }
            FailureClass::Faulty | FailureClass::Rejected => self.on_refusal(call),
            FailureClass::Unclear => self.judge.unclear_contact = true,
            FailureClass::Unreachable | FailureClass::Unavailable => {}
        }
        if class == FailureClass::Unclear {
            self.count_reached_probe(call, now, fx);
            if self.judge.alone.is_over() {
                return;
            }
        }
        let first_failed = self.troubles.get(call.index).map(|trouble| trouble.failed_first);
        let answered = self.judge.circuit.answered();
        let is_new = first_failed.is_none_or(|first| first.is_some_and(|departed| departed > answered));
        let (index, departed, after) = (call.index, call.departed, call.after);
        let call = Unanswered {
            class,
            item: index,
            is_new,
            departed,
            after,
        };
        let others = Others {
            can_leave: self.can_leave(),
            in_order: self.tuning.ordered,
            most: self.calls_at_most(),
        };
        let turn = self
            .judge
            .circuit
            .on_unanswered(call, others, now.moment, now.wall);
        if turn == Turn::Opened {
            self.excuse_all(now);
        }
    }

    /// How many different items could leave, at most.
    fn can_leave(&self) -> u64 {
        if self.tuning.ordered { 1 } else { self.left() }
    }

    fn on_refusal(&mut self, call: &FailedCall) {
        let can_leave = usize::try_from(self.can_leave()).unwrap_or(usize::MAX).max(1);
        let refusals = &mut self.judge.refusals;
        refusals.calls += 1;
        refusals.strict += usize::from(call.class == FailureClass::Rejected);
        if refusals.items.len() < FAULTS_MAX && !refusals.items.contains(&call.index) {
            refusals.items.push(call.index);
        }
        let (strict, all) = (refusals.strict, refusals.calls);
        let is_over =
            |calls: usize, most: usize| calls >= most && refusals.items.len() >= most.min(can_leave);
        if is_over(strict, REFUSALS_MAX) || is_over(all, FAULTS_MAX) {
            let text = format!("{}: {}", call.failure.code, call.failure.message);
            self.stop(RunEnd::stopped(StopReason::HandlerRejected, text));
        }
    }

    fn count_reached_probe(&mut self, call: &FailedCall, now: Now, fx: &mut Effects) {
        if self.has_succeeded() || self.judge.circuit.is_closed() {
            return;
        }
        self.judge.reached_probes += 1;
        let is_decided = self.whole.judge_after.is_zero();
        let most = if is_decided {
            DECIDED_PROBES_MAX
        } else {
            REACHED_PROBES_MAX
        };
        match (self.judge.reached_probes >= most, is_decided) {
            (false, _) => {}
            (true, true) => self.believe_attempts(now, fx),
            (true, false) => self.stop_without_success(&call.failure),
        }
    }

    pub(super) fn stop_without_success(&mut self, last: &Failure) {
        let text = format!(
            "the handler was reached again and again, and no item ever succeeded; the last one said {}: {}",
            last.code, last.message
        );
        self.stop(RunEnd::stopped(StopReason::NoItemSucceeds, text));
    }

    /// Whether an item of this shard ever ended well, in this run or before.
    pub(super) fn has_succeeded(&self) -> bool {
        self.counters.succeeded + self.counters.skipped > 0
    }

    /// Whether the attempt counts against its item.
    pub(super) fn is_charged(&mut self, failed: &Failed, trouble: &mut Trouble) -> bool {
        match failed.class {
            FailureClass::Answered => true,
            FailureClass::Faulty => self.judge.contacted,
            FailureClass::Rejected | FailureClass::Unreachable | FailureClass::Unavailable => false,
            FailureClass::Unclear => !self.is_excused(failed.departed, trouble),
        }
    }

    fn is_excused(&mut self, departed: Moment, trouble: &mut Trouble) -> bool {
        let outage = self.judge.circuit.outages();
        if !self.judge.circuit.excuses(departed) || self.judge.alone.is_over() {
            return false;
        }
        trouble.outage == outage || self.try_excuse(trouble, outage)
    }

    /// An item that has been in as many outages as it has attempts may be what causes them.
    fn try_excuse(&self, trouble: &mut Trouble, outage: u32) -> bool {
        let most = self.tuning.max_attempts.get();
        let may = most > 1 && trouble.excused < most;
        if may {
            (trouble.excused, trouble.outage) = (trouble.excused + 1, outage);
        }
        may
    }

    /// An outage begins: unclear attempts that departed after the last answered call aren't charged.
    fn excuse_all(&mut self, now: Now) {
        self.judge.doubtful = 0;
        let (answered, outage) = (self.judge.circuit.answered(), self.judge.circuit.outages());
        let doubted = |trouble: &Trouble| trouble.doubts.iter().any(|departed| *departed > answered);
        let found = self
            .troubles
            .iter()
            .filter(|(_, trouble)| doubted(trouble))
            .map(|(index, _)| index);
        let found: Vec<ItemIndex> = found.collect();
        for index in found {
            let Some(mut trouble) = self.troubles.take(index) else {
                continue;
            };
            let excused = trouble
                .doubts
                .iter()
                .filter(|departed| **departed > answered)
                .count() as u32;
            if self.try_excuse(&mut trouble, outage) {
                trouble.charged = trouble.charged.saturating_sub(excused);
                trouble.doubts.retain(|departed| *departed <= answered);
                if matches!(trouble.doing, Doing::Held(_)) {
                    trouble.doing = Doing::Waiting(now.moment);
                    trouble.held = None;
                }
                self.record(index, &trouble);
            }
            self.troubles.put(index, trouble);
        }
    }

    /// The first answer after an outage: what waits because of it needn't wait any longer, and a block of items that fails
    /// beside one that doesn't makes room.
    fn on_handler_back(&mut self, now: Now) {
        let went_ahead = self
            .judge
            .ahead
            .take()
            .is_some_and(|index| self.troubles.get(index).is_none());
        let waits = |t: &Trouble| matches!(t.doing, Doing::Waiting(_)) && (t.uncharged > 0 || went_ahead);
        let found = self
            .troubles
            .iter()
            .filter(|(_, t)| waits(t))
            .map(|(index, _)| index);
        let found: Vec<ItemIndex> = found.collect();
        for index in found {
            let Some(mut trouble) = self.troubles.take(index) else {
                continue;
            };
            if went_ahead && trouble.place == Place::Window && self.has_room_to_park() && !self.tuning.ordered
            {
                self.wait_for_retry(
                    index,
                    trouble,
                    self.tuning.park_after + Duration::from_secs(1),
                    now,
                );
            } else {
                trouble.doing = Doing::Waiting(now.moment);
                self.troubles.put(index, trouble);
            }
        }
    }

    /// All attempts are used, the last one without a verdict: the item waits for a witness.
    pub(super) fn hold(&mut self, index: ItemIndex, mut trouble: Trouble, now: Now, fx: &mut Effects) {
        let is_only = self.tuning.max_attempts.get() == 1;
        if is_only {
            self.excuse_code(&mut trouble);
        }
        if is_only || self.judge.alone.is_over() {
            if self.tuning.ordered {
                self.judge.alone.on_given_up_in_order();
            }
            return self.exhaust(index, trouble, now, fx);
        }
        self.park_if_room(index, &mut trouble);
        trouble.held.get_or_insert((now.moment, 0));
        trouble.doing = Doing::Held(now.moment);
        trouble.due_at = now.wall;
        self.record(index, &trouble);
        self.troubles.put(index, trouble);
    }

    /// An item that may be tried once only is given up in an outage too, and says that nobody knows what came of it.
    fn excuse_code(&self, trouble: &mut Trouble) {
        let is_outage = trouble
            .doubts
            .last()
            .is_some_and(|departed| self.judge.circuit.excuses(*departed));
        if let Some(failure) = trouble.failure.as_mut().filter(|_| is_outage) {
            let message = format!(
                "only one attempt is allowed, and the handler was down: {}",
                failure.message
            );
            *failure = Failure::new(OUTCOME_UNKNOWN, message);
        }
    }

    pub(super) fn give_up_held(&mut self, index: ItemIndex, now: Now, fx: &mut Effects) {
        if let Some(trouble) = self.troubles.take(index) {
            self.exhaust(index, trouble, now, fx);
        }
    }

    /// Notes a charged attempt: at once, or once an answer shows that it wasn't an outage.
    pub(super) fn count_against_budget(&mut self, class: FailureClass, now: Now) {
        if class == FailureClass::Unclear {
            self.judge.doubtful += 1;
        } else if self.budget.on_failed_attempt(now.moment) {
            self.recover_from_failures();
        }
    }

    /// Ends a run whose handler was never reached in time, or is down for longer than the task waits.
    pub(super) fn judge_patience(&mut self, now: Now) {
        let Some(error) = self.judge.errors.last() else {
            return;
        };
        let said = format!("{}: {}", error.code, error.example);
        let refused = matches!(error.class, FailureClass::Rejected | FailureClass::Faulty);
        if self
            .judge
            .first_contact()
            .is_some_and(|until| now.moment >= until)
            && !self.judge.unclear_contact
        {
            let reason = if refused {
                StopReason::HandlerRejected
            } else {
                StopReason::HandlerUnreachable
            };
            return self.stop(RunEnd::stopped(reason, said));
        }
        let patience = self.whole.outage_patience;
        let is_over = |outage: Outage| now.wall.since(outage.since) >= patience && self.shared.all_down;
        if self.judge.circuit.outage().is_some_and(is_over) {
            let span = humane(patience);
            let text =
                format!("the handler was down for {span}; {said}; nothing is lost, start the task to go on");
            self.stop(RunEnd::stopped(StopReason::HandlerUnreachable, text));
        }
    }
}

fn humane(span: Duration) -> String {
    let seconds = span.as_secs();
    match (seconds % 3600, seconds % 60) {
        (0, _) => format!("{} h", seconds / 3600),
        (_, 0) => format!("{} min", seconds / 60),
        (_, _) => format!("{seconds} s"),
    }
}
