//! `/v1/datasets`: published results of finished tasks. A reader sees one generation at a time; operators and the
//! owning business choose the current one and those to keep.

mod bodies;
pub(crate) mod members;
pub(crate) mod rows;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use axum::extract::{ConnectInfo, Path, State};
use axum::http::header::{ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use utoipa::IntoParams;

pub(crate) use self::members::PublishMembers;

use super::problem::HttpResult;
use crate::http::answer::Of;
use crate::http::answer::page::{PageQuery, Paging};
use crate::http::datasets::bodies::show_dataset;
use crate::http::datasets::bodies::show_generation;
use crate::http::front::App;
use crate::http::guard::access::still_known;
use crate::http::guard::{Body, Call, Caller, DryRunQuery, Params, ReasonQuery, headers};
use crate::service::ServiceError;
use windrow_core::dataset::{GenerationNo, KEEP_MAX, Sink};
use windrow_core::settings::text::parse_span;
use windrow_engine::ports::datasets::store::{Dataset, DatasetChange, NewDataset, Reading, Which};

/// Parses a generation number from a path.
pub(super) fn number(text: &str) -> Result<GenerationNo, ServiceError> {
    let number = text.parse().ok().filter(|number| i64::try_from(*number).is_ok());
    let no = number.map(GenerationNo);
    no.ok_or_else(|| ServiceError::not_found("generation", text))
}

/// Returns the dataset named in the path, if the caller may see it.
pub(super) async fn visible(app: &App, caller: &Caller, name: &str) -> Result<Dataset, ServiceError> {
    let found = app.service.datasets.get(name).await?;
    caller.may_see(&found.business, "dataset", name)?;
    Ok(found)
}

/// Returns the generation named in the path, if it is readable and the caller may see it.
pub(super) async fn readable(
    app: &App,
    caller: &Caller,
    name: &str,
    which: Which,
) -> Result<Reading, ServiceError> {
    visible(app, caller, name).await?;
    app.service.datasets.reading(name, which).await
}

/// List datasets by name. A business sees only its own.
#[utoipa::path(
    get, path = "/v1/datasets", operation_id = "list_datasets", tag = "datasets", params(PageQuery),
    security(("bearer" = ["reader", "business"])), responses((status = 200, body = api::Page<api::Dataset>))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, paging: Paging<String>) -> HttpResult {
    let (own, after) = (caller.business.as_deref(), paging.after.as_deref());
    let found = app.service.datasets.list(own, after, paging.to_read()).await?;
    let page = paging.page(found, |dataset| dataset.name.clone());
    let pointers = app.service.datasets.pointers().await?;
    Ok(paging.answer(page.map(|dataset| show_dataset(dataset, &pointers))))
}

/// Create a dataset without generations.
///
/// The first task that publishes to a dataset creates it too, with the defaults.
#[utoipa::path(
    post, path = "/v1/datasets", operation_id = "create_dataset", tag = "datasets", params(DryRunQuery),
    request_body = api::CreateDataset, security(("bearer" = ["operator", "business"])),
    responses(
        (status = 201, body = api::Dataset, headers(("location" = String), ("etag" = String))),
        (status = 409, description = "name-taken, conflict"),
        (status = 422, description = "validation-failed"),
    )
)]
pub(crate) async fn create(call: Call, Body(body): Body<api::CreateDataset>) -> HttpResult {
    let own = call.caller.business.as_ref();
    if own.is_some_and(|own| *own != body.business) {
        let text = format!("no business {}", body.business);
        return Err(ServiceError::unprocessable("/business", text).into());
    }
    let (keep, sink) = terms(body.keep, body.sink.as_deref())?;
    let new = NewDataset {
        name: body.name,
        business: body.business,
        keep,
        sink,
    };
    let write = call.write(body.reason);
    let made = call.service.datasets.create(&new, &write).await?;
    let (place, version) = (format!("/v1/datasets/{}", made.name), made.version);
    let pointers = call.service.datasets.pointers().await?;
    Ok(call.made(place, Some(version), show_dataset(made, &pointers))?)
}

