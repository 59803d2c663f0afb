//! Events of one task: its numbers, status, failures, log and changes.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json, to_value};
use tokio::time::Instant;

use super::handler::{HandlerNews, state};
use super::topic::{Kind, STALE, Told, Watcher};
use crate::http::answer::Of;
use crate::http::answer::costs::show_costs;
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::tasks;
use crate::service::ServiceError;
use crate::service::failures::item_data::{ItemData, Members};
use crate::service::tasks::show::TaskPicture;
use windrow_core::ids::{ItemIndex, TaskId};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::handling::data_log::LogQuery;
use windrow_engine::ports::handling::handler::LogLevel;
use windrow_engine::ports::tasks::list::AuditFilter;
use windrow_engine::ports::tasks::store::{FailureGroup, TaskView};

/// Time between two reads of the store. Live numbers follow the listeners' rate.
const STORE_EVERY: Duration = Duration::from_secs(1);
/// Most log lines per look.
const LINES_MAX: u32 = 100;
/// Most audit entries per look.
const CHANGES_MAX: u32 = 50;
/// Most failure groups per look.
const GROUPS_MAX: usize = 100;

/// Builds the snapshot of a task, as in `GET /v1/tasks/{task}`.
pub(super) async fn task_picture(app: &App, id: TaskId) -> Result<Value, ServiceError> {
    let task = app
        .service
        .tasks
        .store
        .get(id)
        .await?
        .ok_or_else(|| ServiceError::no_task(id))?;
    written(&tasks::body(app, app.service.tasks.picture(task).await))
}

/// Serializes an API body to a value.
pub(super) fn written<T: Serialize>(body: &T) -> Result<Value, ServiceError> {
    serde_json::to_value(body).map_err(|error| ServiceError::Internal(error.to_string()))
}

/// Builds the status event of a task.
pub(super) fn status(task: &TaskView) -> Value {
    let status = api::StatusEvent {
        id: task.id.to_string(),
        status: task.status.as_str().to_owned(),
        result: task.result.map(|result| result.as_str().to_owned()),
        stop_reason: task.stop_reason.map(|reason| reason.as_str().to_owned()),
        status_reason: task.status_reason.clone(),
        status_text: task.status_text.clone(),
        since: rfc3339(task.since),
        next_at: task.next_at.map(rfc3339),
    };
    to_value(status).unwrap_or_default()
}

/// Builds the live numbers of a task; the terms add up to `total`.
pub(super) fn numbers(picture: &TaskPicture) -> Value {
    let (task, live) = (&picture.task, picture.live.as_ref());
    let numbers = api::StatsEvent {
        id: task.id.to_string(),
        total: task.total.0,
        counts: api::TaskCounts::of(task),
        pace: api::TaskPace::of(picture),
        watermark: task.watermark.0,
        high_water: live.map(|live| live.high_water.0),
        window: live.map(|live| live.window),
        concurrency: live.map(|live| live.concurrency),
        rate: task.tuning.rate.to_string(),
        stall: live.and_then(|live| live.stall).map(str::to_owned),
        latency_p95_seconds: live
            .and_then(|live| live.latency_p95)
            .map(|p95| p95.as_secs_f64()),
        autopilot: live
            .and_then(|live| live.autopilot.as_ref())
            .map(api::TaskAutopilot::of),
        costs: show_costs(&picture.costs),
        handler: state(picture),
        stale: None,
    };
    to_value(numbers).unwrap_or_default()
}

/// Marks the last numbers sent as stale while the store can't be read, and removes the members that only the running
/// node knows.
fn stale(mut numbers: Value) -> Value {
    let live = [
        "high_water",
        "window",
        "concurrency",
        "stall",
        "latency_p95_seconds",
        "autopilot",
        "actual_rate",
        "eta_seconds",
    ];
    for name in live {
        numbers[name] = Value::Null;
    }
    numbers["stale"] = STALE.into();
    numbers
}

