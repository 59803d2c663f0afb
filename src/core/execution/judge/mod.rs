//! Calls without success: their meaning for the circuit, and for the items that they were for.
//!
//! A call is evidence about the handler first, then its items are booked: an attempt's weight depends on the circuit,
//! which may have opened by then. `calls` processes calls, `attempts` has the table of what counts against an item,
//! `alone` decides when no other item is left for comparison, `patience` limits how long any of it is tolerated;
//! `refused` and `exited` detect rows that chance doesn't explain, `turned_away` interprets a 429.

mod alone;
mod attempts;
mod call_size;
mod calls;
pub(super) mod circuit;
pub(super) mod errors;
mod exited;
mod marked;
mod patience;
pub(super) mod pauses;
mod refused;
mod told;
mod trial;
pub(super) mod turned_away;

use super::types::{RunEnd, Start};
use crate::ids::{ItemIndex, Moment, WallMs};
use crate::items::error_budget::Meter;
use crate::items::verdict::{Failure, Outage};
use crate::items::waiting::Others;
use crate::items::waiting::RetryingItem;
use crate::task::Tuning;
use circuit::Circuit;

#[derive(Debug)]
pub(super) struct Judge {
    pub(super) circuit: circuit::Circuit,
    pub(super) errors: errors::Errors,
    pub(super) turned_away: turned_away::TurnedAway,
    pub(super) budget: Meter,
    pub(super) others: Others,
    pub(super) call_size: call_size::CallSize,
    /// End of the run that was requested in this step.
    end: Option<RunEnd>,
    /// Time at which the run began.
    began: Moment,
    /// Set once the handler has given a verdict about an item.
    contacted: bool,
    /// Set if the handler succeeded in the task whose failures these items are: its faults are theirs, whatever came
    /// before them.
    is_proven: bool,
    /// Set if something other than a definite fault came back before the first verdict.
    unclear_contact: bool,
    first_contact: Option<Moment>,
    refusals: refused::Refusals,
    exits: exited::Exits,
    /// Set if the previous run ended in an outage: its failures prove nothing against items.
    began_down: bool,
    /// Unclear attempts that are charged but not yet counted against the error budget.
    doubtful: u64,
    reached_probes: u32,
    pub(super) pauses: pauses::Pauses,
    /// Last call that was turned away since the last verdict.
    turned_away_with: Option<told::TurnedAwayWith>,
    alone: trial::Alone,
    marked: marked::Marked,
    /// Probe that was sent one window ahead.
    pub(super) ahead: Option<ItemIndex>,
    /// Outage as recorded in the last draft.
    drafted: Option<Outage>,
}

impl Judge {
    pub(super) fn new(start: &Start, tuning: &Tuning, now: Moment) -> Judge {
        Judge {
            circuit: Circuit::of(start.shard, start.restored.outage, now),
            errors: errors::Errors::default(),
            turned_away: turned_away::TurnedAway::default(),
            others: Others::default(),
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
            doubtful: 0,
            reached_probes: 0,
            pauses: pauses::Pauses::default(),
            turned_away_with: None,
            alone: trial::Alone::default(),
            marked: marked::Marked::default(),
            ahead: None,
            drafted: start.restored.outage,
        }
    }

    /// Requests the end of the run. The first request counts, but a permanent stop outranks one that resumes
    /// automatically.
    pub(super) fn stop(&mut self, end: RunEnd) {
        let is_lesser = self
            .end
            .as_ref()
            .is_none_or(|before| matches!(before, RunEnd::Recovering { .. }));
        if is_lesser && (self.end.is_none() || matches!(end, RunEnd::Stopped { .. })) {
            self.end = Some(end);
        }
    }

    /// Takes the end that was requested since the last call.
    #[inline]
    pub(super) fn take_end(&mut self) -> Option<RunEnd> {
        self.end.take()
    }

    /// Handles an item that ended well after it had failed.
    pub(super) fn on_recovered(&mut self, retrying: &RetryingItem) {
        retrying.suspicion.on_recovered(&mut self.others);
    }

    /// Keeps the message of a call that was turned away, and the time of the first since the last verdict.
    pub(super) fn on_turned_away(&mut self, failure: &Failure, now: WallMs) {
        let said = format!("{}: {}", failure.code, failure.message);
        let (since, is_outage) = match self.turned_away_with.take() {
            Some(before) => (before.since, before.is_outage),
            None => (now, false),
        };
        self.turned_away_with = Some(told::TurnedAwayWith {
            said,
            since,
            is_outage,
        });
    }

    /// Resets the contact, because nothing settled shows that the handler was ever reached.
    pub(super) fn doubt_contact(&mut self) {
        self.contacted = false;
    }

    /// True if the handler is known to accept requests of this kind, so that its faults are about the items.
    #[inline]
    fn takes_requests(&self) -> bool {
        self.contacted || self.is_proven
    }

    /// Returns the time at which the run ends if its handler was never reached, or only ever found fault.
    pub(super) fn first_contact(&self) -> Option<Moment> {
        self.first_contact.filter(|_| !self.contacted)
    }

    /// Returns the outage to save for a take-over.
    #[inline]
    pub(super) fn saved_outage(&self) -> Option<Outage> {
        // A run that resumes with the last items would treat it as one that began before them.
        self.circuit
            .outage()
            .filter(|_| !self.alone.is_tail())
            .or_else(|| self.refused_outage())
    }

    /// Returns the time in which every call is turned away as an outage, once it is a long one.
    fn refused_outage(&self) -> Option<Outage> {
        let with = self.turned_away_with.as_ref().filter(|with| with.is_outage)?;
        Some(Outage {
            since: with.since,
            probes: 0,
        })
    }

    /// True if an outage began or ended since the last draft.
    #[inline]
    pub(super) fn is_outage_due(&self) -> bool {
        let since = |outage: Option<Outage>| outage.map(|outage| outage.since);
        since(self.saved_outage()) != since(self.drafted)
    }

    /// Notes the outage that a draft contains.
    pub(super) fn on_drafted(&mut self, outage: Option<Outage>) {
        self.drafted = outage;
    }

    /// True if an answered call would change anything.
    #[inline]
    fn is_stirred(&self) -> bool {
        !self.contacted
            || self.doubtful > 0
            || self.pauses.is_stirred()
            || self.turned_away_with.is_some()
            || self.refusals.is_row()
            || self.alone.is_stirred()
    }
}
