//! One round of a session with the rows of a limit: it reports its use and demand, and gets the share that it may
//! use.
//!
//! The rules, each of them needed (`tests/protocol` leaves each out):
//! 1. Rounds of a limit are serialized, and each sees all rows.
//! 2. A share counts until its session uses less and reports it, or is fenced: its lease validity ended before that.
//! 3. A share grows only into what the limit leaves beside all shares that count.
//! 4. A round that is older than the last one of its session changes nothing: it may have been under way for long.
//! 5. A session may use the lesser of what its row holds and its target.
//! 6. A row never holds more than the lesser of what its session says it uses and what it held, plus its growth: a
//!    database that lost rows can't give the same share twice.

use super::Bounds;
use super::Part;
use super::allocate::{Claim, allocate};
use super::demand::Demand;
use super::units::settle as units;
use super::units::{Dealt, Held, Ledger, Report};
use crate::ids::{SessionId, WallMs};
use crate::meter::metering::Metering;

/// Stored share of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Session that owns the row.
    pub session: SessionId,
    /// Place in the queue, see [`Claim::seat`].
    pub seat: u64,
    /// Number of its last round.
    pub seq: u64,
    /// Upper bound of what it may use.
    pub held: Part,
    /// Demand of its runs in its last round.
    pub demand: Demand,
    /// State of the limits in units.
    pub units: Vec<Held>,
}

/// Report of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Session that sends the report.
    pub session: SessionId,
    /// Round number, which increases with each round of the session even if the previous one failed.
    pub seq: u64,
    /// Upper bound of its use from now on.
    pub uses: Part,
    /// Demand of its runs.
    pub demand: Demand,
    /// True if it has had its rotation and yields to others that wait for one.
    pub yields: bool,
    /// True if no run of it is under the limit any more.
    pub leaves: bool,
    /// Use of the limits in units, and demand for them.
    pub units: Vec<Report>,
}

/// Reply to a session's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// Share that its row holds now.
    pub held: Part,
    /// Target share. If it is less than `held`, the session uses no more than this and reports it in its next round.
    pub target: Part,
    /// True if another session waits for its rotation.
    pub others_wait: bool,
}

impl Allocated {
    /// Returns the share that may be used.
    pub fn usable(&self) -> Part {
        self.held.min(self.target)
    }

    /// Returns true if another round is worthwhile at once, because a part of the share is to be given up.
    pub fn gives_up(&self) -> bool {
        self.held != self.usable()
    }
}

/// Computes one round over the rows of a limit; `rows` are those whose sessions aren't fenced. Returns `None` if the
/// round is older than the last one (rule 4). The caller must write the returned row unchanged.
pub fn settle(bounds: &Bounds, rows: &[Row], round: &Round) -> Option<(Row, Allocated)> {
    let own = rows.iter().find(|row| row.session == round.session);
    if own.is_some_and(|own| own.seq >= round.seq) {
        return None;
    }
    let others: Vec<&Row> = rows.iter().filter(|row| row.session != round.session).collect();
    let end_of_line = rows.iter().map(|row| row.seat).max().unwrap_or(0) + 1;
    let begins = own.is_none_or(|own| own.demand.is_idle()) && !round.demand.is_idle();
    let mut seat = own.filter(|_| !begins).map_or(end_of_line, |own| own.seat);
    let (mut target, mut others_wait) = judged(bounds, &others, round, seat);
    if round.yields && others_wait {
        seat = end_of_line;
        (target, others_wait) = judged(bounds, &others, round, seat);
    }
    let held_before = own.map_or(Part::NONE, |own| own.held);
    let base = round.uses.min(held_before);
    let taken = others.iter().fold(base, |sum, row| sum.plus(row.held));
    let batch_max = others
        .iter()
        .map(|row| row.demand.batch)
        .fold(round.demand.batch, u32::max);
    let free = bounds.whole(batch_max).minus(taken);
    let held = base.plus(target.minus(base).min(free));
    let row = Row {
        session: round.session,
        seat,
        seq: round.seq,
        held,
        demand: round.demand.clone(),
        units: own.map(|own| own.units.clone()).unwrap_or_default(),
    };
    Some((
        row,
        Allocated {
            held,
            target,
            others_wait,
        },
    ))
}