/// Get a dataset: its current generation and the number of generations it keeps.
#[utoipa::path(
    get, path = "/v1/datasets/{dataset}", operation_id = "show_dataset", tag = "datasets",
    security(("bearer" = ["reader", "business"])),
    responses((status = 200, body = api::Dataset, headers(("etag" = String))))
)]
pub(crate) async fn read(State(app): State<App>, caller: Caller, Path(name): Path<String>) -> HttpResult {
    let found = visible(&app, &caller, &name).await?;
    let (tag, pointers) = (
        headers::tag(found.version),
        app.service.datasets.pointers().await?,
    );
    Ok(([tag], Json(show_dataset(found, &pointers))).into_response())
}

/// Longest wait for a publication. Proxies close a silent connection after about a minute.
const WAIT_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CurrentParams {
    /// Wait for a publication newer than this number; `204` if none arrives.
    #[param(minimum = 0, maximum = 9223372036854775807_u64)]
    after: Option<u64>,
    /// Time to wait for it, such as `30s`; at most 60s.
    #[param(max_length = 20, example = "30s")]
    wait: Option<String>,
}

impl CurrentParams {
    /// Returns the publication number and the time to wait, `None` without `after`.
    fn read(&self) -> Result<Option<(u64, Duration)>, ServiceError> {
        let wait = self.wait.as_deref().map(parse_span).transpose();
        let wait = wait.map_err(|why| ServiceError::invalid("wait", why.to_string()))?;
        match (self.after, wait) {
            (None, Some(_)) => Err(ServiceError::invalid(
                "wait",
                "requires `after`, the number to wait beyond",
            )),
            (_, Some(wait)) if wait > WAIT_MAX => Err(ServiceError::invalid(
                "wait",
                "must be at most 60s; then ask again",
            )),
            (after, wait) => Ok(after.map(|after| (after, wait.unwrap_or_default()))),
        }
    }
}

/// Get the current generation: its number, summary and origin.
///
/// With `If-None-Match` and an earlier ETag, returns `304` until something else is published. The ETag changes
/// whenever the current generation changes, including rollbacks. With `after` and `wait`, waits for the next
/// publication.
#[utoipa::path(
    get, path = "/v1/datasets/{dataset}/current", operation_id = "current_generation", tag = "datasets",
    params(CurrentParams),
    security(("bearer" = ["reader", "business"])),
    responses(
        (status = 200, body = api::GenerationRead, headers(("etag" = String))),
        (status = 204, description = "Nothing has been published after `after`"),
        (status = 304, description = "The generation in the tag is still current"),
        (status = 429, description = "too-many-requests: too many requests are already waiting"),
        (status = 404, description = "not-found: nothing has been published yet"),
    )
)]
pub(crate) async fn current(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Params(params): Params<CurrentParams>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
) -> HttpResult {
    let Some((after, wait)) = params.read()? else {
        let reading = readable(&app, &caller, &name, Which::Current).await?;
        return Ok(answer_of_current(reading, &headers));
    };
    let known = visible(&app, &caller, &name).await?;
    if !wait.is_zero() && known.pointer.publication <= after {
        let place = app.front.waiters.take(caller.account(), 1, false);
        let _place = place.map_err(|full| full.problem("slots to wait for a publication"))?;
        tokio::select! {
            () = app.front.ended() => {}
            () = app.service.datasets.newer(&known, after, wait) => {}
        }
        // The token may have been revoked during the wait.
        still_known(&app, &headers, peer.map(|Extension(ConnectInfo(peer))| peer.ip())).await?;
    }
    match readable(&app, &caller, &name, Which::Current).await {
        Ok(reading) if reading.dataset.pointer.publication > after || reading.dataset.id != known.id => {
            Ok(answer_of_current(reading, &headers))
        }
        Ok(_)
        | Err(ServiceError::NotFound {
            what: "generation", ..
        }) => Ok(StatusCode::NO_CONTENT.into_response()),
        Err(error) => Err(error.into()),
    }
}

