//! `/v1/tasks/{task}/results`: outputs of items in index order, during the run and after it.

use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::http::answer::export::{CsvGuard, Format, answer};
use crate::http::answer::result_rows::{Columns, Form, Rows};
use crate::http::front::App;
use crate::http::guard::Params;
use crate::http::problem::HttpResult;
use crate::http::tasks::path::PathTask;
use crate::service::ServiceError;
use crate::service::failures::item_data::Members;
use crate::service::results::{Joined, Reader};
use windrow_core::ids::{INDEX_MAX, ItemIndex};
use windrow_core::settings::Results;
use windrow_engine::ports::tasks::results::ItemOutput;
use windrow_engine::ports::tasks::store::TaskView;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ResultParams {
    /// Output format; default: from `Accept`, otherwise NDJSON.
    #[param(inline)]
    format: Option<Format>,
    /// CSV only: protect text cells from being read as spreadsheet formulas; default `on`.
    #[param(inline)]
    csv_guard: Option<CsvGuard>,
    /// Only rows after the item with this index (for a redrive: this position), to continue where an earlier response
    /// ended.
    #[param(minimum = 0, maximum = 9223372036854775807_u64)]
    after: Option<u64>,
    /// Maximum number of rows; default: all.
    #[param(minimum = 1, maximum = 9223372036854775807_u64)]
    limit: Option<u64>,
    /// For each failed item, include the newest output from a redrive of the task, if there is one.
    with_redrives: Option<bool>,
    /// Include each item's data from the task's source: `*` for all of it, or a comma-separated list of members,
    /// which become columns in CSV.
    #[param(max_length = 500, example = "user_id,email")]
    data: Option<String>,
    /// CSV only: comma-separated members of the outputs, one column each; default: one column with the whole JSON.
    #[param(max_length = 500, example = "id,status")]
    columns: Option<String>,
}

/// List results.
///
/// Returns the `output` of each successful item in index order, for a task with `results = keep`. While the task
/// runs, the results end before the first unsettled item. Rows never change, and `after` with the last index received
/// continues from there. An item that settled without an output has no row. Rows of a redrive have the indexes of the
/// original task and are ordered by their `position` in the redrive, to which `after` then refers.
///
/// `with_redrives` merges the results of the task's redrives, and of their redrives, in the task's own order: one row
/// per item. While a redrive runs, read again to get its new results.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/results", tag = "tasks", operation_id = "list_results",
    security(("bearer" = ["viewer", "business"])), params(ResultParams),
    responses(
        (status = 200, description = "The rows", content((String = "application/x-ndjson"), (String = "text/csv"))),
        (status = 409, description = "conflict: the task keeps no results, or no longer has them"),
    )
)]
pub(crate) async fn results(
    State(app): State<App>,
    PathTask(task): PathTask,
    Params(params): Params<ResultParams>,
    headers: HeaderMap,
) -> HttpResult {
    let format = Format::wanted(params.format, &headers);
    let from = first_of(params.after)?;
    if task.tuning.results == Results::Off {
        let advice = "create a task with results = keep; results that were not kept can't be recovered";
        return Err(ServiceError::conflict(format!("{} doesn't keep results", task.id), advice).into());
    }
    let members = params.data.as_deref().map(Members::parse);
    let rows = Rows {
        form: match format {
            Format::Csv => Form::Csv,
            Format::Ndjson => Form::Ndjson,
        },
        guard: params.csv_guard.unwrap_or_default().into(),
        columns: match &params.columns {
            None => Columns::Whole,
            Some(names) => columns(names, format)?,
        },
        keys: app.service.failures.keys(&task).await?,
        with_position: app.service.failures.is_redrive(&task)?,
        data: members.as_ref().map(Columns::from),
    };
    let results = &app.service.results;
    let reader = match params.with_redrives.unwrap_or(false) {
        true => Outputs::Joined(Box::new(
            results.read_joined(&app.service.failures, &task, from).await?,
        )),
        false => Outputs::Own(results.read(&task, from).await?),
    };
    let name = format!("{}-results", task.id);
    let head = rows.header();
    let begin = Some((reader, limit_of(params.limit)?));
    let pages = move |reader: Option<(Outputs, u64)>| {
        let (app, task, rows, members) = (app.clone(), task.clone(), rows.clone(), members.clone());
        async move {
            match reader {
                Some((reader, left)) => page(&app, &task, (rows, members), reader, left).await,
                None => Ok((Vec::new(), None)),
            }
        }
    };
    Ok(answer(name, format, head, begin, pages).await?)
}

/// Source of the rows: the task's own results, or those joined with its redrives.
enum Outputs {
    Own(Reader),
    Joined(Box<Joined>),
}

impl Outputs {
    async fn page(&mut self) -> Result<Vec<ItemOutput>, ServiceError> {
        match self {
            Outputs::Own(reader) => reader.page().await,
            Outputs::Joined(joined) => joined.page().await,
        }
    }
}

/// Returns the first index to read.
pub(crate) fn first_of(after: Option<u64>) -> Result<ItemIndex, ServiceError> {
    match after {
        None => Ok(ItemIndex(0)),
        Some(after) if after < INDEX_MAX => Ok(ItemIndex(after + 1)),
        Some(_) => Err(ServiceError::invalid(
            "after",
            format!("must be less than {INDEX_MAX}"),
        )),
    }
}

/// Returns the maximum number of rows to read.
fn limit_of(limit: Option<u64>) -> Result<u64, ServiceError> {
    match limit {
        Some(0) => Err(ServiceError::invalid("limit", "must be at least 1")),
        limit => Ok(limit.unwrap_or(u64::MAX)),
    }
}

/// Parses the requested columns, which only CSV has.
pub(crate) fn columns(names: &str, format: Format) -> Result<Columns, ServiceError> {
    match format {
        Format::Ndjson => Err(ServiceError::invalid(
            "columns",
            "only CSV has columns; use `format=csv`",
        )),
        Format::Csv => Ok(Columns::parse(names)),
    }
}

async fn page(
    app: &App,
    task: &TaskView,
    (rows, members): (Rows, Option<Members>),
    mut reader: Outputs,
    left: u64,
) -> Result<(Vec<u8>, Option<(Outputs, u64)>), ServiceError> {
    let mut outputs = reader.page().await?;
    outputs.truncate(usize::try_from(left).unwrap_or(usize::MAX));
    let left = left - outputs.len() as u64;
    let indexes: Vec<ItemIndex> = outputs.iter().map(|output| output.index).collect();
    let failures = &app.service.failures;
    let data = match &members {
        Some(members) => failures.item_data(task, members, &indexes).await?,
        None => Vec::new(),
    };
    let origins = failures.origins(task, indexes).await?;
    let mut out = Vec::new();
    for (at, (output, origin)) in outputs.iter().zip(origins).enumerate() {
        let index = origin.map_or(output.index, |(_, index)| index);
        rows.push(index, output, data.get(at), &mut out);
    }
    let is_over = outputs.is_empty() || left == 0;
    Ok((out, (!is_over).then_some((reader, left))))
}
