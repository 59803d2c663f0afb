//! Totals: crashes at any point, against an account of what was really paid.

use proptest::prelude::*;

use crate::meter::amount::Amount;
use crate::meter::class::Cost;
use crate::meter::total::{Draft, Room, Stored, Total};

#[derive(Clone, Debug)]
enum Step {
    /// Call that is estimated at the first and costs the second, if it fits.
    Depart(u128, u128),
    /// End of a call that is out; unsure if it ends without an actual.
    End(usize, bool),
    /// Refusal of a call that is out, which cost nothing.
    Refuse(usize),
    Draft(Option<u128>, u128),
    /// Draft that reaches the store; its acknowledgement may be late.
    Persist(usize),
    Acknowledge(usize),
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let cost = prop_oneof![3 => 0..40_u128, 1 => 0..200_u128];
    let step = prop_oneof![
        8 => (0..40_u128, cost).prop_map(|(estimate, actual)| Step::Depart(estimate, actual)),
        4 => (0..4_usize, any::<bool>()).prop_map(|(no, is_known)| Step::End(no, is_known)),
        1 => (0..4_usize).prop_map(Step::Refuse),
        3 => (proptest::option::of(0..100_u128), 1..50_u128).prop_map(|(soon, batch)| Step::Draft(soon, batch)),
        3 => (0..3_usize).prop_map(Step::Persist),
        3 => (0..3_usize).prop_map(Step::Acknowledge),
        1 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 1..200)
}

/// World around a total: the store, the calls, and what the service charges.
struct World {
    total: Total,
    stored: Stored,
    drafted: Vec<(Draft, usize)>,
    persisted: Vec<Draft>,
    out: Vec<(u128, u128)>,
    /// Costs above the estimates of calls since the run began, in the order of their ends.
    above: Vec<u128>,
    /// Number of these that the stored draft knows.
    above_known: usize,
    paid: u128,
    /// Costs above estimates that nobody can know of.
    hidden: u128,
    /// The same for calls that were out at the last departure.
    exposed: u128,
}

impl World {
    fn new(amount: u128) -> World {
        World {
            total: Total::restore(Amount(amount), Stored::default()),
            stored: Stored::default(),
            drafted: Vec::new(),
            persisted: Vec::new(),
            out: Vec::new(),
            above: Vec::new(),
            above_known: 0,
            paid: 0,
            hidden: 0,
            exposed: 0,
        }
    }

    fn step(&mut self, step: Step, amount: u128) {
        match step {
            Step::Depart(estimate, actual) => self.depart(estimate, actual),
            Step::End(no, is_known) if no < self.out.len() => self.end(no, is_known),
            Step::Refuse(no) if no < self.out.len() => {
                let (estimate, actual) = self.out.remove(no);
                self.paid -= actual;
                self.total.end(Amount(estimate), Cost::FREE);
            }
            Step::Draft(soon, batch) => {
                let draft = self.total.draft(soon.map(Amount), Amount(batch));
                self.drafted.push((draft, self.above.len()));
            }
            Step::Persist(skip) if skip < self.drafted.len() => {
                // Those before it are lost; checkpoints never overtake each other.
                let (draft, known) = self.drafted.drain(..=skip).next_back().expect("a draft");
                (self.stored, self.above_known) = (draft.state, known);
                self.persisted.push(draft);
            }
            Step::Acknowledge(skip) if skip < self.persisted.len() => {
                let draft = self.persisted.drain(..=skip).next_back().expect("a draft");
                self.total.stored(draft);
            }
            Step::Crash => self.crash(amount),
            Step::End(..) | Step::Refuse(_) | Step::Persist(_) | Step::Acknowledge(_) => {}
        }
    }

    fn depart(&mut self, estimate: u128, actual: u128) {
        if self.total.room(Amount(estimate)) == Room::Free {
            self.total.depart(Amount(estimate));
            self.out.push((estimate, actual));
            self.paid += actual;
            self.exposed = self.out_above();
        }
    }

    fn end(&mut self, no: usize, is_known: bool) {
        let (estimate, actual) = self.out.remove(no);
        let above = actual.saturating_sub(estimate);
        if is_known {
            self.above.push(above);
            self.total.end(Amount(estimate), Cost::Known(Amount(actual)));
        } else {
            self.hidden += above;
            self.total.end(Amount(estimate), Cost::Unsure(Amount(estimate)));
        }
    }

    fn out_above(&self) -> u128 {
        self.out
            .iter()
            .map(|(estimate, actual)| actual.saturating_sub(*estimate))
            .sum()
    }

    fn crash(&mut self, amount: u128) {
        self.hidden += self.out_above() + self.above[self.above_known..].iter().sum::<u128>();
        (self.drafted, self.persisted, self.out) = Default::default();
        (self.above, self.above_known) = Default::default();
        self.total = Total::restore(Amount(amount), self.stored);
        // The claim writes what it found, so that a second crash counts nothing twice.
        self.stored = Stored {
            spent: self.total.spent(),
            unsure: self.total.unsure(),
            may_spend: Amount::ZERO,
        };
    }
}

