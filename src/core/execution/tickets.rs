//! Calls that are out and whose end is accounted for: by the autopilot, and against limits in units.

use std::collections::HashMap;
use std::time::Duration;

use super::Execution;
use super::charges::{Charge, Departure, Purse, Usage};
use super::types::{Effects, Now};
use crate::ids::{ItemIndex, Moment};
use crate::meter::class::End;
use crate::pilot::{Call, headers};

/// End of a call that has a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallEnd {
    /// Ticket that the call was given.
    pub ticket: u64,
    /// Time at which it ended.
    pub at: Moment,
    /// Way in which it ended.
    pub end: End,
    /// Item of a call for one item, which may be what is refused.
    pub item: Option<ItemIndex>,
    /// Wait that a refusal named.
    pub after: Option<Duration>,
    /// Windows that headers of the answer describe.
    pub windows: Vec<headers::Told>,
    /// Use that the answer says.
    pub used: Usage,
}

/// Calls that are out.
#[derive(Debug, Default)]
pub(super) struct Tickets {
    last: u64,
    out: HashMap<u64, Ticket>,
    /// Ticket of the first call granted in this step.
    granted: Option<u64>,
}

/// Call that is out.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) call: Option<Call>,
    /// Cost that it took when it was sent.
    pub(super) charge: Option<Charge>,
}

impl Tickets {
    /// Returns the number of calls that are out.
    #[inline]
    pub(super) fn out(&self) -> u32 {
        self.out.len() as u32
    }

    /// Drops what an earlier autopilot knew of the calls that are out.
    pub(super) fn leave_autopilot(&mut self) {
        self.out.values_mut().for_each(|ticket| ticket.call = None);
    }

    fn give(&mut self, call: Option<Call>) {
        self.last += 1;
        self.granted.get_or_insert(self.last);
        self.out.insert(self.last, Ticket { call, charge: None });
    }
}

impl Execution {
    /// True if calls have tickets.
    #[inline]
    pub(super) fn has_tickets(&self) -> bool {
        self.autopilot.is_on() || self.charges.is_on()
    }

    /// Gives tickets to calls that are granted.
    #[inline]
    pub(super) fn give_tickets(&mut self, calls: u32, now: Moment) {
        if !self.has_tickets() {
            return;
        }
        let before = self.tickets.out();
        let together = before + calls;
        for in_flight in before + 1..=together {
            let call = self.autopilot.on_sent(in_flight, together, now);
            self.tickets.give(call);
        }
    }

    /// Hands the ticket of the first call granted to the lane.
    pub(super) fn hand_out(&mut self, fx: &mut Effects) {
        fx.ticket = self.tickets.granted.take();
        fx.paced |= fx.ticket.is_some();
    }

    /// Charges a call that is about to be sent: of so many items, with this use if it is known.
    pub fn charge(&mut self, ticket: u64, usage: Usage, items: u32, now: Now) -> Departure {
        let Some(out) = self.tickets.out.get_mut(&ticket) else {
            return Departure::Go;
        };
        if !self.charges.is_on() {
            return Departure::Go;
        }
        let (departure, charge) = self.charges.depart(usage, items, now);
        out.charge = (departure == Departure::Go).then_some(charge);
        departure
    }

    /// Takes the estimates of a call that [`Execution::charge`] let go from the named limits too.
    pub fn charge_shared(&mut self, ticket: u64, purse: &mut dyn Purse, now: Now) -> Departure {
        let out = self.tickets.out.get_mut(&ticket);
        let Some(mut charge) = out.and_then(|out| out.charge.take()) else {
            return Departure::Go;
        };
        let departure = self.charges.take_shared(&mut charge, purse);
        if departure != Departure::Go {
            self.charges.end_own(&charge, End::NeverSent, now.moment);
        } else if let Some(out) = self.tickets.out.get_mut(&ticket) {
            out.charge = Some(charge);
        }
        departure
    }

    /// Accounts for the calls that ended, once their items are booked.
    pub(super) fn on_ends(&mut self, ends: &mut Vec<CallEnd>, now: Now) {
        if ends.is_empty() {
            return;
        }
        let is_closed = self.judge.circuit.is_closed();
        self.autopilot.on_circuit(is_closed, now.moment);
        for end in ends.drain(..) {
            let Some(ticket) = self.tickets.out.remove(&end.ticket) else {
                continue;
            };
            if let Some(call) = ticket.call {
                self.autopilot.on_end(call, &end, &self.items.retrying_items);
            }
            if let Some(charge) = &ticket.charge {
                self.charges.end(charge, end.end, &end.used, is_closed, end.at);
                self.charges.hear(end.ticket, &end.windows, end.at);
            }
        }
        self.follow_autopilot();
    }

    /// Forgets the calls that are out, because they were lost; they may have cost something.
    pub(super) fn lose_tickets(&mut self, now: Moment) {
        let is_closed = self.judge.circuit.is_closed();
        for (_, ticket) in self.tickets.out.drain() {
            if let Some(charge) = &ticket.charge {
                self.charges.end(charge, End::Lost, &Usage::new(), is_closed, now);
            }
        }
        self.tickets.granted = None;
        self.autopilot.on_lost(now);
    }
}
