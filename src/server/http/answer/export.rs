//! `/v1/tasks/{task}/export/…`: failures and log as CSV or NDJSON, read from the store page by page, so memory use
//! doesn't depend on their size.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::http::answer::Of;
use crate::http::front::App;
use crate::http::guard::{Params, headers};
use crate::http::problem::HttpResult;
use crate::http::tasks::failures::bodies;
use crate::http::tasks::path::PathTask;
use crate::service::ServiceError;
use crate::service::failures::item_data::Members;
use windrow_core::ids::{INDEX_MAX, ItemIndex};
use windrow_core::text::csv::Guard;
use windrow_engine::ports::tasks::failure_list::FailurePage;
use windrow_engine::ports::tasks::store::TaskView;

/// Rows read and sent at a time.
const PAGE: u32 = 1_000;

/// Output format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// Comma-separated values with a header row.
    Csv,
    /// One JSON object per line.
    Ndjson,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportParams {
    /// Output format; default: from `Accept`, otherwise NDJSON.
    #[param(inline)]
    format: Option<Format>,
    /// CSV only: protect text cells from being read as spreadsheet formulas; default `on`.
    #[param(inline)]
    csv_guard: Option<CsvGuard>,
    /// Only rows after this index (failures) or number (log), to resume an interrupted export.
    #[param(minimum = 0, maximum = 9223372036854775807_u64)]
    after: Option<u64>,
    /// Failures only: include each item's data, read from the task's source: `*` for all of it, or a comma-separated
    /// list of members.
    #[param(max_length = 500, example = "user_id,email")]
    data: Option<String>,
}

/// Protection of text cells against being read as spreadsheet formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CsvGuard {
    /// Prefix text that a spreadsheet would read as a formula with an apostrophe; numbers stay numbers.
    #[default]
    On,
    /// Write every cell unchanged.
    Off,
}

impl From<CsvGuard> for Guard {
    fn from(asked: CsvGuard) -> Guard {
        match asked {
            CsvGuard::On => Guard::On,
            CsvGuard::Off => Guard::Off,
        }
    }
}

impl Format {
    /// Returns the requested format, otherwise the one the client accepts, otherwise NDJSON.
    pub(crate) fn wanted(asked: Option<Format>, headers: &HeaderMap) -> Format {
        let accepted = match headers::accepts(headers, "text/csv") {
            true => Format::Csv,
            false => Format::Ndjson,
        };
        asked.unwrap_or(accepted)
    }
}

impl ExportParams {
    fn format(&self, headers: &HeaderMap) -> Format {
        Format::wanted(self.format, headers)
    }

    fn after(&self) -> Result<Option<u64>, ServiceError> {
        match self.after {
            Some(after) if after > INDEX_MAX => Err(ServiceError::invalid(
                "after",
                format!("must be at most {INDEX_MAX}"),
            )),
            after => Ok(after),
        }
    }
}

/// Export failures.
///
/// All failures in index order. To resume an interrupted export, pass the last index received as `after`.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/export/failures", tag = "failures", operation_id = "export_failures",
    security(("bearer" = ["viewer", "business"])), params(ExportParams),
    responses(
        (status = 200, description = "The rows", content((String = "application/x-ndjson"), (String = "text/csv"))),
    )
)]
pub(crate) async fn failures(
    State(app): State<App>,
    PathTask(task): PathTask,
    Params(params): Params<ExportParams>,
    headers: HeaderMap,
) -> HttpResult {
    let (format, guard) = (
        params.format(&headers),
        params.csv_guard.unwrap_or_default().into(),
    );
    let after = params.after()?.map(ItemIndex);
    let name = format!("{}-failures", task.id);
    let columns = "index,key,code,message,attempts,first_at,last_at,output,origin_task,origin_index,data,data_missing,\
        charged,unconfirmed,others_answered";
    let rows = move |state: Option<ItemIndex>| {
        let (app, task, data) = (app.clone(), task.clone(), params.data.clone());
        async move { failure_rows(&app, &task, data.as_deref(), state, (format, guard)).await }
    };
    Ok(answer(name, format, header_of(format, columns), after, rows).await?)
}

async fn failure_rows(
    app: &App,
    task: &TaskView,
    data: Option<&str>,
    after: Option<ItemIndex>,
    (format, guard): (Format, Guard),
) -> Result<(Vec<u8>, Option<ItemIndex>), ServiceError> {
    let failures = &app.service.failures;
    let found = failures.page(task, &FailurePage::ByIndex(after), PAGE).await?;
    let last = found.last().map(|shown| shown.item.index);
    let mut out = Vec::new();
    for row in bodies(app, task, data.map(Members::parse), found).await? {
        match format {
            Format::Ndjson => push_json(&row, &mut out)?,
            Format::Csv => guard.push_row(&cells(row), &mut out),
        }
    }
    Ok((out, last))
}

