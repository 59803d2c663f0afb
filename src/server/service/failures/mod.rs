//! Failures of a task: groups, lists and records of single items.

pub(crate) mod fates;
pub mod item_data;
pub mod net;
pub mod selection;
mod unconfirmed;

use std::sync::Arc;

use super::ServiceError;
use crate::service::results::Keys;
use crate::service::sources::Sources;
use crate::service::stats::Stats;
use tokio::sync::Semaphore;
use windrow_core::ids::{ItemIndex, ShardId, TaskId};
use windrow_core::life::SKIPPED_BY_OPERATOR;
use windrow_engine::ports::ownership::peers::LiveShard;
use windrow_engine::ports::sources::provision::TaskItems;
use windrow_engine::ports::sources::resolver::{RedrivePart, RedriveSpec, SourceResolver};
use windrow_engine::ports::tasks::failure_list::{FailureList, FailurePage, RecordedItem, RecordedState};
use windrow_engine::ports::tasks::report_store::ReportStore;
use windrow_engine::ports::tasks::store::{ShardLife, TaskStore, TaskView};

/// Positions of the original task that are looked up together.
const PLACES_AT_ONCE: u32 = 256;

/// Failure with its original item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownFailure {
    /// Failure record of the item.
    pub item: RecordedItem,
    /// For a redrive, the original task and the item's index there; otherwise `None`.
    pub origin: Option<(TaskId, ItemIndex)>,
}

/// Knowledge about a single item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemStory {
    /// Recorded, because it failed at least once.
    Recorded(Box<ShownFailure>),
    /// Outside the window so far, not dispatched yet.
    Pending,
    /// Excluded, never to be dispatched.
    Excluded,
    /// In the dispatch window, dispatched or about to be, without a failure so far.
    InWindow,
}

impl ItemStory {
    /// Returns true if the item may still be unsettled.
    pub fn may_be_open(&self) -> bool {
        match self {
            ItemStory::Recorded(shown) => shown.item.state != RecordedState::Failed,
            ItemStory::Pending | ItemStory::InWindow => true,
            ItemStory::Excluded => false,
        }
    }
}

/// Limit of concurrent readers of item data.
const ITEM_READERS_MAX: usize = 2;

/// Service for failures and their outcomes.
pub struct Failures {
    /// Store of the failures.
    pub list: Arc<dyn FailureList>,
    pub(super) tasks: Arc<dyn TaskStore>,
    pub(super) reports: Arc<dyn ReportStore>,
    pub(super) resolver: Arc<dyn SourceResolver>,
    pub(super) items: Arc<dyn TaskItems>,
    pub(super) stats: Arc<Stats>,
    pub(super) item_readers: Semaphore,
}

impl Failures {
    pub(in crate::service) fn new<S>(
        store: &Arc<S>,
        sources: &Sources,
        items: Arc<dyn TaskItems>,
        stats: Arc<Stats>,
    ) -> Failures
    where
        S: FailureList + TaskStore + ReportStore + 'static,
    {
        Failures {
            list: store.clone(),
            tasks: store.clone(),
            reports: store.clone(),
            resolver: sources.resolver.clone(),
            items,
            stats,
            item_readers: Semaphore::new(ITEM_READERS_MAX),
        }
    }

    /// Returns a page of a task's failures.
    pub async fn page(
        &self,
        task: &TaskView,
        page: &FailurePage,
        limit: u32,
    ) -> Result<Vec<ShownFailure>, ServiceError> {
        let items = self.list.page(task.id, page, limit).await?;
        self.with_origins(task, items).await
    }

    /// Adds the original indexes to failures of a redrive.
    async fn with_origins(
        &self,
        task: &TaskView,
        items: Vec<RecordedItem>,
    ) -> Result<Vec<ShownFailure>, ServiceError> {
        let positions = items.iter().map(|item| item.index).collect();
        let origins = self.origins(task, positions).await?;
        let shown = items.into_iter().zip(origins);
        Ok(shown
            .map(|(item, origin)| ShownFailure { item, origin })
            .collect())
    }

    /// Returns the original task and index for each position of a redrive; `None` for other tasks.
    pub async fn origins(
        &self,
        task: &TaskView,
        positions: Vec<ItemIndex>,
    ) -> Result<Vec<Option<(TaskId, ItemIndex)>>, ServiceError> {
        let Some(spec) = self.redrive_of(task)? else {
            return Ok(vec![None; positions.len()]);
        };
        let (mut origins, mut looked_up) = (Vec::new(), LookedUp::default());
        for at in positions {
            let index = self.origin_of(&spec, at, &mut looked_up).await?;
            origins.push(index.map(|index| (spec.origin, index)));
        }
        Ok(origins)
    }

