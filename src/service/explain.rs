//! Why a task is as fast as it is: what was counted of it lately, given to `domain::explain`.

use std::time::Duration;

use super::Service;
use crate::actors::context::Room;
use crate::actors::run_view::RunView;
use crate::domain::explain::{Explanation, Facts, Head, Latency, Live, Standing, explain};
use crate::domain::ids::ItemIndex;
use crate::domain::lifecycle::Status;
use crate::domain::series::Span;
use crate::domain::settings::{Rate, RateLimit};
use crate::domain::tally::FailedAttempts;
use crate::domain::task::Tuning;
use crate::ports::task_store::TaskView;

/// The span that is explained when nothing is said. Unit: seconds.
pub const SECONDS_DEFAULT: u32 = 60;
/// The shortest span: a few samples. Unit: seconds.
pub const SECONDS_MIN: u32 = 5;
/// The longest span: what is kept second by second. Unit: seconds.
pub const SECONDS_MAX: u32 = 900;
/// A gap in the samples that is no longer than this is no time without a run: the next sample is not taken yet.
const GAP_MAX: Duration = Duration::from_secs(2);

impl Service {
    /// Explains the last `seconds` of a task.
    pub fn explain(&self, task: &TaskView, seconds: u32) -> Explanation {
        explain(&self.facts(task, seconds))
    }

    fn facts(&self, task: &TaskView, seconds: u32) -> Facts {
        let span = self.stats().span(task.id, u64::from(seconds));
        let idle = idle(task.status, span.as_ref(), self.now().since(task.since), seconds);
        let running = span.as_ref().map_or(Duration::ZERO, |span| span.running);
        let runs = self.supervisor().runs_of(task.id);
        let point = span.map(|span| span.point).unwrap_or_default();
        let at = |percent| point.calls.percentile(percent);
        // A run's own histogram is four times as fine.
        let p95 = runs.iter().filter_map(|run| run.progress.latency_p95).max();
        Facts {
            covered: running + idle,
            idle,
            settled: point.settled(),
            latency: Latency { p50: at(50), p95: p95.or_else(|| at(95)), p99: at(99), longest: at(100) },
            permits: point.permits,
            tuning: of_here(task, &runs),
            standing: Standing {
                status: task.status,
                reason: task.status_reason.clone(),
                text: task.status_text.clone(),
            },
            worst_code: worst_code(&runs),
            live: live(&runs),
            free_rate: free_rate(self.supervisor().room()),
        }
    }
}

/// For how long of the span nothing ran, although the task wanted to.
fn idle(status: Status, span: Option<&Span>, standing_for: Duration, seconds: u32) -> Duration {
    let wants = [Status::Running, Status::Queued, Status::Recovering, Status::AwaitingBusiness];
    if !wants.contains(&status) {
        return Duration::ZERO;
    }
    match span {
        Some(span) => {
            let gap = span.covered.saturating_sub(span.running);
            if gap > GAP_MAX { gap } else { Duration::ZERO }
        }
        // A run that has just begun has no sample yet.
        None if status == Status::Running => Duration::ZERO,
        None => standing_for.min(Duration::from_secs(u64::from(seconds))),
    }
}

/// The settings, with the part of the rate that the shards have which run here: what was counted here is theirs.
fn of_here(task: &TaskView, runs: &[RunView]) -> Tuning {
    let rates = runs.iter().map(|run| match run.tuning.rate {
        RateLimit::Limited(rate) => Some(rate.micros_per_second()),
        RateLimit::Unlimited => None,
    });
    let sum = rates.sum::<Option<u64>>().filter(|_| task.shards.len() > 1 && !runs.is_empty());
    let rate = sum.and_then(|micros| Rate::new(micros, Duration::from_secs(1_000_000)));
    let whole = task.tuning.clone();
    Tuning { rate: rate.map_or(whole.rate, RateLimit::Limited), ..whole }
}

fn live(runs: &[RunView]) -> Option<Live> {
    let mut live = Live::default();
    for run in runs {
        let progress = &run.progress;
        live.in_flight += progress.counters.in_flight;
        live.concurrency += u64::from(progress.concurrency);
        live.window += u64::from(progress.window);
        live.troubled += progress.troubled;
        live.parked += progress.counters.parked;
        live.age += run.age;
        for (sum, part) in live.stalled.iter_mut().zip(progress.stalled) {
            *sum += part;
        }
        if let Some(slots) = progress.handler_slots {
            live.handler_slots = Some(live.handler_slots.unwrap_or(0) + u64::from(slots));
        }
        live.head = live.head.into_iter().chain(head(run)).max_by_key(|head| head.age);
    }
    (!runs.is_empty()).then_some(live)
}

fn head(run: &RunView) -> Option<Head> {
    let progress = &run.progress;
    let index: ItemIndex = progress.low_water;
    let at = progress.head?;
    Some(Head { index, attempt: at.attempt, waits: at.waits, age: progress.head_age })
}

fn worst_code(runs: &[RunView]) -> Option<(String, u64)> {
    let mut failed = FailedAttempts::default();
    runs.iter().for_each(|run| failed.add(&run.tally.failed));
    let codes = failed.iter().map(|(code, ended)| (code.to_owned(), ended.retry + ended.abandon));
    codes.max_by_key(|(_, times)| *times)
}

/// What is left for other rates. Unit: items per second.
fn free_rate(room: Room) -> Option<f64> {
    let whole = room.capacity?;
    Some(whole.0.saturating_sub(room.reserved.0) as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::series::Point;

    #[test]
    fn only_a_task_that_wants_to_run_misses_the_time_without_a_run() {
        let seconds = Duration::from_secs;
        let span = |covered, running| Span {
            covered: seconds(covered),
            running: seconds(running),
            point: Point::default(),
        };
        let idle = |status, span: Option<Span>, standing| idle(status, span.as_ref(), seconds(standing), 60);
        assert_eq!(idle(Status::Recovering, Some(span(60, 45)), 15), seconds(15));
        assert_eq!(idle(Status::Running, Some(span(60, 45)), 3), seconds(15), "it was recovering before");
        assert_eq!(idle(Status::Running, Some(span(60, 59)), 900), seconds(0), "a sample is to come");
        assert_eq!(idle(Status::Stopped, Some(span(60, 5)), 55), seconds(0));
        assert_eq!(idle(Status::Queued, None, 7), seconds(7));
        assert_eq!(idle(Status::Queued, None, 700), seconds(60));
        assert_eq!(idle(Status::Running, None, 1), seconds(0));
    }
}
