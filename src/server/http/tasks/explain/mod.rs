//! `GET /v1/tasks/{task}/explain`: why a task is as fast as it is, and what would help.

pub(crate) mod text;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::path::PathTask;
use crate::http::App;
use crate::http::answer::silent::{SilentJson, silent};
use crate::http::answer::time::rfc3339;
use crate::http::guard::{Caller, Params, headers};
use crate::http::limits::LimitPartJson;
use crate::http::problem::HttpResult;
use crate::http::tasks::explain::text::text;
use crate::http::tasks::skips::SkipsJson;
use crate::http::tasks::view::handler::{HandlerDownJson, LastErrorJson};
use crate::http::tasks::view::shards::PlaceJson;
use crate::http::tasks::view::shown::{NextJson, next};
use crate::service::ServiceError;
use crate::service::explain::{Explained, HeldBy, SECONDS_DEFAULT, SECONDS_MAX, SECONDS_MIN};
use windrow_core::explain::{Advice, Cause, CauseKind, Explanation};
use windrow_core::limit::key::LimitKey;
use windrow_core::settings::table::TuningPatch;
use windrow_engine::ports::tasks::store::TaskView;

/// Of what time.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExplainQuery {
    /// The last so many seconds; 60 without it.
    #[param(minimum = 5, maximum = 900)]
    seconds: Option<u32>,
}

/// Why a task is as fast as it is. The causes add up to what is missing.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub(crate) struct ExplanationJson {
    /// The task.
    pub(super) task: String,
    /// Where it stands.
    pub(super) status: &'static str,
    /// A machine slug, where the status needs a reason.
    status_reason: Option<String>,
    /// A sentence for people.
    status_text: Option<String>,
    /// Since when it has this status.
    since: String,
    /// What happens next by itself, and when.
    next: Option<NextJson>,
    /// The time that this is about: less than was asked for when the task is younger, or its rate is.
    pub(super) span_seconds: f64,
    /// What the rate gave, in items per second; null while no rate limits the task.
    pub(super) target_rate: Option<f64>,
    /// Attempts sent per second, in this time.
    pub(super) actual_rate: f64,
    /// Sum of the causes: the target less what was sent, but for what a burst kept or used. Null without a target.
    pub(super) missing_rate: Option<f64>,
    /// Attempts beyond the first of their item, per second: part of what was sent.
    repeat_rate: f64,
    /// Causes of what is missing, largest first.
    pub(super) causes: Vec<CauseJson>,
    /// What a task without a rate waits for, largest first.
    pub(super) waits: Vec<WaitJson>,
    /// While its handler doesn't answer: why, since when, and when it is tried next.
    handler_down: Option<HandlerDownJson>,
    /// What last went wrong with its calls.
    last_error: Option<LastErrorJson>,
    /// A few sentences.
    pub(super) why: String,
    /// What would help, the best first.
    pub(super) advice: Vec<AdviceJson>,
    /// The nodes that run it.
    pub(super) nodes: Vec<PartJson>,
    /// Its shards, and where they stand.
    pub(super) shards: Vec<PlaceJson>,
    /// Nodes that have a part of it and can't be asked: their part of the rate is the cause `unknown`.
    pub(super) unreachable: Vec<SilentJson>,
    /// The limit that it shares with other tasks, where that kept something back.
    limit: Option<LimitJson>,
    /// The items that people want skipped.
    skips: Option<SkipsJson>,
}

/// A limit that tasks share on all nodes, and who uses it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExplainedLimit)]
pub(crate) struct LimitJson {
    /// Its name: that of the business whose own it is, or one of its own.
    name: String,
    /// `business` or `named`.
    kind: &'static str,
    /// The businesses that name it; a business is told only of itself.
    businesses: Vec<String>,
    /// The nodes whose runs want something of it now.
    users: Vec<LimitPartJson>,
}

impl LimitJson {
    fn new(limit: &HeldBy) -> LimitJson {
        let (kind, name) = match LimitKey::parse(&limit.key) {
            LimitKey::Business(slug) => ("business", slug),
            LimitKey::Named(name) => ("named", name),
        };
        LimitJson {
            name: name.to_owned(),
            kind,
            businesses: limit.businesses.clone(),
            users: limit.parts.iter().map(LimitPartJson::new).collect(),
        }
    }
}

/// A node that runs a part of a task.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExplainedNode)]
pub(crate) struct PartJson {
    /// Its name.
    pub(super) node: String,
    /// How many runs of the task it has.
    pub(super) runs: u32,
}

/// A part of what is missing.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExplainedCause)]
pub(crate) struct CauseJson {
    /// What it is.
    slug: &'static str,
    /// The same in two or three words.
    pub(super) title: &'static str,
    /// Permits per second.
    pub(super) rate: f64,
    /// Its part of what is missing; null when nothing is.
    pub(super) share: Option<f64>,
    /// What else is known of it.
    pub(super) text: String,
}

/// What a task without a rate waits for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExplainedWait)]
pub(crate) struct WaitJson {
    /// What it is.
    slug: &'static str,
    /// The same in two or three words.
    pub(super) title: &'static str,
    /// The share of the time since the run began.
    pub(super) share: f64,
}

