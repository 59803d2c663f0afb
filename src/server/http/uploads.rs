//! `/v1/uploads`: item sources uploaded to the node.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::Json;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use futures_util::StreamExt;
use serde::Deserialize;
use utoipa::IntoParams;

use super::problem::{HttpResult, Problem, Slug};
use crate::http::answer::Of;
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::guard::shares::{Full, Share};
use crate::http::guard::{Caller, Params, headers};
use crate::http::tasks::failures::value;
use crate::http::tasks::path::path_param;
use crate::service::ServiceError;
use windrow_core::business::access::Role;
use windrow_core::text::quoted;
use windrow_engine::ports::sources::resolver::{Received, RowFormat, SourceRequest};
use windrow_engine::ports::sources::uploads::{Upload, UploadId, UploadState};

/// Name of the limited resource, for error messages.
const PLACES: &str = "upload slots (http.max_uploads)";

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct UploadParams {
    /// CSV only: field delimiter, one ASCII character or `tab`.
    #[param(max_length = 3, default = ",")]
    delimiter: Option<String>,
    /// CSV only: the first row contains column names.
    #[param(default = true)]
    header: Option<bool>,
    /// CSV only: quote character, one ASCII character, or `none` to read quotes as text.
    #[param(max_length = 4, default = "\"")]
    quote: Option<String>,
    /// CSV only: accept rows whose quoting violates RFC 4180. Fields may change and rows may be lost.
    #[param(default = false)]
    lenient: Option<bool>,
    /// `text/plain` only: texts end with NUL, as written by `find -print0`, instead of a line feed.
    #[param(default = false)]
    null: Option<bool>,
}

/// Share of the upload quota from which a business is warned, in percent.
const WARNED_FROM: u128 = 80;

impl Of<(u64, u64)> for api::UploadQuota {
    fn of((stored, bytes): (u64, u64)) -> Self {
        let percent = u128::from(stored) * 100 / u128::from(bytes.max(1));
        let warning = || {
            format!(
                "{percent} % of the business's upload quota is used; uploads beyond it are refused: DELETE \
                 those that no task needs"
            )
        };
        api::UploadQuota {
            bytes,
            stored,
            warning: (percent >= WARNED_FROM).then(warning),
        }
    }
}

async fn shown(app: &App, PathUpload(upload, received): PathUpload) -> Result<api::Upload, ServiceError> {
    let quota = app
        .service
        .sources
        .room(&upload.created_by)
        .await?
        .map(api::UploadQuota::of);
    if let Some(warning) = quota.as_ref().and_then(|quota| quota.warning.as_deref()) {
        tracing::warn!(sender = upload.created_by, warning, "upload quota almost used up");
    }
    Ok(face(upload, received, quota))
}

fn face(upload: Upload, received: Option<Received>, quota: Option<api::UploadQuota>) -> api::Upload {
    let (rows, columns, compression) = match received {
        Some(found) => (Some(found.rows), found.columns, found.compression),
        None => (None, Vec::new(), None),
    };
    api::Upload {
        id: upload.id.to_string(),
        state: match upload.state {
            UploadState::Open => "open".to_owned(),
            UploadState::Ready => "ready".to_owned(),
        },
        kind: upload.kind,
        bytes: upload.bytes,
        compression,
        rows,
        columns,
        sample: upload.sample.as_deref().map(value).unwrap_or_default(),
        sha256: upload.sha256,
        created_at: rfc3339(upload.created_at),
        used_at: upload.used_at.map(rfc3339),
        quota,
    }
}

/// Upload items.
///
/// Accepts CSV, NDJSON or lines of text (`text/plain`) up to `http.upload_limit`, and counts and checks the rows
/// while they arrive. Compressed data (gzip, zstd, bzip2 or xz, recognized by its first bytes) is decompressed and
/// must fit within the same limit; its `Content-Type` is that of the rows.
#[utoipa::path(
    post, path = "/v1/uploads", tag = "uploads", operation_id = "create_upload",
    security(("bearer" = ["operator", "business"])), params(UploadParams),
    request_body(content((String = "text/csv"), (String = "application/x-ndjson"), (String = "text/plain")), description = "The rows"),
    responses(
        (status = 201, body = api::Upload, headers(("location" = String, description = "The uploaded bytes"))),
        (status = 409),
        (status = 422, description = "validation-failed, not-unpacked"),
        (status = 429),
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<UploadParams>,
    request: Request,
) -> HttpResult<impl IntoResponse> {
    let who = caller.account();
    let _place = place(&app, &caller).map_err(|full| full.problem(PLACES))?;
    let Some(format) = row_format(&params, request.headers())? else {
        let text = "the Content-Type of an upload must be text/csv, application/x-ndjson or text/plain (one \
                    item per line)";
        return Err(Problem::new(Slug::UnsupportedMediaType, text));
    };
    refuse_long(&app, request.headers())?;
    let broken = AtomicBool::new(false);
    let body = request.into_body().into_data_stream().map(|chunk| {
        chunk.map_err(|error| {
            broken.store(true, Ordering::Relaxed);
            tracing::debug!(%error, "upload broke off");
            "the connection broke off".to_owned()
        })
    });
    let received = app.service.sources.receive(&format, &who, body.boxed()).await;
    if received.is_err() && broken.load(Ordering::Relaxed) {
        let text = "the body ended early";
        return Err(Problem::new(Slug::InvalidRequest, text));
    }
    let received = received?;
    let (upload, _) = app.service.sources.show(received.id).await?;
    let place = [(header::LOCATION, format!("/v1/uploads/{}", received.id))];
    let body = shown(&app, PathUpload(upload, Some(received))).await?;
    Ok((StatusCode::CREATED, place, Json(body)))
}

