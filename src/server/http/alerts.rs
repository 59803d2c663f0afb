//! `/v1/alerts`: people told of events, by URLs and commands. Only administrators make changes.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;

use super::problem::HttpResult;
use crate::http::answer::Of;
use crate::http::answer::page::{PageQuery, Paging};
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::guard::{Body, Call, DryRunQuery, Params, ReasonQuery, headers};
use crate::service::alerts::{AlertChange, Kept};
use windrow_core::alert::{AlertKind, AlertTarget};
use windrow_engine::ports::handling::alerts::{Alert, AlertDelivery};

impl Of<&Alert> for api::Alert {
    fn of(alert: &Alert) -> Self {
        let (url, command) = match &alert.spec.target {
            AlertTarget::Url(origin) => (Some(format!("{origin}/…")), None),
            AlertTarget::Command(name) => (None, Some(name.clone())),
        };
        api::Alert {
            name: alert.name.clone(),
            on: alert
                .spec
                .on
                .iter()
                .copied()
                .map(AlertKind::as_str)
                .map(str::to_owned)
                .collect(),
            business: alert.spec.business.clone(),
            url,
            command,
            form: alert.spec.form.as_str().to_owned(),
            template: alert.spec.template.clone(),
            revision: alert.revision,
            created_at: rfc3339(alert.created_at),
            updated_at: rfc3339(alert.updated_at),
            secret: None,
        }
    }
}

impl Of<Kept> for api::Alert {
    fn of(kept: Kept) -> Self {
        api::Alert {
            secret: kept.secret,
            ..api::Alert::of(&kept.alert)
        }
    }
}

impl Of<&AlertDelivery> for api::AlertDelivery {
    fn of(delivery: &AlertDelivery) -> Self {
        let state = match delivery.state.as_str() {
            "due" => "pending",
            "done" => "delivered",
            _ => "failed",
        };
        api::AlertDelivery {
            id: delivery.id,
            delivery_id: delivery.delivery_id.clone(),
            notice: serde_json::from_str(&delivery.notice).unwrap_or_default(),
            state: state.to_owned(),
            attempts: delivery.attempts,
            error: delivery.last_error.clone(),
            at: rfc3339(delivery.created_at),
            next_at: (state == "pending").then(|| rfc3339(delivery.due_at)),
        }
    }
}

/// Create an alert.
///
/// The response to an alert with a URL contains the key that signs its calls, which is shown only once.
#[utoipa::path(
    post, path = "/v1/alerts", operation_id = "create_alert", tag = "alerts", params(DryRunQuery),
    request_body = api::CreateAlert, security(("bearer" = ["admin"])),
    responses(
        (status = 201, body = api::Alert, headers(("location" = String), ("etag" = String))),
        (status = 409, description = "name-taken"),
    )
)]
pub(crate) async fn create(call: Call, Body(body): Body<api::CreateAlert>) -> HttpResult {
    let wanted = AlertChange {
        on: Some(body.on),
        business: Some(body.business),
        url: body.url,
        command: body.command,
        form: body.form,
        template: Some(body.template),
    };
    let write = call.write(body.reason);
    let kept = call.service.alerts.create(&body.name, wanted, &write).await?;
    let place = format!("/v1/alerts/{}", kept.alert.name);
    Ok(call.made(place, Some(kept.alert.revision), api::Alert::of(kept))?)
}

/// List alerts by name.
#[utoipa::path(
    get, path = "/v1/alerts", operation_id = "list_alerts", tag = "alerts", params(PageQuery),
    security(("bearer" = ["viewer"])), responses((status = 200, body = api::Page<api::Alert>))
)]
pub(crate) async fn list(State(app): State<App>, paging: Paging<String>) -> HttpResult {
    let found = app
        .service
        .alerts
        .list(paging.after.as_deref(), paging.to_read())
        .await?;
    let page = paging.page(found, |alert| alert.name.clone());
    Ok(paging.answer(page.map(|alert| api::Alert::of(&alert))))
}

/// Get an alert: its events, its target and its form.
#[utoipa::path(
    get, path = "/v1/alerts/{alert}", operation_id = "show_alert", tag = "alerts",
    security(("bearer" = ["viewer"])),
    responses((status = 200, body = api::Alert, headers(("etag" = String))))
)]
pub(crate) async fn read(State(app): State<App>, Path(name): Path<String>) -> HttpResult {
    let alert = app.service.alerts.get(&name).await?;
    Ok(([headers::tag(alert.revision)], Json(api::Alert::of(&alert))).into_response())
}

/// Change an alert.
///
/// With `If-Match`, fails if the alert was changed in the meantime.
#[utoipa::path(
    patch, path = "/v1/alerts/{alert}", operation_id = "change_alert", tag = "alerts", params(DryRunQuery),
    request_body = api::EditAlert, security(("bearer" = ["admin"])),
    responses((status = 200, body = api::Alert, headers(("etag" = String))), (status = 409))
)]
pub(crate) async fn edit(
    call: Call,
    Path(name): Path<String>,
    headers: HeaderMap,
    Body(body): Body<api::EditAlert>,
) -> HttpResult {
    let change = AlertChange {
        on: body.on,
        business: body.business,
        url: body.url,
        command: body.command,
        form: body.form,
        template: body.template,
    };
    let (expected, write) = (headers::expected(&headers), call.write(body.reason));
    let kept = call
        .service
        .alerts
        .change(&name, change, expected, &write)
        .await?;
    let tag = headers::tag(kept.alert.revision);
    Ok(call.changed(api::Alert::of(kept), |alert| ([tag], alert))?)
}

/// Delete an alert, with its deliveries.
#[utoipa::path(
    delete, path = "/v1/alerts/{alert}", operation_id = "delete_alert", tag = "alerts", params(ReasonQuery, DryRunQuery),
    security(("bearer" = ["admin"])),
    responses((status = 204, description = "Deleted"))
)]
pub(crate) async fn delete(
    call: Call,
    Path(name): Path<String>,
    Params(query): Params<ReasonQuery>,
) -> HttpResult {
    let write = call.write(query.reason);
    call.service.alerts.delete(&name, &write).await?;
    Ok(call.deleted()?)
}

/// Send a test notice.
///
/// The node sends it as any other notice; the delivery shows the outcome.
#[utoipa::path(
    post, path = "/v1/alerts/{alert}/test", operation_id = "test_alert", tag = "alerts",
    security(("bearer" = ["admin"])),
    responses((status = 202, body = api::AlertDelivery))
)]
pub(crate) async fn test(State(app): State<App>, Path(name): Path<String>) -> HttpResult {
    let delivery = app.service.alerts.test(&name).await?;
    Ok((StatusCode::ACCEPTED, Json(api::AlertDelivery::of(&delivery))).into_response())
}

/// List the deliveries of an alert, newest first.
///
/// Delivered ones are kept for a day, failed ones for 30 days.
#[utoipa::path(
    get, path = "/v1/alerts/{alert}/deliveries", operation_id = "list_alert_deliveries", tag = "alerts",
    params(PageQuery), security(("bearer" = ["viewer"])),
    responses((status = 200, body = api::Page<api::AlertDelivery>))
)]
pub(crate) async fn deliveries(
    State(app): State<App>,
    Path(name): Path<String>,
    paging: Paging<i64>,
) -> HttpResult {
    let alerts = &app.service.alerts;
    let found = alerts.deliveries(&name, paging.after, paging.to_read()).await?;
    let page = paging.page(found, |delivery| delivery.id);
    Ok(paging.answer(page.map(|delivery| api::AlertDelivery::of(&delivery))))
}
