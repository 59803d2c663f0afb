//! What happens to one task: its numbers, its status, its failures, its log and who changed it.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::topic::{Kind, Watcher};
use crate::domain::counters::Counters;
use crate::domain::execution::Progress;
use crate::domain::ids::TaskId;
use crate::http::App;
use crate::http::time::rfc3339;
use crate::ports::StoreError;
use crate::ports::data_log::{LogOrigin, LogQuery};
use crate::ports::handler::LogLevel;
use crate::ports::task_store::{FailureGroup, TaskView};
use crate::service::ServiceError;

/// Between two reads of the store; live numbers come at the listeners' pace.
const STORE_EVERY: Duration = Duration::from_secs(1);
/// Over how long a rate is measured.
const RATE_OVER: Duration = Duration::from_secs(3);
/// Lines of one look.
const LINES_MAX: u32 = 100;
/// Groups of one look.
const GROUPS_MAX: usize = 100;

/// Everything about a task that moves.
pub(super) async fn task_picture(app: &App, id: TaskId) -> Result<Value, ServiceError> {
    let task = app.service.parts.tasks.get(id).await?.ok_or_else(|| ServiceError::no_task(id))?;
    let live = app.service.supervisor().progress(id);
    let live: Vec<Progress> = live.into_iter().map(|(_, progress)| progress).collect();
    let mut picture = status(&task);
    merge(&mut picture, numbers(&task, &live));
    merge(&mut picture, json!({"business": task.business, "name": task.name, "labels": task.labels}));
    Ok(picture)
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

/// Where the task stands.
pub(super) fn status(task: &TaskView) -> Value {
    json!({
        "id": task.id.to_string(),
        "status": task.status.as_str(),
        "result": task.result.map(|result| result.as_str()),
        "stop_reason": task.stop_reason.map(|reason| reason.as_str()),
        "status_reason": task.status_reason,
        "status_text": task.status_text,
        "since": rfc3339(task.since),
        "next_at": task.next_at.map(rfc3339),
    })
}

/// The numbers that move; the terms add up to `total`.
fn numbers(task: &TaskView, live: &[Progress]) -> Value {
    let counters = counters(task, live);
    let rate = live.iter().find_map(|run| run.rate).map(|rate| rate.as_per_second());
    json!({
        "id": task.id.to_string(),
        "total": task.total.0,
        "counts": {
            "succeeded": counters.succeeded,
            "skipped": counters.skipped,
            "abandoned": counters.abandoned,
            "parked": counters.parked,
            "in_flight": counters.in_flight,
            "pending": counters.pending(task.total),
            "excluded": counters.excluded,
        },
        "low_water": live.iter().map(|run| run.low_water.0).min().unwrap_or(task.low_water.0),
        "high_water": live.iter().map(|run| run.high_water.0).max(),
        "target_rate": rate,
        "stall": live.iter().find_map(|run| run.stall).map(|reason| reason.as_str()),
        "latency_p95_seconds": live.iter().filter_map(|run| run.latency_p95).max().map(|p95| p95.as_secs_f64()),
        "unsaved": live.iter().map(|run| run.unsaved).sum::<u64>(),
    })
}

/// The counters as they are now: those of the live run where the task has one. A task has one shard.
fn counters(task: &TaskView, live: &[Progress]) -> Counters {
    match live {
        [] => task.counters,
        runs => runs.iter().fold(Counters::default(), |sum, run| sum.plus(&run.counters)),
    }
}

/// See the module.
pub(super) struct TaskWatcher {
    app: App,
    id: TaskId,
    task: Option<TaskView>,
    read_at: Option<Instant>,
    told: Value,
    numbers: Value,
    /// How many items were settled at recent moments.
    settled: Vec<(Instant, u64)>,
    groups: BTreeMap<String, u64>,
    line: Option<i64>,
}

impl TaskWatcher {
    pub(super) fn new(app: App, id: TaskId) -> TaskWatcher {
        TaskWatcher {
            app,
            id,
            task: None,
            read_at: None,
            told: Value::Null,
            numbers: Value::Null,
            settled: Vec::new(),
            groups: BTreeMap::new(),
            line: None,
        }
    }

    /// Reads what the store knows, and finds what changed there.
    async fn read(&mut self, found: &mut Vec<(Kind, Value)>) -> Result<(), StoreError> {
        let service = self.app.service.clone();
        let is_first = self.task.is_none();
        let Some(task) = service.parts.tasks.get(self.id).await? else {
            self.task = None;
            return Ok(());
        };
        let now = status(&task);
        if self.told != now {
            if !is_first {
                found.push((Kind::Status, now.clone()));
            }
            self.told = now;
        }
        if is_first || self.groups.values().sum::<u64>() != task.counters.abandoned {
            let fresh = self.fresh_groups(service.parts.tasks.failure_groups(self.id).await?);
            if !is_first {
                found.extend(fresh.into_iter().map(|group| (Kind::Failure, group)));
            }
        }
        self.task = Some(task);
        self.read_lines(found).await
    }

    fn fresh_groups(&mut self, groups: Vec<FailureGroup>) -> Vec<Value> {
        let mut fresh = Vec::new();
        for group in groups.into_iter().take(GROUPS_MAX) {
            if self.groups.insert(group.code.clone(), group.count) != Some(group.count) {
                fresh.push(json!({
                    "id": self.id.to_string(),
                    "code": group.code,
                    "count": group.count,
                    "last_at": rfc3339(group.last_at),
                    "example_index": group.example_index.0,
                    "example": group.example,
                }));
            }
        }
        fresh
    }

    async fn read_lines(&mut self, found: &mut Vec<(Kind, Value)>) -> Result<(), StoreError> {
        let log = &self.app.service.parts.data_log;
        let Some(last) = self.line else {
            let newest = log.search(&LogQuery::newest(Some(self.id), 1)).await?;
            self.line = Some(newest.lines.first().map_or(0, |(number, _)| *number));
            return Ok(());
        };
        for (number, line) in log.after(self.id, last, LINES_MAX).await? {
            self.line = Some(number);
            let data = json!({
                "id": self.id.to_string(),
                "number": number,
                "at": rfc3339(line.at),
                "level": level(line.line.level),
                "origin": origin(line.origin),
                "code": line.code,
                "index": line.line.index.map(|index| index.0),
                "message": line.line.message,
            });
            found.push((Kind::Log, data));
        }
        Ok(())
    }

    /// The live numbers, where they changed.
    fn live(&mut self, found: &mut Vec<(Kind, Value)>) {
        let Some(task) = &self.task else { return };
        let live = self.app.service.supervisor().progress(self.id);
        let live: Vec<Progress> = live.into_iter().map(|(_, progress)| progress).collect();
        let mut now = numbers(task, &live);
        let rate = measured(&mut self.settled, Instant::now(), counters(task, &live).settled());
        merge(&mut now, json!({"actual_rate": rate}));
        if self.numbers != now {
            self.numbers = now.clone();
            found.push((Kind::Stats, now));
        }
    }
}

fn level(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}

fn origin(origin: LogOrigin) -> &'static str {
    match origin {
        LogOrigin::Business => "business",
        LogOrigin::System => "system",
    }
}

