//! Writer of failed items as lines of JSON. The file appears complete or not at all.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::out_file::{self, Half};
use crate::exit::Exit;
use crate::fault::{Fault, of_file};
use crate::run::args::{Output, RunArgs};
use windrow_core::ids::{ItemIndex, TaskId};
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::tasks::failure_list::{FailureList, FailurePage, RecordedItem};
use windrow_server::http::answer::time::rfc3339;
use windrow_server::service::failures::item_data::{ItemData, Lookup, Members};
use windrow_server::service::results::Keys;

/// Number of items read at once.
const PAGE: u32 = 1_000;

/// Failed items to write.
pub(in crate::run) struct Failed<'a> {
    pub(in crate::run) failures: &'a dyn FailureList,
    pub(in crate::run) task: TaskId,
    /// Source of the item keys in the output.
    pub(in crate::run) keys: Keys,
    /// Items of the task; the source may be gone by now.
    pub(in crate::run) source: Result<Arc<dyn Source>, Fault>,
    /// Members of their data to write.
    pub(in crate::run) members: &'a Members,
}

/// Start of every line, by which an earlier file is recognized.
const LINE_BEGINNING: &[u8] = b"{\"index\":";

/// Line for one failed item.
#[derive(Serialize)]
struct Line<'a> {
    index: u64,
    key: String,
    code: &'a str,
    message: &'a str,
    attempts: u32,
    /// Attempts that count against `max_attempts`.
    charged: u32,
    /// Set if nothing showed whether the handler failed for this item alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unconfirmed: bool,
    /// Minimum number of calls for other items that were answered meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    others_answered: Option<u64>,
    output: Option<Box<RawValue>>,
    at: String,
    data: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_missing: Option<String>,
}

/// Checks the target of the failures before the run, not after hours of it.
///
/// # Errors
/// `Usage` if nothing can be written there, or if something would be lost.
pub(in crate::run) fn check(args: &RunArgs) -> Result<(), Fault> {
    let Some(path) = &args.failures_out else {
        return Ok(());
    };
    let what = format!("can't write failures to {}", path.display());
    if path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("csv"))
    {
        let because = "failures are lines of JSON, but the name looks like CSV";
        let named = path.with_extension("ndjson");
        return Err(
            Fault::new(Exit::Usage, what, because).hint(format!("--failures-out {}", named.display()))
        );
    }
    let because = if path.as_os_str() == "-" {
        (args.output == Output::Json).then(|| "standard output has the JSON summary".to_owned())
    } else {
        unusable(path, args)
    };
    let Some(because) = because else { return Ok(()) };
    let or_stdout = if path.as_os_str() == "-" {
        ""
    } else {
        ", or - for standard output"
    };
    let hint = format!("name a separate file in an existing directory{or_stdout}");
    Err(Fault::new(Exit::Usage, what, because).hint(hint))
}

/// Returns the reason why nothing may be written there, or `None` if a file can be created.
fn unusable(path: &Path, args: &RunArgs) -> Option<String> {
    if let Some(because) = out_file::unfit(path) {
        return Some(because.to_owned());
    }
    if let Some(used) = out_file::needed(args, path) {
        return Some(format!("the run needs that file: it is {}", used.display()));
    }
    if out_file::is_foreign(path, &[LINE_BEGINNING]) {
        return Some("the file exists and is not a failures file".to_owned());
    }
    out_file::unmakeable(path)
}

/// Writes the failures of a task to a file (or `-`) and returns their number. The file appears only when it is
/// complete.
pub(in crate::run) async fn write(of: Failed<'_>, path: &Path) -> Result<u64, Fault> {
    let failed = |error: io::Error| {
        let what = format!("can't write the failed items to {}", path.display());
        Fault::new(Exit::Failed, what, of_file(&error))
            .hint("run the same command again with another --failures-out; the run itself is saved")
    };
    if path.as_os_str() == "-" {
        return pages(&of, &mut io::stdout(), &failed).await;
    }
    let (half, file) = Half::beside(path).map_err(failed)?;
    let mut out = BufWriter::new(file);
    let written = pages(&of, &mut out, &failed).await?;
    let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().and_then(|()| half.name()).map_err(failed)?;
    Ok(written)
}

/// Writes an empty file for a run that has nothing to do.
///
/// # Errors
/// Fails if it can't be created.
pub(in crate::run) fn write_none(args: &RunArgs) -> Result<(), Fault> {
    let Some(path) = args
        .failures_out
        .as_deref()
        .filter(|path| path.as_os_str() != "-")
    else {
        return Ok(());
    };
    Half::beside(path)
        .and_then(|(half, _)| half.name())
        .map_err(|error| {
            let what = format!("can't write the failed items to {}", path.display());
            Fault::new(Exit::Failed, what, of_file(&error))
        })
}

async fn pages(
    of: &Failed<'_>,
    out: &mut (impl Write + ?Sized),
    failed: &impl Fn(io::Error) -> Fault,
) -> Result<u64, Fault> {
    let (mut after, mut written) = (None::<ItemIndex>, 0);
    let mut lookup = of
        .source
        .as_ref()
        .map(|source| Lookup::new(&**source, of.members));
    loop {
        let page = of
            .failures
            .page(of.task, &FailurePage::ByIndex(after), PAGE)
            .await?;
        for item in &page {
            let carried = match &mut lookup {
                Ok(lookup) => lookup.item(item.index).await,
                Err(fault) => ItemData {
                    missing: Some(fault.because.join("; ")),
                    ..ItemData::default()
                },
            };
            writeln!(out, "{}", line(&of.keys, item, carried)).map_err(failed)?;
        }
        written += page.len() as u64;
        match page.last() {
            Some(last) if page.len() == PAGE as usize => after = Some(last.index),
            _ => break,
        }
    }
    out.flush().map_err(failed)?;
    Ok(written)
}

/// Formats one failure. For a run over failures of another job, the index is that of the first job: the row that
/// users know.
fn line(keys: &Keys, item: &RecordedItem, carried: ItemData) -> String {
    let output = item.output.clone().map(|text| {
        RawValue::from_string(text.clone())
            .unwrap_or_else(|_| serde_json::value::to_raw_value(&text).expect("any text is a JSON string"))
    });
    let code = item.code.as_deref().unwrap_or_default();
    let message = item.message.as_deref().unwrap_or_default();
    let at = rfc3339(item.last_at);
    let ItemData {
        data,
        missing: data_missing,
        origin,
    } = carried;
    let (index, attempts) = (origin.unwrap_or(item.index), item.attempts);
    let line = Line {
        index: index.0,
        key: keys.store.item_key(keys.task, index),
        code,
        message,
        attempts,
        charged: item.charged,
        unconfirmed: item.is_unconfirmed,
        others_answered: item.others_answered,
        output,
        at,
        data,
        data_missing,
    };
    serde_json::to_string(&line).expect("numbers, texts and JSON are JSON")
}
