//! Implementation of `--results-out`: outputs of items, written in index order while the job runs.
//!
//! A file grows as `FILE.partial` and gets its name at the end; a resumed run appends to it. Results are read from
//! the store, as far as they are available in order: a written row is never written again and never changes. For a
//! job that has ended, results include those of the runs over its failures, one row per item.

mod beside;
mod check;
mod sink;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tokio::time::timeout;

pub(in crate::run) use self::check::check;
use self::sink::{Opened, Sink, open};
use crate::exit::Exit;
use crate::fault::{Fault, of_file};
use crate::output::members::{Missing, OutputMembers};
use crate::run::args::RunArgs;
use crate::run::kept::only_failed;
use windrow_core::ids::{ItemIndex, TaskId};
use windrow_core::items::output::OUTPUT_TOO_LARGE;
use windrow_core::settings;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::handling::data_log::{DataLog, LogQuery};
use windrow_engine::ports::sources::resolver::RedriveSpec;
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::tasks::results::ItemOutput;
use windrow_engine::ports::tasks::store::{TaskStore, TaskView};
use windrow_node::Store;
use windrow_node::sources::origin_view;
use windrow_server::http::answer::result_rows::{Columns, Form, Rows};
use windrow_server::service::failures::item_data::{ItemData, Lookup, Members};
use windrow_server::service::results::{Keys, Results};

/// Interval between two reads of new results.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Number of data log lines read at once.
const LINES_OF_A_PAGE: u32 = 500;

/// Statistics of written results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::run) struct Written {
    /// Rows written by this run.
    pub(in crate::run) now: u64,
    /// Rows that were there before.
    pub(in crate::run) before: u64,
    /// Items that succeeded without an output, and so have no row. `None` until the job is over, and if only part of
    /// the rows was wanted or kept.
    pub(in crate::run) without: Option<u64>,
    /// Items whose output was too large to be kept, as far as the data log still has them.
    pub(in crate::run) too_large: u64,
    /// Columns whose member none of the written outputs has.
    pub(in crate::run) missing: Option<Missing>,
}

/// Background writer of a job's results.
pub(in crate::run) struct ResultsOut {
    /// Running writer. `None` once it has ended and its result was returned.
    task: Option<JoinHandle<Result<Written, Fault>>>,
    is_over: watch::Sender<bool>,
}

impl ResultsOut {
    /// Starts the writer if `--results-out` is given.
    ///
    /// # Errors
    /// Fails if the file can't be opened.
    pub(in crate::run) async fn begin(
        args: &RunArgs,
        store: &Arc<Store>,
        task: &TaskView,
        source: &Arc<dyn Source>,
    ) -> Result<Option<ResultsOut>, Fault> {
        let Some(path) = &args.results.out else {
            return Ok(None);
        };
        let rows = rows(args, keys_of(store, task).await?, path);
        let is_redrive = origin_view(task).is_ok_and(|view| view.is_some());
        let redrives = match task.status.is_terminal() {
            true => only_failed::redrives(&**store, task).await?,
            false => Vec::new(),
        };
        // Rows of a redrive have the indexes of another task, so the last one can't be determined. And rows of redone
        // items belong between existing rows.
        let goes_on = rows.form == Form::Ndjson && !is_redrive && redrives.is_empty();
        let opened = open(path, (&rows, goes_on), args.results.after);
        let Opened {
            sink,
            after,
            rows: before,
        } = opened.map_err(|error| unwritten(path, &error))?;
        let writer = Writer {
            results: Results::new(store.clone()),
            store: store.clone(),
            task: task.clone(),
            redrives,
            source: source.clone(),
            members: args.results.data.as_deref().map(Members::parse),
            is_redrive,
            is_whole: args.results.after.is_none(),
            path: path.clone(),
            columns: columns(args, &rows),
            rows,
            from: after.map_or(ItemIndex(0), |after| after.plus(1)),
            before,
            written: 0,
        };
        let (is_over, over) = watch::channel(false);
        let task = tokio::spawn(writer.run(sink, over));
        Ok(Some(ResultsOut {
            task: Some(task),
            is_over,
        }))
    }

