//! Writes every failed item as a line of JSON: whole, or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::value::RawValue;

use super::super::exit::Exit;
use super::super::fault::Fault;
use super::outcome::time_text;
use crate::domain::ids::{ItemIndex, TaskId};
use crate::ports::task_store::{FailedItem, TaskStore};

/// Items read at once.
const PAGE: u32 = 1_000;

/// One line.
#[derive(Serialize)]
struct Line<'a> {
    index: u64,
    code: &'a str,
    message: &'a str,
    attempts: u32,
    output: Option<Box<RawValue>>,
    at: String,
}

/// Writes the failures of a task to a file (or `-`) and says how many they were. The file appears when it is whole.
pub(super) async fn write(tasks: &dyn TaskStore, task: TaskId, path: &Path) -> Result<u64, Fault> {
    let failed = |error: io::Error| {
        let what = format!("the failed items can't be written to {}", path.display());
        Fault::new(Exit::Failed, what, error.to_string())
            .hint("run the same command again with another --failures-out; the run itself is saved")
    };
    if path.as_os_str() == "-" {
        return pages(tasks, task, &mut io::stdout(), &failed).await;
    }
    let half = Half::beside(path);
    let mut out = BufWriter::new(File::create(&half.path).map_err(failed)?);
    let written = pages(tasks, task, &mut out, &failed).await?;
    let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().and_then(|()| fs::rename(&half.path, path)).map_err(failed)?;
    Ok(written)
}

async fn pages(
    tasks: &dyn TaskStore,
    task: TaskId,
    out: &mut (impl Write + ?Sized),
    failed: &impl Fn(io::Error) -> Fault,
) -> Result<u64, Fault> {
    let (mut after, mut written) = (None::<ItemIndex>, 0);
    loop {
        let page = tasks.failures(task, after, PAGE).await?;
        for item in &page {
            writeln!(out, "{}", line(item)).map_err(failed)?;
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

fn line(item: &FailedItem) -> String {
    let output = item.output.clone().map(|text| {
        RawValue::from_string(text.clone())
            .unwrap_or_else(|_| serde_json::value::to_raw_value(&text).expect("any text is a JSON string"))
    });
    let (code, message) = (item.code.as_str(), item.message.as_str());
    let at = time_text(item.at);
    let line = Line { index: item.index.0, code, message, attempts: item.attempts, output, at };
    serde_json::to_string(&line).expect("numbers, texts and JSON are JSON")
}

/// A file under way, removed unless it got its name.
struct Half {
    path: PathBuf,
}

impl Half {
    fn beside(path: &Path) -> Half {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}.part", std::process::id()));
        Half { path: path.with_file_name(name) }
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path.display(), %error, "a half-written file is left");
        }
    }
}
