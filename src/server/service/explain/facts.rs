//! What the nodes know of a task, put together to the facts of an explanation. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{ExplainedShard, HeldBy};
use windrow_core::explain::{Facts, Head, Latency, Live, SharedLimit, Standing};
use windrow_core::handler::sight::HandlerSight;
use windrow_core::ids::{ItemIndex, ShardId};
use windrow_core::limit::key::LimitKey;
use windrow_core::stats::series::Point;
use windrow_core::stats::tally::FailedAttempts;
use windrow_core::task::lifecycle::{ShardState, Status};
use windrow_engine::actors::executor::run_view::RunView;
use windrow_engine::actors::runtime::context::Room;
use windrow_engine::ports::ownership::peers::ExplainPart;
use windrow_engine::ports::tasks::store::TaskView;

/// A gap in the samples that is no longer than this is no time without a run: the next sample is not taken yet.
const GAP_MAX: Duration = Duration::from_secs(2);

/// Puts the parts together; the first one is this node's. `open` is how many shards have something left to do, as far as
/// that is known.
pub(super) fn facts(
    task: &TaskView,
    parts: &[(String, ExplainPart)],
    open: u32,
    standing_for: Duration,
    seconds: u32,
) -> Facts {
    // A node whose runs ended before the rate was changed says nothing of the time since.
    let is_cut = parts.iter().any(|(_, part)| part.since_change);
    let counts = |part: &ExplainPart| !is_cut || part.since_change || part.runs > 0;
    let parts: Vec<(String, ExplainPart)> = parts.iter().filter(|(_, part)| counts(part)).cloned().collect();
    let parts = parts.as_slice();
    let each = || parts.iter().map(|(_, part)| part);
    let span = span(parts, open);
    let idle = idle(task.status, span, standing_for, seconds);
    let mut point = Point::default();
    each().for_each(|part| point.add(&part.point));
    let p95 = each().filter_map(|part| part.latency_p95).max();
    Facts {
        task: task.id,
        covered: span.map_or(Duration::ZERO, |(_, running)| running) + idle,
        idle,
        settled: point.settled(),
        latency: latency(&point, p95),
        tuning: task.tuning.clone(),
        standing: Standing {
            status: task.status,
            reason: task.status_reason.clone(),
            text: task.status_text.clone(),
        },
        worst_code: most(
            each()
                .flat_map(|part| &part.codes)
                .map(|(code, times)| (code, *times)),
        ),
        live: each().filter_map(|part| part.live.clone()).reduce(both),
        free_rate: room_for(parts),
        is_alone: false,
        held_back: each()
            .flat_map(|part| &part.shards)
            .filter_map(|(_, held)| held.clone())
            .collect(),
        limit: None,
        taken_over: None,
        permits: point.permits,
        handler: HandlerSight::default(),
    }
}

/// How long calls took; a run's own 95th percentile is finer.
fn latency(point: &Point, p95: Option<Duration>) -> Latency {
    let at = |percent| point.calls.percentile(percent);
    Latency {
        p50: at(50),
        p95: p95.or_else(|| at(95)),
        p99: at(99),
        longest: at(100),
    }
}

pub(super) fn shared_limit(limit: &HeldBy) -> SharedLimit {
    let key = LimitKey::parse(&limit.key);
    let name = match key {
        LimitKey::Business(_) => None,
        LimitKey::Named(name) => Some(name.to_owned()),
    };
    SharedLimit {
        title: key.to_string(),
        name,
        businesses: limit.businesses.clone(),
        runs: limit.parts.iter().map(|part| part.runs).sum(),
        nodes: limit.parts.len(),
    }
}

/// The key of the largest sum; of several the first in the alphabet, so that the answer doesn't jump.
pub(super) fn most<'a>(counts: impl Iterator<Item = (&'a String, u64)>) -> Option<(String, u64)> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (key, count) in counts {
        *sums.entry(key).or_default() += count;
    }
    let most = sums.into_iter().rev().max_by_key(|(_, count)| *count)?;
    Some((most.0.to_owned(), most.1))
}

/// Where a shard stands: who runs it says so; of one whose owner can't be asked the store has said it.
pub(super) fn place(
    shard: ShardId,
    state: ShardState,
    owner: Option<&String>,
    parts: &[(String, ExplainPart)],
) -> ExplainedShard {
    let runs = |part: &ExplainPart| {
        part.shards
            .iter()
            .find(|(known, _)| *known == shard)
            .map(|(_, held)| held.clone())
    };
    let live = parts
        .iter()
        .find_map(|(node, part)| Some((node.clone(), runs(part)?)));
    let stored = owner.filter(|_| state == ShardState::Running).cloned();
    let (node, held_back) = match live {
        Some((node, held_back)) => (Some(node), held_back),
        None => (stored, None),
    };
    ExplainedShard {
        shard,
        state,
        node,
        held_back,
    }
}

