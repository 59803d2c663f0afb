//! `/v1/logs` and `/v1/tasks/{task}/logs`: log lines about tasks and items.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::problem::HttpResult;
use crate::http::answer::Of;
use crate::http::answer::page::{self, PageQuery, Paging};
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::guard::{Body, Caller, Params, time_option};
use crate::http::tasks::failures::value;
use crate::http::tasks::path::PathTask;
use crate::service::failures::item_data::Members;
use crate::service::logs::LINES_MAX;
use crate::service::{FieldFault, ServiceError};
use windrow_core::business::access::Role;
use windrow_core::ids::{INDEX_MAX, ItemIndex, TaskId};
use windrow_core::items::verdict::{MESSAGE_BYTES_MAX, OUTPUT_BYTES_MAX, cut};
use windrow_core::settings::json::Object;
use windrow_engine::ports::handling::data_log::{LogOrigin, LogQuery, NumberedLine};
use windrow_engine::ports::handling::handler::{LogLevel, LogLine};
use windrow_engine::ports::tasks::store::TaskView;

/// Longest message in a submitted line, in characters; up to [`MESSAGE_BYTES_MAX`] bytes are stored.
const MESSAGE_CHARS_MAX: usize = 1024;

impl Of<NumberedLine> for api::LogLine {
    fn of((number, line): NumberedLine) -> Self {
        api::LogLine {
            number,
            at: rfc3339(line.at),
            task: line.shard.task.to_string(),
            index: line.line.index.map(|index| index.0),
            trace_id: None,
            origin_task: None,
            origin_index: None,
            level: line.line.level.as_str().to_owned(),
            origin: line.origin.as_str().to_owned(),
            code: line.code,
            message: line.line.message,
            extra: line.line.extra.as_deref().map(value),
            data: None,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchParams {
    /// Minimum level of the lines.
    #[param(value_type = Option<String>, pattern = "^(debug|info|warn|error)$")]
    level: Option<LogLevel>,
    /// Only lines about this item.
    #[param(minimum = 0, maximum = 9223372036854775807_u64)]
    index: Option<u64>,
    /// Text to find in the message, ignoring case.
    #[param(min_length = 1, max_length = 200)]
    q: Option<String>,
    /// Author of the lines: the business or the system.
    #[param(value_type = Option<String>, pattern = "^(business|system)$")]
    origin: Option<LogOrigin>,
    /// Code of Windrow's own lines.
    #[param(max_length = 64)]
    code: Option<String>,
    /// Only lines at or after this time (RFC 3339).
    #[param(format = DateTime)]
    from: Option<String>,
    /// Only lines before this time (RFC 3339).
    #[param(format = DateTime)]
    to: Option<String>,
}

fn query(
    params: SearchParams,
    paging: &Paging<i64>,
    task: Option<TaskId>,
    business: Option<String>,
) -> Result<LogQuery, ServiceError> {
    if params.index.is_some_and(|index| index > INDEX_MAX) {
        return Err(ServiceError::invalid(
            "index",
            format!("must be at most {INDEX_MAX}"),
        ));
    }
    Ok(LogQuery {
        business,
        level: params.level.unwrap_or(LogLevel::Debug),
        index: params.index.map(ItemIndex),
        text: params.q,
        origin: params.origin,
        code: params.code,
        from: time_option("from", params.from.as_ref())?,
        to: time_option("to", params.to.as_ref())?,
        before: paging.after,
        ..LogQuery::newest(task, paging.limit)
    })
}

/// List the log lines of a task.
///
/// Newest lines of the task's data log come first.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/logs", tag = "logs", operation_id = "task_logs",
    security(("bearer" = ["viewer", "business"])), params(SearchParams, PageQuery),
    responses((status = 200, body = api::LogPage))
)]
pub(crate) async fn of_task(
    State(app): State<App>,
    PathTask(task): PathTask,
    paging: Paging<i64>,
    Params(params): Params<SearchParams>,
) -> HttpResult<Json<api::LogPage>> {
    let mut page = search(&app, &query(params, &paging, Some(task.id), None)?).await?;
    let about: Vec<&mut api::LogLine> = page
        .items
        .iter_mut()
        .filter(|line| line.index.is_some())
        .collect();
    let positions = about.iter().filter_map(|line| line.index.map(ItemIndex));
    let positions: Vec<ItemIndex> = positions.collect();
    let keys = app.service.failures.keys(&task).await?;
    let origins = app.service.failures.origins(&task, positions).await?;
    for (line, origin) in about.into_iter().zip(origins) {
        line.trace_id = line.index.map(|index| keys.trace(ItemIndex(index), origin));
        line.origin_task = origin.map(|(task, _)| task.to_string());
        line.origin_index = origin.map(|(_, index)| index.0);
    }
    add_data(&app, &task, &mut page.items).await?;
    let dropped = app.service.logs.store.dropped(task.id).await?.into_iter();
    page.dropped = Some(
        dropped
            .map(|(reason, lines)| (reason.as_str().to_owned(), lines))
            .collect(),
    );
    Ok(Json(page))
}

/// Adds the data of the items that error lines are about.
async fn add_data(app: &App, task: &TaskView, lines: &mut [api::LogLine]) -> HttpResult<()> {
    let mut errors: Vec<(&mut api::LogLine, ItemIndex)> = lines
        .iter_mut()
        .filter(|line| line.level == LogLevel::Error.as_str())
        .filter_map(|line| line.index.map(ItemIndex).map(|index| (line, index)))
        .collect();
    if errors.is_empty() {
        return Ok(());
    }
    let indexes: Vec<ItemIndex> = errors.iter().map(|(_, index)| *index).collect();
    let members = Members::of_list("*", task);
    let found = app.service.failures.item_data(task, &members, &indexes).await?;
    for ((line, _), carried) in errors.iter_mut().zip(found) {
        line.data = carried.data;
    }
    Ok(())
}

async fn search(app: &App, query: &LogQuery) -> HttpResult<api::LogPage> {
    let found = app.service.logs.store.search(query).await?;
    Ok(api::LogPage {
        items: found.lines.into_iter().map(api::LogLine::of).collect(),
        next_cursor: found.next.map(|number| page::write(&number)),
        dropped: None,
    })
}

/// List the log lines of all tasks.
///
/// Newest lines come first. A business sees only its own tasks.
#[utoipa::path(
    get, path = "/v1/logs", tag = "logs", operation_id = "all_logs",
    security(("bearer" = ["viewer", "business"])), params(SearchParams, PageQuery),
    responses((status = 200, body = api::LogPage))
)]
pub(crate) async fn of_all(
    State(app): State<App>,
    caller: Caller,
    paging: Paging<i64>,
    Params(params): Params<SearchParams>,
) -> HttpResult<Json<api::LogPage>> {
    let is_business = caller.role == Role::Business;
    let own = is_business.then(|| caller.business.unwrap_or_default());
    // A start token sees only its own task.
    Ok(Json(
        search(&app, &query(params, &paging, caller.task, own)?).await?,
    ))
}

