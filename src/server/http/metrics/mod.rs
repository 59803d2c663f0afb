//! `/metrics`: numbers for Prometheus.
//!
//! What tasks do is looked at once a second from the live runs, never counted from items. Requests are counted as they
//! are answered. The number of series has a bound whatever callers and tasks do.

mod board;
mod calls;
mod inside;
mod process;
#[cfg(test)]
mod tests;
mod text;
mod uploads;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, Unit};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};
use tokio::time::Instant;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::board::{Board, Entry, OTHER};
use self::text::{Kind, Page};
use super::App;
use super::problem::{Problem, Slug};
use crate::service::node::actors::ActorView;
use windrow_core::stats::stall::StallReason;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::tasks::list::TaskFilter;
use windrow_engine::ports::tasks::store::TaskView;

/// Between two looks at the live runs.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
const REQUESTS: &str = "windrow_http_server_requests_total";
const DURATION: &str = "windrow_http_server_request_duration_seconds";
/// Unit: seconds.
const BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];
const METADATA: Metadata<'static> = Metadata::new("windrow::http", Level::INFO, Some(module_path!()));

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(scrape))
}

/// Sums by kind, and the last number seen by path.
type Restarts = (BTreeMap<&'static str, u64>, BTreeMap<String, u32>);

/// What is measured and remembered.
pub(super) struct Meter {
    requests: PrometheusRecorder,
    board: Mutex<Board>,
    /// One look at a time: a run is taken in as it lives, and once more as it ended.
    looking: tokio::sync::Mutex<()>,
    /// Restarts seen, by kind; and by path as they were last seen.
    restarts: Mutex<Restarts>,
}

impl Meter {
    pub(super) fn new() -> Meter {
        let duration = Matcher::Full(DURATION.to_owned());
        let builder = PrometheusBuilder::new();
        // It fails for an empty list only.
        let builder = builder
            .set_buckets_for_metric(duration, &BUCKETS)
            .unwrap_or_default();
        let requests = builder.build_recorder();
        let describe = |name: &'static str| KeyName::from_const_str(name);
        requests.describe_counter(describe(REQUESTS), None, "Requests answered".into());
        requests.describe_histogram(
            describe(DURATION),
            Some(Unit::Seconds),
            "From the head of a request to the head of its answer".into(),
        );
        Meter {
            requests,
            board: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
            restarts: Mutex::default(),
        }
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self, method: &Method, route: &str, status: u16, took: Duration) {
        let labels = vec![
            Label::new("method", known(method)),
            Label::new("route", route.to_owned()),
            Label::new("status", status.to_string()),
        ];
        let counted = Key::from_parts(REQUESTS, labels.clone());
        self.requests.register_counter(&counted, &METADATA).increment(1);
        let timed = Key::from_parts(DURATION, labels);
        self.requests
            .register_histogram(&timed, &METADATA)
            .record(took.as_secs_f64());
    }

    fn note_restarts(&self, actors: &[ActorView]) -> BTreeMap<&'static str, u64> {
        let mut restarts = self.restarts.lock().unwrap_or_else(PoisonError::into_inner);
        let (sums, seen) = &mut *restarts;
        for actor in actors {
            let before = seen.insert(actor.path.clone(), actor.restarts).unwrap_or(0);
            *sums.entry(actor.kind.as_str()).or_default() += u64::from(actor.restarts.saturating_sub(before));
        }
        seen.retain(|path, _| actors.iter().any(|actor| actor.path == *path));
        sums.clone()
    }
}

/// A method that clients can't make up.
fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => OTHER,
    }
}

/// Counts and times every request, by the route as it is written in the document.
pub(super) async fn measure(State(app): State<App>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map(|path| path.as_str().to_owned());
    let response = next.run(request).await;
    let route = route.as_deref().unwrap_or(OTHER);
    app.front
        .meter
        .answered(&method, route, response.status().as_u16(), begun.elapsed());
    response
}

