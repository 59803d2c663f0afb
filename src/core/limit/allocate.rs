//! Allocation of a limit: max-min fair over the demand of the runs of all sessions.
//!
//! Pure, and the same for everyone who sees the same claims, so each session can compute it for itself. It gives the
//! *target*; `round` moves towards it without ever giving out more than there is.
//!
//! - Every run gets what it asks for, or as much as any other run of its weight: one level for all.
//! - Capacity that nobody asks for is spread over the sessions, so that new demand finds some there.
//! - Capacity that can't be divided goes whole to a few: the sessions queue by their seats, those at the front that
//!   fit together get a share, and a session that has had its rotation goes to the end (`rotation`). There is no minimum
//!   share.

use std::cmp::Reverse;

use super::demand::{Demand, SLOT_PARTS, Wishes};
use super::{Amount, Bounds, NANOS_PER_ITEM, Part};

/// Time within which a share must let a batch be sent; otherwise the limit rotates among sessions. Unit: seconds.
const BATCH_SECONDS_MAX: u64 = 10;

/// Demand of a session and its place in the queue.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// Seat in the queue; lower is nearer to the front.
    pub seat: u64,
    /// Demand of the session's runs.
    pub demand: &'a Demand,
}

/// Returns the shares of all claims, in their order. Those that wait for their rotation get nothing.
pub fn allocate(bounds: &Bounds, claims: &[Claim<'_>]) -> Vec<Part> {
    let batch_max = claims.iter().map(|claim| claim.demand.batch).max().unwrap_or(1);
    let whole = bounds.whole(batch_max);
    let mut line: Vec<usize> = (0..claims.len()).collect();
    line.sort_by_key(|at| (claims[*at].demand.is_idle(), claims[*at].seat, *at));
    let mut seated: Vec<&Demand> = Vec::new();
    for at in &line {
        seated.push(claims[*at].demand);
        if seated.len() > 1 && !fit(whole, &seated) {
            seated.pop();
            break;
        }
    }
    let allocated = divide(whole, &seated);
    let mut parts = vec![none_of(whole); claims.len()];
    for (at, part) in line.into_iter().zip(allocated) {
        parts[at] = part;
    }
    parts
}

fn none_of(whole: Part) -> Part {
    let none = |amount: Amount| amount.min(Amount::NONE);
    Part {
        rate: none(whole.rate),
        burst: none(whole.burst),
        slots: none(whole.slots),
    }
}

/// Returns true if each of them could send a batch now and then.
fn fit(whole: Part, seated: &[&Demand]) -> bool {
    let batch = |demand: &Demand| u64::from(demand.batch.max(1));
    if let Some(burst) = whole.burst.bound()
        && seated.iter().map(|demand| batch(demand) + 1).sum::<u64>() > burst
    {
        return false;
    }
    if let Some(slots) = whole.slots.bound()
        && seated.iter().map(|demand| batch(demand).min(slots)).sum::<u64>() > slots
    {
        return false;
    }
    let Some(rate) = whole.rate.bound() else {
        return true;
    };
    let rates = shared(rate, &wishes(seated, |demand| &demand.rates));
    seated.iter().zip(rates).all(|(demand, rate)| {
        let a_batch = batch(demand).saturating_mul(NANOS_PER_ITEM) / BATCH_SECONDS_MAX;
        rate >= a_batch.min(demand.rates.up_to(u64::MAX))
    })
}

fn wishes<'a>(seated: &[&'a Demand], of: impl Fn(&'a Demand) -> &'a Wishes) -> Vec<&'a Wishes> {
    seated.iter().map(|demand| of(demand)).collect()
}

