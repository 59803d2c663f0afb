//! Jobs: items, a handler, and a rate.

use std::fmt::Display;
use std::future::Future;
use std::io::{self, Cursor, Read};
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use serde::Serialize;
use windrow_config::TaskDefaults;
use windrow_core::ids::{ItemCount, ItemIndex};
use windrow_core::settings::check;
use windrow_core::settings::{Auto, RateLimit, Results};
use windrow_core::task::Tuning;
use windrow_engine::ports::handling::handler::HandlerFactory;
use windrow_handlers::answer::Answer;
use windrow_handlers::rust::{Cause, ItemHandler, OwnedItem, RustHandlerFactory, handler_fn};
use windrow_node::SystemClock;
use windrow_node::sources::{CsvFormat, Format, Input, SourceSpec};

use crate::Error;

/// Wraps a handler as a factory for a node.
pub(crate) fn factory(handler: impl ItemHandler) -> Arc<dyn HandlerFactory> {
    Arc::new(RustHandlerFactory::new(handler, Arc::new(SystemClock::new())))
}

/// Items of a job.
pub(crate) enum Items {
    /// Items that a description leads to.
    Spec(SourceSpec),
    /// Rows of the program, as NDJSON: read once, to a file of the folder, before the job starts.
    Rows(Box<dyn Read + Send>),
}

/// Items, a handler, and a rate. Identified by its [name](Job::name).
pub struct Job {
    pub(crate) name: String,
    pub(crate) items: Items,
    pub(crate) skip_first: ItemIndex,
    pub(crate) handler: Option<Arc<dyn HandlerFactory>>,
    tuning: Tuning,
    /// Description of the first invalid setting.
    fault: Option<String>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Job {
    /// Creates a job over the numbers of a range, with the name `job` unless [set](Job::name).
    pub fn items(range: Range<u64>) -> Job {
        let total = ItemCount(range.end.max(range.start));
        let skip_first = ItemIndex(range.start);
        Job {
            skip_first,
            ..Job::over("job".to_owned(), Items::Spec(SourceSpec::Range { total }))
        }
    }

    /// Creates a job over rows, each of which becomes an item with the row as its data, with the name `job` unless
    /// [set](Job::name). They are written to the folder before the job starts. To resume, give the same rows again.
    pub fn rows<T, I>(rows: I) -> Job
    where
        T: Serialize,
        I: IntoIterator<Item = T>,
        I::IntoIter: Send + 'static,
    {
        let mut rows = rows.into_iter();
        let rows = Rows {
            next: move || rows.next().map(|row| serde_json::to_vec(&row)),
            line: Cursor::default(),
        };
        Job::over("job".to_owned(), Items::Rows(Box::new(rows)))
    }

    /// Creates a job over the rows of a stream, as [`Job::rows`] does. It is read to its end before the job starts.
    ///
    /// # Panics
    /// Must be called within a Tokio runtime, which drives the stream.
    pub fn stream<T, S>(rows: S) -> Job
    where
        T: Serialize,
        S: Stream<Item = T> + Send + 'static,
    {
        let (runtime, mut rows) = (tokio::runtime::Handle::current(), Box::pin(rows));
        Job::rows(std::iter::from_fn(move || runtime.block_on(rows.next())))
    }

    /// Creates a job over the rows of a CSV file with a header; each item's data is an object. Named after the file.
    pub fn csv(path: impl AsRef<Path>) -> Job {
        Job::file(path.as_ref(), Format::Csv(CsvFormat::default()))
    }

    /// Creates a job over a file with one JSON value per line. Named after the file.
    pub fn ndjson(path: impl AsRef<Path>) -> Job {
        Job::file(path.as_ref(), Format::Ndjson)
    }

    /// Creates a job over the lines of a text file; each item's data is `{"line": "…"}`. Named after the file.
    pub fn lines(path: impl AsRef<Path>) -> Job {
        Job::file(path.as_ref(), Format::Lines)
    }

    fn file(path: &Path, format: Format) -> Job {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Job::over(
            name,
            Items::Spec(SourceSpec::File {
                input: Input::Path(path.to_string_lossy().into_owned()),
                format,
            }),
        )
    }

    fn over(name: String, items: Items) -> Job {
        // As in `windrow run` of a program: without a rate, as fast as the handler responds.
        let tuning = Tuning {
            rate: RateLimit::Unlimited,
            ..TaskDefaults::default().tuning
        };
        Job {
            name,
            items,
            skip_first: ItemIndex(0),
            handler: None,
            tuning,
            fault: None,
        }
    }

    /// Sets the name that identifies the job in its folder. The same name over the same items resumes the same job.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Job {
        self.name = name.into();
        self
    }

