//! What calls without success mean: for the circuit, and for the items that they were for.
//!
//! An item may be given up for what *it* did, never for what happened to everybody. Calls that can't have had an effect, and
//! refusals of us as such, are never charged. Calls of which nobody knows what they did are charged provisionally: an outage
//! excuses those that departed after the last answered call, and an item that has used all its attempts on them is *held*
//! until a call for another item that departed later was answered (`excuse`). `alone` decides when nothing else is left,
//! `patience` how long any of it is borne, `probe` what leaves meanwhile, `refused` what a refusal says,
//! `unavailable` what a 502 or 503 does.

mod alone;
mod call_size;
pub(super) mod circuit;
pub(super) mod errors;
mod excuse;
mod exited;
mod given_up;
mod patience;
mod probe;
mod refused;
mod silent_calls;
mod tail;
pub(super) mod turned_away;
mod unavailable;

use crate::execution::items::Items;
use crate::execution::settings::Settings;
use std::time::Duration;

use super::Execution;
use super::types::{Effects, Now, Reports, RunEnd, Start};
use crate::ids::{ItemIndex, Moment};
use crate::items::error_budget::Meter;
use crate::items::retry::doubled;
use crate::items::verdict::{AnsweredCalls, FailedCall, Failure, FailureClass, HandlerState, Outage, Paused};
use crate::items::waiting::{Doing, Place, Trouble};
use crate::task::Tuning;
use circuit::{Circuit, Others, Turn, Unanswered};

/// Held items that are named to people.
const HELD_NAMED: usize = 3;
/// The first pause after 429 without `Retry-After`, doubled each time in a row up to the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

#[derive(Debug)]
pub(super) struct Judge {
    pub(super) circuit: circuit::Circuit,
    pub(super) errors: errors::Errors,
    pub(super) turned_away: turned_away::TurnedAway,
    pub(super) budget: Meter,
    pub(super) call_size: call_size::CallSize,
    /// End of the run that was asked for in this step.
    end: Option<RunEnd>,
    /// When the run began.
    began: Moment,
    /// The handler has given a verdict about an item.
    contacted: bool,
    /// It succeeded in the task whose failures these items are: its faults are theirs, whatever came before them.
    is_proven: bool,
    /// Something other than a definite fault came back before that.
    unclear_contact: bool,
    first_contact: Option<Moment>,
    refusals: refused::Refusals,
    exits: exited::Exits,
    /// The run before ended in an outage: what it saw fail says nothing against items.
    began_down: bool,
    /// Fresh items that met a 502 or 503.
    unavailable: u64,
    /// Those of them that were answered later.
    recovered: u64,
    /// Unclear attempts that are charged and not yet counted against the error budget.
    doubtful: u64,
    reached_probes: u32,
    pauses_in_a_row: u32,
    /// What the last call said that was turned away, since the last verdict.
    turned_away_with: Option<String>,
    alone: alone::Alone,
    tail: tail::Tail,
    given_up: given_up::GivenUp,
    /// The probe that was sent one window ahead.
    ahead: Option<ItemIndex>,
    /// The outage as the last draft told it.
    drafted: Option<Outage>,
}

impl Judge {
    pub(super) fn new(start: &Start, tuning: &Tuning, now: Moment) -> Judge {
        Judge {
            circuit: Circuit::of(start.shard, start.restored.outage, now),
            errors: errors::Errors::default(),
            turned_away: turned_away::TurnedAway::default(),
            budget: Meter::new(tuning.error_budget, tuning.error_window),
            call_size: call_size::CallSize::new(tuning.batch.get(), start.restored.outage.is_some()),
            end: None,
            began: now,
            contacted: start.restored.counters.settled() > 0,
            is_proven: start.restored.is_proven,
            unclear_contact: false,
            first_contact: start.first_contact.map(|span| now.plus(span)),
            refusals: refused::Refusals::default(),
            exits: exited::Exits::of(start.restored.outage),
            began_down: start.restored.outage.is_some(),
            unavailable: 0,
            recovered: 0,
            doubtful: 0,
            reached_probes: 0,
            pauses_in_a_row: 0,
            turned_away_with: None,
            alone: alone::Alone::default(),
            tail: tail::Tail::default(),
            given_up: given_up::GivenUp::default(),
            ahead: None,
            drafted: start.restored.outage,
        }
    }