/// Bounds and limits in units of a limit, with what belongs to no live session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// Rate and concurrency that people set.
    pub bounds: Bounds,
    /// Limits in units, and what calls cost in them.
    pub metering: Metering,
    /// Use of the limits in units by sessions that are gone.
    pub ledger: Vec<Ledger>,
    /// Time of the store's clock, which begins the periods of allowances.
    pub now: WallMs,
}

/// Outcome of a round that counts, with what is to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// Row to be written.
    pub row: Row,
    /// Share of rate and concurrency.
    pub allocated: Allocated,
    /// Ledger to be written.
    pub ledger: Vec<Ledger>,
    /// Shares of the limits in units.
    pub dealt: Vec<Dealt>,
}

/// Computes one round over the rows of a limit as [`settle`] does, with its limits in units. `gone` are the rows of
/// sessions that are fenced or over, which the caller deletes.
pub fn play(terms: &Terms, rows: &[Row], gone: &[Row], round: &Round) -> Option<Played> {
    let (mut row, allocated) = settle(&terms.bounds, rows, round)?;
    let ledger = units::entered(terms, rows, gone);
    let others = rows.iter().filter(|other| other.session != round.session);
    let others: Vec<&[Held]> = others.map(|other| other.units.as_slice()).collect();
    let settled = units::settle(
        &terms.metering,
        ledger,
        (&row.units, &others),
        &round.units,
        round.leaves,
    );
    row.units = settled.row;
    Some(Played {
        row,
        allocated,
        ledger: settled.ledger,
        dealt: settled.dealt,
    })
}

