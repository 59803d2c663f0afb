//! `/v1/logs` and `/v1/tasks/{task}/logs`: lines about tasks and items.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::problem::Problem;
use crate::http::answer::page;
use crate::http::answer::time::rfc3339;
use crate::http::guard::access::Caller;
use crate::http::guard::body::{Body, Params};
use crate::http::tasks::failures::json;
use crate::http::tasks::view::seen_task::SeenTask;
use crate::service::logs::LINES_MAX;
use crate::service::{FieldFault, ServiceError};
use windrow_core::business::access::Role;
use windrow_core::ids::{INDEX_MAX, ItemIndex, TaskId, WallMs};
use windrow_core::items::verdict::{MESSAGE_BYTES_MAX, OUTPUT_BYTES_MAX, cut};
use windrow_core::settings::json::Object;
use windrow_engine::ports::handling::data_log::{LogOrigin, LogQuery, NumberedLine};
use windrow_engine::ports::handling::handler::{LogLevel, LogLine};

/// The longest message of a line that is sent. Unit: characters; stored are [`MESSAGE_BYTES_MAX`] bytes.
const MESSAGE_CHARS_MAX: usize = 1024;

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(of_task, append))
        .routes(routes!(of_all))
}

/// How important a line is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// For developers.
    Debug,
    /// Normal.
    Info,
    /// Odd but handled.
    Warn,
    /// Something failed.
    Error,
}

/// Who wrote a line.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Origin {
    /// The business.
    Business,
    /// Windrow.
    System,
}

impl From<Level> for LogLevel {
    fn from(level: Level) -> LogLevel {
        match level {
            Level::Debug => LogLevel::Debug,
            Level::Info => LogLevel::Info,
            Level::Warn => LogLevel::Warn,
            Level::Error => LogLevel::Error,
        }
    }
}

impl From<LogLevel> for Level {
    fn from(level: LogLevel) -> Level {
        match level {
            LogLevel::Debug => Level::Debug,
            LogLevel::Info => Level::Info,
            LogLevel::Warn => Level::Warn,
            LogLevel::Error => Level::Error,
        }
    }
}

/// A line.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LineBody {
    /// Grows from line to line of a task, in the order in which they are stored.
    pub(super) number: i64,
    /// When it was written.
    #[schema(format = DateTime)]
    pub(super) at: String,
    /// The task.
    pub(super) task: String,
    /// The item; none for a line about the task.
    pub(super) index: Option<u64>,
    /// In the log of a redrive: the task whose failure the item was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) origin_task: Option<String>,
    /// In the log of a redrive: the item's index there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) origin_index: Option<u64>,
    /// How important.
    pub(super) level: Level,
    /// Who wrote it.
    pub(super) origin: Origin,
    /// A stable code, of lines that windrow writes.
    pub(super) code: Option<String>,
    /// The text.
    pub(super) message: String,
    /// More.
    pub(super) extra: Option<Value>,
}

impl From<NumberedLine> for LineBody {
    fn from((number, line): NumberedLine) -> LineBody {
        LineBody {
            number,
            at: rfc3339(line.at),
            task: line.shard.task.to_string(),
            index: line.line.index.map(|index| index.0),
            origin_task: None,
            origin_index: None,
            level: line.line.level.into(),
            origin: match line.origin {
                LogOrigin::Business => Origin::Business,
                LogOrigin::System => Origin::System,
            },
            code: line.code,
            message: line.line.message,
            extra: line.line.extra.as_deref().map(json),
        }
    }
}

/// A page of lines, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LinesPage {
    /// The lines. May be fewer than asked for although there is a next page: a search looks at so many lines at a time.
    items: Vec<LineBody>,
    /// Where the next page begins; null on the last one.
    next_cursor: Option<String>,
    /// Of one task: lines that were not kept, by reason (`age`, `max_per_task`, `queue`).
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<BTreeMap<&'static str, u64>>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SearchParams {
    /// This level or above.
    level: Option<Level>,
    /// Lines about this item.
    #[param(minimum = 0, maximum = 9223372036854775807_u64)]
    index: Option<u64>,
    /// A text in the message, whatever the case of its letters.
    #[param(min_length = 1, max_length = 200)]
    q: Option<String>,
    /// Who wrote it.
    origin: Option<Origin>,
    /// A code of windrow's own lines.
    #[param(max_length = 64)]
    code: Option<String>,
    /// Written at or after (RFC 3339).
    #[param(format = DateTime)]
    from: Option<String>,
    /// Written before (RFC 3339).
    #[param(format = DateTime)]
    to: Option<String>,
    /// Lines of a page.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// Where an earlier page ended.
    #[param(max_length = 200)]
    cursor: Option<String>,
}

