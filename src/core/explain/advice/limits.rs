//! Settings that bound the items in flight: if one of them is the cause, a higher value helps.

use std::time::Duration;

use windrow_words::advice as say;

use super::{Advice, Case, patch};
use crate::explain::facts::Facts;
use crate::explain::text::{round_up, setting};
use crate::settings::table::TuningPatch;
use crate::settings::{Auto, Burst};
use crate::task::WINDOW_ITEMS_MAX;

/// Factor above what Little's law requires.
const ROOM: f64 = 1.25;
/// Factor above the slots that the 95th percentile requires, as for the automatic concurrency. (`config.toml`.)
const SLOTS_ROOM: f64 = 1.5;
/// Minimum sensible value of `straggler_after`.
const STRAGGLER_MIN: Duration = Duration::from_millis(100);

/// Advises a window that outlasts the item that holds it, or parking such items sooner.
pub(super) fn window(case: &Case<'_>) -> Vec<Advice> {
    let facts = case.facts;
    if facts.tuning.ordered {
        return vec![case.cant(say::without_ordered(), say::ordered_waits())];
    }
    let held = held(facts);
    let now = facts.live.as_ref().map_or(0, |live| live.window);
    let slots = slots(case);
    let needed = (Facts::slots(case.rate, held) as f64 * ROOM) as u64;
    let needed = round_up(needed.max(2 * now).max(slots));
    let most = u64::from(WINDOW_ITEMS_MAX);
    let mut advice = Vec::new();
    if now < most
        && let Some(size) = setting(needed.min(most))
    {
        let text = say::larger_window(size.get(), held);
        let change = TuningPatch {
            window: Some(Auto::Fixed(size)),
            ..more_slots(case, slots)
        };
        advice.push(case.change(text, change));
    }
    advice.extend(park_sooner(case, held, now));
    if advice.is_empty() {
        advice.push(case.cant(say::faster_items(), say::window_at_most()));
    }
    advice
}

/// Returns the time for which the slowest item holds the window.
fn held(facts: &Facts) -> Duration {
    let head = facts.live.as_ref().and_then(|live| live.head);
    let known = [
        facts.latency.p99,
        facts.latency.longest,
        head.map(|head| head.age),
        facts.usual_latency(),
    ];
    let longest = known.into_iter().flatten().max();
    longest.unwrap_or(facts.tuning.straggler_after)
}

/// Advises to park sooner, which helps only against an item that is much slower than the usual one.
fn park_sooner(case: &Case<'_>, held: Duration, window: u64) -> Option<Advice> {
    let usual = case.facts.usual_latency().unwrap_or_default();
    let parks = (usual * 2).max(STRAGGLER_MIN);
    let parks = Duration::from_millis(u64::try_from(parks.as_millis()).unwrap_or(u64::MAX));
    let is_straggler = held > 2 * parks && Facts::slots(case.rate, usual) < window;
    (is_straggler && parks < case.facts.tuning.straggler_after).then(|| {
        let change = patch(|change| change.straggler_after = Some(parks));
        // The effect depends on how many such items there are.
        Advice {
            predicted: None,
            ..case.change(say::park_sooner(parks), change)
        }
    })
}

/// Returns the slots that the rate needs, with some room.
fn slots(case: &Case<'_>) -> u64 {
    let latency = case.facts.usual_latency().unwrap_or_default();
    let needed = (case.rate * latency.as_secs_f64() * SLOTS_ROOM).ceil() as u64;
    needed.max(u64::from(case.facts.tuning.batch.get()))
}

/// Returns the change that raises the slots to this number, if there are fewer.
fn more_slots(case: &Case<'_>, slots: u64) -> TuningPatch {
    let (facts, slots) = (case.facts, round_up(slots));
    let now = facts.live.as_ref().map_or(0, |live| live.concurrency);
    let mut change = TuningPatch::default();
    if slots > now {
        match facts.tuning.concurrency {
            Auto::Fixed(_) => change.concurrency = setting(slots).map(Auto::Fixed),
            Auto::Auto if slots > u64::from(facts.tuning.max_concurrency.get()) => {
                change.max_concurrency = setting(slots);
            }
            Auto::Auto => {}
        }
    }
    change
}

/// Advises more items in flight.
pub(super) fn concurrency(case: &Case<'_>) -> Advice {
    let facts = case.facts;
    if facts.tuning.ordered {
        return case.cant(say::without_ordered_or_faster(), say::ordered_rate());
    }
    let now = facts.live.as_ref().map_or(0, |live| live.concurrency);
    // All slots are taken: the items in flight are a lower bound on what is needed.
    let share = case.rate / facts.attempts().max(1e-9);
    let by_law = (now as f64 * share.min(1000.0) * ROOM).ceil() as u64;
    let needed = round_up(slots(case).max(by_law).max(now + 1));
    let mut change = more_slots(case, needed);
    if change == TuningPatch::default() {
        // Automatic, and not bounded by its maximum: it knows too little of the latency yet.
        change.concurrency = setting(needed).map(Auto::Fixed);
    }
    if let Auto::Fixed(window) = facts.tuning.window
        && u64::from(window.get()) < 2 * needed
    {
        change.window = setting((2 * needed).min(u64::from(WINDOW_ITEMS_MAX))).map(Auto::Fixed);
    }
    case.change(say::more_in_flight(needed), change)
}

/// Advises more unsaved completions, or saving them more often.
pub(super) fn unsaved(case: &Case<'_>) -> Advice {
    let interval = case.facts.tuning.checkpoint_interval;
    if case.facts.tuning.unsaved_max != Auto::Auto {
        let change = patch(|change| change.unsaved_max = Some(Auto::Auto));
        return case.change(say::unsaved_auto(), change);
    }
    let half = Duration::from_millis(u64::try_from(interval.as_millis() / 2).unwrap_or(u64::MAX));
    if half < Duration::from_millis(100) {
        return case.cant(say::faster_store(), say::checkpoints_slow());
    }
    let change = patch(|change| change.checkpoint_interval = Some(half));
    case.change(say::save_every(half), change)
}

/// Advises room for more parked items.
pub(super) fn parked(case: &Case<'_>) -> Advice {
    let parked_max = case.facts.tuning.parked_max.saturating_mul(2).max(1000);
    let change = patch(|change| change.parked_max = Some(parked_max));
    case.change(say::more_parked(parked_max), change)
}

/// Advises a larger burst for a node that was late, if the burst is what keeps it from catching up.
pub(super) fn late(case: &Case<'_>) -> Advice {
    // The bucket holds 10 ms of the rate, as far as the burst allows; 2 ms of it are for dispatches.
    let rate = case.rate;
    let catches_up = match case.facts.tuning.burst {
        Burst::Items(items) => {
            f64::from(items.get()) >= rate * 0.012 + f64::from(case.facts.tuning.batch.get())
        }
        Burst::Span(span) => span >= Duration::from_millis(12),
    };
    if !catches_up {
        let burst = Some(Burst::Span(Duration::from_millis(100)));
        let change = patch(|change| change.burst = burst);
        return case.change(say::larger_burst(), change);
    }
    case.cant(say::more_cpu(), say::cpu_busy())
}
