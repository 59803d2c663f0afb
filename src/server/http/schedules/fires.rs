//! `/v1/schedules/{schedule}/…`: fires that people order, those that were, and those to come.

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

/// Fires that `next` tells unless it is asked for another number.
const NEXT_DEFAULT: usize = 10;

/// Fire a schedule now, also a paused one.
///
/// What runs stands in its way as `overlap` says: with `skip` it is refused. Its task is waited for, 10 seconds at most; where
/// the schedule's name is that of all fires of a minute or a day, it has the time behind it.
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

/// Order the fires that a schedule names within a time that is over, 1000 at most.
///
/// They go one after the other, unless the schedule lets its tasks overlap. Times that have a fire which was not missed,
/// skipped or failed are left out. Their tasks publish nothing unless `publish` is set.
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

/// Give up fires that are not settled: those that wait, and those whose task is being made or tried again.
///
/// They are skipped, with the name of who gave them up. With `time` it is the fire of that time, else all of them; the schedule
/// goes on with its next one, and tasks that were made stay.
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

/// Which fires a list shows.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FiresQuery {
    /// With one outcome: `pending`, `queued`, `made`, `skipped`, `missed` or `failed`.
    #[param(pattern = "^(pending|queued|made|skipped|missed|failed)$")]
    outcome: Option<String>,
}

/// List the fires of a schedule, the newest first.
///
/// They outlive their tasks, and are kept for `retention.fires`, the newest 10000 of a schedule.
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

/// Which fires to come are told.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct NextQuery {
    /// How many.
    #[param(minimum = 1, maximum = 100, default = 10)]
    count: Option<u32>,
    /// Those after this time; without it the next ones.
    #[param(format = "date-time")]
    after: Option<String>,
}

/// List the next fires of a schedule; of a paused one, those that it would have.
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
