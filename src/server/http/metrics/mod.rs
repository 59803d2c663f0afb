//! `/metrics` for Prometheus.
//!
//! Task numbers are read once per second from the live runs, never counted per item. Requests are counted as they
//! complete. The number of series is bounded, whatever callers and tasks do.

mod board;
mod calls;
mod data;
mod ends;
mod families;
mod inside;
pub(super) mod meter;
mod process;
mod requests;
mod results;
#[cfg(test)]
mod tests;
mod text;
mod uploads;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use self::board::{Board, Entry, OTHER, TaskSample};
use self::data::Data;
use self::families::{self as f, Family};
use self::text::Page;
use super::problem::{HttpResult, Problem, Slug};
use super::tasks::queries;
use crate::http::front::App;
use crate::service::results::Room;
use windrow_core::meter::amount::PARTS;
use windrow_core::meter::metering::UNITS_MAX;
use windrow_core::stats::stall::StallReason;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::handling::handler::Workers;
use windrow_engine::ports::tasks::store::TaskView;

/// Time between two looks at the live runs.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Counts and times every request, by the route as documented.
pub(super) async fn measure(
    State(app): State<App>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let response = next.run(request).await;
    let route = route.as_ref().map_or(OTHER, MatchedPath::as_str);
    let status = response.status().as_u16();
    app.front
        .meter
        .requests
        .answered(&method, route, status, begun.elapsed());
    response
}

/// Looks at the live runs periodically, so that activity between two scrapes is counted. Never returns.
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
    // Keep this order: a run that ends in between is seen twice but counted once. In reverse order it would be
    // missed.
    let mut live = supervisor.runs();
    let ended = supervisor.take_ended_runs();
    let over = {
        let mut board = app.front.meter.board();
        let over = board.take_in(&mut live, &ended, now);
        board.entries.iter_mut().for_each(|(task, entry)| {
            entry.actual_rate = app.service.stats.speed(*task).map(|speed| speed.sent);
        });
        over
    };
    for task in over {
        match app.service.tasks.store.get(task).await {
            Ok(Some(view)) => {
                let mut board = app.front.meter.board();
                board.settle(task, view.counters, view.status);
                board.ends.note(&view.life);
            }
            Ok(None) => {
                app.front.meter.board().entries.remove(&task);
            }
            // The next look reads it again.
            Err(error) => tracing::debug!(%task, %error, "reading the end of a task for metrics failed"),
        }
    }
}

/// Returns the unfinished tasks; empty if the store can't be read.
async fn under_way(app: &App) -> Vec<TaskView> {
    let lists = &app.service.tasks.lists;
    let page = lists
        .tasks(&queries::under_way(), None, board::TASKS_MAX as u32)
        .await;
    page.map(|page| page.tasks).unwrap_or_else(|error| {
        tracing::debug!(%error, "reading tasks for metrics failed");
        Vec::new()
    })
}

/// Get metrics in Prometheus format
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "node", security((), ("bearer" = ["viewer"])),
    responses(
        (status = 200, description = "Metrics in Prometheus's text format", body = String, content_type = "text/plain"),
        (status = 404, description = "telemetry.metrics is off"),
    )
)]
pub(crate) async fn scrape(State(app): State<App>) -> HttpResult {
    if !app.service.config().telemetry.metrics {
        return Err(Problem::new(Slug::NotFound, "telemetry.metrics is off"));
    }
    look(&app).await;
    let (under_way, stored) = (under_way(&app).await, uploads::stored(&app).await);
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    let rooms = results::rooms(&app, &under_way).await;
    let data = Data::read(&app, &under_way).await;
    Ok((kind, written(&app, (&under_way, &rooms), &stored, &data)).into_response())
}

fn written(
    app: &App,
    (under_way, rooms): (&[TaskView], &[(String, Room)]),
    stored: &[(String, u64)],
    data: &Data,
) -> String {
    let mut page = Page::default();
    page.by(f::BUILD_INFO, "version", [(env!("CARGO_PKG_VERSION"), true)]);
    write_tasks(&mut page, &app.front.meter.board(), under_way);
    inside::write(&mut page, &app.service.health.meters);
    write_node(&mut page, app);
    uploads::write(&mut page, app, stored);
    results::write(&mut page, rooms);
    data.write(&mut page);
    write_actors(&mut page, app);
    process::write(&mut page);
    app.front.meter.requests.write(&mut page);
    page.finish()
}