fn cells(row: api::Failure) -> [String; 15] {
    let output = row.output.as_ref().map(ToString::to_string);
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    [
        row.index.to_string(),
        row.key,
        row.code.unwrap_or_default(),
        row.message.unwrap_or_default(),
        row.attempts.to_string(),
        row.first_at,
        row.last_at,
        output.unwrap_or_default(),
        row.origin_task.unwrap_or_default(),
        number(row.origin_index),
        row.data.map(|data| data.get().to_owned()).unwrap_or_default(),
        row.data_missing.unwrap_or_default(),
        row.charged.to_string(),
        row.unconfirmed.to_string(),
        number(row.others_answered),
    ]
}

/// Export the data log.
///
/// All lines of a task, oldest first. To resume an interrupted export, pass the last number received as `after`.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/export/log", tag = "logs", operation_id = "export_log",
    security(("bearer" = ["viewer", "business"])), params(ExportParams),
    responses(
        (status = 200, description = "The rows", content((String = "application/x-ndjson"), (String = "text/csv"))),
    )
)]
pub(crate) async fn log(
    State(app): State<App>,
    PathTask(task): PathTask,
    Params(params): Params<ExportParams>,
    headers: HeaderMap,
) -> HttpResult {
    let (format, guard) = (
        params.format(&headers),
        params.csv_guard.unwrap_or_default().into(),
    );
    let after = params.after()?.map(u64::cast_signed);
    if params.data.is_some() {
        return Err(ServiceError::invalid("data", "lines have no such column; only failures do").into());
    }
    let name = format!("{}-log", task.id);
    let columns = "number,at,task,index,level,origin,code,message,extra";
    let rows = move |state: Option<i64>| {
        let (app, id) = (app.clone(), task.id);
        async move {
            let lines = app.service.logs.store.after(id, state.unwrap_or(0), PAGE).await?;
            let last = lines.last().map(|(number, _)| *number);
            let mut out = Vec::new();
            for line in lines.into_iter().map(api::LogLine::of) {
                push_line(&line, (format, guard), &mut out)?;
            }
            Ok((out, last))
        }
    };
    Ok(answer(name, format, header_of(format, columns), after, rows).await?)
}

fn push_line(
    line: &api::LogLine,
    (format, guard): (Format, Guard),
    out: &mut Vec<u8>,
) -> Result<(), ServiceError> {
    if format == Format::Ndjson {
        return push_json(line, out);
    }
    let cells = [
        line.number.to_string(),
        line.at.clone(),
        line.task.clone(),
        line.index.map(|index| index.to_string()).unwrap_or_default(),
        line.level.clone(),
        line.origin.clone(),
        line.code.clone().unwrap_or_default(),
        line.message.clone(),
        line.extra.as_ref().map(ToString::to_string).unwrap_or_default(),
    ];
    guard.push_row(&cells, out);
    Ok(())
}

fn push_json(row: &impl serde::Serialize, out: &mut Vec<u8>) -> Result<(), ServiceError> {
    serde_json::to_writer(&mut *out, row).map_err(|error| ServiceError::Internal(error.to_string()))?;
    out.push(b'\n');
    Ok(())
}

/// Returns the header row of a CSV; empty for NDJSON.
fn header_of(format: Format, columns: &str) -> Vec<u8> {
    match format {
        Format::Csv => format!("{columns}\r\n").into_bytes(),
        Format::Ndjson => Vec::new(),
    }
}

/// Streams pages one after the other. The first page is read before the response starts, so that an unreachable store
/// is reported as a problem; a later failure cuts the body, which the client notices.
pub(crate) async fn answer<K, F, R>(
    name: String,
    format: Format,
    mut head: Vec<u8>,
    after: Option<K>,
    rows: F,
) -> Result<Response, ServiceError>
where
    K: Send + 'static,
    F: Fn(Option<K>) -> R + Send + 'static,
    R: Future<Output = Result<(Vec<u8>, Option<K>), ServiceError>> + Send + 'static,
{
    let (first, next) = rows(after).await?;
    head.extend_from_slice(&first);
    let rest = stream::try_unfold((next, rows), |(at, rows)| async move {
        let Some(at) = at else {
            return Ok::<_, std::io::Error>(None);
        };
        let (page, next) = rows(Some(at)).await.map_err(std::io::Error::other)?;
        Ok(Some((Bytes::from(page), (next, rows))))
    });
    let begin = stream::once(std::future::ready(Ok(Bytes::from(head))));
    let body = axum::body::Body::from_stream(futures_util::StreamExt::chain(begin, rest));
    let (kind, extension) = match format {
        Format::Csv => ("text/csv; charset=utf-8", "csv"),
        Format::Ndjson => ("application/x-ndjson", "ndjson"),
    };
    let disposition = format!("attachment; filename=\"{name}.{extension}\"");
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, body).into_response())
}
