//! `GET /v1/tasks/{task}/explain`: reasons for a task's actual rate, and advice.

pub(crate) mod text;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::IntoParams;

use super::path::PathTask;
use crate::http::answer::Of;
use crate::http::answer::silent::silent;
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::guard::{Caller, Params, headers};
use crate::http::problem::HttpResult;
use crate::http::tasks::explain::text::text;
use crate::http::tasks::skips;
use crate::http::tasks::skips::show_skips;
use crate::http::tasks::view::handler::show_handler_down;
use crate::http::tasks::view::handler::show_last_error;
use crate::http::tasks::view::shown::next;
use crate::service::ServiceError;
use crate::service::explain::{Explained, HeldBy, SECONDS_DEFAULT, SECONDS_MAX, SECONDS_MIN};
use windrow_core::explain::{Advice, Cause, CauseKind, Explanation};
use windrow_core::limit::key::LimitKey;
use windrow_core::settings::table::TuningPatch;
use windrow_engine::ports::tasks::store::TaskView;
use windrow_words::{Message, explain as say, list};

/// Time range of an explanation.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExplainQuery {
    /// Length of the explained period up to now, in seconds; default 60.
    #[param(minimum = 5, maximum = 900)]
    seconds: Option<u32>,
}

impl Of<&HeldBy> for api::ExplainedLimit {
    fn of(limit: &HeldBy) -> Self {
        let (kind, name) = match LimitKey::parse(&limit.key) {
            LimitKey::Business(slug) => ("business", slug),
            LimitKey::Named(name) => ("named", name),
        };
        api::ExplainedLimit {
            name: name.to_owned(),
            kind: kind.to_owned(),
            limit: limit.limit.clone(),
            businesses: limit.businesses.clone(),
            users: limit.parts.iter().map(api::LimitPart::of).collect(),
        }
    }
}

/// Explain the actual rate of a task.
///
/// Each permit of the task's rate is either used for an attempt or lost. Lost permits are listed by cause; the causes
/// add up to the missing rate. Includes advice on what would help.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/explain", tag = "tasks", operation_id = "explain_task",
    params(ExplainQuery), security(("bearer" = ["viewer", "business"])),
    responses(
        (status = 200, description = "The explanation", content((api::Explanation = "application/json"), (String = "text/plain"))),
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
        let fault = format!("{seconds} is not between {SECONDS_MIN} and {SECONDS_MAX}");
        return Err(ServiceError::invalid("seconds", fault).into());
    }
    let explain = &app.service.explain;
    let explained = explain.task(&task, seconds, caller.business.as_deref()).await;
    let mut body = show_explanation(&task, &explained, app.service.config().cluster.restore_max);
    if let Some(warning) = app.service.tasks.warning_of_room(&task).await {
        add(&mut body, &say::but(warning.fault.detail));
    }
    if let Some(skips) = body.skips.as_ref().filter(|_| !task.status.is_terminal()) {
        let clause = skips::clause(skips);
        add(&mut body, &clause);
    }
    if headers::accepts(&headers, "text/plain") {
        return Ok(text(&body).into_response());
    }
    Ok(Json(body).into_response())
}

/// Appends a sentence to the explanation, both as text and as a message.
fn add(body: &mut api::Explanation, message: &Message) {
    body.why = format!("{}; {message}", body.why);
    body.why_messages.push(api::Message::of(message));
}

pub(crate) fn show_explanation(task: &TaskView, explained: &Explained, recoveries: u32) -> api::Explanation {
    let explanation = &explained.explanation;
    let node = |(node, runs): &(String, u32)| api::ExplainedNode {
        node: node.clone(),
        runs: *runs,
    };
    let rate = |micros| rounded(explanation.per_second(micros));
    let wait = |(reason, share): &(_, u32)| {
        let kind = CauseKind::Stall(*reason);
        api::ExplainedWait {
            slug: kind.slug().to_owned(),
            title: kind.title().to_string(),
            title_message: Some(api::Message::of(&kind.title())),
            share: f64::from(*share) / 1e6,
        }
    };
    api::Explanation {
        task: task.id.to_string(),
        status: task.status.as_str().to_owned(),
        status_reason: task.status_reason.clone(),
        status_text: task.status_text.clone(),
        since: rfc3339(task.since),
        next: next(task, recoveries),
        span_seconds: (explanation.covered.as_secs_f64() * 1e3).round() / 1e3,
        rate: task.tuning.rate.to_string(),
        target_rate: explanation.target.map(rate),
        actual_rate: rate(explanation.actual),
        missing_rate: explanation.missing().map(rate),
        repeat_rate: rate(explanation.repeats.micros),
        causes: explanation
            .causes
            .iter()
            .map(|cause| show_cause(cause, explanation))
            .collect(),
        waits: explanation.waits.iter().map(wait).collect(),
        handler_down: show_handler_down(&explained.handler),
        last_error: show_last_error(&explained.handler),
        why: list::text(&explanation.why),
        why_messages: explanation.why.iter().map(api::Message::of).collect(),
        advice: explanation.advice.iter().map(api::ExplainedAdvice::of).collect(),
        nodes: explained.nodes.iter().map(node).collect(),
        shards: explained.shards.iter().map(api::ExplainedShard::of).collect(),
        unreachable: silent(&explained.silent),
        limit: explained.limit.as_ref().map(api::ExplainedLimit::of),
        skips: show_skips(&task.skips),
    }
}

pub(crate) fn show_cause(cause: &Cause, explanation: &Explanation) -> api::ExplainedCause {
    let missing = explanation.missing().filter(|missing| *missing > 0);
    api::ExplainedCause {
        slug: cause.kind.slug().to_owned(),
        title: cause.kind.title().to_string(),
        title_message: Some(api::Message::of(&cause.kind.title())),
        rate: rounded(explanation.per_second(cause.micros)),
        share: missing.map(|missing| rounded(cause.micros as f64 / missing as f64)),
        text: cause.text.as_ref().map(ToString::to_string).unwrap_or_default(),
        text_message: cause.text.as_ref().map(api::Message::of),
    }
}

impl Of<&Advice> for api::ExplainedAdvice {
    fn of(advice: &Advice) -> Self {
        api::ExplainedAdvice {
            about: advice.about.slug().to_owned(),
            text: advice.text.to_string(),
            text_message: Some(api::Message::of(&advice.text)),
            change: advice.change.as_deref().and_then(as_patch),
            predicted_rate: advice.predicted.map(rounded),
            hindrance: advice.hindrance.as_ref().map(ToString::to_string),
            hindrance_message: advice.hindrance.as_ref().map(api::Message::of),
        }
    }
}

/// Rounds to millionths, so that low rates don't become zero.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

/// Returns the settings in the form that PATCH accepts.
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