fn write_node(page: &mut Page, app: &App) {
    let (room, front) = (app.service.supervisor().room(), &app.front);
    let per_second = |micros: u128| micros as f64 / 1e6;
    if let Some(capacity) = room.capacity {
        page.one(f::NODE_CAPACITY_RATE, per_second(capacity.0));
    }
    page.one(f::NODE_RESERVED_RATE, per_second(room.reserved.0));
    page.one(f::NODE_DRAINING, front.is_ending() || front.is_drained());
    page.one(f::LEASES_HELD, room.shards as f64);
    page.one(f::NODE_WAITING_TASKS, room.waiting as f64);
    page.one(f::SSE_CLIENTS, front.hub.listeners() as u64);
    page.one(f::HTTP_BODY_BYTES, front.bodies.taken());
    page.one(f::HTTP_UPLOADS, front.uploads.taken());
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
    let counts = by_kind.iter().map(|(kind, (count, _))| (*kind, *count));
    page.by(f::ACTORS, "kind", counts);
    let waiting = by_kind.iter().map(|(kind, (_, waiting))| (*kind, *waiting));
    page.by(f::ACTOR_MAILBOX_MESSAGES, "kind", waiting);
    page.by(f::ACTOR_RESTARTS, "kind", restarts);
}

fn write_tasks(page: &mut Page, board: &Board, under_way: &[TaskView]) {
    let own = board.entries.values().filter(|entry| entry.has_own);
    let own: Vec<(String, &Entry)> = own.map(|entry| (entry.sample.task.to_string(), entry)).collect();
    let others = &board.others;
    let rest = (OTHER, OTHER, [others.succeeded, others.skipped, others.failed]);
    let settled = own.iter().map(|(task, entry)| {
        let TaskSample {
            business, counters, ..
        } = &entry.sample;
        let counts = [counters.succeeded, counters.skipped, counters.failed];
        (business.as_str(), task.as_str(), counts)
    });
    let items = settled.chain([rest]).flat_map(|(business, task, counts)| {
        let by_outcome = ["succeeded", "skipped", "failed"].into_iter().zip(counts);
        by_outcome.map(move |(outcome, count)| {
            (
                [("business", business), ("task", task), ("outcome", outcome)],
                count,
            )
        })
    });
    page.all(f::ITEMS, items);
    calls::write(page, board, &own);
    board.ends.write(page);
    write_gauges(page, &own);
    write_statuses(page, &own, under_way);
    let stalled = own
        .iter()
        .map(|(task, entry)| (task.as_str(), &entry.sample.stalled));
    let stalls = stalled
        .chain([(OTHER, &others.stalled)])
        .flat_map(|(task, spent)| {
            let by_reason = StallReason::ALL.into_iter().zip(spent);
            by_reason.map(move |(reason, time)| {
                ([("task", task), ("reason", reason.as_str())], time.as_secs_f64())
            })
        });
    page.all(f::DISPATCH_STALL, stalls);
    write_workers(page, board);
}

/// Writes the workers of all live runs by business, also those of tasks without their own series.
fn write_workers(page: &mut Page, board: &Board) {
    let mut workers: BTreeMap<&str, Workers> = BTreeMap::new();
    for entry in board.entries.values().filter(|entry| entry.gone_at.is_none()) {
        if let Some(of_task) = entry.sample.workers {
            let sum = workers.entry(&entry.sample.business).or_default();
            *sum = sum.plus(of_task);
        }
    }
    let workers = workers
        .into_iter()
        .flat_map(|(business, Workers { busy, idle })| {
            [("busy", busy), ("idle", idle)]
                .map(|(state, count)| ([("business", business), ("state", state)], u64::from(count)))
        });
    page.all(f::WORKERS, workers);
}

/// Value of a gauge for a task; `None` omits the sample.
type Value = fn(&TaskSample) -> Option<f64>;