    /// Sets a closure that is called for each item. It returns `Ok(())` or an [`Answer`]; `Err` and panics are failed
    /// attempts.
    #[must_use]
    pub fn handler<F, Fut, T, E>(self, work: F) -> Job
    where
        F: Fn(OwnedItem) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send,
        T: Into<Answer>,
        E: Into<Cause>,
    {
        self.handler_of(handler_fn(work))
    }

    /// Sets a closure that is called with a clone of a state, such as a client or a pool, and each item.
    #[must_use]
    pub fn handler_with<S, F, Fut, T, E>(self, state: S, work: F) -> Job
    where
        S: Clone + Send + Sync + 'static,
        F: Fn(S, OwnedItem) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send,
        T: Into<Answer>,
        E: Into<Cause>,
    {
        self.handler(move |item| work(state.clone(), item))
    }

    /// Sets a handler that gets many items at once, with [`Job::batch`], and can return more than success or failure
    /// for each.
    #[must_use]
    pub fn handler_of(mut self, handler: impl ItemHandler) -> Job {
        self.handler = Some(factory(handler));
        self
    }

    /// Sets the rate, e.g. `"500/s"`; without one, items are sent as fast as the handler responds.
    #[must_use]
    pub fn rate(self, rate: &str) -> Job {
        let parsed = rate.parse();
        self.set(parsed, |tuning, rate| tuning.rate = rate)
    }

    /// Sets the number of calls in flight; without one, as many as help.
    #[must_use]
    pub fn concurrency(self, calls: u32) -> Job {
        let calls = at_least_one("concurrency", calls);
        self.set(calls, |tuning, calls| tuning.concurrency = Auto::Fixed(calls))
    }

    /// Sets the number of items per call, for [`Job::handler_of`].
    #[must_use]
    pub fn batch(self, items: u32) -> Job {
        self.set(at_least_one("batch", items), |tuning, items| tuning.batch = items)
    }

    /// Sets the number of attempts before an item fails.
    #[must_use]
    pub fn max_attempts(self, attempts: u32) -> Job {
        let attempts = at_least_one("max_attempts", attempts);
        self.set(attempts, |tuning, attempts| tuning.max_attempts = attempts)
    }

    /// Keeps the outputs of its items, which [`Running::outputs`](crate::Running::outputs) reads. Fixed once the job has
    /// begun.
    #[must_use]
    pub fn keep_results(mut self) -> Job {
        self.tuning.results = Results::Keep;
        self
    }

    /// Sets the timeout of a call. The call's future is then dropped, and the attempt has failed.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Job {
        self.tuning.timeout = timeout;
        self
    }

    fn set<T, E: Display>(mut self, value: Result<T, E>, set: impl FnOnce(&mut Tuning, T)) -> Job {
        match value {
            Ok(value) => set(&mut self.tuning, value),
            Err(why) => self.fault = self.fault.or_else(|| Some(why.to_string())),
        }
        self
    }

    /// Returns the settings, or an error if they are invalid.
    pub(crate) fn tuning(&self) -> Result<Tuning, Error> {
        if let Some(fault) = &self.fault {
            return Err(Error::Setting(fault.clone()));
        }
        match check::faults(&self.tuning).first() {
            Some(fault) => Err(Error::Setting(fault.to_string())),
            None => Ok(self.tuning.clone()),
        }
    }
}

/// Rows as lines of JSON.
struct Rows<F> {
    next: F,
    line: Cursor<Vec<u8>>,
}

impl<F: FnMut() -> Option<serde_json::Result<Vec<u8>>>> Read for Rows<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.line.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(row) = (self.next)() else { return Ok(0) };
            let mut line = row?;
            line.push(b'\n');
            self.line = Cursor::new(line);
        }
    }
}

fn at_least_one(name: &str, value: u32) -> Result<NonZeroU32, String> {
    NonZeroU32::new(value).ok_or_else(|| format!("{name} must be at least 1"))
}