/// Looks at the live runs again and again, so that what tasks do between two scrapes is seen. Never ends.
pub async fn watch(app: App) {
    loop {
        look(&app).await;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn look(app: &App) {
    let _alone = app.front.meter.looking.lock().await;
    let now = app.service.node.clock.now();
    let supervisor = app.service.supervisor();
    // In this order: what ends in between is seen twice and counted once; the other way round it would be missed.
    let live = supervisor.runs();
    let ended = supervisor.take_ended_runs();
    let over = app.front.meter.board().take_in(&live, &ended, now);
    for task in over {
        match app.service.tasks.store.get(task).await {
            Ok(Some(view)) => app.front.meter.board().settle(task, view.counters, view.status),
            Ok(None) => {
                app.front.meter.board().entries.remove(&task);
            }
            // It is read at the next look.
            Err(error) => tracing::debug!(%task, %error, "the end of a task was not read for metrics"),
        }
    }
}

/// How the tasks stand that are under way; none when the store can't be read.
async fn under_way(app: &App) -> Vec<TaskView> {
    let waits =
        |status: &Status| !status.is_terminal() && !matches!(status, Status::Created | Status::Stopped);
    let statuses = Status::ALL.iter().copied().filter(waits).collect();
    let filter = TaskFilter {
        statuses,
        ..TaskFilter::default()
    };
    match app
        .service
        .tasks
        .lists
        .tasks(&filter, None, board::TASKS_MAX as u32)
        .await
    {
        Ok(page) => page.tasks,
        Err(error) => {
            tracing::debug!(%error, "tasks were not read for metrics");
            Vec::new()
        }
    }
}

/// Numbers for Prometheus
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "node", security((), ("bearer" = ["viewer"])),
    responses(
        (status = 200, description = "Prometheus's text format", body = String, content_type = "text/plain"),
        (status = 404, description = "telemetry.metrics is off"),
    )
)]
async fn scrape(State(app): State<App>) -> Response {
    if !app.service.config().telemetry.metrics {
        return Problem::new(Slug::NotFound, "telemetry.metrics is off").into_response();
    }
    look(&app).await;
    let (under_way, stored) = (under_way(&app).await, uploads::stored(&app).await);
    let page = written(&app, &under_way, &stored);
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        page,
    )
        .into_response()
}

fn written(app: &App, under_way: &[TaskView], stored: &[(String, u64)]) -> String {
    let mut page = Page::default();
    let version = env!("CARGO_PKG_VERSION");
    page.family("windrow_build_info", Kind::Gauge, "The program")
        .sample(&[("version", version)], 1.0);
    write_tasks(&mut page, &app.front.meter.board(), under_way);
    inside::write(&mut page, &app.service.health.meters);
    write_node(&mut page, app);
    uploads::write(&mut page, app, stored);
    write_actors(&mut page, app);
    process::write(&mut page);
    page.finish() + &app.front.meter.requests.handle().render()
}

fn write_node(page: &mut Page, app: &App) {
    let room = app.service.supervisor().room();
    let per_second = |micros: u128| micros as f64 / 1e6;
    if let Some(capacity) = room.capacity {
        let help = "The sum of task rates that the node may hold, items per second";
        page.single(
            "windrow_node_capacity_rate",
            Kind::Gauge,
            help,
            per_second(capacity.0),
        );
    }
    let help = "How much of it is taken, items per second";
    page.single(
        "windrow_node_reserved_rate",
        Kind::Gauge,
        help,
        per_second(room.reserved.0),
    );
    let draining = app.front.is_ending() || app.front.is_drained();
    page.single(
        "windrow_node_draining",
        Kind::Gauge,
        "1 while the node takes no tasks",
        f64::from(u8::from(draining)),
    );
    page.single(
        "windrow_leases_held",
        Kind::Gauge,
        "Shards that run here",
        room.shards as f64,
    );
    page.single(
        "windrow_node_waiting_tasks",
        Kind::Gauge,
        "Tasks that wait for room",
        room.waiting as f64,
    );
    let front = &app.front;
    for (name, help, count) in [
        (
            "windrow_sse_clients",
            "Open streams of events",
            front.hub.listeners() as u64,
        ),
        (
            "windrow_http_body_bytes",
            "Bodies that are read or worked on",
            front.bodies.taken(),
        ),
        (
            "windrow_http_uploads",
            "Uploads that arrive",
            front.uploads.taken(),
        ),
    ] {
        page.single(name, Kind::Gauge, help, count as f64);
    }
}