    /// Returns only when rows can't be written any more. Cancel safe.
    pub(in crate::run) async fn broken(&mut self) -> Fault {
        let Some(task) = &mut self.task else {
            return std::future::pending().await;
        };
        let ended = joined(task.await);
        self.task = None;
        match ended {
            Err(fault) => fault,
            Ok(_) => std::future::pending().await,
        }
    }

    /// Writes the remaining rows. Returns the statistics unless [`Self::broken`] has reported the failure.
    ///
    /// # Errors
    /// Fails if the rows could not be written.
    pub(in crate::run) async fn finish(self) -> Result<Option<Written>, Fault> {
        let Some(task) = self.task else { return Ok(None) };
        self.is_over.send_replace(true);
        joined(task.await).map(Some)
    }
}

fn joined(ended: Result<Result<Written, Fault>, JoinError>) -> Result<Written, Fault> {
    ended.map_err(|error| Fault::bug(error.to_string()))?
}

/// Creates the check of members used as columns, or returns `None` if there are no such columns.
fn columns(args: &RunArgs, rows: &Rows) -> Option<OutputMembers> {
    let columns = args.results.columns.as_deref();
    columns.filter(|_| rows.form == Form::Csv).map(OutputMembers::new)
}

/// Returns the format of the rows.
fn rows(args: &RunArgs, keys: Keys, path: &Path) -> Rows {
    let is_csv = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    Rows {
        form: if is_csv { Form::Csv } else { Form::Ndjson },
        guard: args.results.guard.unwrap_or_default().into(),
        columns: args
            .results
            .columns
            .as_deref()
            .map_or(Columns::Whole, Columns::parse),
        keys,
        with_position: false,
        data: args
            .results
            .data
            .as_deref()
            .map(|text| Columns::from(&Members::parse(text))),
    }
}

/// Writes a file without rows for a run that has nothing to do.
///
/// # Errors
/// Fails if it can't be written.
pub(in crate::run) async fn write_none(args: &RunArgs, store: &Store) -> Result<(), Fault> {
    let Some(path) = &args.results.out else {
        return Ok(());
    };
    let keys = Keys {
        store: TaskStore::store_id(store).await?,
        task: TaskId(0),
    };
    let opened = open(path, (&rows(args, keys, path), false), args.results.after);
    let written = opened.and_then(|opened| opened.sink.finish());
    written.map_err(|error| unwritten(path, &error))
}

/// Returns the keys of a task's items.
pub(in crate::run) async fn keys_of(store: &Store, task: &TaskView) -> Result<Keys, Fault> {
    let origin = origin_view(task).map_err(|error| Fault::bug(error.to_string()))?;
    Ok(Keys {
        store: TaskStore::store_id(store).await?,
        task: origin.and_then(|view| view.keys_of()).unwrap_or(task.id),
    })
}

/// State of the background writer.
struct Writer {
    results: Results,
    store: Arc<Store>,
    task: TaskView,
    /// Runs over the failures of the job.
    redrives: Vec<(TaskView, RedriveSpec)>,
    source: Arc<dyn Source>,
    members: Option<Members>,
    is_redrive: bool,
    /// True if rows start with the first item.
    is_whole: bool,
    path: PathBuf,
    rows: Rows,
    columns: Option<OutputMembers>,
    from: ItemIndex,
    before: u64,
    written: u64,
}

impl Writer {
    async fn run(mut self, mut sink: Sink, mut over: watch::Receiver<bool>) -> Result<Written, Fault> {
        loop {
            let is_over = *over.borrow();
            sink = self.catch_up(sink).await?;
            if is_over {
                return self.end(sink).await;
            }
            // The sender is gone if the run was cut off: there is nothing left to do.
            if let Ok(Err(_)) = timeout(LOOK_EVERY, over.changed()).await {
                return Ok(self.so_far());
            }
        }
    }

    fn so_far(&self) -> Written {
        Written {
            now: self.written,
            before: self.before,
            without: None,
            too_large: 0,
            missing: self.columns.clone().and_then(OutputMembers::missing),
        }
    }

