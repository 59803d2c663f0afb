//! Metrics of datasets, open tasks, schedules that create no tasks, and what is used of named limits.

use super::families as f;
use super::text::Page;
use crate::http::front::App;
use crate::service::ServiceError;
use windrow_core::ids::TaskId;
use windrow_core::limit::units::Use;
use windrow_engine::ports::datasets::store::Dataset;
use windrow_engine::ports::schedules::store::{Schedule, ScheduleFilter};
use windrow_engine::ports::tasks::store::TaskView;

/// Most datasets reported, in name order.
const DATASETS_MAX: u32 = 200;

/// Most schedules reported, in id order.
const SCHEDULES_MAX: u32 = 200;

/// Most named limits reported, in name order.
const LIMITS_MAX: u32 = 50;

/// State of datasets, open tasks, schedules and limits, as far as the store can be read.
#[derive(Default)]
pub(super) struct Data {
    datasets: Vec<(Dataset, Option<f64>)>,
    backlogs: Vec<Backlog>,
    schedules: Vec<(Schedule, u64)>,
    limits: Vec<(String, Use)>,
}

/// Unsettled items of an open task and the size of their rows.
struct Backlog {
    task: TaskId,
    items: u64,
    bytes: u64,
}

impl Data {
    pub(super) async fn read(app: &App, under_way: &[TaskView]) -> Data {
        let mut data = Data::default();
        match app.service.datasets.list(None, None, DATASETS_MAX).await {
            Ok(datasets) => {
                let now = app.service.node.now();
                let age = |dataset: &Dataset| Some(now.since(dataset.published_at?).as_secs_f64());
                let aged = datasets.into_iter().map(|dataset| (age(&dataset), dataset));
                data.datasets = aged.map(|(age, dataset)| (dataset, age)).collect();
            }
            Err(error) => tracing::debug!(%error, "reading datasets for metrics failed"),
        }
        for task in under_way.iter().filter(|task| task.intake.is_some()) {
            match app.service.tasks.bytes_waiting(task.id).await {
                Ok(bytes) => data.backlogs.push(Backlog {
                    task: task.id,
                    items: items_waiting(task),
                    bytes,
                }),
                Err(error) => tracing::debug!(%error, "reading a backlog for metrics failed"),
            }
        }
        data.schedules = idle(app).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "reading schedules for metrics failed");
            Vec::new()
        });
        data.limits = app.service.limits.uses(LIMITS_MAX).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "reading limits for metrics failed");
            Vec::new()
        });
        data
    }

    pub(super) fn write(&self, page: &mut Page) {
        let of = |value: fn(&Dataset, Option<f64>) -> Option<f64>| {
            let known = self.datasets.iter();
            let known = known.filter_map(move |(dataset, age)| Some((dataset, value(dataset, *age)?)));
            known.map(|(dataset, value)| {
                let labels = [
                    ("business", dataset.business.as_str()),
                    ("dataset", dataset.name.as_str()),
                ];
                (labels, value)
            })
        };
        page.all(f::DATASET_AGE, of(|_, age| age));
        page.all(
            f::DATASET_PUBLICATIONS,
            of(|dataset, _| Some(dataset.pointer.publication as f64)),
        );
        let tasks: Vec<String> = self.backlogs.iter().map(|one| one.task.to_string()).collect();
        let each = || tasks.iter().map(String::as_str).zip(&self.backlogs);
        let items = each().map(|(task, backlog)| (task, backlog.items));
        page.by(f::TASK_BACKLOG_ITEMS, "task", items);
        let bytes = each().map(|(task, backlog)| (task, backlog.bytes));
        page.by(f::TASK_BACKLOG_BYTES, "task", bytes);
        let idle = self.schedules.iter().map(|(schedule, idle)| {
            let labels = [
                ("business", schedule.business.as_str()),
                ("schedule", schedule.name.as_str()),
            ];
            (labels, *idle)
        });
        page.all(f::SCHEDULE_IDLE, idle);
        let used = self.limits.iter().map(|(limit, used)| {
            let labels = [("limit", limit.as_str()), ("amount", used.limit.as_str())];
            (labels, used.share())
        });
        page.all(f::LIMIT_USED, used);
    }
}

/// Returns schedules with the number of their latest consecutive fires that created no task.
async fn idle(app: &App) -> Result<Vec<(Schedule, u64)>, ServiceError> {
    let schedules = &app.service.schedules;
    let all = schedules
        .list(&ScheduleFilter::default(), None, SCHEDULES_MAX)
        .await?;
    let mut found = Vec::new();
    for schedule in all.into_iter().filter(|schedule| !schedule.paused) {
        let idle = schedules.idle(schedule.id).await?;
        found.push((schedule, idle));
    }
    Ok(found)
}

/// Returns the number of unsettled items, as last saved.
fn items_waiting(task: &TaskView) -> u64 {
    let gone = task.counters.settled() + task.counters.excluded;
    task.total.0.saturating_sub(gone)
}