    /// Asks for the end of the run. The first wish counts, but one for good outranks one that would run on by itself.
    pub(super) fn stop(&mut self, end: RunEnd) {
        let is_lesser = self
            .end
            .as_ref()
            .is_none_or(|before| matches!(before, RunEnd::Recovering { .. }));
        if is_lesser && (self.end.is_none() || matches!(end, RunEnd::Stopped { .. })) {
            self.end = Some(end);
        }
    }

    /// The end that was asked for since the last time.
    #[inline]
    pub(super) fn take_end(&mut self) -> Option<RunEnd> {
        self.end.take()
    }

    /// A call for an item failed; `trouble` is what was known of it.
    pub(super) fn on_failed(&mut self, class: FailureClass, trouble: &Trouble, now: Moment) {
        if matches!(class, FailureClass::Unreachable | FailureClass::Unstarted) {
            self.alone.on_unreachable(now);
        } else {
            let was_unavailable = trouble.last == Some(FailureClass::Unavailable);
            let is_odd = was_unavailable && class != FailureClass::Unavailable;
            self.alone.on_failed(is_odd);
        }
    }

    /// An item that had failed ended well.
    pub(super) fn on_recovered(&mut self, trouble: &Trouble) {
        self.recovered += u64::from(trouble.unavailable.is_first);
    }

    /// Keeps what a call said that was turned away.
    pub(super) fn on_turned_away(&mut self, failure: &Failure) {
        self.turned_away_with = Some(format!("{}: {}", failure.code, failure.message));
    }

    /// Nothing that was settled shows that the handler was ever reached.
    pub(super) fn doubt_contact(&mut self) {
        self.contacted = false;
    }

    /// Whether the handler is known to take requests of this kind, so that what it finds fault with is the item.
    #[inline]
    fn takes_requests(&self) -> bool {
        self.contacted || self.is_proven
    }

    /// When the run ends because its handler was never reached, or only ever found fault.
    pub(super) fn first_contact(&self) -> Option<Moment> {
        self.first_contact.filter(|_| !self.contacted)
    }

    /// How long calls rest after one that was turned away without a time.
    pub(super) fn next_pause(&mut self) -> Duration {
        self.pauses_in_a_row += 1;
        doubled(PAUSE, self.pauses_in_a_row - 1)
    }

    /// The outage that a take-over should know.
    #[inline]
    pub(super) fn saved_outage(&self, circuit: &Circuit) -> Option<Outage> {
        // A run that goes on with the last items would bear it as one that began before them.
        self.outage(circuit).filter(|_| !self.tail.is_on())
    }

    /// The outage that people are told: none where it is the items that are left.
    #[inline]
    pub(super) fn outage(&self, circuit: &Circuit) -> Option<Outage> {
        circuit.outage().filter(|_| !self.alone.is_of_items())
    }

    /// Whether an outage began or ended since the last draft.
    #[inline]
    pub(super) fn is_outage_due(&self, circuit: &Circuit) -> bool {
        let since = |outage: Option<Outage>| outage.map(|outage| outage.since);
        since(self.saved_outage(circuit)) != since(self.drafted)
    }

    /// The outage is in a draft.
    pub(super) fn on_drafted(&mut self, outage: Option<Outage>) {
        self.drafted = outage;
    }

    /// Whether an answered call would change anything.
    #[inline]
    fn is_stirred(&self) -> bool {
        !self.contacted
            || self.doubtful > 0
            || self.pauses_in_a_row > 0
            || self.turned_away_with.is_some()
            || self.refusals.is_row()
            || self.alone.is_on()
            || self.tail.is_on()
    }
}

