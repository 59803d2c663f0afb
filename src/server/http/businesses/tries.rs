//! One call of a business, without a task.

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::App;
use crate::http::guard::{Body, Caller, reason};
use crate::http::problem::HttpResult;
use crate::service::ServiceError;
use crate::service::businesses::tries::{Tried, Wanted};
use windrow_core::ids::ItemIndex;
use windrow_core::items::output::Output;
use windrow_core::settings::text::parse_span;

/// An item that is in no task.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TryBody {
    /// What it carries, any JSON of at most 65536 bytes; nothing, as an item of a range.
    #[schema(value_type = Option<serde_json::Value>)]
    data: Option<Box<RawValue>>,
    /// Its number; 0 if none is said.
    #[schema(minimum = 0, maximum = 9223372036854775806_u64)]
    index: Option<u64>,
    /// How long the call may take, at most `60s`; as long as a call of its tasks if nothing is said.
    #[schema(max_length = 32)]
    timeout: Option<String>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// How a call went that was tried.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TryReply {
    /// The item.
    index: u64,
    /// The key that the handler was given for it.
    item_key: String,
    /// `succeeded`, `skipped`, `abandoned`, `retry`, `failed` (the contract is broken) or `not_called`.
    result: &'static str,
    /// Why, unless it went well.
    code: Option<String>,
    /// The same in words.
    message: Option<String>,
    /// What the item came to, as the handler answered it; none where it said nothing.
    #[schema(value_type = Option<serde_json::Value>)]
    output: Option<Box<RawValue>>,
    /// How large the output was, where it was too large to be shown. Unit: bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_bytes: Option<u64>,
    /// Lines that the handler wrote beside.
    logs: Vec<String>,
    /// How long the call took.
    latency_seconds: f64,
}

impl From<Tried> for TryReply {
    fn from(tried: Tried) -> TryReply {
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
        TryReply {
            index: tried.item.index.0,
            item_key: tried.item_key,
            result: tried.item.result,
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
/// Its handler is called with one item, as a call of a run is made, and is told that it is a preview. Nothing is counted and
/// nothing is tried again; the audit says that it was done. A caller has one at a time.
#[utoipa::path(
    post, path = "/v1/businesses/{business}/tries", operation_id = "try_business", tag = "businesses",
    request_body = Option<TryBody>, security(("bearer" = ["operator"])),
    responses(
        (status = 200, body = TryReply),
        (status = 409, description = "conflict: one of yours is under way"),
    )
)]
pub(crate) async fn once(
    State(app): State<App>,
    caller: Caller,
    Path(slug): Path<String>,
    Body(body): Body<TryBody>,
) -> HttpResult<Json<TryReply>> {
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
    Ok(Json(tried.into()))
}