fn divide(whole: Part, seated: &[&Demand]) -> Vec<Part> {
    let number = seated.len();
    let allocated = |amount: Amount, by: &dyn Fn(u64) -> Vec<u64>| match amount.bound() {
        Some(total) => by(total).into_iter().map(Amount::of).collect(),
        None => vec![Amount::UNBOUNDED; number],
    };
    let rates = allocated(whole.rate, &|total| {
        shared(total, &wishes(seated, |demand| &demand.rates))
    });
    let slots = allocated(whole.slots, &|total| {
        shared_slots(total, &wishes(seated, |demand| &demand.slots))
    });
    let bursts = allocated(whole.burst, &|total| bursts(total, &rates, seated));
    let parts = rates.into_iter().zip(bursts).zip(slots);
    parts
        .map(|((rate, burst), slots)| Part { rate, burst, slots })
        .collect()
}

/// Gives each a batch and one item, and the rest in proportion to their rates.
fn bursts(total: u64, rates: &[Amount], seated: &[&Demand]) -> Vec<u64> {
    let least = |demand: &&Demand| u64::from(demand.batch.max(1)) + 1;
    let rest = total.saturating_sub(seated.iter().map(least).sum());
    let rate = |amount: &Amount| u128::from(amount.bound().unwrap_or(0));
    let sum: u128 = rates.iter().map(rate).sum::<u128>().max(1);
    let more = |amount: &Amount| u64::try_from(u128::from(rest) * rate(amount) / sum).unwrap_or(0);
    seated
        .iter()
        .zip(rates)
        .map(|(demand, amount)| (least(demand) + more(amount)).min(total))
        .collect()
}

/// Divides `total` max-min fairly: no run has less than it wants while another of its weight has more than it. What is
/// left when all are satisfied is spread evenly; a remainder that can't be divided goes one by one to those nearest to
/// the front.
pub fn shared(total: u64, wishes: &[&Wishes]) -> Vec<u64> {
    let Level {
        reached,
        rest,
        weight,
    } = level(total, wishes);
    let part = |wish: &&Wishes| {
        let more = u128::from(rest) * u128::from(wish.above(reached)) / u128::from(weight.max(1));
        wish.up_to(reached)
            .saturating_add(u64::try_from(more).unwrap_or(rest))
    };
    let mut parts: Vec<u64> = wishes.iter().map(part).collect();
    let mut left = total.saturating_sub(parts.iter().copied().fold(0, u64::saturating_add));
    let wanting = parts
        .iter_mut()
        .zip(wishes)
        .filter(|(_, wish)| wish.above(reached) > 0);
    for (part, _) in wanting {
        let more = left.min(1);
        *part += more;
        left -= more;
    }
    let number = (parts.len() as u64).max(1);
    let (each, odd) = (left / number, left % number);
    for (at, part) in parts.iter_mut().enumerate() {
        *part += each + u64::from((at as u64) < odd);
    }
    parts
}

/// Divides slots as [`shared`] does, in whole ones. Those that the parts of several make up go first to sessions whose
/// part is less than a slot, from the front: such a session has one in its rotation, however many runs the others have.
/// The rest goes to the largest remainders.
fn shared_slots(total: u64, wishes: &[&Wishes]) -> Vec<u64> {
    let parts = shared(total.saturating_mul(SLOT_PARTS), wishes);
    let mut slots: Vec<u64> = parts.iter().map(|part| part / SLOT_PARTS).collect();
    let is_without = |at: &usize| !wishes[*at].is_empty() && parts[*at] < SLOT_PARTS;
    let mut left = total.saturating_sub(slots.iter().sum());
    if left == 0 && (0..slots.len()).any(|at| is_without(&at)) {
        // The others' parts can be whole: a demand that is small enough beside theirs is rounded to nothing.
        left = slots
            .iter_mut()
            .max()
            .filter(|most| **most > 1)
            .map_or(0, |most| {
                *most -= 1;
                1
            });
    }
    let mut order: Vec<usize> = (0..slots.len()).collect();
    order.sort_by_key(|at| match is_without(at) {
        true => (false, Reverse(0), *at),
        false => (true, Reverse(parts[*at] % SLOT_PARTS), *at),
    });
    let left = usize::try_from(left).unwrap_or(usize::MAX);
    order.into_iter().take(left).for_each(|at| slots[at] += 1);
    slots
}

