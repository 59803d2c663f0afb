//! JSON form of a task, the same on all surfaces.

use crate::http::answer::Of;
use crate::http::answer::costs::show_costs;
use crate::http::answer::silent::silent as all_silent;
use crate::http::answer::time::rfc3339;
use crate::http::datasets::members::show_publish;
use crate::http::tasks::skips::show_skips;
use crate::http::tasks::view::cut_off::show_cut_off;
use crate::http::tasks::view::handler::show_handler_down;
use crate::http::tasks::view::handler::show_last_error;
use crate::http::tasks::view::shards::show_shards;
use crate::service::tasks::show::{Live, TaskPicture};
use windrow_core::ids::WallMs;
use windrow_core::stats::completion::Completion;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::ownership::peers::Unreachable;
use windrow_engine::ports::tasks::store::TaskView;

/// Converts a task; `recoveries` is the limit of automatic recoveries.
pub(crate) fn show_task(picture: TaskPicture, recoveries: u32) -> api::Task {
    show_task_at(api::TaskPace::of(&picture), picture, recoveries)
}

pub(crate) fn show_task_at(pace: api::TaskPace, picture: TaskPicture, recoveries: u32) -> api::Task {
    let costs = show_costs(&picture.costs);
    let (task, live, silent, handler) = (picture.task, picture.live, picture.silent, picture.handler);
    let said = handler.text().filter(|_| task.status_text.is_none());
    api::Task {
        pace,
        status: task.status.as_str().to_owned(),
        result: task.result.map(|result| result.as_str()).map(str::to_owned),
        stop_reason: task.stop_reason.map(|reason| reason.as_str()).map(str::to_owned),
        since: rfc3339(task.since),
        next: next(&task, recoveries),
        total: task.total.0,
        counts: api::TaskCounts::of(&task),
        watermark: task.watermark.0,
        publish: show_publish(&task.life),
        shard_list: show_shards(&task),
        settings: api::TaskSettings::from(&task.tuning),
        source: api::TaskSource::of(&task.source),
        intake: task.intake.map(|intake| intake.as_str()).map(str::to_owned),
        finish_at: task.cut_at().map(|end| end.0),
        skips: show_skips(&task.skips),
        parent: task.parent.map(|id| id.to_string()),
        schedule: task.fire.map(|fire| fire.schedule.to_string()),
        fire_time: task.fire.map(|fire| rfc3339(fire.time)),
        start: task.start_no,
        created_at: rfc3339(task.created_at),
        started_at: task.started_at.map(rfc3339),
        finished_at: task.finished_at.map(rfc3339),
        live: live_json(live.as_ref(), &silent),
        costs,
        beside: api::TaskBeside::default(),
        id: task.id.to_string(),
        business: task.business,
        status_reason: task.status_reason,
        status_text_message: said.as_ref().map(api::Message::of),
        status_text: task.status_text.or_else(|| said.map(|said| said.to_string())),
        cut_off: show_cut_off(&task.life.cut_off),
        handler_down: show_handler_down(&handler),
        last_error: show_last_error(&handler),
        spec: task.life.spec,
        pool: task.pool,
        version: task.version,
    }
}

impl Of<&TaskPicture> for api::TaskPace {
    fn of(picture: &TaskPicture) -> Self {
        api::TaskPace {
            progress: api::TaskProgress::of(picture.completion()),
            actual_rate: picture.actual_rate(),
            eta_seconds: picture.eta().map(|eta| eta.as_secs()),
        }
    }
}

impl Of<Completion> for api::TaskProgress {
    fn of(completion: Completion) -> Self {
        api::TaskProgress {
            settled: completion.settled,
            of: completion.of,
            percent: completion.percent(),
        }
    }
}

impl Of<&TaskView> for api::TaskCounts {
    fn of(task: &TaskView) -> Self {
        api::TaskCounts::new(&task.counters, task.counters.pending(task.total))
    }
}

fn live_json(live: Option<&Live>, silent: &[Unreachable]) -> Option<api::TaskLive> {
    let state = match (live, silent) {
        (None, []) => return None,
        (None, _) => "unreachable",
        (Some(_), []) => "live",
        (Some(_), _) => "partial",
    };
    Some(api::TaskLive {
        state: state.to_owned(),
        as_of: live.map(|live| rfc3339(live.as_of)),
        nodes: live.map(|live| live.nodes.clone()).unwrap_or_default(),
        unreachable: all_silent(silent),
        high_water: live.map(|live| live.high_water.0),
        window: live.map(|live| live.window),
        concurrency: live.map(|live| live.concurrency),
        latency_p95_seconds: live
            .and_then(|live| live.latency_p95)
            .map(|p95| p95.as_secs_f64()),
        stall: live.and_then(|live| live.stall).map(str::to_owned),
        autopilot: live
            .and_then(|live| live.autopilot.as_ref())
            .map(api::TaskAutopilot::of),
    })
}

/// Returns the next scheduled event of a task, as far as it is stored.
pub(crate) fn next(task: &TaskView, recoveries: u32) -> Option<api::TaskNext> {
    let plain = |action, at: WallMs| api::TaskNext {
        action,
        at: rfc3339(at),
        attempt: None,
        of: None,
    };
    match task.status {
        Status::Recovering => task.next_at.map(|at| api::TaskNext {
            attempt: Some(task.recoveries),
            of: Some(recoveries),
            ..plain("recover".to_owned(), at)
        }),
        Status::Queued if task.status_reason.as_deref() == Some("start_at") => {
            task.spec.start_at.map(|at| plain("start".to_owned(), at))
        }
        Status::AwaitingBusiness => task.awaiting_until.map(|at| plain("stop".to_owned(), at)),
        Status::Queued | Status::Running => task.spec.deadline.map(|at| plain("stop".to_owned(), at)),
        _ => None,
    }
}
