//! Retry decision for an item whose attempt failed: retry after a wait, fail on the handler's request, or fail
//! because no attempts are left.
//!
//! Pure: the jitter is a hash of task, index and attempt, so it is spread over items and yet reproducible.

use std::time::Duration;

use crate::ids::{Attempt, ItemIndex, TaskId};
use crate::items::verdict::RetryAdvice;
use crate::settings::Backoff;

/// Longest wait that a handler may choose for an item; a longer one is a mistake of units.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// Decision about a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Retry after this wait.
    RetryAfter(Duration),
    /// The handler asked for no more attempts.
    Failed,
    /// The last attempt has failed.
    Exhausted,
}

/// Decides about an item whose attempt number `attempt` of at most `attempts_max` failed.
pub fn decide(
    advice: RetryAdvice,
    attempt: Attempt,
    attempts_max: u32,
    backoff: &Backoff,
    spread: u64,
) -> Verdict {
    match advice {
        RetryAdvice::Fail => Verdict::Failed,
        RetryAdvice::Retry { .. } if attempt.get() >= attempts_max => Verdict::Exhausted,
        RetryAdvice::Retry { after: Some(chosen) } => Verdict::RetryAfter(chosen.min(RETRY_AFTER_MAX)),
        RetryAdvice::Retry { after: None } => Verdict::RetryAfter(wait(backoff, attempt, spread)),
    }
}

/// Returns the wait after `attempt` failed: `first × factor^(attempt − 1)`, at most `max`, ± jitter.
pub fn wait(backoff: &Backoff, attempt: Attempt, spread: u64) -> Duration {
    let exponent = attempt.get().saturating_sub(1).min(64);
    let factor = u128::from(backoff.factor.max(1)).saturating_pow(exponent);
    let steady = backoff
        .first
        .as_nanos()
        .saturating_mul(factor)
        .min(backoff.max.as_nanos());
    let range = steady * u128::from(backoff.jitter_percent.min(100)) / 100;
    // A spread of 0 shortens the wait by the whole range, one of u64::MAX lengthens it by the whole range.
    let shift = (range * 2).saturating_mul(u128::from(spread)) / u128::from(u64::MAX);
    let nanos = steady - range + shift;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Returns a wait that starts at `first` and doubles with each failure, up to `longest`.
pub fn doubled((first, longest): (Duration, Duration), failures: u32) -> Duration {
    first.saturating_mul(1 << failures.min(16)).min(longest)
}

/// Returns a pseudo-random number that is the same for the same attempt of the same item.
pub fn spread(task: TaskId, index: ItemIndex, attempt: Attempt) -> u64 {
    mix(task.0.unsigned_abs().rotate_left(40) ^ index.0.rotate_left(8) ^ u64::from(attempt.get()))
}

/// Returns a pseudo-random number that is the same for the same seed (splitmix64).
pub fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff {
        first: Duration::from_secs(1),
        max: Duration::from_secs(60),
        factor: 2,
        jitter_percent: 20,
    };

    #[test]
    fn waits_double_up_to_the_longest_and_stay_within_the_jitter() {
        for (attempt, seconds) in [(1, 1.0), (2, 2.0), (6, 32.0), (7, 60.0), (4_000_000, 60.0)] {
            let shortest = wait(&BACKOFF, Attempt::new(attempt), 0).as_secs_f64();
            let longest = wait(&BACKOFF, Attempt::new(attempt), u64::MAX).as_secs_f64();
            assert!((shortest - 0.8 * seconds).abs() < 1e-6, "{attempt}: {shortest}");
            assert!((longest - 1.2 * seconds).abs() < 1e-6, "{attempt}: {longest}");
        }
    }

    #[test]
    fn the_last_attempt_exhausts_and_a_chosen_wait_is_obeyed_within_reason() {
        let retry = |after| RetryAdvice::Retry { after };
        assert_eq!(
            decide(retry(None), Attempt::new(5), 5, &BACKOFF, 0),
            Verdict::Exhausted
        );
        let chosen = decide(
            retry(Some(Duration::from_secs(7))),
            Attempt::new(4),
            5,
            &BACKOFF,
            0,
        );
        assert_eq!(chosen, Verdict::RetryAfter(Duration::from_secs(7)));
        let silly = decide(retry(Some(Duration::MAX)), Attempt::new(1), 5, &BACKOFF, 0);
        assert_eq!(silly, Verdict::RetryAfter(RETRY_AFTER_MAX));
        assert_eq!(
            decide(RetryAdvice::Fail, Attempt::new(1), 5, &BACKOFF, 0),
            Verdict::Failed
        );
    }

    #[test]
    fn neighbours_are_spread_over_the_whole_range() {
        let spreads: Vec<u64> = (0..1000)
            .map(|index| spread(TaskId(1), ItemIndex(index), Attempt::FIRST))
            .collect();
        let low = spreads.iter().filter(|s| **s < u64::MAX / 4).count();
        assert!((200..300).contains(&low), "{low}");
    }
}
