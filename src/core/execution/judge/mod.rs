//! Calls without success: what they mean for the circuit, and for the items that they were for.
//!
//! A call speaks for the handler first, then its items are booked: whether an attempt counts depends on whether the circuit
//! has opened by then. `calls` takes calls in, `attempts` has the table of what counts against an item, `alone` decides when no
//! other item is left to compare with, `patience` how long any of it is borne; `refused` and `exited` tell rows that chance
//! doesn't explain, `turned_away` what a 429 is about.

mod alone;
mod attempts;
mod call_size;
mod calls;
pub(super) mod circuit;
pub(super) mod errors;
mod exited;
mod marked;
mod patience;
mod refused;
mod told;
mod trial;
pub(super) mod turned_away;

use std::time::Duration;

use super::types::{RunEnd, Start};
use crate::ids::{ItemIndex, Moment};
use crate::items::error_budget::Meter;
use crate::items::retry::doubled;
use crate::items::verdict::{Failure, Outage};
use crate::items::waiting::Others;
use crate::items::waiting::Trouble;
use crate::task::Tuning;
use circuit::Circuit;

/// The first pause after 429 without `Retry-After`, doubled each time in a row up to the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

#[derive(Debug)]
pub(super) struct Judge {
    pub(super) circuit: circuit::Circuit,
    pub(super) errors: errors::Errors,
    pub(super) turned_away: turned_away::TurnedAway,
    pub(super) budget: Meter,
    pub(super) others: Others,
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
    /// Unclear attempts that are charged and not yet counted against the error budget.
    doubtful: u64,
    reached_probes: u32,
    pauses_in_a_row: u32,
    /// What the last call said that was turned away, since the last verdict.
    turned_away_with: Option<String>,
    alone: trial::Alone,
    marked: marked::Marked,
    /// The probe that was sent one window ahead.
    pub(super) ahead: Option<ItemIndex>,
    /// The outage as the last draft told it.
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
            pauses_in_a_row: 0,
            turned_away_with: None,
            alone: trial::Alone::default(),
            marked: marked::Marked::default(),
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

    /// An item that had failed ended well.
    pub(super) fn on_recovered(&mut self, trouble: &Trouble) {
        trouble.suspicion.on_recovered(&mut self.others);
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
    pub(super) fn saved_outage(&self) -> Option<Outage> {
        // A run that goes on with the last items would bear it as one that began before them.
        self.circuit.outage().filter(|_| !self.alone.is_tail())
    }

    /// An outage began or ended since the last draft.
    #[inline]
    pub(super) fn is_outage_due(&self) -> bool {
        let since = |outage: Option<Outage>| outage.map(|outage| outage.since);
        since(self.saved_outage()) != since(self.drafted)
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
            || self.alone.is_stirred()
    }
}
