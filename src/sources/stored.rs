//! Opens the sources that tasks were made with: files, uploads, redrives. Keeps the last ones open, so that previews and
//! runs of the same task index nothing again.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;

use super::appended::AppendedSource;
use super::inline::InlineSource;
use super::open::{IndexWatch, Opening, open};
use super::open_error::OpenSourceError;
use super::piped::read_once;
use super::range::RangeSource;
use super::redrive::RedriveSource;
use super::spec::{Input, SourceSpec};
use super::unpack_error::Expansion;
use super::upload::UploadSource;
use windrow_core::ids::{ItemCount, TaskId};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::sources::append::AppendStore;
use windrow_engine::ports::sources::resolver::RedriveSpec;
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::sources::store::SourceStore;
use windrow_engine::ports::sources::uploads::UploadStore;
use windrow_engine::ports::tasks::failure_list::FailureList;
use windrow_engine::ports::tasks::store::{TaskStore, TaskView};
use windrow_engine::ports::{ErrorClass, StoreError};

/// Sources that stay open. (The index of a terabyte is some megabytes.)
const OPEN_MAX: usize = 64;
/// Redrives of redrives of … that are followed.
const DEPTH_MAX: usize = 16;

/// The source of a task can't be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoredSourceError {
    /// It is not what it was when the task was made.
    #[error("{0}")]
    Changed(String),
    /// The file isn't where it was, on this node at least.
    #[error("{text}")]
    Missing {
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        text: String,
    },
    /// Not now; worth another try.
    #[error("{0}")]
    Unavailable(String),
}

/// What opening needs.
pub struct StoredSources {
    /// Remembers indexes.
    pub sources: Arc<dyn SourceStore>,
    /// The bytes of uploads.
    pub uploads: Arc<dyn UploadStore>,
    /// The failures that redrives do again.
    pub failures: Arc<dyn FailureList>,
    /// The items that were appended to open tasks.
    pub appended: Arc<dyn AppendStore>,
    /// The tasks that failed.
    pub tasks: Arc<dyn TaskStore>,
    /// Where piped input was kept.
    pub spool: PathBuf,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The oldest first.
    open: Mutex<VecDeque<Open>>,
}

/// A source that is open.
struct Open {
    task: TaskId,
    /// The description that it was opened by: a hook may change it.
    json: String,
    source: Arc<dyn Source>,
}

impl StoredSources {
    /// Nothing is open yet.
    pub fn new(
        sources: Arc<dyn SourceStore>,
        uploads: Arc<dyn UploadStore>,
        failures: Arc<dyn FailureList>,
        appended: Arc<dyn AppendStore>,
        tasks: Arc<dyn TaskStore>,
        spool: PathBuf,
        clock: Arc<dyn Clock>,
    ) -> StoredSources {
        StoredSources {
            sources,
            uploads,
            failures,
            appended,
            tasks,
            spool,
            clock,
            open: Mutex::default(),
        }
    }

    /// The source of a task.
    ///
    /// # Errors
    /// See [`StoredSourceError`].
    pub async fn open(&self, task: &TaskView) -> Result<Arc<dyn Source>, StoredSourceError> {
        self.open_within(task, DEPTH_MAX).await
    }

    /// Whether items succeeded in one of the tasks whose failures a task does again, of those that `counts` takes: what
    /// fails there again is the items, since all of them are bad ones. Of no other task.
    ///
    /// # Errors
    /// See [`StoredSourceError`].
    pub async fn has_proven_origin(
        &self,
        task: &TaskView,
        counts: impl Fn(&TaskView) -> bool + Send,
    ) -> Result<bool, StoredSourceError> {
        let mut source = task.source.clone();
        for _ in 0..DEPTH_MAX {
            let Ok(SourceSpec::Redrive(spec)) = SourceSpec::parse(&source) else {
                break;
            };
            let Some(origin) = self.tasks.get(spec.origin).await.map_err(unavailable)? else {
                break;
            };
            if origin.counters.succeeded > 0 && counts(&origin) {
                return Ok(true);
            }
            source = origin.source.clone();
        }
        Ok(false)
    }