fn write_actors(page: &mut Page, app: &App) {
    let actors = app.service.supervisor().tree().view();
    let restarts = app.front.meter.note_restarts(&actors);
    let mut by_kind: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for actor in &actors {
        let (count, mailbox) = by_kind.entry(actor.kind.as_str()).or_default();
        *count += 1;
        *mailbox += actor.mailbox;
    }
    let mut family = page.family("windrow_actors", Kind::Gauge, "Actors");
    by_kind
        .iter()
        .for_each(|(kind, (count, _))| family.sample(&[("kind", kind)], *count as f64));
    let mut family = page.family(
        "windrow_actor_mailbox_messages",
        Kind::Gauge,
        "Messages that wait",
    );
    by_kind
        .iter()
        .for_each(|(kind, (_, waiting))| family.sample(&[("kind", kind)], *waiting as f64));
    let mut family = page.family(
        "windrow_actor_restarts_total",
        Kind::Counter,
        "Actors that were started again",
    );
    restarts
        .iter()
        .for_each(|(kind, count)| family.sample(&[("kind", kind)], *count as f64));
}

fn write_tasks(page: &mut Page, board: &Board, under_way: &[TaskView]) {
    let own: Vec<(String, &Entry)> = board
        .entries
        .values()
        .filter(|entry| entry.has_own)
        .map(|entry| (entry.sight.task.to_string(), entry))
        .collect();
    let help = "Items that are settled";
    let mut family = page.family("windrow_items_total", Kind::Counter, help);
    let others = &board.others;
    let rest = (others.succeeded, others.skipped, others.abandoned);
    let counted = own.iter().map(|(task, entry)| {
        let counters = &entry.sight.counters;
        (
            task.as_str(),
            entry.sight.business.as_str(),
            (counters.succeeded, counters.skipped, counters.abandoned),
        )
    });
    for (task, business, (succeeded, skipped, abandoned)) in counted.chain([(OTHER, OTHER, rest)]) {
        for (outcome, count) in [
            ("succeeded", succeeded),
            ("skipped", skipped),
            ("abandoned", abandoned),
        ] {
            family.sample(
                &[("business", business), ("task", task), ("outcome", outcome)],
                count as f64,
            );
        }
    }
    calls::write(page, board, &own);
    write_gauges(page, &own);
    write_statuses(page, &own, under_way);
    let mut family = page.family(
        "windrow_dispatch_stall_seconds_total",
        Kind::Counter,
        "Time in which nothing left although the rate allowed it",
    );
    let stalled = own
        .iter()
        .map(|(task, entry)| (task.as_str(), &entry.sight.stalled));
    for (task, spent) in stalled.chain([(OTHER, &others.stalled)]) {
        for (reason, time) in StallReason::ALL.into_iter().zip(spent) {
            family.sample(&[("task", task), ("reason", reason.as_str())], time.as_secs_f64());
        }
    }
}

/// What a gauge of a task shows; none shows nothing.
type Value = fn(&Entry) -> Option<f64>;

