//! Test call of a business, without a task.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::value::RawValue;

use crate::http::answer::Of;
use crate::http::front::App;
use crate::http::guard::{Body, Caller};
use crate::http::problem::HttpResult;
use crate::service::ServiceError;
use crate::service::businesses::tries::{Tried, Wanted};
use windrow_core::ids::ItemIndex;
use windrow_core::items::output::Output;
use windrow_core::settings::text::parse_span;

impl Of<Tried> for api::TryReply {
    fn of(tried: Tried) -> Self {
        let (output, output_bytes) = match tried.output {
            Some(Output::Json(json)) => (RawValue::from_string(json.into()).ok(), None),
            Some(Output::TooLarge(bytes)) => (None, Some(bytes as u64)),
            None => (None, None),
        };
        let (code, message) = tried
            .item
            .failure
            .map(|failure| (failure.code.into_owned(), failure.message))
            .unzip();
        api::TryReply {
            index: tried.item.index.0,
            item_key: tried.item_key,
            result: tried.item.result.to_owned(),
            code,
            message,
            output,
            output_bytes,
            logs: tried.logs.into_iter().map(|line| line.message).collect(),
            latency_seconds: tried.item.took.as_secs_f64(),
        }
    }
}

/// Call a business once, without a task.
///
/// Sends one item to the handler as a run would, marked as a preview. Nothing is counted and nothing is retried; the
/// call is recorded in the audit log. Each caller can run one at a time.
#[utoipa::path(
    post, path = "/v1/businesses/{business}/tries", operation_id = "try_business", tag = "businesses",
    request_body = Option<api::TryItems>, security(("bearer" = ["operator"])),
    responses(
        (status = 200, body = api::TryReply),
        (status = 409, description = "conflict: another test call of yours is in progress"),
    )
)]
pub(crate) async fn once(
    State(app): State<App>,
    caller: Caller,
    Path(slug): Path<String>,
    Body(body): Body<api::TryItems>,
) -> HttpResult<Json<api::TryReply>> {
    let timeout = body.timeout.as_deref().map(parse_span).transpose();
    let wanted = Wanted {
        index: ItemIndex(body.index.unwrap_or(0)),
        data: body.data,
        timeout: timeout.map_err(|why| ServiceError::invalid("/timeout", why.to_string()))?,
    };
    let write = caller.write(body.reason, false);
    let tried = app
        .service
        .tries
        .once(&slug, &wanted, &caller.subject, &write)
        .await?;
    Ok(Json(api::TryReply::of(tried)))
}