/// The span that all parts are about, and for how much of it the task ran: where it has several shards, each of them
/// counts for its part.
fn span(parts: &[(String, ExplainPart)], open: u32) -> Option<(Duration, Duration)> {
    let spans = || {
        parts
            .iter()
            .filter_map(|(_, part)| part.span.map(|span| (span, part.runs)))
    };
    let covered = spans().map(|((covered, _), _)| covered).max()?;
    let longest = spans().map(|((_, running), _)| running).max()?;
    let runs: u32 = spans().map(|(_, runs)| runs).sum();
    let shards = runs.max(open);
    if shards <= 1 {
        return Some((covered, longest));
    }
    let each: Duration = spans().map(|((_, running), runs)| running * runs).sum();
    // Shards that ended within the span ran for some of it, too; nobody knows for how long.
    Some((
        covered,
        if runs == 0 {
            longest
        } else {
            (each / shards).min(covered)
        },
    ))
}

/// For how long of the span (how far back it reaches, how much of it the task ran) nothing ran, although it wanted to.
fn idle(
    status: Status,
    span: Option<(Duration, Duration)>,
    standing_for: Duration,
    seconds: u32,
) -> Duration {
    let wants = [
        Status::Running,
        Status::Queued,
        Status::Recovering,
        Status::AwaitingBusiness,
    ];
    if !wants.contains(&status) {
        return Duration::ZERO;
    }
    match span {
        Some((covered, running)) => {
            let gap = covered.saturating_sub(running);
            if gap > GAP_MAX { gap } else { Duration::ZERO }
        }
        // A run that has just begun has no sample yet.
        None if status == Status::Running => Duration::ZERO,
        None => standing_for.min(Duration::from_secs(u64::from(seconds))),
    }
}

/// The runs of two nodes, or two runs of one.
pub(super) fn both(one: Live, other: Live) -> Live {
    let slots = [one.handler_slots, other.handler_slots]
        .into_iter()
        .flatten()
        .reduce(|one, other| one + other);
    let mut stalled = one.stalled;
    stalled
        .iter_mut()
        .zip(other.stalled)
        .for_each(|(sum, part)| *sum += part);
    Live {
        in_flight: one.in_flight + other.in_flight,
        concurrency: one.concurrency + other.concurrency,
        window: one.window + other.window,
        handler_slots: slots,
        head: one.head.into_iter().chain(other.head).max_by_key(|head| head.age),
        retrying: one.retrying + other.retrying,
        parked: one.parked + other.parked,
        age: one.age + other.age,
        stalled,
    }
}

/// What the task's rate may grow by: a node with a part of the runs gets that part of it. Where nothing runs, what this
/// node has.
fn room_for(parts: &[(String, ExplainPart)]) -> Option<f64> {
    let runs: u32 = parts.iter().map(|(_, part)| part.runs).sum();
    if runs == 0 {
        return parts.first().and_then(|(_, part)| part.free_rate);
    }
    let holding = parts.iter().map(|(_, part)| part).filter(|part| part.runs > 0);
    let whole = holding.filter_map(|part| Some(part.free_rate? * f64::from(runs) / f64::from(part.runs)));
    whole.reduce(f64::min)
}

pub(super) fn live(run: &RunView) -> Live {
    let progress = &run.progress;
    Live {
        in_flight: progress.counters.in_flight,
        concurrency: u64::from(progress.concurrency),
        window: u64::from(progress.window),
        handler_slots: progress.handler_slots.map(u64::from),
        head: head(run),
        retrying: progress.retrying,
        parked: progress.counters.parked,
        age: run.age,
        stalled: progress.stalled,
    }
}

fn head(run: &RunView) -> Option<Head> {
    let progress = &run.progress;
    let index: ItemIndex = progress.low_water;
    let at = progress.head?;
    Some(Head {
        index,
        attempt: at.attempt,
        waits: at.waits,
        age: progress.head_age,
    })
}

pub(super) fn counted(mut sums: BTreeMap<String, u32>, key: String) -> BTreeMap<String, u32> {
    *sums.entry(key).or_default() += 1;
    sums
}

pub(super) fn codes(runs: &[RunView]) -> Vec<(String, u64)> {
    let mut failed = FailedAttempts::default();
    runs.iter().for_each(|run| failed.add(&run.tally.failed));
    failed
        .iter()
        .map(|(code, ended)| (code.to_owned(), ended.retry + ended.abandon))
        .collect()
}

