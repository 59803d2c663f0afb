//! `--results-out`: what items came to, written in index order while the job runs.
//!
//! A file grows as `FILE.partial` and gets its name at the end; a run that goes on appends to it. Results are read from
//! the store, as far as they can be read in order: what was written once is never written again, and never changes.

mod beside;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::args::RunArgs;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::run::end::failures_out;
use windrow_core::ids::ItemIndex;
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::tasks::results::ItemOutput;
use windrow_engine::ports::tasks::store::{TaskStore, TaskView};
use windrow_node::Store;
use windrow_node::sources::origin_view;
use windrow_server::http::answer::result_rows::{Columns, Form, Rows};
use windrow_server::service::failures::item_data::{ItemData, Lookup, Members};
use windrow_server::service::results::{Keys, Results};

/// Between two looks for more.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// How files of results begin: NDJSON, CSV.
const ROW_BEGINNINGS: [&[u8]; 2] = [b"{\"index\":", b"index,key"];

/// The flags that make no sense together are refused before anything begins.
///
/// # Errors
/// `Usage` when nothing can be written there.
pub(in crate::run) fn check(args: &RunArgs) -> Result<(), Fault> {
    let Some(path) = &args.results.out else {
        return Ok(());
    };
    let because = match path.metadata() {
        _ if path.as_os_str() == "-" && args.output == crate::args::Output::Json => {
            "standard output takes the JSON summary"
        }
        _ if path.as_os_str() == "-" && args.failures_out.as_deref() == Some(path) => {
            "the failed items go to standard output"
        }
        Ok(there) if there.is_dir() => "it is a directory",
        _ if path.as_os_str() == "-" => return Ok(()),
        _ if !folder(path).is_dir() => "its directory does not exist",
        there => {
            let half = partial(path);
            let of_whole = there.ok().and_then(|there| lost(args, path, &there));
            let of_half = || half.metadata().ok().and_then(|there| lost(args, &half, &there));
            match of_whole.or_else(of_half) {
                Some(because) => because,
                None => return Ok(()),
            }
        }
    };
    let what = format!("results can't be written to {}", path.display());
    Err(Fault::new(Exit::Usage, what, because)
        .hint("name a file of its own in a directory that exists, or - for standard output"))
}

/// What would be lost if the file that is there were replaced.
fn lost(args: &RunArgs, path: &Path, there: &fs::Metadata) -> Option<&'static str> {
    if failures_out::is_needed(args, there) {
        return Some("the run needs that file");
    }
    if !there.is_file() {
        return None;
    }
    if args.only_failed && there.len() > 0 && Some(path) == args.results.out.as_deref() {
        return Some("it is there already, and the items that are done again have results of their own");
    }
    failures_out::is_foreign(path, &ROW_BEGINNINGS)
        .then_some("it is there already, and what it holds are no results")
}