impl Execution {
    /// How the handler fares.
    pub fn handler(&self, now: Now) -> HandlerState {
        let next_probe = self.judge.circuit.next_probe();
        let tail_left = self.judge.tail_left(&self.settings, now);
        let tried = match tail_left {
            Some(_) => self.items.troubles.which(|_| true),
            None => self.judge.tried_alone(&self.items, &self.settings, now),
        };
        let named = tried.len();
        HandlerState {
            contacted: self.judge.contacted,
            outage: self.judge.outage(&self.judge.circuit),
            next_probe_in: next_probe.map(|next| next.since(now.moment)),
            error: self.judge.errors.lately(),
            held: named as u64,
            held_items: tried.into_iter().take(HELD_NAMED).collect(),
            held_tries: self.judge.tries_left(&self.items, &self.settings, named),
            judged_in: tail_left.or_else(|| self.judge.judged_in(&self.items, &self.settings, now)),
            unjudged: if tail_left.is_some() {
                0
            } else {
                self.judge.unjudged()
            },
            paused: self.pace.paused(now.moment).map(|until| Paused {
                left: until.since(now.moment),
                said: self.judge.turned_away_with.clone(),
            }),
        }
    }
}

impl Judge {
    /// Takes in what calls say of the handler, in the order in which they came back.
    #[inline]
    pub(in crate::execution) fn on_calls(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        reports: &mut Reports,
        now: Now,
        fx: &mut Effects,
    ) {
        let last = std::mem::take(&mut reports.answered);
        for mut call in reports.calls.drain(..) {
            self.on_programs_answered(call.before);
            self.on_answered(items, settings, call.before, now, fx);
            self.count_exit(items, &call);
            call.class = self.class_now(call.class);
            self.on_failed_call(items, settings, &call, now, fx);
        }
        self.on_programs_answered(last);
        self.on_answered(items, settings, last, now, fx);
    }

    #[inline]
    pub(in crate::execution) fn on_answered(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        answered: AnsweredCalls,
        now: Now,
        fx: &mut Effects,
    ) {
        if answered.calls > 0 {
            self.turned_away.on_answered(answered);
            self.call_size.on_answered(settings.tuning.batch.get());
        }
        let is_stirred = self.is_stirred() || self.circuit.is_stirred();
        let matters = is_stirred || items.troubles.held_first().is_some();
        if answered.calls > 0 && matters {
            self.on_verdicts(items, settings, answered, now, fx);
        }
    }

    /// The handler answers: what failed before it did is explained, or isn't.
    pub(in crate::execution) fn on_verdicts(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        answered: AnsweredCalls,
        now: Now,
        fx: &mut Effects,
    ) {
        self.pauses_in_a_row = 0;
        self.turned_away_with = None;
        self.contacted = true;
        self.refusals.on_answered();
        self.alone.end();
        self.tail.on_answered(now.moment);
        let most = settings.calls_at_most();
        let turn = self
            .circuit
            .on_answered(answered.calls, answered.departed, most, now.moment);
        if turn == Turn::Answered {
            self.on_handler_back(items, settings, now);
        }
        self.count_doubtful(items, settings, now.moment);
        while let Some((_, index)) = items
            .troubles
            .held_first()
            .filter(|(since, _)| *since <= answered.departed)
        {
            self.give_up_held(items, settings, index, now, fx);
        }
    }

    /// The attempts of which nobody knew what they did weren't an outage's: they count.
    pub(in crate::execution) fn count_doubtful(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        now: Moment,
    ) {
        let doubtful = std::mem::take(&mut self.doubtful);
        let is_over = (0..doubtful).fold(false, |over, _| {
            self.is_one_too_many(items, settings, now) || over
        });
        if let Some(last) = self.errors.last().filter(|_| is_over).cloned() {
            self.recover_from_failures(settings, &last.code, &last.example);
        }
    }

