//! Tokens that a service says are left, in the headers of its answers. They only lower.

use std::time::Duration;

use super::picture::Held;
use super::{Charge, Charges, Leave};
use crate::ids::Moment;
use crate::meter::amount::{Amount, Credit};
use crate::meter::metering::TOKENS;
use crate::pilot::headers::{Told, Unit};

/// Time until the reset of a window that names none, and the longest that is believed.
const RESET_DEFAULT: Duration = Duration::from_secs(1);
const RESET_MAX: Duration = Duration::from_secs(3600);

/// Window of tokens that the answer to the latest call described.
#[derive(Debug, Default)]
pub(super) struct TokenWindow {
    /// Tokens that are left beside those of the calls in flight.
    credit: Credit,
    /// Time from which on it says nothing any more.
    until: Moment,
    /// Ticket of the call whose answer described it; answers to earlier calls are older.
    ticket: u64,
    /// Largest estimate that didn't fit.
    waiting: Amount,
}

impl TokenWindow {
    fn holds(&self, estimate: Amount, now: Moment) -> bool {
        now < self.until && !self.credit.missing_to(estimate).is_zero()
    }
}

impl Charges {
    fn tokens(&self) -> Option<usize> {
        self.meters.iter().position(|meter| meter.unit.as_str() == TOKENS)
    }

    /// Takes over the windows of tokens that the answer to a call described. Of several the tightest counts.
    pub(in crate::execution) fn hear(&mut self, ticket: u64, windows: &[Told], at: Moment) {
        let Some(meter) = self.tokens().filter(|_| ticket >= self.window.ticket) else {
            return;
        };
        let of_tokens = windows.iter().filter(|told| told.unit == Unit::Tokens);
        let Some(told) = of_tokens.min_by_key(|told| (told.left, std::cmp::Reverse(told.reset))) else {
            return;
        };
        let reset = told.reset.unwrap_or(RESET_DEFAULT).min(RESET_MAX);
        let out = self.meters[meter].total.counts().out();
        self.window = TokenWindow {
            credit: Credit::default().plus(Amount::units(told.left)).minus(out),
            until: at.plus(reset),
            ticket,
            waiting: Amount::ZERO,
        };
    }

    /// Bounds the calls that may be sent by the tokens that are left.
    pub(super) fn leave_of_window(&mut self, now: Moment, leave: &mut Leave) {
        let Some(at) = self.tokens() else { return };
        let expected = self.meters[at].expected().max(self.window.waiting).max(Amount(1));
        if self.window.holds(expected, now) && leave.calls > 0 {
            (leave.calls, self.held) = (0, Some(Held::Window(at)));
            leave.until = leave.until.max(Some(self.window.until));
        }
    }

    /// Returns the window if too few tokens are left in it for a call.
    pub(super) fn held_by_window(&mut self, charge: &Charge, now: Moment) -> Option<Held> {
        let at = self.tokens()?;
        let estimate = charge.pace[at];
        self.window.holds(estimate, now).then(|| {
            self.window.waiting = self.window.waiting.max(estimate);
            Held::Window(at)
        })
    }

    /// Takes the estimate of a call that is sent.
    pub(super) fn take_from_window(&mut self, charge: &Charge) {
        if let Some(at) = self.tokens() {
            self.window.credit = self.window.credit.minus(charge.pace[at]);
            self.window.waiting = Amount::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::charges::{Departure, HeldBy};
    use crate::execution::types::{Now, Restored};
    use crate::ids::WallMs;
    use crate::meter::class::End;

    const START: u64 = 60_000_000_000;

    fn at(seconds: u64) -> Now {
        Now {
            moment: Moment(START + seconds * 1_000_000_000),
            wall: WallMs(0),
        }
    }

    fn charges() -> Charges {
        let metering = r#"{"limits":["900k tokens/s"],"cost":["tokens = {n:number}"]}"#;
        let metering = serde_json::from_str(metering).expect("a metering");
        Charges::new(&metering, &Restored::default(), Now::default())
    }

    fn left(unit: Unit, left: u64, reset: Option<u64>) -> Told {
        Told {
            unit,
            left,
            reset: reset.map(Duration::from_secs),
        }
    }

    fn depart(charges: &mut Charges, tokens: u64, now: Now) -> Option<Charge> {
        let (departure, charge) = charges.depart(vec![Some(Amount::units(tokens))], 1, now);
        (departure == Departure::Go).then_some(charge)
    }

    #[test]
    fn no_more_tokens_are_sent_than_are_left_beside_those_in_flight_until_the_reset() {
        let mut charges = charges();
        let first = depart(&mut charges, 100, at(0)).expect("nothing is known");
        depart(&mut charges, 100, at(0)).expect("nothing is known");
        charges.end(&first, End::Succeeded, &Vec::new(), true, at(1).moment);
        charges.hear(
            1,
            &[left(Unit::Tokens, 250, Some(30)), left(Unit::Calls, 0, Some(9))],
            at(1).moment,
        );
        assert!(depart(&mut charges, 151, at(1)).is_none(), "100 are in flight");
        let HeldBy::Headers(unit) = charges.held_by().expect("it is held") else {
            panic!("{:?}", charges.held_by())
        };
        assert_eq!(unit.as_str(), "tokens");
        let leave = charges.leave(at(1));
        assert_eq!((leave.calls, leave.until), (0, Some(at(31).moment)));
        depart(&mut charges, 150, at(1)).expect("it fits");
        assert!(depart(&mut charges, 1, at(30)).is_none());
        depart(&mut charges, 1000, at(31)).expect("the window is over");
    }

    #[test]
    fn an_answer_to_an_earlier_call_and_one_without_a_reset_hold_nothing_for_long() {
        let mut charges = charges();
        charges.hear(5, &[left(Unit::Tokens, 500, Some(30))], at(0).moment);
        charges.hear(4, &[left(Unit::Tokens, 0, Some(30))], at(0).moment);
        depart(&mut charges, 500, at(0)).expect("it is older");
        charges.hear(6, &[left(Unit::Tokens, 0, None)], at(1).moment);
        assert!(depart(&mut charges, 1, at(1)).is_none());
        depart(&mut charges, 1, at(2)).expect("a second is over");
        charges.hear(7, &[left(Unit::Tokens, 0, Some(90_000))], at(2).moment);
        assert!(depart(&mut charges, 1, at(3601)).is_none());
        depart(&mut charges, 1, at(3602)).expect("an hour is the most");
    }
}