    /// Boxed, since a redrive opens its origin.
    fn open_within<'a>(
        &'a self,
        task: &'a TaskView,
        depth: usize,
    ) -> BoxFuture<'a, Result<Arc<dyn Source>, StoredSourceError>> {
        Box::pin(async move {
            if let Some(source) = self.known(task) {
                return Ok(source);
            }
            let spec = SourceSpec::parse(&task.source).map_err(|why| damaged(task, &why))?;
            let source: Arc<dyn Source> = match spec {
                // It grows, and is open already.
                SourceSpec::Appended => {
                    let blocks = self.appended.clone();
                    return Ok(Arc::new(AppendedSource::new(blocks, task.id, task.total)));
                }
                // The business may have changed the total since.
                SourceSpec::Range { .. } => Arc::new(RangeSource::new(task.total)),
                SourceSpec::File {
                    input: Input::Upload(id),
                    format,
                } => {
                    let (uploads, sources) = (self.uploads.clone(), self.sources.as_ref());
                    Arc::new(
                        UploadSource::open(uploads, sources, id, &format)
                            .await
                            .map_err(failed)?,
                    )
                }
                // One of no items, which no file may be.
                SourceSpec::Inline { items } if task.total == ItemCount(0) => {
                    let source = InlineSource::new(&items);
                    Arc::new(source.ok_or_else(|| damaged(task, "it is no list"))?)
                }
                SourceSpec::Redrive(spec) => self.redrive(task, spec, depth).await?,
                spec => self.file(task, &spec).await?,
            };
            self.keep(task, &source);
            Ok(source)
        })
    }

    async fn file(&self, task: &TaskView, spec: &SourceSpec) -> Result<Arc<dyn Source>, StoredSourceError> {
        if let SourceSpec::File {
            input: Input::Path(path),
            ..
        } = spec
            && read_once(Path::new(path))
        {
            // Nobody may be there to write into a pipe that took the file's place.
            return Err(failed(OpenSourceError::NotAFile(PathBuf::from(path))));
        }
        let (store, now) = (self.sources.as_ref(), self.clock.wall());
        let opening = Opening {
            store,
            spool: &self.spool,
            watch: IndexWatch::default(),
            reuse: true,
            expansion: Expansion::default(),
            now,
        };
        let opened = open(spec, &opening).await.map_err(failed)?;
        if opened.meaning == task.meaning {
            return Ok(opened.source);
        }
        let text = format!(
            "the source of {} holds other items than when the task was made",
            task.id
        );
        Err(StoredSourceError::Changed(text))
    }

    async fn redrive(
        &self,
        task: &TaskView,
        spec: RedriveSpec,
        depth: usize,
    ) -> Result<Arc<dyn Source>, StoredSourceError> {
        let next = depth
            .checked_sub(1)
            .ok_or_else(|| damaged(task, "too many redrives of redrives"))?;
        let origin = self.tasks.get(spec.origin).await.map_err(unavailable)?;
        let gone =
            || StoredSourceError::Changed(format!("{}, whose failures these are, is gone", spec.origin));
        let source = self.open_within(&origin.ok_or_else(gone)?, next).await?;
        Ok(Arc::new(RedriveSource::new(spec, self.failures.clone(), source)))
    }

    fn known(&self, task: &TaskView) -> Option<Arc<dyn Source>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let found = open.iter().find(|open| {
            let source = &open.source;
            let has_all = source.has_data() || source.total() == task.total;
            open.task == task.id && open.json == task.source && has_all
        });
        found.map(|open| open.source.clone())
    }

    fn keep(&self, task: &TaskView, source: &Arc<dyn Source>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|open| open.task != task.id);
        if open.len() >= OPEN_MAX {
            open.pop_front();
        }
        open.push_back(Open {
            task: task.id,
            json: task.source.clone(),
            source: source.clone(),
        });
    }
}

fn unavailable(error: StoreError) -> StoredSourceError {
    StoredSourceError::Unavailable(error.to_string())
}

fn damaged(task: &TaskView, why: &str) -> StoredSourceError {
    StoredSourceError::Changed(format!("the source of {} can't be understood: {why}", task.id))
}

/// Only a store that doesn't answer, or a disk that fails, is worth another try.
fn failed(error: OpenSourceError) -> StoredSourceError {
    let text = format!("{}: {}; try: {}", error.what(), error.because(), error.hint());
    if let OpenSourceError::NotFound(path) = error {
        return StoredSourceError::Missing { path, text };
    }
    match error.class() {
        ErrorClass::Transient => StoredSourceError::Unavailable(text),
        ErrorClass::Permanent => StoredSourceError::Changed(text),
    }
}
