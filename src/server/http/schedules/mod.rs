//! `/v1/schedules`: recurring tasks. A business sees only its own schedules.

mod bodies;
pub(crate) mod fires;
pub mod maker;
mod template;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::IntoParams;

use self::template::{Filling, patched, refuse_same_name, request};
use super::problem::{HttpResult, Problem};
use crate::http::answer::page::{PageQuery, Paging};
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::guard::{Body, Call, Caller, DryRunQuery, Params, ReasonQuery, headers};
use crate::http::schedules::bodies::show_schedule;
use crate::http::tasks::path::path_param;
use crate::http::tasks::warnings::show_warnings;
use crate::service::schedules::{NEXT_SHOWN, ScheduleChange, ScheduleRequest, names};
use crate::service::tasks::outlook::Warning;
use crate::service::{FieldFault, ServiceError};
use windrow_core::business::access::Role;
use windrow_core::ids::{ScheduleId, WallMs};
use windrow_core::schedule::placeholders::FireTimes;
use windrow_engine::ports::schedules::store::{OpenFires, Schedule, ScheduleFilter};
use windrow_engine::ports::tasks::store::Write;

/// Source of a change made by a business, as in the audit log.
const BUSINESS: &str = "business";
/// Attempts to merge a patch of the task template when concurrent changes interfere.
const MERGES_MAX: u32 = 4;

/// Schedule named by `{schedule}` in the path. A business gets a 404 for schedules of others.
pub(crate) struct PathSchedule(Schedule);

impl FromRequestParts<App> for PathSchedule {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<PathSchedule, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let text = path_param(parts, app, "schedule").await?;
        let missing = || ServiceError::not_found("schedule", &text);
        let id: ScheduleId = text.parse().map_err(|_| missing())?;
        let schedule = app.service.schedules.get(id).await?;
        caller.may_see(&schedule.business, "schedule", &text)?;
        Ok(PathSchedule(schedule))
    }
}

/// Checks that a template yields valid tasks for two different fires. A guarded template has only the rights of its
/// business.
async fn check_template(
    call: &Call,
    (business, is_guarded): (&str, bool),
    template: &str,
    zone: &str,
) -> Result<(), ServiceError> {
    names::refuse_misspelt(template)?;
    let at = |fire: WallMs| {
        let filling = Filling {
            business,
            is_guarded,
            times: FireTimes {
                fire,
                previous: None,
                zone,
            },
            now: call.service.now(),
        };
        request(template, &filling)
    };
    let (first, second) = (at(WallMs(0))?, at(WallMs(24 * 3_600_000))?);
    refuse_same_name(&first, &second)?;
    let mut write = call.write(None);
    if is_guarded {
        write.actor.source = BUSINESS;
    }
    let checked = call.service.tasks.check_request(second, &write).await;
    checked.map_err(beneath_task)
}

/// Moves the error pointers of a task below `/task`.
fn beneath_task(error: ServiceError) -> ServiceError {
    let beneath = |mut faults: Vec<crate::service::FieldFault>| {
        for fault in &mut faults {
            if fault.pointer.starts_with('/')
                && fault.pointer != "/business"
                && !fault.pointer.starts_with("/task")
            {
                fault.pointer = format!("/task{}", fault.pointer);
            }
        }
        faults
    };
    match error {
        ServiceError::Invalid(faults) => ServiceError::Invalid(beneath(faults)),
        ServiceError::Unprocessable(faults) => ServiceError::Unprocessable(beneath(faults)),
        other => other,
    }
}

/// Returns warnings about the next task. Whatever can't be checked right now is left out.
async fn warnings_of_tasks(app: &App, schedule: &Schedule) -> Vec<Warning> {
    let now = app.service.now();
    let filling = Filling {
        business: &schedule.business,
        is_guarded: schedule.is_guarded,
        times: FireTimes {
            fire: schedule.next_fire.unwrap_or(now),
            previous: None,
            zone: schedule.spec.timing.zone(),
        },
        now,
    };
    let found = match request(&schedule.template, &filling) {
        Ok(request) => app.service.tasks.warnings_of_request(&request).await,
        Err(error) => Err(error),
    };
    let beneath = |warning: Warning| Warning {
        fault: FieldFault {
            pointer: format!("/task{}", warning.fault.pointer),
            ..warning.fault
        },
        ..warning
    };
    match found {
        Ok(found) => found.into_iter().map(beneath).collect(),
        Err(error) => {
            tracing::debug!(schedule = %schedule.id, %error, "schedule's tasks not checked for warnings");
            Vec::new()
        }
    }
}

