//! Events of task lists, status counts and nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::handler::HandlerNews;
use super::node::node_pictures;
use super::task::{numbers, status, written};
use super::topic::{Kind, Look, Told, Topic, Watcher};
use crate::http::front::App;
use crate::http::tasks;
use crate::service::ServiceError;
use crate::service::tasks::show::TaskPicture;
use windrow_core::ids::TaskId;
use windrow_engine::ports::tasks::list::TaskFilter;
use windrow_engine::ports::tasks::store::TaskView;

/// Number of newest tasks included.
const NEWEST: u32 = 50;
/// Most unfinished tasks included.
const UNDER_WAY: u32 = 200;
/// Time between two reads of the store.
const STORE_EVERY: Duration = Duration::from_secs(1);
/// Limit of the count per status.
const COUNT_MAX: u32 = 1000;

/// Returns the newest and the unfinished tasks, newest first.
async fn listed(app: &App) -> Result<Vec<TaskView>, ServiceError> {
    let lists = &app.service.tasks.lists;
    let newest = lists.tasks(&TaskFilter::default(), None, NEWEST).await?.tasks;
    let others = lists
        .tasks(&tasks::queries::under_way(), None, UNDER_WAY)
        .await?
        .tasks;
    let all: BTreeMap<TaskId, TaskView> = newest
        .into_iter()
        .chain(others)
        .map(|task| (task.id, task))
        .collect();
    Ok(all.into_values().rev().collect())
}

/// Builds the snapshot of tasks, each as in `GET /v1/tasks`.
pub(super) async fn tasks_picture(app: &App) -> Result<Value, ServiceError> {
    let mut shown = Vec::new();
    for picture in app.service.tasks.pictures(listed(app).await?).await {
        shown.push(written(&tasks::body(app, picture))?);
    }
    Ok(json!({ "tasks": shown }))
}

/// Builds the snapshot of the cluster: tasks per status, and the nodes.
pub(super) async fn cluster_picture(app: &App) -> Result<Value, ServiceError> {
    let counts = app.service.tasks.lists.status_counts(COUNT_MAX).await?;
    let counts: Map<String, Value> = counts
        .into_iter()
        .map(|(status, count)| (status.as_str().to_owned(), count.into()))
        .collect();
    Ok(json!({ "tasks": counts, "counted_up_to": COUNT_MAX, "nodes": node_pictures(app).await? }))
}

/// Watcher for changes of the cluster or one of its nodes.
pub(super) struct NumbersWatcher {
    app: App,
    topic: Topic,
    told: Value,
    read_at: Option<Instant>,
}

impl NumbersWatcher {
    pub(super) fn new(app: App, topic: Topic) -> NumbersWatcher {
        NumbersWatcher {
            app,
            topic,
            told: Value::Null,
            read_at: None,
        }
    }
}

#[async_trait]
impl Watcher for NumbersWatcher {
    async fn look(&mut self) -> Vec<(Kind, Told)> {
        if self.read_at.is_some_and(|at| at.elapsed() < STORE_EVERY) {
            return Vec::new();
        }
        self.read_at = Some(Instant::now());
        match self.app.snapshot(&self.topic).await {
            Ok(now) if now != self.told => {
                self.told = now.clone();
                vec![(Kind::Node, now.into())]
            }
            Ok(_) => Vec::new(),
            Err(error) => {
                tracing::debug!(topic = %self.topic, %error, "read for a stream failed");
                Vec::new()
            }
        }
    }
}

/// Watcher for changes of all listed tasks: one event per status change, one event with the numbers of all running
/// tasks.
pub(super) struct TasksWatcher {
    app: App,
    told: BTreeMap<TaskId, Value>,
    tasks: Vec<TaskView>,
    numbers: Value,
    handlers: BTreeMap<TaskId, HandlerNews>,
    read_at: Option<Instant>,
}

impl TasksWatcher {
    pub(super) fn new(app: App) -> TasksWatcher {
        TasksWatcher {
            app,
            told: BTreeMap::new(),
            tasks: Vec::new(),
            numbers: Value::Null,
            handlers: BTreeMap::new(),
            read_at: None,
        }
    }

    fn changed(&mut self, tasks: &[TaskView], is_first: bool) -> Vec<(Kind, Value)> {
        let now: BTreeMap<TaskId, Value> = tasks.iter().map(|task| (task.id, status(task))).collect();
        let is_new = |(id, value): &(&TaskId, &Value)| !is_first && self.told.get(id) != Some(value);
        let found = now
            .iter()
            .filter(is_new)
            .map(|(_, value)| (Kind::Status, value.clone()))
            .collect();
        self.told = now;
        found
    }

    fn handler_news(&mut self, pictures: &[TaskPicture]) -> Vec<(Kind, Value)> {
        let (is_first, now) = (self.numbers.is_null(), Instant::now());
        self.handlers
            .retain(|id, _| pictures.iter().any(|picture| picture.task.id == *id));
        let mut found = Vec::new();
        for picture in pictures {
            let news = self
                .handlers
                .entry(picture.task.id)
                .or_default()
                .look(picture, now);
            found.extend(news.filter(|_| !is_first).map(|news| (Kind::Handler, news)));
        }
        found
    }
}

#[async_trait]
impl Watcher for TasksWatcher {
    async fn look(&mut self) -> Vec<(Kind, Told)> {
        let mut found = Vec::new();
        if self.read_at.is_none_or(|at| at.elapsed() >= STORE_EVERY) {
            let is_first = self.read_at.replace(Instant::now()).is_none();
            match listed(&self.app).await {
                Ok(tasks) => {
                    found = self.changed(&tasks, is_first);
                    self.tasks = tasks;
                }
                Err(error) => tracing::debug!(%error, "read for a stream failed"),
            }
        }
        let pictures = self.app.service.tasks.pictures(self.tasks.clone()).await;
        found.extend(self.handler_news(&pictures));
        let live: Vec<Value> = pictures
            .iter()
            .filter(|picture| picture.live.is_some())
            .map(numbers)
            .collect();
        let now = json!({ "tasks": live });
        if self.numbers != now {
            self.numbers = now.clone();
            found.push((Kind::Stats, now));
        }
        found
            .into_iter()
            .map(|(kind, value)| (kind, value.into()))
            .collect()
    }
}