fn query(
    params: SearchParams,
    task: Option<TaskId>,
    business: Option<String>,
) -> Result<LogQuery, ServiceError> {
    let index = params.index.filter(|index| *index <= INDEX_MAX);
    if index != params.index {
        return Err(ServiceError::invalid(
            "index",
            format!("an index is at most {INDEX_MAX}"),
        ));
    }
    if params
        .q
        .as_ref()
        .is_some_and(|text| text.is_empty() || text.chars().count() > 200)
    {
        return Err(ServiceError::invalid("q", "a text has 1 to 200 characters"));
    }
    Ok(LogQuery {
        business,
        level: params.level.map_or(LogLevel::Debug, LogLevel::from),
        index: index.map(ItemIndex),
        text: params.q,
        origin: params.origin.map(|origin| match origin {
            Origin::Business => LogOrigin::Business,
            Origin::System => LogOrigin::System,
        }),
        code: params.code,
        from: params
            .from
            .as_deref()
            .map(|text| moment("from", text))
            .transpose()?,
        to: params.to.as_deref().map(|text| moment("to", text)).transpose()?,
        before: page::read(params.cursor.as_deref())?,
        ..LogQuery::newest(task, page::limit(params.limit)?)
    })
}

fn moment(name: &str, text: &str) -> Result<WallMs, ServiceError> {
    // `+` in a query is a blank.
    let read = OffsetDateTime::parse(&text.replace(' ', "+"), &Rfc3339);
    let fault = |_| ServiceError::invalid(name, "this is no time such as 2026-11-20T17:03:40.222Z");
    let ms = read.map_err(fault)?.unix_timestamp_nanos() / 1_000_000;
    i64::try_from(ms)
        .map(WallMs)
        .map_err(|_| ServiceError::invalid(name, "no line is that old or new"))
}

/// Lines of a task.
///
/// The data log of a task, newest first.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/logs", tag = "logs", operation_id = "task_logs",
    security(("bearer" = ["viewer", "business"])),
    params(("task" = String, Path, description = "The task", pattern = "^t[1-9][0-9]{0,17}$", example = "t42"), SearchParams),
    responses(
        (status = 200, body = LinesPage),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
async fn of_task(
    State(app): State<App>,
    SeenTask(task): SeenTask,
    Params(params): Params<SearchParams>,
) -> Result<Json<LinesPage>, Problem> {
    let query = query(params, Some(task.id), None)?;
    let mut page = search(&app, &query).await?;
    let about = page.items.iter_mut().filter(|line| line.index.is_some());
    let about: Vec<&mut LineBody> = about.collect();
    let positions: Vec<ItemIndex> = about
        .iter()
        .filter_map(|line| line.index.map(ItemIndex))
        .collect();
    let origins = app.service.origins(&task, positions.into_iter()).await?;
    for (line, origin) in about.into_iter().zip(origins) {
        line.origin_task = origin.map(|(task, _)| task.to_string());
        line.origin_index = origin.map(|(_, index)| index.0);
    }
    let dropped = app.service.dropped_lines(task.id).await?;
    page.dropped = Some(
        dropped
            .into_iter()
            .map(|(reason, lines)| (reason.as_str(), lines))
            .collect(),
    );
    Ok(Json(page))
}

async fn search(app: &App, query: &LogQuery) -> Result<LinesPage, Problem> {
    let found = app.service.search_log(query).await?;
    let next_cursor = found.next.map(|number| page::write(&number));
    let items = found.lines.into_iter().map(LineBody::from).collect();
    Ok(LinesPage {
        items,
        next_cursor,
        dropped: None,
    })
}

/// Lines of all tasks.
///
/// The data log, newest first; a business sees its own tasks' lines.
#[utoipa::path(
    get, path = "/v1/logs", tag = "logs", operation_id = "all_logs",
    security(("bearer" = ["viewer", "business"])),
    params(SearchParams),
    responses(
        (status = 200, body = LinesPage),
        (status = 400, body = Problem, content_type = "application/problem+json"),
    )
)]
async fn of_all(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<SearchParams>,
) -> Result<Json<LinesPage>, Problem> {
    let own = if caller.role == Role::Business {
        Some(caller.business.unwrap_or_default())
    } else {
        None
    };
    // A start token is for its task only.
    Ok(Json(search(&app, &query(params, caller.task, own)?).await?))
}