/// Takes a slot for incoming data: an upload or a fetched URL.
fn place(app: &App, caller: &Caller) -> Result<Share<String>, Full> {
    app.front.uploads.take(caller.account(), 1, false)
}

/// Checks that the caller may use a source. A business may use only its own uploads and can't detect those of others;
/// the URLs it fetches are guarded. A fetch takes an upload slot, which the caller holds until the data has arrived.
///
/// # Errors
/// As if the upload didn't exist; or if all upload slots are taken.
pub(super) async fn judge_source(
    app: &App,
    caller: &Caller,
    source: &mut SourceRequest,
) -> HttpResult<Option<Share<String>>> {
    let is_business = caller.role == Role::Business;
    if let SourceRequest::Url { is_guarded, .. } = source {
        *is_guarded = is_business;
        let place = place(app, caller).map(Some);
        return place.map_err(|full| full.problem(PLACES));
    }
    let SourceRequest::Upload { upload } = source else {
        return Ok(None);
    };
    if !is_business {
        return Ok(None);
    }
    match app.service.sources.show(*upload).await {
        // A start token is limited to its task, while uploads belong to the business.
        Ok((found, _)) if found.created_by == caller.account() && caller.task.is_none() => Ok(None),
        Ok(_) | Err(ServiceError::NotFound { .. }) => {
            let text = format!("{upload} doesn't exist; upload it (again)");
            Err(ServiceError::unprocessable("/source", text).into())
        }
        Err(error) => Err(error.into()),
    }
}

fn refuse_long(app: &App, headers: &HeaderMap) -> Result<(), ServiceError> {
    let limit = app.service.config().http.upload_limit;
    match headers::text(headers, header::CONTENT_LENGTH).parse::<u64>() {
        Ok(bytes) if bytes > limit.0 => Err(ServiceError::TooLarge(format!(
            "the body has {bytes} bytes, more than the {limit} of http.upload_limit"
        ))),
        _ => Ok(()),
    }
}

/// Returns the row format of a body, `None` for an unsupported content type.
fn row_format(params: &UploadParams, headers: &HeaderMap) -> Result<Option<RowFormat>, ServiceError> {
    let kind = headers::content_type(headers);
    if params.null.is_some() && kind != "text/plain" {
        return Err(ServiceError::invalid(
            "null",
            "only text/plain can have NUL-terminated items",
        ));
    }
    let format = match kind.as_str() {
        "text/csv" => return csv_format(params).map(Some),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => RowFormat::Ndjson,
        "text/plain" if params.null == Some(true) => RowFormat::Nul,
        "text/plain" => RowFormat::Lines,
        _ => return Ok(None),
    };
    let is_set = [params.header, params.lenient].iter().any(Option::is_some);
    if params.delimiter.is_some() || params.quote.is_some() || is_set {
        let text = "delimiter, header, quote and lenient only apply to CSV";
        return Err(ServiceError::invalid("query", text));
    }
    Ok(Some(format))
}

fn csv_format(params: &UploadParams) -> Result<RowFormat, ServiceError> {
    let one = |name: &str, text: &str| {
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) if c.is_ascii() && !matches!(c, '\n' | '\r' | '\0') => Ok(c),
            _ => Err(ServiceError::invalid(
                name,
                format!("{} must be one ASCII character", quoted(text)),
            )),
        }
    };
    let delimiter = match params.delimiter.as_deref() {
        None => ',',
        Some("tab") => '\t',
        Some(text) => one("delimiter", text)?,
    };
    let quote = match params.quote.as_deref() {
        None => Some('"'),
        Some("none") => None,
        Some(text) => Some(one("quote", text)?),
    };
    if quote == Some(delimiter) {
        return Err(ServiceError::invalid("quote", "must differ from the delimiter"));
    }
    Ok(RowFormat::Csv {
        delimiter,
        header: params.header.unwrap_or(true),
        quote,
        lenient: params.lenient.unwrap_or(false),
    })
}

/// Upload named in the path, if the caller may see it.
pub(crate) struct PathUpload(Upload, Option<Received>);

impl FromRequestParts<App> for PathUpload {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<PathUpload, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let text = path_param(parts, app, "u").await?;
        let missing = || ServiceError::NotFound {
            what: "upload",
            name: text.clone(),
        };
        let id: UploadId = text.parse().map_err(|_| missing())?;
        let (upload, received) = app.service.sources.show(id).await?;
        if caller.role == Role::Business && upload.created_by != caller.account() {
            return Err(missing().into());
        }
        Ok(PathUpload(upload, received))
    }
}

/// Get an upload and its state.
#[utoipa::path(
    get, path = "/v1/uploads/{u}", tag = "uploads", operation_id = "show_upload",
    security(("bearer" = ["viewer", "business"])), responses((status = 200, body = api::Upload))
)]
pub(crate) async fn show(State(app): State<App>, upload: PathUpload) -> HttpResult<Json<api::Upload>> {
    Ok(Json(shown(&app, upload).await?))
}

/// Delete an upload.
///
/// Fails for an upload that a task uses, which stays with the task.
#[utoipa::path(
    delete, path = "/v1/uploads/{u}", tag = "uploads", operation_id = "discard_upload",
    security(("bearer" = ["operator", "business"])), responses((status = 204), (status = 409))
)]
pub(crate) async fn discard(
    State(app): State<App>,
    PathUpload(upload, _): PathUpload,
) -> HttpResult<StatusCode> {
    app.service.sources.discard(upload.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