/// The gauges of a task that runs.
const GAUGES: [(&str, &str, Value); 10] = [
    (
        "windrow_task_progress_ratio",
        "Settled or excluded items of all",
        |entry| {
            let done = entry.sight.counters.settled() + entry.sight.counters.excluded;
            Some(if entry.sight.total == 0 {
                1.0
            } else {
                done as f64 / entry.sight.total as f64
            })
        },
    ),
    ("windrow_task_actual_rate", "Items settled per second", |entry| {
        Some(entry.actual_rate)
    }),
    (
        "windrow_task_target_rate",
        "Item attempts per second that may leave",
        |entry| entry.sight.target_rate,
    ),
    (
        "windrow_window_size",
        "Items between low water and the highest that may leave",
        |entry| Some(entry.sight.window as f64),
    ),
    (
        "windrow_window_used",
        "Items between low water and the highest that left",
        |entry| Some(entry.sight.window_used as f64),
    ),
    (
        "windrow_window_low_water",
        "Below it every item is settled or parked",
        |entry| Some(entry.sight.low_water as f64),
    ),
    (
        "windrow_window_head_age_seconds",
        "How long the item at low water has held it there",
        |entry| Some(entry.sight.head_age.as_secs_f64()),
    ),
    (
        "windrow_error_budget_remaining_ratio",
        "What is left of the tightest part of the error budget",
        |entry| entry.sight.budget_left_ppm.map(|ppm| f64::from(ppm) / 1e6),
    ),
    (
        "windrow_checkpoint_age_seconds",
        "How long completions have waited to be saved",
        |entry| Some(entry.sight.unsaved_for.as_secs_f64()),
    ),
    (
        "windrow_handler_duration_p95_seconds",
        "The 95th percentile of how long calls take",
        |entry| entry.sight.latency_p95.map(|p95| p95.as_secs_f64()),
    ),
];

fn write_gauges(page: &mut Page, own: &[(String, &Entry)]) {
    let mut family = page.family("windrow_task_items", Kind::Gauge, "Items of a task by state");
    for (task, entry) in own {
        let (counters, total) = (&entry.sight.counters, entry.sight.total);
        let pending = total.saturating_sub(counters.accounted());
        for (state, count) in [
            ("succeeded", counters.succeeded),
            ("skipped", counters.skipped),
            ("abandoned", counters.abandoned),
            ("parked", counters.parked),
            ("in_flight", counters.in_flight),
            ("pending", pending),
            ("excluded", counters.excluded),
            ("total", total),
        ] {
            family.sample(&[("task", task), ("state", state)], count as f64);
        }
    }
    for (name, help, value) in GAUGES {
        let mut family = page.family(name, Kind::Gauge, help);
        // A task that has ended has no window and no rate.
        let live = own
            .iter()
            .filter(|(_, entry)| entry.gone_at.is_none() || name.ends_with("progress_ratio"));
        live.filter_map(|(task, entry)| Some((task, value(entry)?)))
            .for_each(|(task, value)| {
                family.sample(&[("task", task)], value);
            });
    }
    let help = "1 while the handler of a task that runs here doesn't answer";
    let mut family = page.family("windrow_handler_down", Kind::Gauge, help);
    for (task, entry) in own.iter().filter(|(_, entry)| entry.gone_at.is_none()) {
        let is_down = f64::from(u8::from(entry.sight.is_handler_down));
        family.sample(&[("business", &entry.sight.business), ("task", task)], is_down);
    }
    let mut family = page.family("windrow_task_running", Kind::Gauge, "1 while a task runs here");
    own.iter().for_each(|(task, entry)| {
        family.sample(&[("task", task)], f64::from(u8::from(entry.gone_at.is_none())));
    });
}

/// Tasks that run here or did, and those that wait or run elsewhere: where each stands.
fn write_statuses(page: &mut Page, own: &[(String, &Entry)], under_way: &[TaskView]) {
    let known = own.iter().filter_map(|(task, entry)| {
        let status = if entry.gone_at.is_none() {
            Some(Status::Running)
        } else {
            entry.status
        };
        Some((task.clone(), status?))
    });
    let mut statuses: BTreeMap<String, Status> = known.collect();
    for task in under_way {
        // The store's word is newer than a look; and of a task that waits there is no other.
        let name = task.id.to_string();
        if statuses.len() < board::TASKS_MAX || statuses.contains_key(&name) {
            statuses.insert(name, task.status);
        }
    }
    let mut family = page.family(
        "windrow_task_status",
        Kind::Gauge,
        "1 for the status that a task has",
    );
    for (task, status) in &statuses {
        for one in Status::ALL {
            let is_it = f64::from(u8::from(one == status));
            family.sample(&[("task", task), ("status", one.as_str())], is_it);
        }
    }
}
