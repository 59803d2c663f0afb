//! Opens the sources of stored tasks: files, uploads, redrives. Keeps the most recent ones open, so that previews and
//! runs of the same task don't index again.

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

/// Maximum number of open sources. The index of a terabyte takes a few megabytes.
const OPEN_MAX: usize = 64;
/// Maximum depth of redrives of redrives.
const DEPTH_MAX: usize = 16;

/// Reason why a task's source can't be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoredSourceError {
    /// The source has changed since the task was created.
    #[error("{0}")]
    Changed(String),
    /// The file is no longer in its place, at least on this node.
    #[error("{text}")]
    Missing {
        /// Path of the file.
        path: PathBuf,
        /// Description of the fault.
        text: String,
    },
    /// Temporarily unavailable; a retry may help.
    #[error("{0}")]
    Unavailable(String),
}

/// Opener of the sources of stored tasks.
pub struct StoredSources {
    /// Store of the indexes.
    pub sources: Arc<dyn SourceStore>,
    /// Store of the uploads.
    pub uploads: Arc<dyn UploadStore>,
    /// Store of the failures that redrives repeat.
    pub failures: Arc<dyn FailureList>,
    /// Store of the items appended to open tasks.
    pub appended: Arc<dyn AppendStore>,
    /// Store of the origin tasks of redrives.
    pub tasks: Arc<dyn TaskStore>,
    /// Spool directory with piped input.
    pub spool: PathBuf,
    /// Clock for opening sources.
    pub clock: Arc<dyn Clock>,
    /// Open sources, oldest first.
    open: Mutex<VecDeque<Open>>,
}

/// An open source of a task.
struct Open {
    task: TaskId,
    /// Description used for opening; a hook may change the task's.
    json: String,
    source: Arc<dyn Source>,
}

impl StoredSources {
    /// Creates an opener without open sources.
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

    /// Opens the source of a task.
    ///
    /// # Errors
    /// See [`StoredSourceError`].
    pub async fn open(&self, task: &TaskView) -> Result<Arc<dyn Source>, StoredSourceError> {
        self.open_within(task, DEPTH_MAX).await
    }

    /// True if items succeeded in one of the tasks whose failures this task redrives, among those accepted by
    /// `counts`. All its items have failed before, so further failures are then the items' fault. False for other
    /// tasks.
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

    /// Boxed, since a redrive recursively opens its origin.
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
                // Can grow, and needs no opening.
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
                // An empty list, while files must have items.
                SourceSpec::Inline { items } if task.total == ItemCount(0) => {
                    let source = InlineSource::new(&items);
                    Arc::new(source.ok_or_else(|| damaged(task, "it is not a list"))?)
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
            // A pipe that took the file's place may have no writer.
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
        let text = format!("the source of {} has changed since the task was created", task.id);
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
        let gone = || {
            StoredSourceError::Changed(format!(
                "the task {}, whose failures these are, no longer exists",
                spec.origin
            ))
        };
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
    StoredSourceError::Changed(format!("the source of {} can't be parsed: {why}", task.id))
}

/// Classifies an error: only an unresponsive store or a failing disk is worth a retry.
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
