//! Pace that may owe: a twin that earns span by span, its bound over all intervals, and the long run.

use std::time::Duration;

use proptest::prelude::*;

use crate::ids::Moment;
use crate::meter::amount::{Amount, Credit};
use crate::meter::estimate::Estimates;
use crate::meter::owing::Owing;

/// Span of the paces here; long, so that little comes back in a second.
const SPAN: Duration = Duration::from_millis(500);
const SPAN_NS: u64 = 500_000_000;
const SPANS_A_SECOND: i128 = 2;

/// Twin that earns one span after the other, in whole parts.
#[derive(Clone, Debug)]
struct Twin {
    amount: i128,
    burst: i128,
    credit: i128,
    back: i128,
    room: i128,
}

impl Twin {
    fn new(amount: i128, burst: i128) -> Twin {
        Twin {
            amount,
            burst,
            credit: 0,
            back: 0,
            room: 0,
        }
    }

    fn earn(&mut self, spans: u64) {
        for _ in 0..spans {
            self.credit = (self.credit + self.amount).min(self.burst);
            self.room += self.amount;
            self.come_back();
            self.room = self.room.min(self.amount * SPANS_A_SECOND);
        }
    }

    fn come_back(&mut self) {
        let now = self.back.min(self.room);
        self.back -= now;
        self.room -= now;
        self.credit = (self.credit + now).min(self.burst);
    }

    fn true_up(&mut self, estimate: i128, actual: i128) {
        self.credit -= (actual - estimate).max(0);
        self.back += (estimate - actual).max(0);
        self.come_back();
    }
}

fn parts(parts: i128) -> Amount {
    Amount(u128::try_from(parts).expect("an amount"))
}

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    /// Grant of so many calls, each with what it is estimated at and what it costs.
    Grant(i128, Vec<(i128, i128)>),
    /// End of the oldest call that is out, or of another one.
    End(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let call = (0..60_i128, 0..60_i128);
    let step = prop_oneof![
        2 => (0..30_u64).prop_map(Step::Wait),
        3 => (1..40_i128, proptest::collection::vec(call, 1..6)).prop_map(|(mean, calls)| Step::Grant(mean, calls)),
        3 => (0..4_usize).prop_map(Step::End),
    ];
    proptest::collection::vec(step, 1..120)
}

/// Departure of a call.
#[derive(Clone, Debug)]
struct Departure {
    span: u64,
    estimate: i128,
    actual: i128,
    /// Credit that earlier calls may still bring back: waiting, and of those out the rest of their estimates.
    back: i128,
    /// Number of the first departure after its end; the last one if it never ends.
    until: usize,
}

/// Runs bucket and twin through the steps, holds one against the other, and returns the departures.
fn driven(amount: i128, burst: i128, steps: Vec<Step>) -> Result<Vec<Departure>, TestCaseError> {
    let at = |span: u64| Moment(span * SPAN_NS);
    let (mut bucket, mut twin) = (
        Owing::new(parts(amount), SPAN, parts(burst), at(0)),
        Twin::new(amount, burst),
    );
    let (mut span, mut out, mut departures) = (0, Vec::<(i128, i128, usize)>::new(), Vec::<Departure>::new());
    for step in steps {
        match step {
            Step::Wait(spans) => {
                span += spans;
                twin.earn(spans);
            }
            Step::Grant(mean, calls) => {
                let granted = bucket.reserve(calls.len() as u32, parts(mean), at(span));
                let wanted = if twin.credit <= 0 {
                    0
                } else {
                    (twin.credit / mean).max((twin.credit == twin.burst).into())
                };
                prop_assert_eq!(i128::from(granted), wanted.min(calls.len() as i128));
                let mut left = granted;
                for (estimate, actual) in calls.into_iter().take(granted as usize) {
                    prop_assert_eq!(
                        bucket.take(parts(mean), parts(estimate), at(span)),
                        twin.credit > 0
                    );
                    if twin.credit <= 0 {
                        break;
                    }
                    left -= 1;
                    twin.credit -= estimate;
                    let rests = out.iter().map(|(estimate, actual, _)| (estimate - actual).max(0));
                    let back = twin.back + rests.sum::<i128>();
                    departures.push(Departure {
                        span,
                        estimate,
                        actual,
                        back,
                        until: usize::MAX,
                    });
                    out.push((estimate, actual, departures.len() - 1));
                }
                bucket.release(left, parts(mean));
            }
            Step::End(no) if no < out.len() => {
                let (estimate, actual, departure) = out.remove(no);
                departures[departure].until = departures.len();
                bucket.true_up(parts(estimate), parts(actual), at(span));
                twin.true_up(estimate, actual);
            }
            Step::End(_) => {}
        }
        bucket.reserve(0, Amount::ZERO, at(span));
        prop_assert_eq!(bucket.debt(), Credit(twin.credit).owed());
    }
    Ok(departures)
}

