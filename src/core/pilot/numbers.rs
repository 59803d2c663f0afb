//! The constants of the autopilot, in one table.
//!
//! None is a setting. Each was measured in a simulation; `pilot::tests` judges a change of one.

/// Calls in flight at the start, where neither a rate nor knowledge of an earlier run says more.
pub const START_IN_FLIGHT: u32 = 4;

// --- Calls in flight: rounds.
/// Minimum calls in a round, and in one while starting.
pub(super) const ROUND_CALLS: u32 = 16;
pub(super) const ROUND_CALLS_STARTING: u32 = 8;
/// Minimum length of a round's departures. Unit: seconds. Otherwise a fast service is judged on a few milliseconds.
pub(super) const ROUND_SPAN: f64 = 0.25;
/// Share of a round's calls that must have ended; the rest count with their age. Waiting for all of them would make
/// each round as long as its slowest call.
pub(super) const ROUND_ENDED: f64 = 7.0 / 8.0;
/// Calls sent within this part of a call's time, at most so many seconds, are sent together.
pub(super) const GROUP_PART: f64 = 1.0 / 16.0;
pub(super) const GROUP_MAX: f64 = 0.05;
/// Longest sample, as a multiple of the mean call time: a tail of sigma 1.5 drowns the slope otherwise.
pub(super) const SAMPLE_MAX: f64 = 16.0;
/// Weight of a failed call's time: a service that fails quickly must not look fast.
pub(super) const FAILED_WEIGHT: f64 = 2.0;
/// A round fails above this share of failed calls, of at least so many.
pub(super) const FAILING_SHARE: f64 = 0.25;
pub(super) const FAILING_CALLS: u32 = 8;

// --- Calls in flight: the slope and what follows from it.
/// Factor between the low and the high setting: a contrast of 0.26 octaves; less drowns in noise.
pub(super) const SWING: f64 = 1.2;
/// Slope up to which more calls in flight pay: 0 is room, 1 is a queue. 0.75 lost 2 to 3 % at soft knees.
pub(super) const WORTH: f64 = 0.8;
/// Change of the limit per unit of slope. Unit: a part of the limit per round.
pub(super) const GAIN: f64 = 0.2;
/// Weight of our own slowdown: with 2, four sharers make calls 11 times slower in place of 2.7; 6 is unfair.
pub(super) const BLOAT: f64 = 4.0;
/// Slowdown that never counts, and the multiple of the noise that doesn't either. Unit: octaves.
pub(super) const SLOWER_FREE: f64 = 0.25;
pub(super) const SLOWER_NOISE: f64 = 1.2;
/// Slowdown beyond which more doesn't count more. Unit: octaves.
pub(super) const SLOWER_MAX: f64 = 1.5;
/// Standard errors of the slope that are forgiven. With 0 a heavy tail falls from 0.96 to 0.91, a plain queue to 0.98.
pub(super) const CHANCE: f64 = 0.5;
/// Bounds of a round's change of the limit.
pub(super) const PULL_MIN: f64 = -0.25;
pub(super) const PULL_MAX: f64 = 0.35;
/// Raises in a row after which they double.
pub(super) const RAISES_UNTIL_DOUBLE: u32 = 6;
/// Memory of the slope and of the long slope, per round.
pub(super) const SLOPE_MEMORY: f64 = 0.75;
pub(super) const LONG_MEMORY: f64 = 0.93;
/// Slope beyond which a start ends, and the slowdown in octaves that ends it too.
pub(super) const START_SLOPE: f64 = 0.5;
pub(super) const START_SLOWER: f64 = 1.0;