async fn ahead(app: &App, schedule: &Schedule, open: OpenFires) -> Result<api::ScheduleAhead, ServiceError> {
    let next = app
        .service
        .schedules
        .next_fires(schedule, None, NEXT_SHOWN)
        .await?;
    let schedules = &app.service.schedules;
    let mut warnings = schedules.warnings(schedule).await?;
    warnings.extend(warnings_of_tasks(app, schedule).await);
    Ok(api::ScheduleAhead {
        schedule: show_schedule(schedule, &schedules.fares(schedule).await?),
        next_fires: next.into_iter().map(rfc3339).collect(),
        pending: open.pending,
        queued: open.queued,
        warnings: show_warnings(warnings),
    })
}

/// Create a schedule.
///
/// The task is first checked like a dry run of a create, except for a URL source, which is fetched at each fire. A
/// dry run returns the next fires.
#[utoipa::path(
    post, path = "/v1/schedules", operation_id = "create_schedule", tag = "schedules", params(DryRunQuery),
    request_body = api::CreateSchedule, security(("bearer" = ["operator", "business"])),
    responses(
        (status = 201, body = api::ScheduleAhead, headers(("location" = String), ("etag" = String))),
        (status = 409, description = "name-taken, conflict"),
        (status = 422, description = "validation-failed, business-rejected"),
    )
)]
pub(crate) async fn create(call: Call, Body(body): Body<api::CreateSchedule>) -> HttpResult {
    let own = call.caller.business.as_ref();
    if own.is_some_and(|own| *own != body.business) {
        let text = format!("no business {}", body.business);
        return Err(ServiceError::unprocessable("/business", text).into());
    }
    let spec = bodies::spec(&body)?;
    let zone = spec.zone.as_deref().unwrap_or("UTC");
    let is_guarded = call.caller.role == Role::Business;
    check_template(&call, (&body.business, is_guarded), body.task.get(), zone).await?;
    let request = ScheduleRequest {
        business: body.business,
        name: body.name,
        spec,
        template: body.task.get().to_owned(),
        is_guarded,
        paused: body.paused.unwrap_or(false),
    };
    let write = call.write(body.reason);
    let made = call.service.schedules.create(request, &write).await?;
    let shown = ahead(&call.app, &made, OpenFires::default()).await?;
    Ok(call.made(format!("/v1/schedules/{}", made.id), Some(made.revision), shown)?)
}

/// Filter for the list of schedules.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only schedules of this business.
    #[param(pattern = "^[a-z0-9-]{1,40}$")]
    business: Option<String>,
    /// Only schedules with this name.
    #[param(max_length = 40)]
    name: Option<String>,
}

/// List schedules by id.
#[utoipa::path(
    get, path = "/v1/schedules", operation_id = "list_schedules", tag = "schedules", params(ListQuery, PageQuery),
    security(("bearer" = ["viewer", "business"])), responses((status = 200, body = api::Page<api::Schedule>))
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<ListQuery>,
    paging: Paging<i64>,
) -> HttpResult {
    let asked = query.business;
    let is_others = caller
        .business
        .as_ref()
        .zip(asked.as_ref())
        .is_some_and(|(own, asked)| own != asked);
    let filter = ScheduleFilter {
        business: caller.business.or(asked),
        name: query.name,
    };
    let after = paging.after.map(ScheduleId);
    let found = match is_others {
        true => Vec::new(),
        false => {
            app.service
                .schedules
                .list(&filter, after, paging.to_read())
                .await?
        }
    };
    let page = paging.page(found, |schedule| schedule.id.0);
    let mut items = Vec::with_capacity(page.items.len());
    for schedule in &page.items {
        let fares = app.service.schedules.fares(schedule).await?;
        items.push(show_schedule(schedule, &fares));
    }
    let next_cursor = page.next_cursor;
    Ok(paging.answer(api::Page { items, next_cursor }))
}

/// Get a schedule and its next fires.
#[utoipa::path(
    get, path = "/v1/schedules/{schedule}", operation_id = "show_schedule", tag = "schedules",
    security(("bearer" = ["viewer", "business"])),
    responses((status = 200, body = api::ScheduleAhead, headers(("etag" = String))))
)]
pub(crate) async fn read(State(app): State<App>, PathSchedule(schedule): PathSchedule) -> HttpResult {
    let open = app.service.schedules.open_fires(schedule.id).await?;
    let tag = headers::tag(schedule.revision);
    Ok(([tag], Json(ahead(&app, &schedule, open).await?)).into_response())
}