/// Checks the bound over every interval that begins and ends with a departure: of the costs above estimates, only those
/// of calls that are out at its end aren't taken yet.
fn is_within_bound(amount: i128, burst: i128, departures: &[Departure]) -> Result<(), TestCaseError> {
    let above = |departure: &Departure| (departure.actual - departure.estimate).max(0);
    let mut ended = vec![Vec::new(); departures.len() + 1];
    for (no, departure) in departures.iter().enumerate() {
        ended[departure.until.min(departures.len())].push(no);
    }
    for (from, first) in departures.iter().enumerate() {
        let (mut sum, mut out, mut largest) = (0, 0, 0);
        // Calls of one interval are no earlier ones, so what is back at its beginning is all that can come.
        for (no, last) in departures.iter().enumerate().skip(from) {
            let settled = ended[no].iter().filter(|no| **no >= from);
            out += above(last) - settled.map(|no| above(&departures[*no])).sum::<i128>();
            sum += last.actual;
            largest = largest.max(last.estimate);
            let earned = amount * i128::from(last.span - first.span);
            let back = first.back.min(earned + amount * SPANS_A_SECOND);
            prop_assert!(
                sum <= earned + burst + largest + out + back,
                "{:?} to {:?}",
                first,
                last
            );
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_pace_that_may_owe_is_its_twin_and_within_its_bound_in_every_interval(
        amount in 1..20_i128, burst in 1..200_i128, steps in steps(),
    ) {
        is_within_bound(amount, burst, &driven(amount, burst, steps)?)?;
    }

    #[test]
    fn the_next_moment_is_the_first_at_which_a_call_fits(
        amount in 1..1000_u128, span in 1..5_000_u64, burst in 1..500_u128, mean in 1..700_u128,
        (debt, estimate, actual) in (0..300_u128, 0..300_u128, 0..300_u128), wait in 0..5_000_u64,
    ) {
        let mut bucket = Owing::new(Amount(amount), Duration::from_micros(span), Amount(burst), Moment(0));
        bucket.inherit(Amount(debt));
        let now = Moment(wait * 1_000);
        bucket.true_up(Amount(estimate), Amount(actual), now);
        let next = bucket.next_at(Amount(mean)).expect("a rate above 0");
        if next > now {
            prop_assert_eq!(bucket.clone().reserve(1, Amount(mean), Moment(next.0 - 1)), 0);
        }
        prop_assert_eq!(bucket.reserve(1, Amount(mean), next), 1);
    }

    #[test]
    fn calls_that_all_cost_the_same_never_owe_and_keep_the_rate_exactly(
        amount in 1..1000_u128, cost in 1..50_u128, calls in 1..20_u128, grants in proptest::collection::vec(1..9_u32, 50..200),
    ) {
        let (mut bucket, mut now, mut sent) = (Owing::new(Amount(amount), SPAN, Amount(cost * calls), Moment(0)), Moment(0), 0);
        for want in grants {
            now = now.max(bucket.next_at(Amount(cost)).expect("a rate above 0"));
            // Two lanes look at the same credit, and both send what they were granted.
            let granted = bucket.reserve(want, Amount(cost), now) + bucket.reserve(want, Amount(cost), now);
            for _ in 0..granted {
                prop_assert!(bucket.take(Amount(cost), Amount(cost), now));
                bucket.true_up(Amount(cost), Amount(cost), now);
                sent += 1;
            }
            prop_assert_eq!(bucket.debt(), Amount::ZERO);
            let earned = u128::from(now.0) * amount / u128::from(SPAN_NS);
            prop_assert!(sent * cost <= earned);
            // It asks as soon as a call fits, so nothing is lost; a bucket of one call keeps no fraction.
            prop_assert!(calls == 1 || earned < sent * cost + cost);
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn in_the_long_run_the_rate_is_kept_whatever_the_estimates_are_worth(
        costs in proptest::collection::vec((50..400_u128, 10..40_u128), 40..60), worth in 1..40_u128,
    ) {
        let (amount, burst) = (10_000, 2_000);
        let mut bucket = Owing::new(Amount(amount), SPAN, Amount(burst), Moment(0));
        let (mut estimates, mut now, mut out, mut used) = (Estimates::default(), Moment(0), Vec::new(), 0);
        let mut calls = costs.iter().cycle();
        let (from, until) = (Moment(60 * 1_000_000_000), Moment(360 * 1_000_000_000));
        while now < until {
            out.retain(|(ends, guess, estimate, actual): &(Moment, Amount, Amount, Amount)| {
                if *ends > now {
                    return true;
                }
                bucket.true_up(*estimate, *actual, now);
                estimates.learn(Some(*guess), *actual);
                false
            });
            let mean = estimates.mean().unwrap_or(Amount(100));
            for _ in 0..bucket.reserve(8, mean, now) {
                let (cost, noise) = *calls.next().expect("endless");
                // Between a half and twice, times what estimates are worth.
                let guess = Amount(cost * noise * worth / 200);
                let estimate = estimates.for_pace(Some(guess)).unwrap_or(guess);
                if !bucket.take(mean, estimate, now) {
                    bucket.release(1, mean);
                    continue;
                }
                out.push((now.plus(Duration::from_millis(300)), guess, estimate, Amount(cost)));
                used += if now >= from { cost } else { 0 };
            }
            now = now.plus(Duration::from_millis(10));
        }
        let wanted = u128::from(until.0 - from.0) / u128::from(SPAN_NS) * amount;
        prop_assert!(used.abs_diff(wanted) * 50 <= wanted, "{} of {}", used, wanted);
    }
}

#[test]
fn what_comes_back_can_be_spent_beside_a_full_burst() {
    let second = |at: u64| Moment(at * 1_000_000_000);
    let units = Amount::units;
    let mut bucket = Owing::new(units(10), Duration::from_secs(1), units(100), second(0));
    assert_eq!(bucket.reserve(20, units(10), second(10)), 10);
    (0..10).for_each(|_| assert!(bucket.take(units(10), units(10), second(10))));
    // Full again while these ten are out, and spent again; then the ten turn out to have cost nothing.
    assert_eq!(bucket.reserve(20, units(10), second(20)), 10);
    (0..10).for_each(|_| assert!(bucket.take(units(10), units(10), second(20))));
    (0..10).for_each(|_| bucket.true_up(units(10), Amount::ZERO, second(20)));
    assert_eq!(
        bucket.reserve(20, units(10), second(20)),
        1,
        "a second of the rate at once"
    );
    bucket.release(1, units(10));
    assert_eq!(
        bucket.reserve(20, units(10), second(24)),
        9,
        "then beside each part that is earned"
    );
}

#[test]
fn looking_at_a_bucket_loses_no_fraction() {
    let mut bucket = Owing::new(Amount(2), Duration::from_nanos(7), Amount(1_000), Moment(0));
    for nanos in 0..700 {
        bucket.reserve(0, Amount(1), Moment(nanos));
    }
    assert_eq!(bucket.reserve(1_000, Amount(1), Moment(700)), 200);
}

#[test]
fn nothing_leaves_while_it_owes_and_a_debt_is_inherited() {
    let second = |at: u64| Moment(at * 1_000_000_000);
    let units = Amount::units;
    let mut bucket = Owing::new(units(10), Duration::from_secs(1), units(20), second(0));
    assert_eq!(bucket.reserve(5, units(4), second(1)), 2);
    assert!(bucket.take(units(4), units(50), second(1)));
    assert!(
        !bucket.take(units(4), units(1), second(1)),
        "the rest of the grant goes back"
    );
    bucket.release(1, units(4));
    assert_eq!(bucket.debt(), units(40));
    assert_eq!(bucket.reserve(1, units(4), second(2)), 0);
    assert_eq!(bucket.debt(), units(30), "a second later");
    let mut heir = Owing::new(units(10), Duration::from_secs(1), units(20), second(2));
    heir.inherit(bucket.debt());
    assert_eq!(heir.next_at(units(5)), Some(Moment(5_500_000_000)));
    heir.set(Amount::ZERO, Duration::from_secs(1), units(20), second(2));
    assert_eq!(heir.next_at(units(5)), None);
}