    /// Returns the original index for a position of a redrive; `None` if its row is no longer kept.
    async fn origin_of(
        &self,
        spec: &RedriveSpec,
        at: ItemIndex,
        looked_up: &mut LookedUp,
    ) -> Result<Option<ItemIndex>, ServiceError> {
        let mut skip = at.0;
        for part in &spec.parts {
            if skip >= part.count() {
                skip -= part.count();
                continue;
            }
            let RedrivePart::Places { code, first, .. } = part else {
                let RedrivePart::Indexes { first, .. } = part else {
                    return Ok(None);
                };
                return Ok(Some(ItemIndex(first + skip)));
            };
            let place = first + skip;
            if !looked_up.holds(code, place) {
                looked_up.first = place - place % u64::from(PLACES_AT_ONCE);
                looked_up.code.clone_from(code);
                let found = self
                    .list
                    .places(spec.origin, code, looked_up.first, PLACES_AT_ONCE)
                    .await?;
                looked_up.indexes = found;
            }
            return Ok(looked_up.get(place));
        }
        Ok(None)
    }

    /// Returns true if the task is a redrive.
    pub fn is_redrive(&self, task: &TaskView) -> Result<bool, ServiceError> {
        Ok(self.redrive_of(task)?.is_some())
    }

    /// Returns the key builder of a task; items of a redrive may keep the keys of the original task.
    pub async fn keys(&self, task: &TaskView) -> Result<Keys, ServiceError> {
        let keys_of = self.redrive_of(task)?.and_then(|spec| spec.keys_of);
        Ok(Keys {
            store: self.tasks.store_id().await?,
            task: keys_of.unwrap_or(task.id),
        })
    }

    /// Returns the redrives of a task, oldest first; at most one more than is examined.
    pub(in crate::service) async fn redrives_of(&self, task: TaskId) -> Result<Vec<TaskView>, ServiceError> {
        Ok(self.reports.redrives_of(task, fates::REDRIVES_MAX + 1).await?)
    }

    /// Returns the knowledge about an item.
    ///
    /// # Errors
    /// `NotFound` if the task has no such item; `ItemNotRecorded` if it was settled without a failure.
    pub async fn item(&self, task: &TaskView, index: ItemIndex) -> Result<ItemStory, ServiceError> {
        if index.0 >= task.total.0 {
            let last = task.total.0.saturating_sub(1);
            let name = format!("{} of {}; its items are 0 to {last}", index.0, task.id);
            return Err(ServiceError::not_found("item", name));
        }
        if let Some(item) = self.list.item(task.id, index).await? {
            let shown = self.with_origins(task, vec![item]).await?;
            let shown = shown.into_iter().next();
            return shown
                .map(|shown| ItemStory::Recorded(Box::new(shown)))
                .ok_or_else(|| ServiceError::Internal("a failure is missing".to_owned()));
        }
        let live = self.stats.lives_of(task).await.shards;
        let Some(shard) = task
            .shards
            .iter()
            .find(|shard| shard.first <= index && index < shard.range_end)
        else {
            // Before the first start there is only one shard, and skipped items lie before it.
            return Ok(if index < task.spec.skip_first {
                ItemStory::Excluded
            } else {
                ItemStory::Pending
            });
        };
        Ok(match standing((task.id, shard), &live, index) {
            Standing::Below => return Err(not_recorded(task, index)),
            Standing::Within => ItemStory::InWindow,
            Standing::Above if index >= shard.end || task.status.is_terminal() => ItemStory::Excluded,
            Standing::Above => ItemStory::Pending,
        })
    }
}

/// Last block of positions looked up, because neighbours are usually requested next.
#[derive(Default)]
struct LookedUp {
    code: String,
    first: u64,
    indexes: Vec<ItemIndex>,
}

impl LookedUp {
    fn holds(&self, code: &str, place: u64) -> bool {
        self.code == code && self.get(place).is_some()
    }

    fn get(&self, place: u64) -> Option<ItemIndex> {
        let at = usize::try_from(place.checked_sub(self.first)?).ok()?;
        self.indexes.get(at).copied()
    }
}

/// Position of an index relative to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Below,
    Within,
    Above,
}

/// Compares an index with the live window if the shard's node can be reached, otherwise with the saved one.
fn standing((task, shard): (TaskId, &ShardLife), live: &[(String, LiveShard)], index: ItemIndex) -> Standing {
    let saved = (shard.watermark, shard.high_water);
    let found = live
        .iter()
        .map(|(_, live)| live)
        .find(|live| live.shard == ShardId { task, no: shard.no });
    let (low, high) = found.map_or(saved, |live| (live.watermark, live.high_water));
    if index < low {
        Standing::Below
    } else if index < high {
        Standing::Within
    } else {
        Standing::Above
    }
}

fn not_recorded(task: &TaskView, index: ItemIndex) -> ServiceError {
    if task.skips.contains(index) {
        return ServiceError::ItemNotRecorded(format!(
            "no record of item {} of {}: an operator skipped it ({SKIPPED_BY_OPERATOR}), unless it was \
             settled before or by a call in flight; only counters are kept",
            index.0, task.id
        ));
    }
    ServiceError::ItemNotRecorded(format!(
        "item {} of {} succeeded or was skipped; only failed items keep a record (for `retention.failures`)",
        index.0, task.id
    ))
}

/// Returns the API name of a recorded state.
pub fn state_word(state: RecordedState) -> &'static str {
    match state {
        RecordedState::Retrying => "pending",
        RecordedState::Parked => "parked",
        RecordedState::Failed => "failed",
    }
}