/// Level up to which all demand is met.
struct Level {
    reached: u64,
    /// Amount that is left for demand above it.
    rest: u64,
    /// Weight that asks for more.
    weight: u64,
}

/// Returns the highest level of demand that can be met.
fn level(total: u64, wishes: &[&Wishes]) -> Level {
    let mut groups: Vec<(u64, u64)> = wishes
        .iter()
        .flat_map(|wish| wish.groups())
        .map(|group| (group.0, u64::from(group.1)))
        .collect();
    groups.sort_unstable();
    let mut runs: u64 = groups.iter().map(|(_, runs)| *runs).sum();
    let mut left = total;
    let mut reached = 0;
    for (wish, number) in groups {
        let step = u128::from(wish - reached) * u128::from(runs);
        if step > u128::from(left) {
            break;
        }
        left -= u64::try_from(step).unwrap_or(left);
        reached = wish;
        runs -= number;
    }
    Level {
        reached,
        rest: if runs == 0 { 0 } else { left },
        weight: runs,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn demand(rates: &[u64], slots: &[u64]) -> Demand {
        let nanos = rates.iter().map(|rate| rate.saturating_mul(NANOS_PER_ITEM));
        Demand {
            rates: Wishes::of(nanos),
            slots: Wishes::of(slots.iter().map(|slots| slots * SLOT_PARTS)),
            batch: 1,
            runs: rates.len().max(slots.len()) as u32,
        }
    }

    fn rates(limit: &str, demands: &[Demand]) -> Vec<f64> {
        let bounds = Bounds {
            rate: Some(limit.parse().expect("a rate")),
            concurrency: None,
        };
        let claims: Vec<Claim<'_>> = demands
            .iter()
            .enumerate()
            .map(|(seat, demand)| Claim {
                seat: seat as u64,
                demand,
            })
            .collect();
        let rate = |part: Part| part.rate.bound().expect("limited") as f64 / NANOS_PER_ITEM as f64;
        allocate(&bounds, &claims).into_iter().map(rate).collect()
    }

    #[test]
    fn who_wants_little_gets_it_and_the_others_share_the_rest_by_their_runs() {
        let demands = [
            demand(&[30], &[]),
            demand(&[u64::MAX], &[]),
            demand(&[u64::MAX, u64::MAX], &[]),
        ];
        assert_eq!(rates("300/s", &demands), [30.0, 90.0, 180.0]);
    }

    #[test]
    fn what_nobody_asks_for_is_spread_also_to_those_who_ask_for_nothing() {
        let demands = [demand(&[30], &[]), demand(&[], &[])];
        assert_eq!(rates("300/s", &demands), [165.0, 135.0]);
        assert_eq!(
            rates("300/s", &[demand(&[400], &[]), demand(&[], &[])]),
            [300.0, 0.0]
        );
    }

    #[test]
    fn what_cannot_be_divided_goes_whole_to_the_front_of_the_line() {
        let all = || demand(&[u64::MAX], &[]);
        let parts = rates("1/m", &[demand(&[], &[]), all(), all()]);
        assert!(
            parts[0] == 0.0 && (parts[1] * 60.0 - 1.0).abs() < 1e-6 && parts[2] == 0.0,
            "{parts:?}"
        );
        // Ten in ten seconds: two sessions have their batch in time.
        assert_eq!(rates("1/s", &[all(), all()]), [0.5, 0.5]);
        // Eight leave at once at most, two of each session.
        assert_eq!(
            rates("4/s", &[all(), all(), all(), all(), all()]),
            [1.0, 1.0, 1.0, 1.0, 0.0]
        );
    }

    #[test]
    fn weights_share_what_all_want_and_a_slot_is_never_lost() {
        let of = |wishes: &[(u64, u32)]| Wishes::weighted(wishes.iter().copied());
        let (heavy, usual) = (of(&[(u64::MAX, 100)]), of(&[(u64::MAX, 10)]));
        assert_eq!(shared(1100, &[&heavy, &usual]), [1000, 100]);
        assert_eq!(shared(1100, &[&of(&[(500, 100)]), &usual]), [500, 600]);
        assert_eq!(shared_slots(5, &[&usual, &usual]), [3, 2]);
        assert_eq!(shared_slots(11, &[&usual, &heavy]), [1, 10]);
        let one = of(&[(SLOT_PARTS, 10)]);
        assert_eq!(
            shared_slots(5, &[&usual, &one]),
            [4, 1],
            "who wants little gets it"
        );
    }

    #[test]
    fn a_session_with_few_runs_has_a_slot_beside_one_with_many() {
        let of = |runs: usize| Wishes::weighted(std::iter::repeat_n((9 * SLOT_PARTS, 10), runs));
        assert_eq!(shared_slots(2, &[&of(4), &of(1)]), [1, 1]);
        assert_eq!(shared_slots(2, &[&of(1), &of(4)]), [1, 1]);
        assert_eq!(shared_slots(5, &[&of(40), &of(1), &of(1)]), [4, 1, 0]);
        let all = Wishes::weighted(std::iter::repeat_n((9 * SLOT_PARTS, 100), 400));
        let light = Wishes::weighted([(SLOT_PARTS, 1)]);
        assert_eq!(shared_slots(3, &[&all, &light]), [2, 1]);
    }

    proptest! {
        #[test]
        fn every_session_that_wants_a_slot_has_one_within_as_many_rotations_as_there_are_sessions(
            concurrency in 1..9_u32,
            sessions in prop::collection::vec((1..60_usize, 1..=100_u32, 1..50_u64), 1..9),
        ) {
            let demand = |(runs, weight, slots): &(usize, u32, u64)| Demand {
                slots: Wishes::weighted(std::iter::repeat_n((slots * SLOT_PARTS, *weight), *runs)),
                batch: 1,
                ..Demand::default()
            };
            let demands: Vec<Demand> = sessions.iter().map(demand).collect();
            let bounds = Bounds { rate: None, concurrency: Some(concurrency) };
            let mut seats: Vec<u64> = (0..demands.len() as u64).collect();
            let mut had = vec![false; demands.len()];
            for _ in 0..demands.len() {
                let claims = seats.iter().zip(&demands);
                let claims: Vec<Claim<'_>> = claims.map(|(seat, demand)| Claim { seat: *seat, demand }).collect();
                let parts = allocate(&bounds, &claims);
                let slots = |part: &Part| part.slots.bound().expect("limited");
                prop_assert_eq!(parts.iter().map(slots).sum::<u64>(), u64::from(concurrency));
                let ends = seats.iter().max().map_or(0, |last| last + 1)..;
                let with_slots = (0..parts.len()).filter(|at| slots(&parts[*at]) > 0);
                for (at, end) in with_slots.zip(ends) {
                    (had[at], seats[at]) = (true, end);
                }
            }
            prop_assert!(had.iter().all(|had| *had), "{:?}", had);
        }
    }

    #[test]
    fn slots_are_whole_and_none_is_left_out_before_its_turn() {
        let bounds = Bounds {
            rate: None,
            concurrency: Some(5),
        };
        let demands = [demand(&[], &[9]), demand(&[], &[9]), demand(&[], &[1])];
        let claims: Vec<Claim<'_>> = demands
            .iter()
            .enumerate()
            .map(|(seat, demand)| Claim {
                seat: seat as u64,
                demand,
            })
            .collect();
        let slots: Vec<_> = allocate(&bounds, &claims)
            .into_iter()
            .map(|part| part.slots.bound())
            .collect();
        assert_eq!(slots, [Some(2), Some(2), Some(1)]);
        let bounds = Bounds {
            rate: None,
            concurrency: Some(2),
        };
        let slots: Vec<_> = allocate(&bounds, &claims)
            .into_iter()
            .map(|part| part.slots.bound())
            .collect();
        assert_eq!(slots, [Some(1), Some(1), Some(0)]);
    }
}
