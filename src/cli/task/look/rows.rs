//! Items of a new task: checked, uploaded with a progress bar, and reported.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

use crate::exit::Exit;
use crate::fault::{Fault, of_file};
use crate::input::flags::Items;
use crate::link::Link;
use crate::output::body::{joined, shown};
use crate::output::table::{clean, human};
use crate::run::items::first_row;
use crate::run::items::source;
use crate::task::args::make::CreateArgs;
use windrow_client::{ClientError, Request, segment};
use windrow_node::sources::BOM;

/// Width of the progress bar. Unit: terminal cells.
const BAR_CELLS: usize = 22;
/// Interval between two updates of the bar.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// Largest part of the first row that is shown. Unit: characters.
const SAMPLE_CHARS_MAX: usize = 200;

/// Items inside the request itself.
#[derive(Serialize)]
pub(crate) struct Inline<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) items: &'a RawValue,
}

/// Checks that the flags are consistent and the file exists.
///
/// # Errors
/// `Usage` if CSV options are given without a CSV, `Rejected` if the file can't be read.
pub(crate) fn check(args: &CreateArgs) -> Result<(), Fault> {
    let items = &args.items;
    // For data that the node fetches itself, it supports only these two.
    let is_of_url = |flag: &&str| args.named.url.is_some() && ["--delimiter", "--no-header"].contains(flag);
    let foreign = items.csv_flags().find(|flag| !is_of_url(flag));
    if let Some(flag) = foreign.filter(|_| items.csv.is_none()) {
        let because = format!("{flag} applies to CSV files");
        return Err(Fault::new(Exit::Usage, "no CSV file", because).hint("--csv FILE"));
    }
    check_url(
        args.named.url.as_deref(),
        "send a file of this machine with --csv FILE, --ndjson FILE or --lines FILE",
    )?;
    match items.files().next().map(String::as_str) {
        None | Some("-") => Ok(()),
        Some(path) => match Path::new(path).metadata() {
            Ok(seen) if seen.is_dir() => Err(unread(path, "it is a directory")),
            Ok(_) => Ok(()),
            Err(_) if is_fetched(path) => Err(unread(path, "it is a URL, not a file")
                .hint(format!("use --url {path}: the node fetches the items itself"))),
            Err(error) => {
                let beside = source::beside(Path::new(path));
                Err(unread(path, &of_file(&error)).meant(beside.as_deref()))
            }
        },
    }
}

/// Checks that items can be fetched from the URL.
///
/// # Errors
/// `Usage` with this hint if they can't.
pub(crate) fn check_url(url: Option<&str>, hint: &str) -> Result<(), Fault> {
    match url.filter(|url| !is_fetched(url)) {
        None => Ok(()),
        Some(url) => {
            let because = format!("{url:?} must start with http:// or https://");
            Err(Fault::new(Exit::Usage, "can't fetch the items", because).hint(hint))
        }
    }
}