/// Builds the response, or 304. A dataset recreated under an old name gets other ETags.
fn answer_of_current(reading: Reading, headers: &HeaderMap) -> Response {
    let (id, publication) = (reading.dataset.id, reading.dataset.pointer.publication);
    let text = format!("\"{id}-{publication}\"");
    let known = headers::text(headers, IF_NONE_MATCH);
    let is_known = known
        .split(',')
        .any(|tag| tag.trim().trim_start_matches("W/") == text);
    let tag = (
        ETAG,
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("\"\"")),
    );
    if is_known {
        return (StatusCode::NOT_MODIFIED, [tag]).into_response();
    }
    ([tag], Json(api::GenerationRead::of(reading))).into_response()
}

/// List generations, newest first. Generations that are no longer kept are left out.
#[utoipa::path(
    get, path = "/v1/datasets/{dataset}/generations", operation_id = "list_generations", tag = "datasets",
    params(PageQuery), security(("bearer" = ["reader", "business"])),
    responses((status = 200, body = api::Page<api::Generation>))
)]
pub(crate) async fn generations(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    paging: Paging<u64>,
) -> HttpResult {
    let dataset = visible(&app, &caller, &name).await?;
    let below = paging.after.map(GenerationNo);
    let datasets = &app.service.datasets;
    let found = datasets.generations(&name, below, paging.to_read()).await?;
    let page = paging.page(found, |generation| generation.no.0);
    let show = |generation| show_generation(&dataset, generation);
    Ok(paging.answer(page.map(show)))
}

/// Get a generation: its summary, or the reason why it wasn't published.
#[utoipa::path(
    get, path = "/v1/datasets/{dataset}/generations/{generation}", operation_id = "show_generation", tag = "datasets",
    params(("generation" = String, Path, description = "Generation number", pattern = "^[0-9]{1,19}$")),
    security(("bearer" = ["reader", "business"])), responses((status = 200, body = api::GenerationRead))
)]
pub(crate) async fn generation(
    State(app): State<App>,
    caller: Caller,
    Path((name, no)): Path<(String, String)>,
) -> HttpResult<Json<api::GenerationRead>> {
    visible(&app, &caller, &name).await?;
    let found = app.service.datasets.generation(&name, number(&no)?).await?;
    Ok(Json(api::GenerationRead::of(found)))
}

/// Reads the number of generations to keep and the sink of a request.
fn terms(
    keep: Option<NonZeroU32>,
    sink: Option<&str>,
) -> Result<(Option<NonZeroU32>, Option<Sink>), ServiceError> {
    if let Some(keep) = keep.filter(|keep| keep.get() > KEEP_MAX) {
        let text = format!("{keep} is more than the {KEEP_MAX} generations a dataset may keep");
        return Err(ServiceError::unprocessable("/keep", text));
    }
    let sink = sink.map(|text| {
        Sink::parse(text).ok_or_else(|| ServiceError::invalid("/sink", "must be `none` or `redis`"))
    });
    Ok((keep, sink.transpose()?))
}

/// Change the number of generations a dataset keeps, and where the current one is copied to. Omitted members stay
/// unchanged.
///
/// With `If-Match`, fails if the dataset was changed in the meantime.
#[utoipa::path(
    patch, path = "/v1/datasets/{dataset}", operation_id = "change_dataset", tag = "datasets", params(DryRunQuery),
    request_body = api::EditDataset, security(("bearer" = ["operator", "business"])),
    responses((status = 200, body = api::Dataset, headers(("etag" = String))), (status = 409, description = "conflict"))
)]
pub(crate) async fn edit(
    call: Call,
    Path(name): Path<String>,
    headers: HeaderMap,
    Body(body): Body<api::EditDataset>,
) -> HttpResult {
    let (keep, sink) = terms(body.keep, body.sink.as_deref())?;
    let (wanted, expected) = (DatasetChange::Edit { keep, sink }, headers::expected(&headers));
    change(&call, (&name, expected), wanted, body.reason).await
}

