//! In no interval do more attempts go than the rate gives, and the burst: across runs, nodes, shards and changes.

use super::Judgement;
use crate::evidence::{Command, Evidence, Order, SECOND};

/// Gate times are written in whole microseconds. Unit: items.
const ROUNDING: f64 = 0.5;
/// How long a lower rate may take to be obeyed everywhere once it was acknowledged.
const LAG: i64 = 4 * SECOND;

/// A rate from a moment on.
#[derive(Clone, Copy, Debug)]
struct Step {
    from: i64,
    rate: f64,
}

pub(super) fn judge(evidence: &Evidence, judgement: &mut Judgement) {
    let steps = steps(evidence);
    let mut times: Vec<i64> = evidence.deliveries.iter().map(|delivery| delivery.gate).collect();
    times.sort_unstable();
    let (mut least, mut worst, mut when) = (f64::MAX, 0.0, 0);
    let origin = times.first().copied().unwrap_or_default();
    for (k, time) in times.iter().enumerate() {
        let earned = earned(&steps, origin, *time);
        least = (k as f64 - earned).min(least);
        let excess = (k + 1) as f64 - earned - least;
        if excess > worst {
            (worst, when) = (excess, *time);
        }
    }
    judgement.pace_excess = worst;
    if worst > evidence.bounds.burst + ROUNDING {
        let text = format!(
            "{worst:.1} items beyond the rate at {when}; the burst is {}",
            evidence.bounds.burst
        );
        judgement.find("the pace holds", text);
    }
}

/// The highest rate that may be in force at each time: each counts from when it was sent until the next must be known.
fn steps(evidence: &Evidence) -> Vec<Step> {
    let mut spans = vec![(0, i64::MAX, evidence.bounds.rate)];
    for command in &evidence.commands {
        let Order::Rate(rate) = command.order else {
            continue;
        };
        if let Some(last) = spans.last_mut() {
            last.1 = known_by(evidence, command);
        }
        spans.push((command.sent, i64::MAX, rate));
    }
    let mut times: Vec<i64> = spans
        .iter()
        .flat_map(|(from, until, _)| [*from, *until])
        .collect();
    times.sort_unstable();
    times.dedup();
    let highest = |from: i64| {
        let in_force = spans.iter().filter(|span| span.0 <= from && from < span.1);
        in_force.map(|(_, _, rate)| *rate).fold(0.0, f64::max)
    };
    times
        .into_iter()
        .map(|from| Step {
            from,
            rate: highest(from),
        })
        .collect()
}

fn known_by(evidence: &Evidence, command: &Command) -> i64 {
    let is_troubled = evidence.had_any(command.sent - evidence.bounds.ttl, command.acked + LAG);
    command.acked + LAG + if is_troubled { evidence.bounds.ttl } else { 0 }
}

/// Items that the rate gave from `origin` until then.
fn earned(steps: &[Step], origin: i64, until: i64) -> f64 {
    let ends = steps.iter().skip(1).map(|next| next.from).chain([i64::MAX]);
    let spans = steps.iter().zip(ends).map(|(step, end)| {
        let span = end.min(until) - step.from.max(origin);
        span.max(0) as f64 / SECOND as f64 * step.rate
    });
    spans.sum()
}