/// A line to append.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LogEntry)]
pub(super) struct Entry {
    /// How important; `info` if it isn't said.
    level: Option<Level>,
    /// The text.
    #[schema(min_length = 1, max_length = 1024)]
    message: String,
    /// The item that it is about.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    index: Option<u64>,
    /// More; at most 4 KiB as JSON.
    extra: Option<Value>,
}

/// Lines to append.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AppendBody {
    /// At most a thousand.
    #[schema(min_items = 1, max_items = 1000, value_type = Vec<Entry>)]
    entries: Vec<Object<Entry>>,
}

/// What came of it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AppendedBody {
    /// Lines that are stored.
    stored: u64,
    /// Lines below `data_log.min_level`, which are not.
    below_min_level: u64,
}

/// Append lines.
///
/// The business writes about its task or items.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/logs", tag = "logs", operation_id = "append_logs",
    security(("bearer" = ["operator", "business"])),
    params(("task" = String, Path, description = "The task", pattern = "^t[1-9][0-9]{0,17}$", example = "t42")),
    request_body = AppendBody,
    responses(
        (status = 202, body = AppendedBody),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
async fn append(
    State(app): State<App>,
    SeenTask(task): SeenTask,
    Body(body): Body<AppendBody>,
) -> Result<impl IntoResponse, Problem> {
    if !(1..=LINES_MAX).contains(&body.entries.len()) {
        let text = format!("a request has 1 to {LINES_MAX} entries");
        return Err(ServiceError::invalid("/entries", text).into());
    }
    let (lines, faults): (Vec<_>, Vec<_>) = body
        .entries
        .into_iter()
        .enumerate()
        .map(|(at, Object(entry))| line(at, entry))
        .partition(Result::is_ok);
    let faults: Vec<FieldFault> = faults.into_iter().filter_map(Result::err).collect();
    if !faults.is_empty() {
        return Err(ServiceError::Invalid(faults).into());
    }
    let done = app
        .service
        .append_log(task.id, lines.into_iter().flatten().collect())
        .await?;
    let body = AppendedBody {
        stored: done.stored,
        below_min_level: done.below_min_level,
    };
    Ok((StatusCode::ACCEPTED, Json(body)))
}

fn line(at: usize, entry: Entry) -> Result<LogLine, FieldFault> {
    let fault = |member: &str, text: String| Err(FieldFault::new(format!("/entries/{at}/{member}"), text));
    if !(1..=MESSAGE_CHARS_MAX).contains(&entry.message.chars().count()) {
        return fault(
            "message",
            format!("a message has 1 to {MESSAGE_CHARS_MAX} characters"),
        );
    }
    if entry.message.contains('\0') {
        return fault(
            "message",
            "a message has no NUL, which databases don't store".to_owned(),
        );
    }
    if entry.index.is_some_and(|index| index > INDEX_MAX) {
        return fault("index", format!("an index is at most {INDEX_MAX}"));
    }
    let extra = entry.extra.map(|value| value.to_string());
    if extra.as_ref().is_some_and(|text| text.len() > OUTPUT_BYTES_MAX) {
        return fault(
            "extra",
            format!("more has at most {OUTPUT_BYTES_MAX} bytes as JSON"),
        );
    }
    Ok(LogLine {
        index: entry.index.map(ItemIndex),
        level: entry.level.map_or(LogLevel::Info, LogLevel::from),
        message: cut(&entry.message, MESSAGE_BYTES_MAX),
        extra,
    })
}
