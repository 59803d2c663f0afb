//! A task as every surface shows it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::answer::silent::{SilentJson, silent as all_silent};
use crate::http::answer::time::rfc3339;
use crate::http::datasets::PublishJson;
use crate::http::tasks::settings::SettingsJson;
use crate::http::tasks::skips::SkipsJson;
use crate::http::tasks::source::SourceJson;
use crate::http::tasks::view::cut_off::CutOffJson;
use crate::http::tasks::view::handler::{HandlerDownJson, LastErrorJson};
use crate::http::tasks::view::redriven::RedrivenJson;
use crate::http::tasks::view::shards::ShardJson;
use crate::http::tasks::warnings::WarningJson;
use crate::service::tasks::show::{Live, TaskPicture};
use windrow_core::ids::WallMs;
use windrow_core::settings::Auto;
use windrow_core::stats::completion::Completion;
use windrow_core::task::lifecycle::Status;
use windrow_core::task::{Canary, CanaryThen};
use windrow_engine::ports::ownership::peers::Unreachable;
use windrow_engine::ports::tasks::store::TaskView;

/// A task.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Task)]
pub(crate) struct TaskJson {
    /// Its number, `t42`.
    id: String,
    /// The business.
    business: String,
    /// The name, if it has one.
    name: Option<String>,
    /// Where it stands.
    status: &'static str,
    /// How it ended; only when finished.
    result: Option<&'static str>,
    /// Why it is stopping or stopped.
    stop_reason: Option<&'static str>,
    /// A machine slug, where the status needs a reason.
    status_reason: Option<String>,
    /// A sentence for people; while it runs, what goes wrong with its handler.
    status_text: Option<String>,
    /// Which items were in flight when its present stop didn't wait for them: they may repeat.
    cut_off: Option<CutOffJson>,
    /// While its handler doesn't answer: why, since when, and when it is tried next.
    handler_down: Option<HandlerDownJson>,
    /// While it runs: what last went wrong with its calls.
    last_error: Option<LastErrorJson>,
    /// Since when it has this status.
    since: String,
    /// What happens next by itself, and when.
    next: Option<NextJson>,
    /// How many items.
    total: u64,
    /// Where they stand; the terms add up to `total`.
    counts: CountsOfTask,
    /// Below it every item is settled or parked; of several shards that of the first that isn't done.
    low_water: u64,
    /// Into how many parts it is cut when it starts: a number, or `auto`.
    #[schema(value_type = crate::http::document::schema::NumberOrAuto)]
    shards: Auto<NonZeroU32>,
    /// Those parts.
    shard_list: Vec<ShardJson>,
    #[serde(flatten)]
    pace: PaceJson,
    #[serde(flatten)]
    settings: SettingsJson,
    /// Its labels.
    labels: BTreeMap<String, String>,
    /// Higher goes first.
    priority: i32,
    /// The nodes that run it.
    pool: String,
    /// Where its items come from.
    source: SourceJson,
    /// Of a task that was made open: `open` while items may be appended, then `sealed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    intake: Option<&'static str>,
    /// Items left out at the head.
    skip_first: u64,
    /// First index that an early finish left out; higher than the one that was asked for where more had left.
    finish_at: Option<u64>,
    /// The items that people want skipped.
    skips: Option<SkipsJson>,
    /// What is given to the handler.
    #[schema(value_type = Option<serde_json::Value>)]
    params: Option<Box<RawValue>>,
    /// Whether it goes with each call.
    send_params: bool,
    /// The named limits that its items count against, beside those of its business.
    limits: Vec<String>,
    /// What its results become once it is finished.
    publish: Option<PublishJson>,
    /// The first items, while they are not done.
    canary: Option<CanaryJson>,
    /// Not run before this time.
    start_at: Option<String>,
    /// Stopped at this time.
    deadline: Option<String>,
    /// The task whose failures it does again.
    parent: Option<String>,
    /// The schedule that made it.
    schedule: Option<String>,
    /// For which of its times.
    fire_time: Option<String>,
    /// How often it was started; the number of the present start.
    start: u32,
    /// Changes with each change of the task; the tag.
    version: u64,
    /// When it was made.
    created_at: String,
    /// When it first ran.
    started_at: Option<String>,
    /// When it ended.
    finished_at: Option<String>,
    /// What is known of it while it runs, on whatever nodes.
    live: Option<LiveJson>,
    #[serde(flatten)]
    pub(crate) beside: Beside,
}