/// Gauges of running tasks.
const GAUGES: [(Family, Value); 14] = [
    (f::TASK_TARGET_RATE, |task| task.target_rate),
    (f::WINDOW_SIZE, |task| Some(task.window as f64)),
    (f::WINDOW_USED, |task| Some(task.window_used as f64)),
    (f::WINDOW_WATERMARK, |task| Some(task.watermark as f64)),
    (f::WINDOW_HEAD_AGE, |task| Some(task.head_age.as_secs_f64())),
    (f::ERROR_BUDGET_REMAINING_RATIO, |task| {
        task.budget_left_ppm.map(|ppm| f64::from(ppm) / 1e6)
    }),
    (f::CHECKPOINT_AGE, |task| Some(task.unsaved_for.as_secs_f64())),
    (f::HANDLER_DURATION_P95, |task| {
        task.latency_p95.map(|p95| p95.as_secs_f64())
    }),
    (f::AUTOPILOT_CONCURRENCY, |task| {
        Some(f64::from(task.autopilot?.in_flight))
    }),
    (f::AUTOPILOT_RATE, |task| task.autopilot?.rate),
    (f::AUTOPILOT_SLOPE, |task| task.autopilot?.slope),
    (f::AUTOPILOT_SLOWER, |task| Some(task.autopilot?.slower)),
    (f::AUTOPILOT_REFUSED_SHARE, |task| {
        Some(task.autopilot?.refused_share)
    }),
    (f::AUTOPILOT_SCOUTING, |task| {
        Some(f64::from(u8::from(task.autopilot?.scouting.is_some())))
    }),
];

fn write_gauges(page: &mut Page, own: &[(String, &Entry)]) {
    let items = own.iter().flat_map(|(task, entry)| {
        let (counters, total) = (&entry.sample.counters, entry.sample.total);
        let by_state = [
            ("succeeded", counters.succeeded),
            ("skipped", counters.skipped),
            ("failed", counters.failed),
            ("parked", counters.parked),
            ("in_flight", counters.in_flight),
            ("pending", total.saturating_sub(counters.accounted())),
            ("excluded", counters.excluded),
            ("total", total),
        ];
        by_state.map(|(state, count)| ([("task", task.as_str()), ("state", state)], count))
    });
    page.all(f::TASK_ITEMS, items);
    write_costs(page, own);
    let progress = own
        .iter()
        .map(|(task, entry)| (task.as_str(), entry.sample.progress()));
    page.by(f::TASK_PROGRESS_RATIO, "task", progress);
    // An ended task has no window and no rate.
    let live = || own.iter().filter(|(_, entry)| entry.gone_at.is_none());
    let rates = live().filter_map(|(task, entry)| Some((task.as_str(), entry.actual_rate?)));
    page.by(f::TASK_ACTUAL_RATE, "task", rates);
    for (family, value) in GAUGES {
        let values = live().filter_map(|(task, entry)| Some((task.as_str(), value(&entry.sample)?)));
        page.by(family, "task", values);
    }
    let down = live().map(|(task, entry)| {
        let labels = [
            ("business", entry.sample.business.as_str()),
            ("task", task.as_str()),
        ];
        (labels, entry.sample.is_handler_down)
    });
    page.all(f::HANDLER_DOWN, down);
    let running = own
        .iter()
        .map(|(task, entry)| (task.as_str(), entry.gone_at.is_none()));
    page.by(f::TASK_RUNNING, "task", running);
}

/// Writes the use of the units that tasks declare, of which each has a few. Calls and items are counted by other metrics.
fn write_costs(page: &mut Page, own: &[(String, &Entry)]) {
    let costs = own.iter().flat_map(|(task, entry)| {
        let declared = entry
            .sample
            .costs
            .iter()
            .filter(|meter| !meter.unit.is_built_in());
        declared.take(UNITS_MAX).map(|meter| {
            let labels = [("task", task.as_str()), ("unit", meter.unit.as_str())];
            (labels, meter.used().0 as f64 / PARTS as f64)
        })
    });
    page.all(f::TASK_COST, costs);
}

/// Writes the status of tasks that run or ran on this node, and of those that wait or run elsewhere.
fn write_statuses(page: &mut Page, own: &[(String, &Entry)], under_way: &[TaskView]) {
    let known = own.iter().filter_map(|(task, entry)| {
        let status = match entry.gone_at {
            None => Some(Status::Running),
            Some(_) => entry.status,
        };
        Some((task.clone(), status?))
    });
    let mut statuses: BTreeMap<String, Status> = known.collect();
    for task in under_way {
        // The stored status is newer than that of a look, and the only one for a waiting task.
        let name = task.id.to_string();
        if statuses.len() < board::TASKS_MAX || statuses.contains_key(&name) {
            statuses.insert(name, task.status);
        }
    }
    let samples = statuses.iter().flat_map(|(task, status)| {
        let each = Status::ALL.iter();
        each.map(move |one| ([("task", task.as_str()), ("status", one.as_str())], one == status))
    });
    page.all(f::TASK_STATUS, samples);
}