/// Append log lines.
///
/// For a business to log about its task or items.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/logs", tag = "logs", operation_id = "append_logs",
    security(("bearer" = ["operator", "business"])), request_body = api::AppendLines,
    responses((status = 202, body = api::AppendedLines))
)]
pub(crate) async fn append(
    State(app): State<App>,
    PathTask(task): PathTask,
    Body(body): Body<api::AppendLines>,
) -> HttpResult<(StatusCode, Json<api::AppendedLines>)> {
    if !(1..=LINES_MAX).contains(&body.entries.len()) {
        let text = format!("a request must have 1 to {LINES_MAX} entries");
        return Err(ServiceError::invalid("/entries", text).into());
    }
    let (mut lines, mut faults) = (Vec::new(), Vec::new());
    for (at, Object(entry)) in body.entries.into_iter().enumerate() {
        match line(at, entry) {
            Ok(line) => lines.push(line),
            Err(fault) => faults.push(fault),
        }
    }
    if !faults.is_empty() {
        return Err(ServiceError::Invalid(faults).into());
    }
    let done = app.service.logs.append(task.id, lines).await?;
    let (stored, below_min_level) = (done.stored, done.below_min_level);
    Ok((
        StatusCode::ACCEPTED,
        Json(api::AppendedLines {
            stored,
            below_min_level,
        }),
    ))
}

fn line(at: usize, entry: api::LogEntry) -> Result<LogLine, FieldFault> {
    let fault = |member: &str, text: String| Err(FieldFault::new(format!("/entries/{at}/{member}"), text));
    if !(1..=MESSAGE_CHARS_MAX).contains(&entry.message.chars().count()) {
        return fault(
            "message",
            format!("a message must have 1 to {MESSAGE_CHARS_MAX} characters"),
        );
    }
    if entry.message.contains('\0') {
        return fault("message", "must not contain NUL".to_owned());
    }
    if entry.index.is_some_and(|index| index > INDEX_MAX) {
        return fault("index", format!("must be at most {INDEX_MAX}"));
    }
    let extra = entry.extra.map(|value| value.to_string());
    if extra.as_ref().is_some_and(|text| text.len() > OUTPUT_BYTES_MAX) {
        return fault(
            "extra",
            format!("must be at most {OUTPUT_BYTES_MAX} bytes as JSON"),
        );
    }
    Ok(LogLine {
        index: entry.index.map(ItemIndex),
        level: entry.level.unwrap_or(LogLevel::Info),
        message: cut(&entry.message, MESSAGE_BYTES_MAX),
        extra,
    })
}