/// Items per second settled over the last seconds. A count that went back (another run) begins anew.
fn measured(seen: &mut Vec<(Instant, u64)>, now: Instant, settled: u64) -> f64 {
    if seen.last().is_some_and(|(_, before)| *before > settled) {
        seen.clear();
    }
    seen.push((now, settled));
    while seen.len() > 2 && now.duration_since(seen[1].0) >= RATE_OVER {
        seen.remove(0);
    }
    let (since, before) = seen[0];
    let span = now.duration_since(since).as_secs_f64();
    if span > 0.0 { ((settled - before) as f64 / span * 10.0).round() / 10.0 } else { 0.0 }
}

#[async_trait]
impl Watcher for TaskWatcher {
    async fn look(&mut self) -> Vec<(Kind, Value)> {
        let mut found = Vec::new();
        if self.read_at.is_none_or(|at| at.elapsed() >= STORE_EVERY) {
            self.read_at = Some(Instant::now());
            if let Err(error) = self.read(&mut found).await {
                tracing::debug!(task = %self.id, %error, "the store was not read for a stream");
            }
        }
        self.live(&mut found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_what_was_settled_in_the_last_seconds() {
        let mut seen = Vec::new();
        let start = Instant::now();
        let rate: Vec<f64> = (0..40)
            .map(|tick| measured(&mut seen, start + Duration::from_millis(250 * tick), 25 * tick))
            .collect();
        assert_eq!((rate[0], rate[1], rate[39]), (0.0, 100.0, 100.0));
        assert!(seen.len() <= 14, "old moments go: {}", seen.len());
        assert_eq!(measured(&mut seen, start + Duration::from_secs(60), 3), 0.0, "another run");
    }
}