/// Something that would help, or why nothing does.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExplainedAdvice)]
pub(crate) struct AdviceJson {
    /// Against which cause.
    about: &'static str,
    /// A sentence.
    pub(super) text: String,
    /// The members of a PATCH of the task, if settings help.
    #[schema(value_type = Option<std::collections::BTreeMap<String, Value>>)]
    pub(super) change: Option<Map<String, Value>>,
    /// Attempts per second that would then be sent.
    pub(super) predicted_rate: Option<f64>,
    /// Why no setting helps, or not all the way.
    pub(super) hindrance: Option<String>,
}

/// Explain the speed of a task.
///
/// Each permit of the task's rate sends an attempt or is lost; those that were lost are told by their cause, and the causes
/// add up to what is missing. With it comes what would help.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/explain", tag = "tasks", operation_id = "explain_task",
    params(ExplainQuery), security(("bearer" = ["viewer", "business"])),
    responses(
        (status = 200, description = "The explanation", content((ExplanationJson = "application/json"), (String = "text/plain"))),
    )
)]
pub(crate) async fn explain(
    State(app): State<App>,
    caller: Caller,
    PathTask(task): PathTask,
    Params(query): Params<ExplainQuery>,
    headers: HeaderMap,
) -> HttpResult {
    let seconds = query.seconds.unwrap_or(SECONDS_DEFAULT);
    if !(SECONDS_MIN..=SECONDS_MAX).contains(&seconds) {
        let fault = format!("{seconds} is not from {SECONDS_MIN} to {SECONDS_MAX}");
        return Err(ServiceError::invalid("seconds", fault).into());
    }
    let explain = &app.service.explain;
    let explained = explain.task(&task, seconds, caller.business.as_deref()).await;
    let mut body = ExplanationJson::new(&task, &explained, app.service.config().cluster.restore_max);
    if let Some(warning) = app.service.tasks.warning_of_room(&task).await {
        body.why = format!("{}; but {}", body.why, warning.fault.detail);
    }
    if let Some(skips) = body.skips.as_ref().filter(|_| !task.status.is_terminal()) {
        body.why = format!("{}; {}", body.why, skips.clause());
    }
    if headers::accepts(&headers, "text/plain") {
        return Ok(text(&body).into_response());
    }
    Ok(Json(body).into_response())
}

impl ExplanationJson {
    fn new(task: &TaskView, explained: &Explained, recoveries: u32) -> ExplanationJson {
        let explanation = &explained.explanation;
        let node = |(node, runs): &(String, u32)| PartJson {
            node: node.clone(),
            runs: *runs,
        };
        let rate = |micros| rounded(explanation.per_second(micros));
        let wait = |(reason, share): &(_, u32)| {
            let kind = CauseKind::Stall(*reason);
            WaitJson {
                slug: kind.slug(),
                title: kind.title(),
                share: f64::from(*share) / 1e6,
            }
        };
        ExplanationJson {
            task: task.id.to_string(),
            status: task.status.as_str(),
            status_reason: task.status_reason.clone(),
            status_text: task.status_text.clone(),
            since: rfc3339(task.since),
            next: next(task, recoveries),
            span_seconds: (explanation.covered.as_secs_f64() * 1e3).round() / 1e3,
            target_rate: explanation.target.map(rate),
            actual_rate: rate(explanation.actual),
            missing_rate: explanation.missing().map(rate),
            repeat_rate: rate(explanation.repeats.micros),
            causes: explanation
                .causes
                .iter()
                .map(|cause| CauseJson::new(cause, explanation))
                .collect(),
            waits: explanation.waits.iter().map(wait).collect(),
            handler_down: HandlerDownJson::of(&explained.handler),
            last_error: LastErrorJson::of(&explained.handler),
            why: explanation.why.clone(),
            advice: explanation.advice.iter().map(AdviceJson::new).collect(),
            nodes: explained.nodes.iter().map(node).collect(),
            shards: explained.shards.iter().map(PlaceJson::new).collect(),
            unreachable: silent(&explained.silent),
            limit: explained.limit.as_ref().map(LimitJson::new),
            skips: SkipsJson::of(&task.skips),
        }
    }
}

impl CauseJson {
    fn new(cause: &Cause, explanation: &Explanation) -> CauseJson {
        let missing = explanation.missing().filter(|missing| *missing > 0);
        CauseJson {
            slug: cause.kind.slug(),
            title: cause.kind.title(),
            rate: rounded(explanation.per_second(cause.micros)),
            share: missing.map(|missing| rounded(cause.micros as f64 / missing as f64)),
            text: cause.text.clone(),
        }
    }
}

impl AdviceJson {
    fn new(advice: &Advice) -> AdviceJson {
        AdviceJson {
            about: advice.about.slug(),
            text: advice.text.clone(),
            change: advice.change.as_deref().and_then(as_patch),
            predicted_rate: advice.predicted.map(rounded),
            hindrance: advice.hindrance.clone(),
        }
    }
}

/// To millionths: low rates are rates too.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

/// The settings as a PATCH has them.
fn as_patch(change: &TuningPatch) -> Option<Map<String, Value>> {
    match serde_json::to_value(change) {
        Ok(Value::Object(members)) => Some(members),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_written_as_a_patch_of_the_task_takes_it() {
        let text = r#"{"window":1500,"backoff":"1s..60s x2 jitter 20%","straggler_after":"100ms"}"#;
        let change: TuningPatch = serde_json::from_str(text).expect("sound");
        let patch = Value::Object(as_patch(&change).expect("an object"));
        let expected = serde_json::json!({
            "window": 1500, "straggler_after": "100ms", "backoff": "1s..60s x2 jitter 20%"
        });
        assert_eq!(patch, expected);
    }
}
