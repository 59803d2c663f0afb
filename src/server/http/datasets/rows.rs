//! Results of one generation: all rows or single items.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::IntoParams;

use super::{number, readable};
use crate::http::answer::export::{CsvGuard, Format, answer};
use crate::http::answer::page::{PageQuery, Paging};
use crate::http::answer::result_rows::{Columns, Form, Rows};
use crate::http::front::App;
use crate::http::guard::{Caller, Params};
use crate::http::problem::HttpResult;
use crate::http::tasks::results::{columns, first_of};
use crate::service::ServiceError;
use crate::service::datasets::Results;
use windrow_core::ids::{INDEX_MAX, ItemIndex};
use windrow_engine::ports::datasets::store::Which;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RowParams {
    /// Output format; default: from `Accept`, otherwise NDJSON.
    #[param(inline)]
    format: Option<Format>,
    /// CSV only: protect text cells from being read as spreadsheet formulas; default `on`.
    #[param(inline)]
    csv_guard: Option<CsvGuard>,
    /// Only rows after the item with this index, to resume an interrupted response.
    #[param(minimum = 0, maximum = 9223372036854775807_u64)]
    after: Option<u64>,
    /// CSV only: comma-separated members of the outputs, one column each; default: one column with the whole JSON.
    #[param(max_length = 500, example = "id,status")]
    columns: Option<String>,
}

/// Get the results of a generation, in index order.
///
/// All rows belong to this generation, even if another one is published during the read. To resume an interrupted
/// response, use `after`.
#[utoipa::path(
    get, path = "/v1/datasets/{dataset}/generations/{generation}/results", operation_id = "generation_results",
    tag = "datasets", security(("bearer" = ["reader", "business"])),
    params(("generation" = String, Path, description = "Generation number", pattern = "^[0-9]{1,19}$"), RowParams),
    responses(
        (status = 200, description = "The rows", content((String = "application/x-ndjson"), (String = "text/csv"))),
        (status = 404, description = "not-found: never published, or no longer kept"),
    )
)]
pub(crate) async fn results(
    State(app): State<App>,
    caller: Caller,
    Path((name, no)): Path<(String, String)>,
    Params(params): Params<RowParams>,
    headers: HeaderMap,
) -> HttpResult {
    let format = Format::wanted(params.format, &headers);
    let from = first_of(params.after)?;
    let reading = readable(&app, &caller, &name, Which::No(number(&no)?)).await?;
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
        keys: app.service.datasets.keys(&reading).await?,
        with_position: false,
        data: None,
    };
    let file = format!("{name}-{no}");
    let (head, results) = (rows.header(), app.service.datasets.results(&reading, from));
    let pages = move |results: Option<Results>| {
        let rows = rows.clone();
        async move {
            match results {
                Some(results) => page(&rows, results).await,
                None => Ok((Vec::new(), None)),
            }
        }
    };
    Ok(answer(file, format, head, Some(results), pages).await?)
}

async fn page(rows: &Rows, mut results: Results) -> Result<(Vec<u8>, Option<Results>), ServiceError> {
    let outputs = results.page().await?;
    let mut out = Vec::new();
    for output in &outputs {
        rows.push(output.index, output, None, &mut out);
    }
    let is_over = outputs.is_empty();
    Ok((out, (!is_over).then_some(results)))
}

/// Formats a result row. The output is valid JSON: it was checked when it arrived.
pub(crate) fn show_row(
    generation: u64,
    index: ItemIndex,
    output: Box<str>,
) -> Result<api::GenerationItem, ServiceError> {
    let output = RawValue::from_string(output.into_string());
    Ok(api::GenerationItem {
        generation,
        index: index.0,
        output: output.map_err(|fault| ServiceError::Internal(fault.to_string()))?,
    })
}

/// Get one item of a generation by index.
#[utoipa::path(
    get, path = "/v1/datasets/{dataset}/generations/{generation}/items/{index}", operation_id = "generation_item",
    tag = "datasets", security(("bearer" = ["reader", "business"])),
    params(
        ("generation" = String, Path, description = "Generation number", pattern = "^[0-9]{1,19}$"),
        ("index" = String, Path, description = "0-based index of the item", pattern = "^[0-9]{1,19}$"),
    ),
    responses(
        (status = 200, body = api::GenerationItem),
        (status = 404, description = "not-found: the item has no output, or the generation doesn't exist"),
    )
)]
pub(crate) async fn item(
    State(app): State<App>,
    caller: Caller,
    Path((name, no, index)): Path<(String, String, String)>,
) -> HttpResult<Json<api::GenerationItem>> {
    let reading = readable(&app, &caller, &name, Which::No(number(&no)?)).await?;
    let missing = || ServiceError::not_found("output of item", &index);
    let at = index.parse().ok().filter(|at| *at < INDEX_MAX).map(ItemIndex);
    let at = at.ok_or_else(missing)?;
    let output = app.service.datasets.output(&reading.generation, at).await?;
    let output = output.ok_or_else(missing)?;
    Ok(Json(show_row(reading.generation.no.0, at, output)?))
}

/// Items per page, each of which costs its own read.
const MATCHES_MAX: u32 = 100;

/// Find items of a generation by key.
///
/// Returns the items whose output has this value in the member chosen by `publish_key`: a string as it is, a number
/// or boolean as JSON. Several items may share a key. At most 100 per page.
#[utoipa::path(
    get, path = "/v1/datasets/{dataset}/generations/{generation}/keys/{value}", operation_id = "generation_keys",
    tag = "datasets", security(("bearer" = ["reader", "business"])),
    params(
        ("generation" = String, Path, description = "Generation number", pattern = "^[0-9]{1,19}$"),
        ("value" = String, Path, description = "Key of the item"), PageQuery,
    ),
    responses(
        (status = 200, body = api::Page<api::GenerationItem>),
        (status = 409, description = "conflict: the generation has no keys"),
    )
)]
pub(crate) async fn keys(
    State(app): State<App>,
    caller: Caller,
    Path((name, no, value)): Path<(String, String, String)>,
    mut paging: Paging<u64>,
) -> HttpResult {
    paging.limit = paging.limit.min(MATCHES_MAX);
    let generation = readable(&app, &caller, &name, Which::No(number(&no)?))
        .await?
        .generation;
    let from = first_of(paging.after)?;
    let datasets = &app.service.datasets;
    let found = datasets
        .with_key(&generation, &value, from, paging.to_read())
        .await?;
    let page = paging.page(found, |output| output.index.0);
    let items: Result<Vec<api::GenerationItem>, ServiceError> = page
        .items
        .into_iter()
        .map(|output| show_row(generation.no.0, output.index, output.json))
        .collect();
    Ok(paging.answer(api::Page {
        items: items?,
        next_cursor: page.next_cursor,
    }))
}
