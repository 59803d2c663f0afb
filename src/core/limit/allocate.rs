//! Allocation of a limit: max-min fair over the demand of the runs of all sessions.
//!
//! Pure, and the same for everyone who sees the same claims, so each session can compute it for itself. It gives the
//! *target*; `round` moves towards it without ever giving out more than there is.
//!
//! - Every run gets what it asks for, or as much as any other run: one level for all.
//! - Capacity that nobody asks for is spread over the sessions, so that new demand finds some there.
//! - Capacity that can't be divided goes whole to a few: the sessions queue by their seats, those at the front that
//!   fit together get a share, and a session that has had its rotation goes to the end (`rotation`). There is no minimum
//!   share.

use super::demand::{Demand, Wishes};
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
        shared(total, &wishes(seated, |demand| &demand.slots))
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

/// Divides `total` max-min fairly: no run has less than it wants while another has more than it. What is left when
/// all are satisfied is spread evenly; a remainder that can't be divided goes one by one to those nearest to the
/// front.
pub fn shared(total: u64, wishes: &[&Wishes]) -> Vec<u64> {
    let level = level(total, wishes);
    let mut parts: Vec<u64> = wishes.iter().map(|wish| wish.up_to(level)).collect();
    let mut left = total.saturating_sub(parts.iter().copied().fold(0, u64::saturating_add));
    for (part, wish) in parts.iter_mut().zip(wishes) {
        let more = wish.above(level).min(left);
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

/// Returns the highest level up to which all demand can be met.
fn level(total: u64, wishes: &[&Wishes]) -> u64 {
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
            return reached + left / runs;
        }
        left -= u64::try_from(step).unwrap_or(left);
        reached = wish;
        runs -= number;
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(rates: &[u64], slots: &[u64]) -> Demand {
        let nanos = rates.iter().map(|rate| rate.saturating_mul(NANOS_PER_ITEM));
        Demand {
            rates: Wishes::of(nanos),
            slots: Wishes::of(slots.iter().copied()),
            batch: 1,
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