// --- Calls per second: refusals and scouts.
/// Share of what the service took that is held: what it takes on average may be refused at any moment.
pub(super) const HOLD: f64 = 0.98;
/// Fade of a rate that was once good. 0.99 leaves 0.84 of a sliding window in place of 0.91; 0.997 starves a newcomer
/// (fairness 0.88 in place of 0.99), as a rate a little too high would stay.
pub(super) const GOOD_FADE: f64 = 0.995;
/// Refusals that lower the rate while it is held, each forgiven after so many accepted calls. A raise is taken back at
/// the first; otherwise a newcomer always loses (fairness 0.55 in place of 0.99).
pub(super) const REFUSALS_UNTIL_SCOUT: f64 = 3.0;
pub(super) const FORGIVEN_AFTER: f64 = 96.0;
/// Accepted calls that pay for a refusal before more is asked for, and the most that are owed.
pub(super) const REFUSAL_COSTS: f64 = 80.0;
pub(super) const REFUSALS_COST_MAX: f64 = 240.0;
/// Bounds of the wait before the first scout and between two. Unit: seconds.
pub(super) const FIRST_WAIT: (f64, f64) = (0.02, 60.0);
pub(super) const WAIT: (f64, f64) = (0.25, 60.0);
/// Calls at the rate found that the length of the last block may cost before the first scout. Without a bound a quota
/// that was used up for ten minutes left 0.04 of 10/s for the next half hour.
pub(super) const BLOCK_CALLS: f64 = 64.0;
/// Growth of the wait at a refused scout: while no rate is known, later, and with a `Retry-After`.
pub(super) const WAIT_GROWTH_FIRST: f64 = 2.0;
pub(super) const WAIT_GROWTH: f64 = 1.5;
pub(super) const WAIT_GROWTH_TOLD: f64 = 3.0;
/// Calls at the rate found that the wait named with a refusal may cost before the first scout.
pub(super) const TOLD_CALLS: f64 = 32.0;
/// Scouts that stay out this many times as long as a refusal takes, and at least so many seconds, got through.
pub(super) const THROUGH_AFTER: (f64, f64) = (4.0, 1.0);
/// Gap of two refusals that name the same instant before it is believed. Unit: seconds.
pub(super) const BELIEVED_GAP: f64 = 2.0;
/// Calls since the last estimate below which there is no news, only the tail of the same block.
pub(super) const NEWS: u64 = 8;
/// Share of the rate before below which an estimate is doubled with each accepted call, up to that rate, until one is
/// refused. A quota that was used up on the way otherwise left 0.02 of 10/s a quarter of an hour later.
pub(super) const HUNTED: f64 = 0.25;
/// Step of a raise: this over the root of the rate, within these bounds. The root keeps a large run from asking more
/// often than a small one at the same service.
pub(super) const STEP: f64 = 0.38;
pub(super) const STEP_BOUNDS: (f64, f64) = (1.0 / 32.0, 0.25);
/// Distance from the last estimate at which a step grows, by this factor, again for each such distance, and the
/// largest: the service has more room than it had.
pub(super) const STEP_BEYOND: (f64, f64, f64) = (1.15, 1.75, 0.25);
/// Minimum time from an estimate to a raise, and between raises. Unit: seconds.
pub(super) const RAISE_AFTER: f64 = 5.0;
pub(super) const RAISE_EVERY: f64 = 1.0;
/// Minimum accepted calls between raises.
pub(super) const RAISE_CALLS: u32 = 4;
/// Bounds of a rate that is found: a call an hour leads on by itself. Unit: calls per second.
pub(super) const RATE_BOUNDS: (f64, f64) = (1.0 / 3600.0, 1e6);
/// Longest wait that a refusal may name. Unit: seconds.
pub(super) const TOLD_MAX: f64 = 86_400.0;
/// Longest delay of a departure that the next one may catch up. Unit: seconds.
pub(super) const CATCH_UP: f64 = 0.02;
/// Longest wait that headers may cause. Unit: seconds.
pub(super) const WINDOW_MAX: f64 = 3600.0;
/// Half-life of a stored limit in flight, and the age at which stored rates are forgotten. Unit: seconds.
pub(super) const KNOWN_HALF_LIFE: f64 = 3600.0;
pub(super) const KNOWN_FOR: f64 = super::KEPT_FOR.as_secs() as f64;

// --- Runs that share a task.
/// Minimum time from a published limit in flight to the next, and the rounds that must have been judged meanwhile.
/// Unit: seconds.
pub(super) const PUBLISH_EVERY: f64 = 20.0;
pub(super) const PUBLISH_ROUNDS: u32 = 8;
/// Without so many rounds, a multiple of that time and so many calls decides.
pub(super) const PUBLISH_BY_TIME: f64 = 2.0;
pub(super) const PUBLISH_CALLS: f64 = 16.0;
/// Distance from the limit published last at which another is published. Unit: octaves.
pub(super) const PUBLISHED_OFF: f64 = 0.15;
/// Time until the other runs hold a published limit, beside the time of a call. Unit: seconds.
pub(super) const SETTLES_AFTER: f64 = 3.0;
/// Share of the distance from a fair rate that is made good with each news.
pub(super) const BALANCE: f64 = 0.05;