/// Returns the session's target share at this seat, and true if another one that wants something would have nothing.
fn judged(bounds: &Bounds, others: &[&Row], round: &Round, seat: u64) -> (Part, bool) {
    let mut claims: Vec<Claim<'_>> = others
        .iter()
        .map(|row| Claim {
            seat: row.seat,
            demand: &row.demand,
        })
        .collect();
    if !round.leaves {
        claims.push(Claim {
            seat,
            demand: &round.demand,
        });
    }
    let parts = allocate(bounds, &claims);
    let waits = |(row, part): (&&Row, &Part)| !row.demand.is_idle() && part.is_barred();
    let others_wait = others.iter().zip(&parts).any(waits);
    let target = if round.leaves {
        Part::NONE
    } else {
        parts.last().copied().unwrap_or(Part::NONE)
    };
    (target, others_wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Amount;
    use crate::limit::demand::Wishes;
    use uuid::Uuid;

    const TEN: Bounds = Bounds {
        rate: None,
        concurrency: Some(10),
    };

    fn session(number: u128) -> SessionId {
        SessionId(Uuid::from_u128(number))
    }

    fn slots(number: u64) -> Part {
        Part {
            slots: Amount::of(number),
            ..Part::UNBOUNDED
        }
    }

    fn round(number: u128, seq: u64, uses: Part, wish: u64) -> Round {
        let demand = Demand {
            slots: Wishes::of([wish]),
            batch: 1,
            ..Demand::default()
        };
        Round {
            session: session(number),
            seq,
            uses,
            demand,
            yields: false,
            leaves: false,
            units: Vec::new(),
        }
    }

    fn play(rows: &mut Vec<Row>, bounds: &Bounds, round: &Round) -> Option<Allocated> {
        let (row, allocated) = settle(bounds, rows, round)?;
        rows.retain(|other| other.session != row.session);
        rows.push(row);
        Some(allocated)
    }

    #[test]
    fn a_part_grows_only_into_what_others_have_given_up() {
        let mut rows = Vec::new();
        let one = play(&mut rows, &TEN, &round(1, 1, Part::NONE, 100)).expect("new");
        assert_eq!(
            (one.held.slots, one.usable().slots),
            (Amount::of(10), Amount::of(10))
        );
        let two = play(&mut rows, &TEN, &round(2, 1, Part::NONE, 100)).expect("new");
        assert_eq!((two.held.slots, two.target.slots), (Amount::NONE, Amount::of(5)));
        // The first is told, but what it held counts until it says that it uses less.
        let one = play(&mut rows, &TEN, &round(1, 2, slots(10), 100)).expect("newer");
        assert_eq!(
            (one.held.slots, one.usable().slots, one.gives_up()),
            (Amount::of(10), Amount::of(5), true)
        );
        assert_eq!(
            play(&mut rows, &TEN, &round(2, 2, two.usable(), 100))
                .expect("newer")
                .held
                .slots,
            Amount::NONE
        );
        play(&mut rows, &TEN, &round(1, 3, slots(7), 100)).expect("newer");
        assert_eq!(
            play(&mut rows, &TEN, &round(2, 3, slots(0), 100))
                .expect("newer")
                .held
                .slots,
            Amount::of(3)
        );
    }

    #[test]
    fn a_round_that_comes_late_changes_nothing() {
        let mut rows = Vec::new();
        play(&mut rows, &TEN, &round(1, 5, Part::NONE, 100)).expect("new");
        assert_eq!(play(&mut rows, &TEN, &round(1, 5, Part::NONE, 100)), None);
        assert_eq!(play(&mut rows, &TEN, &round(1, 4, Part::NONE, 100)), None);
    }

    #[test]
    fn a_lowered_limit_gives_nothing_out_before_all_have_given_up() {
        let mut rows = Vec::new();
        play(&mut rows, &TEN, &round(1, 1, Part::NONE, 100)).expect("new");
        let lower = Bounds {
            rate: None,
            concurrency: Some(4),
        };
        let two = play(&mut rows, &lower, &round(2, 1, Part::NONE, 100)).expect("new");
        assert_eq!((two.held.slots, two.target.slots), (Amount::NONE, Amount::of(2)));
        let one = play(&mut rows, &lower, &round(1, 2, slots(10), 100)).expect("newer");
        assert_eq!(one.usable().slots, Amount::of(2));
        let none = Bounds::default();
        assert_eq!(
            play(&mut rows, &none, &round(2, 2, Part::NONE, 9))
                .expect("newer")
                .usable(),
            Part::UNBOUNDED
        );
    }

    #[test]
    fn a_row_that_was_lost_is_not_believed_by_its_session() {
        let mut rows = Vec::new();
        play(&mut rows, &TEN, &round(1, 1, Part::NONE, 100)).expect("new");
        rows.clear();
        play(&mut rows, &TEN, &round(2, 1, Part::NONE, 100)).expect("new");
        let one = play(&mut rows, &TEN, &round(1, 2, slots(10), 100)).expect("newer");
        assert_eq!(one.usable().slots, Amount::NONE, "the other one has it all");
    }

    #[test]
    fn who_had_its_turn_goes_to_the_end_of_the_line_and_who_left_holds_nothing() {
        let one_slot = Bounds {
            rate: None,
            concurrency: Some(1),
        };
        let mut rows = Vec::new();
        play(&mut rows, &one_slot, &round(1, 1, Part::NONE, 9)).expect("new");
        let waits = play(&mut rows, &one_slot, &round(2, 1, Part::NONE, 9)).expect("new");
        assert_eq!(waits.target.slots, Amount::NONE);
        let keeps = play(&mut rows, &one_slot, &round(1, 2, slots(1), 9)).expect("newer");
        assert!(
            keeps.others_wait && keeps.usable().slots == Amount::of(1),
            "its rotation isn't over"
        );
        let yields = Round {
            yields: true,
            ..round(1, 3, slots(1), 9)
        };
        assert_eq!(
            play(&mut rows, &one_slot, &yields).expect("newer").target.slots,
            Amount::NONE
        );
        let leaves = Round {
            leaves: true,
            ..round(1, 4, Part::NONE, 0)
        };
        assert_eq!(
            play(&mut rows, &one_slot, &leaves).expect("newer").held,
            Part::NONE
        );
        assert_eq!(
            play(&mut rows, &one_slot, &round(2, 2, slots(0), 9))
                .expect("newer")
                .held
                .slots,
            Amount::of(1)
        );
    }
}