fn is_fetched(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

fn unread(path: &str, why: &str) -> Fault {
    let because = format!("{path}: {why}");
    Fault::new(Exit::Rejected, "can't read the items", because).hint("check the path; - is standard input")
}

/// Converts the node's refusal of a file to a fault with the file's name.
fn unusable(error: ClientError, name: &str) -> Fault {
    let is_of_rows = matches!(&error, ClientError::Problem(problem)
        if ["validation-failed", "not-unpacked"].contains(&problem.slug()));
    let fault = Fault::from(error);
    match is_of_rows {
        true => Fault {
            what: format!("{name} can't be used as items"),
            ..fault
        },
        false => fault,
    }
}

/// Uploads a file or standard input and reports its content. Returns the upload's number and its columns.
///
/// # Errors
/// Fails if the input can't be read, the upload breaks off, or a row can't be an item.
pub(crate) async fn upload(items: &Items, link: &Link<'_>) -> Result<(String, Vec<String>), Fault> {
    let (path, kind) = match (&items.csv, &items.ndjson, &items.lines) {
        (Some(path), ..) => (path.as_str(), "text/csv"),
        (None, Some(path), _) => (path.as_str(), "application/x-ndjson"),
        (None, None, Some(path)) => (path.as_str(), "text/plain"),
        (None, None, None) => return Err(Fault::bug("no file to upload")),
    };
    let delimiter = items.delimiter.map(|delimiter| match delimiter {
        '\t' => "tab".to_owned(),
        other => other.to_string(),
    });
    let request = Request::post("/v1/uploads")
        .header("content-type", kind)
        .query_option("delimiter", delimiter)
        .query_option("header", items.no_header.then_some(false))
        .query_option("quote", items.no_quote.then_some("none"))
        .query_option("lenient", items.lenient.then_some(true))
        .query_option("null", items.null.then_some(true));
    let name = if path == "-" { "standard input" } else { path };
    let wrong = |error: std::io::Error| unread(name, &of_file(&error));
    let (mut input, size) = open(path).await.map_err(wrong)?;
    let mut head = Vec::new();
    let mut first = (&mut input).take(BOM.len() as u64);
    first.read_to_end(&mut head).await.map_err(wrong)?;
    let has_bom = head == BOM;
    let input = std::io::Cursor::new(head).chain(input);
    let answer = link
        .client
        .upload(request, input, progress(link, name, size))
        .await
        .map_err(|error| unusable(error, name))?;
    let found: api::Upload = answer.read()?;
    if let Some(fault) = misread(items, name, &found) {
        discard(link, &found.id).await;
        return Err(fault);
    }
    tell(link, &found);
    if has_bom {
        link.must_say(&format!("warning: {}", first_row::HAS_BOM));
    }
    Ok((found.id, found.columns))
}

type Input = Box<dyn AsyncRead + Send + Unpin>;

/// Opens a file and returns its size, or opens standard input.
async fn open(path: &str) -> std::io::Result<(Input, Option<u64>)> {
    if path == "-" {
        return Ok((Box::new(tokio::io::stdin()), None));
    }
    let file = tokio::fs::File::open(path).await?;
    let seen = file.metadata().await.ok().filter(|seen| seen.is_file());
    Ok((Box::new(file), seen.map(|seen| seen.len())))
}

/// Returns a function that draws the progress. It draws nothing without a terminal.
fn progress(link: &Link<'_>, name: &str, size: Option<u64>) -> impl Fn(u64) + Send + use<> {
    let meter = link.meter();
    let name = clean(name);
    let begun = Instant::now();
    let drawn = std::sync::Mutex::new(begun);
    move |bytes| {
        let now = Instant::now();
        let mut drawn = drawn.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if now.duration_since(*drawn) < DRAW_EVERY {
            return;
        }
        *drawn = now;
        let pace = bytes as f64 / now.duration_since(begun).as_secs_f64().max(0.001);
        let pace = human::bytes(pace as u64);
        meter.show(&match size {
            Some(size) => {
                let (bar, percent) = (human::bar(bytes, size, BAR_CELLS), human::share_text(bytes, size));
                format!("uploading {name}  {bar}  {percent}  {pace}/s")
            }
            None => format!("uploading {name}  {}  {pace}/s", human::bytes(bytes)),
        });
    }
}

/// Prints the number of rows, the columns and the first row.
fn tell(link: &Link<'_>, found: &api::Upload) {
    let mut line = format!("rows {}", human::count(found.rows.unwrap_or_default()));
    if let Some(columns) = joined(&found.columns, ",") {
        line += &format!("   columns {}", clean(&columns));
    }
    if let Some(first) = found.sample.get(0) {
        let first: String = clean(&first.to_string()).chars().take(SAMPLE_CHARS_MAX).collect();
        line += &format!("   first {first}");
    }
    link.say(&line);
    if let Some(doubt) = doubt(found) {
        link.must_say(&format!("warning: {doubt}"));
    }
}

/// Refuses probable mistakes in the rows, like `windrow run`.
fn misread(items: &Items, name: &str, found: &api::Upload) -> Option<Fault> {
    let (row, rows) = (shown(&found.sample[0]), found.rows.unwrap_or_default());
    let refused = || first_row::refused(name, &row, &found.columns, rows);
    items.delimiter.is_none().then(refused).flatten()
}

/// Removes an upload that no task uses. The node would remove it a day later. It keeps one that a task may have used.
pub(crate) async fn discard(link: &Link<'_>, upload: &str) {
    let path = format!("/v1/uploads/{}", segment(upload));
    if let Err(fault) = link.send(Request::delete(&path)).await
        && fault.exit != Exit::Conflict
    {
        let because = fault.because.join("; ");
        link.say(&format!("the upload {upload} is kept for a day: {because}"));
    }
}

/// Returns the probable mistake in the rows, as `windrow run` reports it.
fn doubt(found: &api::Upload) -> Option<String> {
    let columns: Vec<String> = found.columns.iter().map(|column| clean(column)).collect();
    // The sample of a long row is only its beginning, as a text.
    first_row::doubt(&shown(&found.sample[0]), &columns)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_that_were_cut_at_the_wrong_place_are_told() {
        let upload = |column: Option<&str>, sample| api::Upload {
            columns: column.into_iter().map(str::to_owned).collect(),
            sample,
            ..Default::default()
        };
        let table = upload(Some("id;name"), json!([{"id;name": "1;a"}]));
        assert!(
            doubt(&table).is_some_and(|said| said.contains("--delimiter ';'")),
            "a table"
        );
        let long = format!("[{}", "1,".repeat(3000));
        for first in [json!([1, 2]), json!(long)] {
            let lines = upload(None, json!([first]));
            assert!(doubt(&lines).is_some_and(|said| said.contains("jq -c")), "lines");
        }
        assert_eq!(doubt(&upload(Some("id"), json!([{"id": "1"}]))), None);
        assert_eq!(doubt(&upload(None, json!([]))), None);
    }
}
