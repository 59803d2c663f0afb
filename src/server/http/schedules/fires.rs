//! `/v1/schedules/{schedule}/…`: manual, past and future fires.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::PathSchedule;
use crate::http::answer::page::{PageQuery, Paging};
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::guard::{Body, Call, DryRunQuery, Params, time_option};
use crate::http::problem::HttpResult;
use crate::http::schedules::bodies;
use crate::http::schedules::bodies::show_fire;
use crate::http::schedules::bodies::show_fires;
use crate::service::schedules::NEXT_MAX;
use windrow_core::ids::WallMs;
use windrow_engine::ports::schedules::store::FireOutcome;

/// Default number of fires returned by `next`.
const NEXT_DEFAULT: usize = 10;

/// Fire a schedule now, even if it is paused.
///
/// Follows `overlap`: with `skip`, it is refused while a task runs. Waits up to 10 seconds for the task. If the
/// schedule gives all fires of a minute or day the same task name, the time is appended.
#[utoipa::path(
    post, path = "/v1/schedules/{schedule}/trigger", operation_id = "trigger_schedule", tag = "schedules",
    params(DryRunQuery), request_body = Option<api::Reason>, security(("bearer" = ["operator", "business"])),
    responses((status = 201, body = api::Fire), (status = 409, description = "conflict"))
)]
pub(crate) async fn trigger(
    call: Call,
    PathSchedule(schedule): PathSchedule,
    Body(body): Body<api::Reason>,
) -> HttpResult {
    let write = call.write(body.reason);
    let fire = call.service.schedules.trigger(schedule.id, &write).await?;
    Ok(call.made(None, None, show_fire(&schedule, &fire))?)
}

/// Backfill the fires of a past time range, at most 1,000.
///
/// They run one after the other unless the schedule allows overlap. Times that already have a fire are left out,
/// unless it was missed, skipped or failed. The tasks publish nothing unless `publish` is set.
#[utoipa::path(
    post, path = "/v1/schedules/{schedule}/backfill", operation_id = "backfill_schedule", tag = "schedules",
    params(DryRunQuery), request_body = api::Backfill, security(("bearer" = ["operator", "business"])),
    responses((status = 201, body = api::Page<api::Fire>), (status = 409, description = "conflict"))
)]
pub(crate) async fn backfill(
    call: Call,
    PathSchedule(schedule): PathSchedule,
    Body(body): Body<api::Backfill>,
) -> HttpResult {
    let (range, write) = (bodies::range(&body)?, call.write(body.reason));
    let schedules = &call.service.schedules;
    let ordered = schedules
        .backfill(schedule.id, range, body.publish, &write)
        .await?;
    let page = api::Page {
        items: show_fires(&schedule, &ordered),
        next_cursor: None,
    };
    Ok(call.made(None, None, page)?)
}

/// Skip unsettled fires: those that wait, and those whose task is being made or retried.
///
/// They become `skipped`, with the name of the caller. `time` selects one fire; without it, all are skipped. The
/// schedule continues with its next fire, and existing tasks remain.
#[utoipa::path(
    post, path = "/v1/schedules/{schedule}/skip", operation_id = "skip_fires", tag = "schedules",
    params(DryRunQuery), request_body = Option<api::SkipFires>, security(("bearer" = ["operator", "business"])),
    responses((status = 200, body = api::Page<api::Fire>), (status = 409, description = "conflict"))
)]
pub(crate) async fn skip(
    call: Call,
    PathSchedule(schedule): PathSchedule,
    Body(body): Body<api::SkipFires>,
) -> HttpResult {
    let (time, write) = (bodies::fire_time(&body)?, call.write(body.reason));
    let skipped = call.service.schedules.skip(schedule.id, time, &write).await?;
    let page = api::Page {
        items: show_fires(&schedule, &skipped),
        next_cursor: None,
    };
    Ok(call.changed(page, |page| page)?)
}

/// Filter for the list of fires.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FiresQuery {
    /// Only fires with this outcome: `pending`, `queued`, `made`, `skipped`, `missed` or `failed`.
    #[param(pattern = "^(pending|queued|made|skipped|missed|failed)$")]
    outcome: Option<String>,
}

/// List the fires of a schedule, newest first.
///
/// Fires outlive their tasks. They are kept for `retention.fires`, but at most the newest 10,000 per schedule.
#[utoipa::path(
    get, path = "/v1/schedules/{schedule}/fires", operation_id = "list_fires", tag = "schedules",
    params(FiresQuery, PageQuery), security(("bearer" = ["viewer", "business"])),
    responses((status = 200, body = api::Page<api::Fire>))
)]
pub(crate) async fn fires(
    State(app): State<App>,
    PathSchedule(schedule): PathSchedule,
    Params(query): Params<FiresQuery>,
    paging: Paging<i64>,
) -> HttpResult<Response> {
    let outcome = query.outcome.as_deref().and_then(FireOutcome::parse);
    let before = paging.after.map(WallMs);
    let schedules = &app.service.schedules;
    let found = schedules
        .fires(schedule.id, outcome, before, paging.to_read())
        .await?;
    let page = paging.page(found, |fire| fire.time.0);
    Ok(paging.answer(page.map(|fire| show_fire(&schedule, &fire))))
}

/// Range of the future fires to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct NextQuery {
    /// Number of fires to return.
    #[param(minimum = 1, maximum = 100, default = 10)]
    count: Option<u32>,
    /// Only fires after this time; default: now.
    #[param(format = "date-time")]
    after: Option<String>,
}

/// List the next fires of a schedule; for a paused one, the fires it would have.
#[utoipa::path(
    get, path = "/v1/schedules/{schedule}/next", operation_id = "next_fires", tag = "schedules", params(NextQuery),
    security(("bearer" = ["viewer", "business"])), responses((status = 200, body = api::NextFires))
)]
pub(crate) async fn next(
    State(app): State<App>,
    PathSchedule(schedule): PathSchedule,
    Params(query): Params<NextQuery>,
) -> HttpResult {
    let after = time_option("after", query.after.as_ref())?;
    let count = query
        .count
        .map_or(NEXT_DEFAULT, |count| count as usize)
        .min(NEXT_MAX);
    let fires = app.service.schedules.next_fires(&schedule, after, count).await?;
    let items = fires.into_iter().map(rfc3339).collect();
    Ok(Json(api::NextFires { items }).into_response())
}