proptest! {
    #[test]
    fn no_crash_spends_more_than_the_amount_or_forgets_what_was_paid(amount in 1..3_000_u128, steps in steps()) {
        let mut world = World::new(amount);
        for step in steps {
            world.step(step, amount);
            let counted = world.total.spent().plus(world.total.unsure()).plus(world.total.out()).0;
            prop_assert!(counted + world.hidden + world.out_above() >= world.paid, "forgotten");
            prop_assert!(world.paid <= amount + world.hidden + world.exposed, "too much");
        }
        world.step(Step::Crash, amount);
        let counted = world.total.spent().plus(world.total.unsure()).0;
        prop_assert!(counted + world.hidden >= world.paid, "forgotten by the crash");
    }

    #[test]
    fn a_draft_lets_little_be_spent_before_the_next(
        amount in 0..1_000_000_u128, spent in 0..1_000_000_u128, soon in proptest::option::of(0..100_000_u128), batch in 1..1_000_u128,
    ) {
        let stored = Stored { spent: Amount(spent), ..Stored::default() };
        let mut total = Total::restore(Amount(amount), stored);
        let left = amount.saturating_sub(spent);
        let draft = total.draft(soon.map(Amount), Amount(batch));
        let most = soon.unwrap_or(left / 64).max(batch).min(left);
        prop_assert_eq!(draft.state, Stored { may_spend: Amount(most), ..stored });
    }
}

fn units(units: u64) -> Amount {
    Amount::units(units)
}

#[test]
fn nothing_departs_beyond_what_the_store_has_acknowledged() {
    let mut total = Total::restore(units(640), Stored::default());
    assert_eq!(total.room(units(1)), Room::AfterCheckpoint);
    assert_eq!(total.room(Amount::ZERO), Room::AfterCheckpoint);
    assert!(total.is_draft_due());
    let draft = total.draft(None, units(1));
    assert_eq!(draft.state.may_spend, units(10));
    assert_eq!(
        total.room(units(1)),
        Room::AfterCheckpoint,
        "not yet acknowledged"
    );
    total.stored(draft);
    total.depart(units(5));
    assert!(total.is_draft_due(), "half is used");
    assert_eq!(
        (total.room(units(5)), total.room(units(6))),
        (Room::Free, Room::AfterCheckpoint)
    );
    assert_eq!(total.room(units(636)), Room::Full);
    total.end(units(5), Cost::Known(units(3)));
    assert_eq!(total.room(units(7)), Room::Free);
}

#[test]
fn a_lower_draft_holds_at_once_and_only_the_last_one_raises() {
    let mut total = Total::restore(units(640), Stored::default());
    let high = total.draft(Some(units(100)), units(1));
    total.stored(high);
    let (wide, narrow) = (
        total.draft(Some(units(50)), units(1)),
        total.draft(Some(units(2)), units(1)),
    );
    assert_eq!(total.room(units(3)), Room::AfterCheckpoint);
    total.stored(wide);
    assert_eq!(
        total.room(units(3)),
        Room::AfterCheckpoint,
        "a crash counts two from here on"
    );
    total.stored(narrow);
    assert_eq!(total.room(units(2)), Room::Free);
    total.on_lost();
    assert!(total.is_draft_due());
}

#[test]
fn after_a_death_what_may_have_been_spent_is_unsure_until_people_forgive_it() {
    let stored = Stored {
        spent: units(40),
        unsure: units(1),
        may_spend: units(9),
    };
    let mut total = Total::restore(units(60), stored);
    assert_eq!(
        (total.spent(), total.unsure(), total.left()),
        (units(40), units(10), units(10))
    );
    assert!(total.is_nearly_used());
    assert_eq!(total.forgive(units(100)), units(10));
    assert_eq!(
        (total.left(), total.room(units(1))),
        (units(20), Room::AfterCheckpoint),
        "not before it is stored"
    );
    let draft = total.draft(None, units(2));
    assert_eq!(
        (draft.state.spent, draft.state.unsure, draft.state.may_spend),
        (units(40), Amount::ZERO, units(2))
    );
    total.stored(draft);
    assert_eq!(
        (total.room(units(2)), total.is_nearly_used()),
        (Room::Free, false)
    );
    total.set_amount(units(40));
    assert_eq!(total.room(Amount::ZERO), Room::Full);
    total.set_amount(units(100));
    assert_eq!(total.room(units(2)), Room::Free);
}

#[test]
fn a_cost_above_its_estimate_that_is_saved_is_known_after_a_crash_and_lets_nothing_more_depart() {
    let mut world = World::new(1);
    let stored = [Step::Draft(None, 1), Step::Persist(0), Step::Acknowledge(0)];
    let called = [Step::Depart(0, 2), Step::End(0, true)];
    let saved = [Step::Draft(None, 1), Step::Persist(0), Step::Crash];
    for step in stored.into_iter().chain(called).chain(saved) {
        world.step(step, 1);
    }
    // What exceeds the amount was out at the last departure, and stays within the bound after the crash.
    assert_eq!((world.paid, world.hidden, world.exposed), (2, 0, 2));
    assert_eq!(world.total.spent(), Amount(2));
    assert_eq!(world.total.room(Amount::ZERO), Room::Full);
}