/// What is told of a task where people look at it, and not in events.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = TaskBeside)]
pub(crate) struct Beside {
    /// What its redrives made of its failures; none where it has no redrive, and in events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) redriven: Option<RedrivenJson>,
    /// What would not come about as it was wished; only where one task is answered, not in lists and events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<WarningJson>,
}

/// What happens next by itself.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskNext)]
pub(crate) struct NextJson {
    /// `start`, `recover` or `stop`.
    action: &'static str,
    /// When.
    at: String,
    /// Which recovery it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    /// How many there are at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<u32>,
}

/// Where the items of a task stand.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskCounts)]
pub(crate) struct CountsOfTask {
    /// Settled well.
    pub(in crate::http) succeeded: u64,
    /// Settled: nothing to do.
    pub(in crate::http) skipped: u64,
    /// Failed for good.
    pub(in crate::http) abandoned: u64,
    /// Waiting for a later retry, outside the window.
    pub(in crate::http) parked: u64,
    /// Given to the handler, no verdict yet.
    pub(in crate::http) in_flight: u64,
    /// Left.
    pub(in crate::http) pending: u64,
    /// Never to be dispatched.
    pub(in crate::http) excluded: u64,
}

/// How far a task is, how fast it goes and when it will be done.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskPace)]
pub(crate) struct PaceJson {
    /// The progress.
    progress: ProgressJson,
    /// Attempts sent each second, over the last ten; of a slow rate, over the time of five items. 0 while it doesn't run,
    /// null where it isn't known (yet, or since a node can't be asked).
    actual_rate: Option<f64>,
    /// In how many seconds it will be done, at the pace at which items settle now; with parked items that is the least.
    /// Null while that isn't known, and while items may be added.
    eta_seconds: Option<u64>,
}

/// How far a task is. What is left out, at the head or by an early finish, is in neither number.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskProgress)]
pub(crate) struct ProgressJson {
    /// Items with a final verdict.
    settled: u64,
    /// Items that are to be done, those included.
    of: u64,
    /// The share that is settled, rounded to a tenth; 100 only when nothing is left.
    percent: f64,
}

/// The first items, run before any other.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskCanary)]
pub(crate) struct CanaryJson {
    /// How many.
    items: u64,
    /// `stop` or `continue`.
    then: &'static str,
}

/// What is known of a task while it runs. Of nodes that can't be asked the task has what was saved last.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskLive)]
pub(crate) struct LiveJson {
    /// `live`; `partial` when some of its nodes can't be asked; `unreachable` when none can, and the numbers are null.
    state: &'static str,
    /// When its runs were looked at. Without `live`, and of nodes that can't be asked, the numbers are those of the last
    /// checkpoint: after a take-over they may be lower than what was shown before.
    #[schema(format = DateTime)]
    as_of: Option<String>,
    /// The nodes that run it, and were asked.
    nodes: Vec<String>,
    /// Those that can't be asked.
    unreachable: Vec<SilentJson>,
    /// One past the highest index dispatched.
    high_water: Option<u64>,
    /// The windows' sizes now.
    window: Option<u64>,
    /// Items that may be in flight now.
    concurrency: Option<u64>,
    /// The 95th percentile of how long calls take.
    latency_p95_seconds: Option<f64>,
    /// Why nothing leaves, if so.
    stall: Option<&'static str>,
}

impl TaskJson {
    /// The task's picture; `recoveries` is how many there are at most.
    pub(in crate::http) fn new(picture: TaskPicture, recoveries: u32) -> TaskJson {
        TaskJson::at(PaceJson::of(&picture), picture, recoveries)
    }