    pub(in crate::execution) fn on_failed_call(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        call: &FailedCall,
        now: Now,
        fx: &mut Effects,
    ) {
        self.errors.note(call, now.wall);
        let class = match call.class {
            FailureClass::Faulty if self.takes_requests() => FailureClass::Answered,
            FailureClass::Unsendable => return self.on_unsendable(items, settings, call),
            FailureClass::Rejected if self.is_own_refusal_of(items, settings, call) => {
                return self.on_own_refusal(call);
            }
            class => class,
        };
        // Of the first calls a refusal is evidence of the request, however many items they have.
        let is_unclear = matches!(class, FailureClass::Unclear | FailureClass::Unavailable);
        let may_share = is_unclear || self.takes_requests();
        if may_share && settings.is_shared_failure(call.class, call.items) {
            return self.on_shared_failure(items, settings, call, class, now, fx);
        }
        match class {
            // A program's exit code was read as one of the others.
            FailureClass::Answered | FailureClass::Exited => {
                let one = AnsweredCalls {
                    calls: 1,
                    departed: call.departed,
                };
                return self.on_answered(items, settings, one, now, fx);
            }
            FailureClass::Faulty | FailureClass::Rejected | FailureClass::Unstarted => {
                self.on_refusal(items, settings, call)
            }
            FailureClass::Unclear => self.unclear_contact = true,
            FailureClass::Unreachable | FailureClass::Unavailable | FailureClass::Unsendable => {}
        }
        if class == FailureClass::Unclear {
            self.count_reached_probe(items, settings, call, now, fx);
        }
        let alone = &self.alone;
        let is_believed = match class {
            FailureClass::Unclear => alone.is_of_items() || alone.is_over(),
            FailureClass::Unavailable => alone.is_of_items() || alone.charges_unavailable(),
            _ => false,
        };
        if is_believed || self.is_tail_over() {
            return;
        }
        self.tell_circuit(items, settings, call, class, now);
    }

    /// What a call without a verdict says of whether the handler answers at all.
    pub(in crate::execution) fn tell_circuit(
        &mut self,
        items: &mut Items,
        settings: &Settings,
        call: &FailedCall,
        class: FailureClass,
        now: Now,
    ) {
        let known = items
            .troubles
            .get(call.index)
            .filter(|trouble| !trouble.is_only_turned_away());
        let first_failed = known.map(|trouble| trouble.failed_first);
        let answered = self.circuit.answered();
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
            can_leave: items.can_leave(settings),
            is_fresh_left: items.is_fresh_left(),
            in_order: settings.tuning.ordered,
            most: settings.calls_at_most(),
        };
        let turn = self.circuit.on_unanswered(call, others, now.moment, now.wall);
        if turn == Turn::Opened {
            self.call_size.on_down();
            self.excuse_all(items, settings, now);
        }
    }

    /// The first answer after an outage: what waits because of it needn't wait any longer, and a block of items that fails
    /// beside one that doesn't makes room.
    pub(in crate::execution) fn on_handler_back(&mut self, items: &mut Items, settings: &Settings, now: Now) {
        let went_ahead = self
            .ahead
            .take()
            .is_some_and(|index| items.troubles.get(index).is_none());
        let waits = |t: &Trouble| matches!(t.doing, Doing::Waiting(_)) && (t.uncharged > 0 || went_ahead);
        for index in items.troubles.which(waits) {
            let Some(mut trouble) = items.troubles.take(index) else {
                continue;
            };
            if went_ahead
                && trouble.place == Place::Window
                && items.has_room_to_park(settings)
                && !settings.tuning.ordered
            {
                items.wait_for_retry(
                    settings,
                    index,
                    trouble,
                    settings.tuning.park_after + Duration::from_secs(1),
                    now,
                );
            } else {
                trouble.doing = Doing::Waiting(now.moment);
                items.troubles.put(index, trouble);
            }
        }
    }
}

impl Items {
    /// How many different items could leave, at most.
    pub(in crate::execution) fn can_leave(&self, settings: &Settings) -> u64 {
        if settings.tuning.ordered { 1 } else { self.left() }
    }
}

impl Settings {
    /// Calls that may be in flight.
    pub(in crate::execution) fn calls_at_most(&self) -> u32 {
        self.limits.concurrency.div_ceil(self.tuning.batch.get()).max(1)
    }
}