    /// Writes all results that are available in order now.
    async fn catch_up(&mut self, mut sink: Sink) -> Result<Sink, Fault> {
        let view = self.view().await?;
        let reader = self
            .results
            .read_with(self.store.clone(), &view, &self.redrives, self.from);
        let mut reader = reader.await.map_err(|error| self.unread(&error))?;
        loop {
            let page = reader.page().await.map_err(|error| self.unread(&error))?;
            let Some(last) = page.last() else {
                return Ok(sink);
            };
            let next = last.index.plus(1);
            let rows = self.write_rows(&page).await;
            let put = spawn_blocking(move || {
                let put = sink.put(&rows);
                (sink, put)
            });
            let (back, put) = put.await.map_err(|error| Fault::bug(error.to_string()))?;
            put.map_err(|error| unwritten(&self.path, &error))?;
            sink = back;
            (self.from, self.written) = (next, self.written + page.len() as u64);
        }
    }

    async fn view(&self) -> Result<TaskView, Fault> {
        let view = TaskStore::get(&*self.store, self.task.id).await?;
        Ok(view.unwrap_or_else(|| self.task.clone()))
    }

    async fn write_rows(&mut self, page: &[ItemOutput]) -> Vec<u8> {
        let members = self.members.as_ref().unwrap_or(&Members::All);
        let is_looked_up = self.members.is_some() || self.is_redrive;
        let mut lookup = Lookup::new(&*self.source, members);
        let mut out = Vec::new();
        for output in page {
            if let Some(columns) = &mut self.columns {
                columns.see(&output.json);
            }
            let data = if is_looked_up {
                lookup.item(output.index).await
            } else {
                ItemData::default()
            };
            let index = data.origin.unwrap_or(output.index);
            self.rows.push(index, output, Some(&data), &mut out);
        }
        out
    }

    /// Ends the writer. The file gets its final name if the job is over for good.
    async fn end(self, sink: Sink) -> Result<Written, Fault> {
        let view = self.view().await?;
        let so_far = self.so_far();
        if !view.status.is_terminal() {
            return Ok(so_far);
        }
        let finished = spawn_blocking(move || sink.finish()).await;
        let finished = finished.map_err(|error| Fault::bug(error.to_string()))?;
        finished.map_err(|error| unwritten(&self.path, &error))?;
        let without = self.without(&view);
        let too_large = match without {
            Some(0) => 0,
            _ => self.too_large().await.map_err(|error| self.unread(&error))?,
        };
        Ok(Written {
            without,
            too_large,
            ..so_far
        })
    }

    async fn too_large(&self) -> Result<u64, StoreError> {
        let (mut lines, mut before) = (0, None);
        loop {
            let page = DataLog::search(
                &*self.store,
                &LogQuery {
                    code: Some(OUTPUT_TOO_LARGE.to_owned()),
                    before,
                    ..LogQuery::newest(Some(self.task.id), LINES_OF_A_PAGE)
                },
            )
            .await?;
            lines += page.lines.len() as u64;
            before = page.next;
            if before.is_none() {
                return Ok(lines);
            }
        }
    }

    /// Computes [`Written::without`] from the counters of the tasks.
    fn without(&self, view: &TaskView) -> Option<u64> {
        let redrives = || self.redrives.iter().map(|(task, _)| task);
        let is_kept = redrives().all(|task| task.tuning.results == settings::Results::Keep);
        let succeeded = view.counters.succeeded + redrives().map(|task| task.counters.succeeded).sum::<u64>();
        let is_known = self.is_whole && is_kept;
        is_known.then(|| succeeded.saturating_sub(self.before + self.written))
    }

    fn unread(&self, error: &dyn std::fmt::Display) -> Fault {
        let what = format!("can't read the results of {}", self.task.id);
        Fault::new(Exit::Failed, what, error.to_string())
            .hint("run the same command again: it resumes the job")
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Fault {
    let what = format!("can't write results to {}", path.display());
    let hint = match error.kind() {
        io::ErrorKind::StorageFull => {
            "free disk space, then run the same command again: it resumes without losses; or name \
                another --results-out"
        }
        _ => "run the same command again, also with another --results-out; no data is lost",
    };
    Fault::new(Exit::Failed, what, of_file(error)).hint(hint)
}