fn folder(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Where rows go.
enum Sink {
    Stdout,
    /// The file under way, and its name at the end.
    File(File, PathBuf),
}

impl Sink {
    fn put(&mut self, rows: &[u8]) -> io::Result<()> {
        match self {
            Sink::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(rows)?;
                out.flush()
            }
            Sink::File(file, _) => file.write_all(rows),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Sink::Stdout => Ok(()),
            Sink::File(file, path) => {
                file.sync_all()?;
                fs::rename(partial(&path), path)
            }
        }
    }
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

/// Writes the results of a job beside its run.
pub(in crate::run) struct ResultsOut {
    /// None once it has ended: what it ended with was told.
    task: Option<JoinHandle<Result<u64, Fault>>>,
    is_over: watch::Sender<bool>,
}

impl ResultsOut {
    /// Begins to write, where that is wanted.
    ///
    /// # Errors
    /// When the file can't be opened.
    pub(in crate::run) async fn begin(
        args: &RunArgs,
        store: &Arc<Store>,
        task: &TaskView,
        source: &Arc<dyn Source>,
    ) -> Result<Option<ResultsOut>, Fault> {
        let Some(path) = &args.results.out else {
            return Ok(None);
        };
        let rows = rows(args, store, task, path).await?;
        let is_redrive = origin_view(task).is_ok_and(|view| view.is_some());
        // Its rows have the indexes of another task: which of them is the last one can't be told.
        let goes_on = rows.form == Form::Ndjson && !is_redrive;
        let opened = open(path, (&rows, goes_on), args.results.after);
        let (sink, after) = opened.map_err(|error| unwritten(path, &error))?;
        let writer = Writer {
            results: Results::new(store.clone()),
            store: store.clone(),
            task: task.clone(),
            source: source.clone(),
            members: args.results.data.as_deref().map(Members::parse),
            is_redrive,
            path: path.clone(),
            rows,
            from: after.map_or(ItemIndex(0), |after| after.plus(1)),
            written: 0,
        };
        let (is_over, over) = watch::channel(false);
        let task = tokio::spawn(writer.run(sink, over));
        Ok(Some(ResultsOut {
            task: Some(task),
            is_over,
        }))
    }

    /// Ends only when rows can't be written any more. Cancel safe.
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

    /// Writes what is left; says how many rows this run wrote, unless [`Self::broken`] has told why it can't.
    ///
    /// # Errors
    /// When they could not be written.
    pub(in crate::run) async fn finish(self) -> Result<Option<u64>, Fault> {
        let Some(task) = self.task else { return Ok(None) };
        self.is_over.send_replace(true);
        joined(task.await).map(Some)
    }
}

fn joined(ended: Result<Result<u64, Fault>, JoinError>) -> Result<u64, Fault> {
    ended.map_err(|error| Fault::bug(error.to_string()))?
}

/// How rows are written.
async fn rows(args: &RunArgs, store: &Store, task: &TaskView, path: &Path) -> Result<Rows, Fault> {
    let is_csv = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let origin = origin_view(task).map_err(|error| Fault::bug(error.to_string()))?;
    Ok(Rows {
        form: if is_csv { Form::Csv } else { Form::Ndjson },
        columns: args
            .results
            .columns
            .as_deref()
            .map_or(Columns::Whole, Columns::parse),
        keys: Keys {
            store: TaskStore::store_id(store).await?,
            task: origin.and_then(|view| view.keys_of()).unwrap_or(task.id),
        },
        with_position: false,
        with_data: args.results.data.is_some(),
    })
}

/// The place for rows, and the index of the last one that is there already.
fn open(
    path: &Path,
    (rows, goes_on): (&Rows, bool),
    after: Option<u64>,
) -> io::Result<(Sink, Option<ItemIndex>)> {
    if path.as_os_str() == "-" {
        let mut sink = Sink::Stdout;
        if after.is_none() {
            sink.put(&rows.header())?;
        }
        return Ok((sink, after.map(ItemIndex)));
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(partial(path))?;
    // A cell of a CSV may hold line ends: what a crash cut can't be told, so all of it is written again.
    let found = if goes_on {
        last_row(&file, &rows.keys)?
    } else {
        None
    };
    let (end, last) = found.map_or((0, None), |(end, last)| (end, Some(last)));
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    if last.is_none() {
        file.write_all(&rows.header())?;
    }
    let sink = Sink::File(file, path.to_owned());
    Ok((sink, last.max(after.map(ItemIndex))))
}

/// Where the last whole row of the same job ends, and its index; none where there is none.
fn last_row(file: &File, keys: &Keys) -> io::Result<Option<(u64, ItemIndex)>> {
    let (mut end, mut found) = (0, None);
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let bytes = reader.read_until(b'\n', &mut line)?;
        if bytes == 0 || line.last() != Some(&b'\n') {
            return Ok(found);
        }
        let Some(index) = index_of(&line, keys) else {
            return Ok(None);
        };
        end += bytes as u64;
        found = Some((end, index));
    }
}

/// The index of a row of this job.
fn index_of(line: &[u8], keys: &Keys) -> Option<ItemIndex> {
    #[derive(serde::Deserialize)]
    struct Row<'a> {
        index: u64,
        key: &'a str,
    }
    let row: Row<'_> = serde_json::from_slice(line).ok()?;
    let index = ItemIndex(row.index);
    (row.key == keys.store.item_key(keys.task, index)).then_some(index)
}