/// Change a schedule.
///
/// If the timing changes, the next fire is recomputed. With `If-Match`, fails if the schedule was changed in the
/// meantime. A dry run returns the next fires.
#[utoipa::path(
    patch, path = "/v1/schedules/{schedule}", operation_id = "change_schedule", tag = "schedules", params(DryRunQuery),
    request_body = api::EditSchedule, security(("bearer" = ["operator", "business"])),
    responses((status = 200, body = api::ScheduleAhead, headers(("etag" = String))))
)]
pub(crate) async fn edit(
    call: Call,
    PathSchedule(schedule): PathSchedule,
    headers: HeaderMap,
    Body(body): Body<api::EditSchedule>,
) -> HttpResult {
    let (expected, write) = (headers::expected(&headers), call.write(body.reason.clone()));
    let done = match &body.task {
        None => {
            let (spec, template) = (bodies::spec_change(&body)?, None);
            let change = ScheduleChange {
                spec,
                template,
                paused: None,
            };
            call.service
                .schedules
                .change(schedule.id, change, expected, &write)
                .await?
        }
        Some(patch) => retasked(&call, schedule, (&body, patch), expected, &write).await?,
    };
    shown(&call, &done).await
}

/// Changes a schedule together with its task template. Exactly the merged and checked template is stored: after a
/// concurrent change, it is merged and checked again.
async fn retasked(
    call: &Call,
    mut schedule: Schedule,
    (body, patch): (&api::EditSchedule, &RawValue),
    expected: Option<u64>,
    write: &Write,
) -> Result<Schedule, ServiceError> {
    let (schedules, spec) = (&call.service.schedules, bodies::spec_change(body)?);
    let mut tries = 0;
    loop {
        tries += 1;
        let (template, is_source_new) = patched(&schedule.template, patch)?;
        // Content written by a business keeps the rights of a business, whoever changes the rest.
        let is_guarded = call.caller.role == Role::Business || (schedule.is_guarded && !is_source_new);
        let zone = spec
            .zone
            .as_deref()
            .unwrap_or_else(|| schedule.spec.timing.zone());
        check_template(call, (&schedule.business, is_guarded), &template, zone).await?;
        let change = ScheduleChange {
            spec: spec.clone(),
            template: Some((template, is_guarded)),
            paused: None,
        };
        let revision = expected.unwrap_or(schedule.revision);
        match schedules.change(schedule.id, change, Some(revision), write).await {
            Err(ServiceError::EtagMismatch(_)) if expected.is_none() && tries < MERGES_MAX => {
                schedule = schedules.get(schedule.id).await?;
            }
            done => return done,
        }
    }
}

async fn changed(call: &Call, schedule: &Schedule, paused: bool, reason: Option<String>) -> HttpResult {
    let change = ScheduleChange {
        paused: Some(paused),
        ..ScheduleChange::default()
    };
    let (schedules, write) = (&call.service.schedules, call.write(reason));
    let changed = schedules.change(schedule.id, change, None, &write).await?;
    shown(call, &changed).await
}

async fn shown(call: &Call, schedule: &Schedule) -> HttpResult {
    let open = call.service.schedules.open_fires(schedule.id).await?;
    let (tag, shown) = (
        headers::tag(schedule.revision),
        ahead(&call.app, schedule, open).await?,
    );
    Ok(call.changed(shown, |shown| ([tag], shown))?)
}

/// Delete a schedule with the records of its fires.
///
/// Existing tasks remain and continue.
#[utoipa::path(
    delete, path = "/v1/schedules/{schedule}", operation_id = "delete_schedule", tag = "schedules",
    params(ReasonQuery, DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses((status = 204, description = "Deleted"))
)]
pub(crate) async fn delete(
    call: Call,
    PathSchedule(schedule): PathSchedule,
    Params(query): Params<ReasonQuery>,
) -> HttpResult {
    let write = call.write(query.reason);
    call.service.schedules.delete(schedule.id, &write).await?;
    Ok(call.deleted()?)
}

/// Pause a schedule: no more automatic fires; those that wait remain.
///
/// Fires that would have occurred during the pause don't count as missed; a backfill makes up for them.
#[utoipa::path(
    post, path = "/v1/schedules/{schedule}/pause", operation_id = "pause_schedule", tag = "schedules",
    params(DryRunQuery), request_body = Option<api::Reason>, security(("bearer" = ["operator", "business"])),
    responses((status = 200, body = api::ScheduleAhead, headers(("etag" = String))))
)]
pub(crate) async fn pause(
    call: Call,
    PathSchedule(schedule): PathSchedule,
    Body(body): Body<api::Reason>,
) -> HttpResult {
    changed(&call, &schedule, true, body.reason).await
}

/// Resume a paused schedule from its next time on.
#[utoipa::path(
    post, path = "/v1/schedules/{schedule}/resume", operation_id = "resume_schedule", tag = "schedules",
    params(DryRunQuery), request_body = Option<api::Reason>, security(("bearer" = ["operator", "business"])),
    responses((status = 200, body = api::ScheduleAhead, headers(("etag" = String))))
)]
pub(crate) async fn resume(
    call: Call,
    PathSchedule(schedule): PathSchedule,
    Body(body): Body<api::Reason>,
) -> HttpResult {
    changed(&call, &schedule, false, body.reason).await
}