/// Watcher of a single task.
pub(super) struct TaskWatcher {
    app: App,
    id: TaskId,
    task: Option<TaskView>,
    read_at: Option<Instant>,
    told: Value,
    numbers: Value,
    groups: BTreeMap<String, u64>,
    line: Option<i64>,
    change: Option<i64>,
    /// True if the task was running at the last look.
    ran: bool,
    /// True if the last read of the store failed.
    is_blind: bool,
    handler: HandlerNews,
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
            groups: BTreeMap::new(),
            line: None,
            change: None,
            ran: false,
            is_blind: false,
            handler: HandlerNews::default(),
        }
    }

    /// Reads the task from the store and collects changes.
    async fn read(&mut self, found: &mut Vec<(Kind, Told)>) -> Result<(), StoreError> {
        let service = self.app.service.clone();
        let is_first = self.task.is_none();
        let Some(task) = service.tasks.store.get(self.id).await? else {
            self.task = None;
            return Ok(());
        };
        let now = status(&task);
        if self.told != now {
            if !is_first {
                found.push((Kind::Status, now.clone().into()));
            }
            self.told = now;
        }
        if is_first || self.groups.values().sum::<u64>() != task.counters.failed {
            let fresh = self.fresh_groups(service.failures.list.groups(self.id).await?);
            if !is_first {
                found.extend(self.failures(&task, fresh).await);
            }
        }
        self.task = Some(task);
        self.read_changes(found).await?;
        self.read_lines(found).await
    }

    fn fresh_groups(&mut self, mut groups: Vec<FailureGroup>) -> Vec<FailureGroup> {
        groups.truncate(GROUPS_MAX);
        groups.retain(|group| self.groups.insert(group.code.clone(), group.count) != Some(group.count));
        groups
    }

    /// Builds the events of failure groups, with the data of their example items.
    async fn failures(&self, task: &TaskView, groups: Vec<FailureGroup>) -> Vec<(Kind, Told)> {
        let indexes: Vec<ItemIndex> = groups.iter().map(|group| group.example_index).collect();
        let mut carried = self.carried(task, &indexes).await;
        let told = groups.into_iter().map(|group| {
            let data = json!({
                "id": self.id.to_string(),
                "code": group.code,
                "count": group.count,
                "unconfirmed": group.unconfirmed,
                "last_at": rfc3339(group.last_at),
                "example_index": group.example_index.0,
                "example": group.example,
            });
            let row = carried.next().flatten();
            (Kind::Failure, Told::with_row(data, "example_data", row))
        });
        told.collect()
    }

    /// Returns the data of items in the given order; empty if it can't be read.
    async fn carried(
        &self,
        task: &TaskView,
        indexes: &[ItemIndex],
    ) -> impl Iterator<Item = Option<Box<RawValue>>> + use<> {
        let carried = self
            .app
            .service
            .failures
            .item_data(task, &Members::of_list("*", task), indexes)
            .await;
        carried
            .unwrap_or_default()
            .into_iter()
            .map(|item: ItemData| item.data)
    }

    /// Collects audit entries since the last look.
    async fn read_changes(&mut self, found: &mut Vec<(Kind, Told)>) -> Result<(), StoreError> {
        let filter = AuditFilter {
            task: Some(self.id),
            ..AuditFilter::default()
        };
        let lists = &self.app.service.tasks.lists;
        let newest = lists.audits(&filter, None, CHANGES_MAX).await?;
        let last = self
            .change
            .replace(newest.iter().map(|row| row.id).max().unwrap_or_default());
        let Some(last) = last else { return Ok(()) };
        for row in newest.into_iter().rev().filter(|row| row.id > last) {
            let data = to_value(api::AuditEntry::of(row)).unwrap_or_default();
            found.push((Kind::Audit, data.into()));
        }
        Ok(())
    }

    async fn read_lines(&mut self, found: &mut Vec<(Kind, Told)>) -> Result<(), StoreError> {
        let log = &self.app.service.logs.store;
        let Some(last) = self.line else {
            let newest = log.search(&LogQuery::newest(Some(self.id), 1)).await?;
            self.line = Some(newest.lines.first().map_or(0, |(number, _)| *number));
            return Ok(());
        };
        let lines = log.after(self.id, last, LINES_MAX).await?;
        // Only error lines get the data of their item.
        let failed = lines
            .iter()
            .filter(|(_, line)| line.line.level == LogLevel::Error);
        let failed: Vec<ItemIndex> = failed.filter_map(|(_, line)| line.line.index).collect();
        let carried: BTreeMap<ItemIndex, Option<Box<RawValue>>> = match &self.task {
            Some(task) if !failed.is_empty() => {
                let carried = self.carried(task, &failed).await;
                failed.iter().copied().zip(carried).collect()
            }
            _ => BTreeMap::new(),
        };
        for (number, line) in lines {
            self.line = Some(number);
            let index = line.line.index;
            let row = index.and_then(|index| carried.get(&index).cloned().flatten());
            let data = api::LogEvent {
                id: self.id.to_string(),
                number,
                at: rfc3339(line.at),
                level: line.line.level.as_str().to_owned(),
                origin: line.origin.as_str().to_owned(),
                code: line.code,
                index: index.map(|index| index.0),
                message: line.line.message,
                data: None,
            };
            let data = to_value(data).unwrap_or_default();
            found.push((Kind::Log, Told::with_row(data, "data", row)));
        }
        Ok(())
    }

    /// Returns the picture, taken again after a final read of the store if the run has ended since the last look:
    /// what was read during the run is older.
    async fn unless_ended(&mut self, picture: TaskPicture, found: &mut Vec<(Kind, Told)>) -> TaskPicture {
        let runs = picture.live.is_some();
        let is_known = picture.silent.is_empty() && !picture.is_blind;
        let has_ended = std::mem::replace(&mut self.ran, runs) && !runs && is_known;
        if !has_ended {
            return picture;
        }
        self.try_read(found).await;
        match self.task.clone() {
            Some(task) => self.app.service.tasks.picture(task).await,
            None => picture,
        }
    }

    /// Reads the store and notes if that fails.
    async fn try_read(&mut self, found: &mut Vec<(Kind, Told)>) {
        self.read_at = Some(Instant::now());
        let read = self.read(found).await;
        self.is_blind = read.is_err();
        if let Err(error) = read {
            tracing::debug!(task = %self.id, %error, "read for a stream failed");
        }
    }

    /// Returns the numbers to send. While the store can't be read, these are the last ones sent, marked stale: the
    /// saved ones are older still.
    fn newest(&self, picture: &TaskPicture) -> Value {
        let is_blind = picture.is_blind || (self.is_blind && picture.live.is_none());
        if is_blind && self.numbers.is_object() {
            return stale(self.numbers.clone());
        }
        let mut now = numbers(picture);
        now["stale"] = Value::Null;
        now
    }

    /// Collects the live numbers if they have changed.
    async fn live(&mut self, found: &mut Vec<(Kind, Told)>) {
        let Some(task) = &self.task else { return };
        // Saved use changes with the end of a run only, and costs a read of the store.
        let picture = self.app.service.tasks.live_picture(task.clone()).await;
        let picture = self.unless_ended(picture, found).await;
        // At the first look the snapshot already contains the handler state.
        let news = self
            .handler
            .look(&picture, Instant::now())
            .filter(|_| !self.numbers.is_null());
        found.extend(news.map(|news| (Kind::Handler, news.into())));
        let now = self.newest(&picture);
        if self.numbers != now {
            self.numbers = now.clone();
            found.push((Kind::Stats, now.into()));
        }
    }
}

#[async_trait]
impl Watcher for TaskWatcher {
    async fn look(&mut self) -> Vec<(Kind, Told)> {
        let mut found = Vec::new();
        if self.read_at.is_none_or(|at| at.elapsed() >= STORE_EVERY) {
            self.try_read(&mut found).await;
        }
        self.live(&mut found).await;
        found
    }
}