/// See the module.
struct Writer {
    results: Results,
    store: Arc<Store>,
    task: TaskView,
    source: Arc<dyn Source>,
    members: Option<Members>,
    is_redrive: bool,
    path: PathBuf,
    rows: Rows,
    from: ItemIndex,
    written: u64,
}

impl Writer {
    async fn run(mut self, mut sink: Sink, mut over: watch::Receiver<bool>) -> Result<u64, Fault> {
        loop {
            let is_over = *over.borrow();
            sink = self.catch_up(sink).await?;
            if is_over {
                return self.end(sink).await;
            }
            // The sender is gone when the run was cut off: nothing more is to be done.
            if let Ok(Err(_)) = timeout(LOOK_EVERY, over.changed()).await {
                return Ok(self.written);
            }
        }
    }

    /// Writes all that can be read in order now.
    async fn catch_up(&mut self, mut sink: Sink) -> Result<Sink, Fault> {
        let view = self.view().await?;
        let mut reader = self
            .results
            .read(&view, self.from)
            .await
            .map_err(|error| self.unread(&error))?;
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

    async fn write_rows(&self, page: &[ItemOutput]) -> Vec<u8> {
        let members = self.members.as_ref().unwrap_or(&Members::All);
        let is_looked_up = self.members.is_some() || self.is_redrive;
        let mut lookup = Lookup::new(&*self.source, members);
        let mut out = Vec::new();
        for output in page {
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

    /// The file gets its name once the job is over for good.
    async fn end(self, sink: Sink) -> Result<u64, Fault> {
        if !self.view().await?.status.is_terminal() {
            return Ok(self.written);
        }
        let finished = spawn_blocking(move || sink.finish()).await;
        let finished = finished.map_err(|error| Fault::bug(error.to_string()))?;
        finished.map_err(|error| unwritten(&self.path, &error))?;
        Ok(self.written)
    }

    fn unread(&self, error: &dyn std::fmt::Display) -> Fault {
        let what = format!("the results of {} can't be read", self.task.id);
        Fault::new(Exit::Failed, what, error.to_string())
            .hint("run the same command again: it goes on where it was")
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Fault {
    let what = format!("results can't be written to {}", path.display());
    Fault::new(Exit::Failed, what, error.to_string())
        .hint("nothing is lost: run the same command again, also with another --results-out")
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::ids::{StoreId, TaskId};

    fn keys() -> Keys {
        Keys {
            store: StoreId("s1".to_owned()),
            task: TaskId(4),
        }
    }

    fn found(text: &str) -> Option<(u64, u64)> {
        let mut file = tempfile::tempfile().expect("a file can be made");
        file.write_all(text.as_bytes()).expect("it can be written");
        file.rewind().expect("it can be read");
        let found = last_row(&file, &keys()).expect("it can be read");
        found.map(|(end, index)| (end, index.0))
    }

    #[test]
    fn a_partial_file_goes_on_behind_its_last_whole_row() {
        let one = "{\"index\":3,\"key\":\"s1-t4-3\",\"output\":{}}\n";
        let two = "{\"index\":7,\"key\":\"s1-t4-7\",\"output\":\"a\"}\n";
        let both = format!("{one}{two}");
        assert_eq!(found(&both), Some((both.len() as u64, 7)));
        for cut in one.len()..both.len() {
            assert_eq!(found(&both[..cut]), Some((one.len() as u64, 3)), "cut at {cut}");
        }
        assert_eq!(found(&one[..9]), None);
        assert_eq!(found(""), None);
    }

    #[test]
    fn a_file_of_another_job_is_begun_anew() {
        assert_eq!(found("{\"index\":3,\"key\":\"s1-t5-3\",\"output\":{}}\n"), None);
        assert_eq!(found("something else\n"), None);
    }
}