    fn at(pace: PaceJson, picture: TaskPicture, recoveries: u32) -> TaskJson {
        let (task, live, silent, handler) = (picture.task, picture.live, picture.silent, picture.handler);
        TaskJson {
            pace,
            status: task.status.as_str(),
            result: task.result.map(|result| result.as_str()),
            stop_reason: task.stop_reason.map(|reason| reason.as_str()),
            since: rfc3339(task.since),
            next: next(&task, recoveries),
            total: task.total.0,
            counts: CountsOfTask::of(&task),
            low_water: task.low_water.0,
            publish: PublishJson::of(&task.life),
            shards: task.shards_wanted,
            shard_list: ShardJson::of(&task),
            settings: SettingsJson::from(&task.tuning),
            source: SourceJson::of(&task.source),
            intake: task.intake.map(|intake| intake.as_str()),
            skip_first: task.skip_first.0,
            finish_at: task.cut_at().map(|end| end.0),
            skips: SkipsJson::of(&task.skips),
            params: task.params.clone().and_then(checked),
            canary: task.canary.map(canary),
            start_at: task.start_at.map(rfc3339),
            deadline: task.deadline.map(rfc3339),
            parent: task.parent.map(|id| id.to_string()),
            schedule: task.fire.map(|fire| fire.schedule.to_string()),
            fire_time: task.fire.map(|fire| rfc3339(fire.time)),
            start: task.start_no,
            created_at: rfc3339(task.created_at),
            started_at: task.started_at.map(rfc3339),
            finished_at: task.finished_at.map(rfc3339),
            live: live_json(live.as_ref(), &silent),
            beside: Beside::default(),
            id: task.id.to_string(),
            business: task.business,
            name: task.life.name,
            status_reason: task.status_reason,
            status_text: task.status_text.or_else(|| handler.text()),
            cut_off: CutOffJson::of(&task.life.cut_off),
            handler_down: HandlerDownJson::of(&handler),
            last_error: LastErrorJson::of(&handler),
            labels: task.life.labels,
            priority: task.life.priority,
            pool: task.pool,
            send_params: task.send_params,
            limits: task.limits,
            version: task.version,
        }
    }
}

/// Parameters, which were checked when they came in.
fn checked(params: String) -> Option<Box<RawValue>> {
    RawValue::from_string(params).ok()
}

impl PaceJson {
    pub(in crate::http) fn of(picture: &TaskPicture) -> PaceJson {
        PaceJson {
            progress: ProgressJson::of(picture.completion()),
            actual_rate: picture.actual_rate(),
            eta_seconds: picture.eta().map(|eta| eta.as_secs()),
        }
    }
}

impl ProgressJson {
    pub(in crate::http) fn of(completion: Completion) -> ProgressJson {
        ProgressJson {
            settled: completion.settled,
            of: completion.of,
            percent: completion.percent(),
        }
    }
}

impl CountsOfTask {
    pub(in crate::http) fn of(task: &TaskView) -> CountsOfTask {
        let counters = &task.counters;
        CountsOfTask {
            succeeded: counters.succeeded,
            skipped: counters.skipped,
            abandoned: counters.abandoned,
            parked: counters.parked,
            in_flight: counters.in_flight,
            pending: counters.pending(task.total),
            excluded: counters.excluded,
        }
    }
}

fn canary(canary: Canary) -> CanaryJson {
    let then = match canary.then {
        CanaryThen::Stop => "stop",
        CanaryThen::Continue => "continue",
    };
    CanaryJson {
        items: canary.items.get(),
        then,
    }
}

fn live_json(live: Option<&Live>, silent: &[Unreachable]) -> Option<LiveJson> {
    let state = match (live, silent) {
        (None, []) => return None,
        (None, _) => "unreachable",
        (Some(_), []) => "live",
        (Some(_), _) => "partial",
    };
    Some(LiveJson {
        state,
        as_of: live.map(|live| rfc3339(live.as_of)),
        nodes: live.map(|live| live.nodes.clone()).unwrap_or_default(),
        unreachable: all_silent(silent),
        high_water: live.map(|live| live.high_water.0),
        window: live.map(|live| live.window),
        concurrency: live.map(|live| live.concurrency),
        latency_p95_seconds: live
            .and_then(|live| live.latency_p95)
            .map(|p95| p95.as_secs_f64()),
        stall: live.and_then(|live| live.stall),
    })
}

/// What the task's own row says of its future.
pub(crate) fn next(task: &TaskView, recoveries: u32) -> Option<NextJson> {
    let plain = |action, at: WallMs| NextJson {
        action,
        at: rfc3339(at),
        attempt: None,
        of: None,
    };
    match task.status {
        Status::Recovering => task.next_at.map(|at| NextJson {
            attempt: Some(task.recoveries),
            of: Some(recoveries),
            ..plain("recover", at)
        }),
        Status::Queued if task.status_reason.as_deref() == Some("start_at") => {
            task.start_at.map(|at| plain("start", at))
        }
        Status::AwaitingBusiness => task.awaiting_until.map(|at| plain("stop", at)),
        Status::Queued | Status::Running => task.deadline.map(|at| plain("stop", at)),
        _ => None,
    }
}