/// Pin a generation: keep it regardless of newer ones.
#[utoipa::path(
    post, path = "/v1/datasets/{dataset}/generations/{generation}/pin", operation_id = "pin_generation", tag = "datasets",
    params(("generation" = String, Path, description = "Generation number", pattern = "^[0-9]{1,19}$"), DryRunQuery),
    request_body = Option<api::Reason>, security(("bearer" = ["operator", "business"])),
    responses((status = 200, body = api::Dataset), (status = 409, description = "conflict: too many generations are pinned"))
)]
pub(crate) async fn pin(
    call: Call,
    Path((name, no)): Path<(String, String)>,
    Body(body): Body<api::Reason>,
) -> HttpResult {
    let wanted = DatasetChange::Pin(number(&no)?, true);
    change(&call, (&name, None), wanted, body.reason).await
}

/// Unpin a generation, so that it is removed once it is old enough.
#[utoipa::path(
    post, path = "/v1/datasets/{dataset}/generations/{generation}/unpin", operation_id = "unpin_generation",
    tag = "datasets",
    params(("generation" = String, Path, description = "Generation number", pattern = "^[0-9]{1,19}$"), DryRunQuery),
    request_body = Option<api::Reason>, security(("bearer" = ["operator", "business"])),
    responses((status = 200, body = api::Dataset))
)]
pub(crate) async fn unpin(
    call: Call,
    Path((name, no)): Path<(String, String)>,
    Body(body): Body<api::Reason>,
) -> HttpResult {
    let wanted = DatasetChange::Pin(number(&no)?, false);
    change(&call, (&name, None), wanted, body.reason).await
}

/// Roll back to an earlier generation.
///
/// The publication number still increases. The next publication becomes current as usual.
#[utoipa::path(
    post, path = "/v1/datasets/{dataset}/rollback", operation_id = "roll_back_dataset", tag = "datasets",
    params(DryRunQuery), request_body = api::RollBack, security(("bearer" = ["operator", "business"])),
    responses((status = 200, body = api::Dataset, headers(("etag" = String))))
)]
pub(crate) async fn roll_back(
    call: Call,
    Path(name): Path<String>,
    headers: HeaderMap,
    Body(body): Body<api::RollBack>,
) -> HttpResult {
    let expected = headers::expected(&headers);
    let wanted = DatasetChange::RollBack(GenerationNo(body.generation));
    change(&call, (&name, expected), wanted, body.reason).await
}

async fn change(
    call: &Call,
    (name, expected): (&str, Option<u64>),
    wanted: DatasetChange,
    reason: Option<String>,
) -> HttpResult {
    visible(&call.app, &call.caller, name).await?;
    let write = call.write(reason);
    let datasets = &call.service.datasets;
    let changed = datasets.change(name, expected, wanted, &write).await?;
    let (tag, pointers) = (headers::tag(changed.version), datasets.pointers().await?);
    Ok(call.changed(show_dataset(changed, &pointers), |dataset| ([tag], dataset))?)
}

/// Delete a dataset with all its generations.
///
/// Fails while an unfinished task is set to publish to it, and names that task.
#[utoipa::path(
    delete, path = "/v1/datasets/{dataset}", operation_id = "delete_dataset", tag = "datasets",
    params(ReasonQuery, DryRunQuery), security(("bearer" = ["operator", "business"])),
    responses((status = 204, description = "Deleted"), (status = 409, description = "conflict"))
)]
pub(crate) async fn delete(
    call: Call,
    Path(name): Path<String>,
    Params(query): Params<ReasonQuery>,
) -> HttpResult {
    visible(&call.app, &call.caller, &name).await?;
    let write = call.write(query.reason);
    call.service.datasets.delete(&name, &write).await?;
    Ok(call.deleted()?)
}
