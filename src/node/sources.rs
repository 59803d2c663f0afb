//! Sources, named and opened by whoever starts a job.

use std::sync::Arc;

use crate::{StateDir, Store};
use async_trait::async_trait;
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::sources::provision::ProvisionError;
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::sources::store::{IndexedSource, SourceStore};
use windrow_engine::ports::tasks::store::TaskView;
pub use windrow_handlers::origin::OriginView;
pub use windrow_sources::{
    BOM, CsvFormat, Expansion, Fetcher, Format, Guard, IndexProgress, IndexWatch, Input, OpenSourceError,
    OpenedSource, Opening, Packing, Resolver, SourceSpec, StoredSourceError, StoredSources, open, open_rows,
    read_once,
};

/// Opens a source for inspection: it is read anew, and nothing is stored.
///
/// # Errors
/// As [`open`].
pub async fn open_for_a_look(spec: &SourceSpec, now: WallMs) -> Result<OpenedSource, OpenSourceError> {
    let watch = IndexWatch::default();
    // Unpacked data is read through an open file, which loses its name when this returns.
    let spool = tempfile::tempdir().map_err(|error| OpenSourceError::Spool {
        name: "the source".to_owned(),
        path: std::env::temp_dir(),
        error,
    })?;
    open(
        spec,
        &Opening {
            store: &Forgetful,
            spool: spool.path(),
            watch,
            reuse: false,
            expansion: Expansion::default(),
            now,
        },
    )
    .await
}

/// Source store that keeps nothing.
struct Forgetful;

#[async_trait]
impl SourceStore for Forgetful {
    async fn save(&self, _: &IndexedSource, _: &[Vec<u8>]) -> Result<i64, StoreError> {
        Ok(0)
    }

    async fn find(&self, _: &str, _: &str) -> Result<Option<(i64, IndexedSource)>, StoreError> {
        Ok(None)
    }

    async fn part(&self, _: i64, _: u32) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }
}

/// Returns the sources of a store's tasks, as used by a node.
pub fn stored_sources(store: &Arc<Store>, state: &StateDir, clock: &Arc<dyn Clock>) -> StoredSources {
    let (uploads, failures, tasks) = (store.clone(), store.clone(), store.clone());
    let appended = store.clone();
    StoredSources::new(
        store.clone(),
        uploads,
        failures,
        appended,
        tasks,
        state.spool(),
        clock.clone(),
    )
}

/// Opens the source of a task, for a run or a preview. The most recent ones stay open.
///
/// # Errors
/// `SourceChanged` if it has changed since, `Unavailable` if a retry may help.
pub async fn open_stored(
    sources: &StoredSources,
    task: &TaskView,
    one_of_many: Option<&str>,
) -> Result<Arc<dyn Source>, ProvisionError> {
    sources
        .open(task)
        .await
        .map_err(|error| match (error, one_of_many) {
            (StoredSourceError::Missing { path, .. }, Some(node)) => {
                let path = path.display();
                let text = format!(
                    "node {node} has no file {path}; put it at the same path on every node of the pool, or \
                     create the task from an upload, which every node can read"
                );
                ProvisionError::Unavailable(text)
            }
            (StoredSourceError::Changed(text) | StoredSourceError::Missing { text, .. }, _) => {
                ProvisionError::SourceChanged(text)
            }
            (StoredSourceError::Unavailable(text), _) => ProvisionError::Unavailable(text),
        })
}

/// True if the business's handler succeeded in the task whose failures this task redrives.
///
/// # Errors
/// `Unavailable` if a retry may help.
pub(crate) async fn proven_origin(sources: &StoredSources, task: &TaskView) -> Result<bool, ProvisionError> {
    let proven = sources.has_proven_origin(task, |_| true).await;
    proven.map_err(|error| ProvisionError::Unavailable(error.to_string()))
}

/// Returns the wrapper for a redrive's handler, which sees the items of the original task; `None` for other tasks.
///
/// # Errors
/// Fails if the task's source can't be parsed.
pub fn origin_view(task: &TaskView) -> Result<Option<OriginView>, ProvisionError> {
    match SourceSpec::parse(&task.source) {
        Ok(SourceSpec::Redrive(spec)) => Ok(Some(OriginView::new(spec.keys_of))),
        Ok(_) => Ok(None),
        Err(why) => Err(ProvisionError::SourceChanged(format!(
            "the source can't be parsed: {why}"
        ))),
    }
}