/// What is left for other rates. Unit: items per second.
pub(super) fn free_rate(room: Room) -> Option<f64> {
    let whole = room.capacity?;
    Some(whole.0.saturating_sub(room.reserved.0) as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::explain::HeldBack;
    use windrow_core::ids::TaskId;
    use windrow_core::settings::RateLimit;

    #[test]
    fn only_a_task_that_wants_to_run_misses_the_time_without_a_run() {
        let seconds = Duration::from_secs;
        let span = |covered, running| (seconds(covered), seconds(running));
        let idle = |status, span, standing| idle(status, span, seconds(standing), 60);
        assert_eq!(idle(Status::Recovering, Some(span(60, 45)), 15), seconds(15));
        assert_eq!(
            idle(Status::Running, Some(span(60, 45)), 3),
            seconds(15),
            "it was recovering before"
        );
        assert_eq!(
            idle(Status::Running, Some(span(60, 59)), 900),
            seconds(0),
            "a sample is to come"
        );
        assert_eq!(idle(Status::Stopped, Some(span(60, 5)), 55), seconds(0));
        assert_eq!(idle(Status::Queued, None, 7), seconds(7));
        assert_eq!(idle(Status::Queued, None, 700), seconds(60));
        assert_eq!(idle(Status::Running, None, 1), seconds(0));
    }

    fn part(running: Option<u64>, runs: u32, free: Option<f64>) -> (String, ExplainPart) {
        let seconds = Duration::from_secs;
        let span = running.map(|running| (seconds(60), seconds(running)));
        let codes = vec![
            ("A".to_owned(), u64::from(runs)),
            (format!("B{runs}"), u64::from(runs) + 1),
        ];
        (
            "n".to_owned(),
            ExplainPart {
                span,
                runs,
                free_rate: free,
                codes,
                ..ExplainPart::default()
            },
        )
    }

    #[test]
    fn each_shard_counts_for_its_part_of_the_time() {
        let seconds = Duration::from_secs;
        let of = |parts: &[(String, ExplainPart)], open| span(parts, open).map(|(_, running)| running);
        assert_eq!(
            of(&[part(None, 0, None), part(Some(59), 1, None)], 1),
            Some(seconds(59))
        );
        let two = [part(Some(60), 1, None), part(Some(60), 1, None)];
        assert_eq!(of(&two, 2), Some(seconds(60)));
        assert_eq!(of(&two, 4), Some(seconds(30)), "two of four don't run");
        assert_eq!(
            of(&[part(Some(60), 3, None), part(Some(20), 1, None)], 4),
            Some(seconds(50))
        );
        assert_eq!(of(&[part(Some(9), 0, None)], 0), Some(seconds(9)), "it ended");
        assert_eq!(of(&[part(None, 0, None)], 1), None);
    }

    #[test]
    fn who_runs_a_shard_says_where_it_is_and_else_the_store() {
        let task = TaskId(3);
        let rate = |text: &str| RateLimit::Limited(text.parse().expect("a rate"));
        let (why, age) = ("no room".to_owned(), Duration::from_secs(4));
        let held = HeldBack {
            rate: rate("1/s"),
            wanted: rate("2/s"),
            age,
            why,
        };
        let shards = vec![
            (ShardId { task, no: 0 }, Some(held.clone())),
            (ShardId { task, no: 1 }, None),
        ];
        let parts = [
            part(None, 0, None),
            (
                "n2".to_owned(),
                ExplainPart {
                    shards,
                    ..ExplainPart::default()
                },
            ),
        ];
        let place = |no, state| {
            let found = place(ShardId { task, no }, state, Some(&"n1".to_owned()), &parts);
            (found.node, found.held_back)
        };
        assert_eq!(
            place(0, ShardState::Idle),
            (Some("n2".to_owned()), Some(held)),
            "it was just claimed"
        );
        assert_eq!(place(1, ShardState::Running), (Some("n2".to_owned()), None));
        assert_eq!(
            place(2, ShardState::Running),
            (Some("n1".to_owned()), None),
            "its owner can't be asked"
        );
        assert_eq!(place(3, ShardState::Recovering), (None, None));
    }

    #[test]
    fn the_fullest_node_bounds_what_a_rate_may_grow_by() {
        assert_eq!(room_for(&[part(None, 0, Some(7.0))]), Some(7.0));
        let parts = [
            part(None, 0, Some(1.0)),
            part(None, 1, Some(100.0)),
            part(None, 3, Some(90.0)),
        ];
        assert_eq!(room_for(&parts), Some(120.0), "of 120 more the second gets 90");
        assert_eq!(room_for(&[part(None, 1, None)]), None);
        let codes = parts.iter().flat_map(|(_, part)| &part.codes);
        let worst = most(codes.map(|(code, times)| (code, *times)));
        assert_eq!(worst, Some(("A".to_owned(), 4)));
    }
}
