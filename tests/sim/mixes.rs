//! Mixtures that nobody thought of: bad items of any kinds, shed calls, an outage, a job that goes on. Each ends, and nobody is given
//! up who could have been done.

use std::num::NonZeroU32;
use std::time::Duration;

use windrow_core::execution::RunEnd;
use windrow_core::settings::Auto;
use windrow_core::task::lifecycle::StopReason;

use crate::outage::{Case, Fault, play};
use crate::rng::Rng;

const KINDS: [Fault; 6] = [
    Fault::Unavailable,
    Fault::Status500,
    Fault::Timeout,
    Fault::Reset,
    Fault::Unprocessable,
    Fault::NotFound,
];
/// Of more seeds that were played by hand (2,400) those are the first.
const SEEDS: u64 = 120;
/// The longest a task may take beyond its outage: an outage is believed for two hours, and 503s need their rows. Unit: seconds.
const LONGEST: u64 = 5 * 3600;

pub(crate) fn mixture(seed: u64) -> Case {
    let mut rng = Rng(seed.wrapping_mul(7919));
    let (rate, total) = (
        rng.pick(&[5, 20, 100, 500]),
        rng.pick(&[20, 100, 500, 2000, 5000]),
    );
    let mut case = Case::new(Some(rate), total);
    case.seed = seed;
    case.bad = (0..rng.between(1, 4)).map(|_| rng.pick(&KINDS)).collect();
    case.bad_percent = rng.pick(&[0, 1, 3, 10, 25]);
    case.shed_percent = rng.pick(&[0, 0, 1, 10]);
    case.tuning.max_attempts = NonZeroU32::new(rng.pick(&[2, 3, 5, 8])).expect("not zero");
    if rng.chance(500) {
        let from = rng.between(0, total / rate + 10);
        let to = from + rng.pick(&[3, 30, 300, 1200]);
        case.outage = Some((from, to, rng.pick(&[Fault::Connect, Fault::Unavailable])));
    }
    case.tuning.batch = NonZeroU32::new(rng.pick(&[1, 1, 1, 5, 20])).expect("not zero");
    case.tuning.judge_after = rng.pick(&[Auto::Fixed(Duration::from_secs(600)), Auto::Auto]);
    if rng.chance(300) {
        case.called_before = rng.pick(&[total / 2, total - 3, total]);
        case.charged_before = rng.pick(&[0, 1, 2]);
    }
    case
}

#[test]
fn any_mixture_ends_and_gives_up_nobody_but_the_bad() {
    for seed in 1..=crate::number("SIM_MIXES").unwrap_or(SEEDS) {
        let case = mixture(seed);
        let told = format!("seed {seed}: {case:?}");
        let story = play(case.clone());
        let innocent: Vec<&u64> = story
            .failed
            .keys()
            .filter(|index| case.bad_fault(**index).is_none() && !story.unconfirmed.contains(index))
            .collect();
        assert!(innocent.is_empty(), "innocent {innocent:?} of {told}");
        match &story.end {
            Some(RunEnd::Done) => {
                // In an outage that begins when only the last items are left, these are given up, and say so.
                let is_bad =
                    |index: u64| case.bad_fault(index).is_some() || story.unconfirmed.contains(&index);
                let good = (0..case.total).filter(|index| !is_bad(*index));
                assert_eq!(story.succeeded, good.count() as u64, "{told}");
                let innocent = story
                    .unconfirmed
                    .iter()
                    .filter(|index| case.bad_fault(**index).is_none());
                let innocent = innocent.count() as u64;
                // One that is shed each time looks like a bad one, and only few are.
                let may_be_few = case.shed_percent > 0 && innocent * 100 <= case.total;
                assert!(
                    innocent == 0 || case.outage.is_some() || may_be_few,
                    "{innocent} of {told}"
                );
            }
            // A row of refusals asks people, and so do the last items where 503s came in an outage only.
            Some(RunEnd::Stopped { reason, .. }) => {
                let asks = match reason {
                    StopReason::HandlerRejected => Fault::NotFound,
                    StopReason::HandlerUnreachable => Fault::Unavailable,
                    other => panic!("{other:?} of {told}"),
                };
                assert!(case.bad.contains(&asks), "{reason:?} of {told}");
            }
            other => panic!("{other:?} of {told}"),
        }
        let until = case.outage.map_or(0, |(_, to, _)| to) + case.total / 5 + LONGEST;
        let asked = story.end != Some(RunEnd::Done);
        assert!(asked || story.over_at < until, "{} s of {told}", story.over_at);
    }
}
