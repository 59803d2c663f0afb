//! Outcome of a task's failures in its redrives, item by item. Bounded, because each item is looked at.
//!
//! A redrive stores nothing for an item that succeeded: the item is below the watermark or slightly above it, without
//! a row. Progress is therefore read before the rows, so that items settled in between appear as still under way.

use std::collections::BTreeSet;

use futures_util::future::BoxFuture;

use crate::service::ServiceError;
use crate::service::failures::Failures;
use windrow_core::checkpoint::{self, Snapshot};
use windrow_core::ids::{ItemIndex, TaskId};
use windrow_core::items::stretches::Stretches;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::sources::resolver::{RedrivePart, RedriveSpec};
use windrow_engine::ports::tasks::report_store::SavedWindow;
use windrow_engine::ports::tasks::store::TaskView;

/// Most failures examined per task: 24 bytes each, and one or two seconds of database time.
pub(crate) const FATES_MAX: u64 = 1_000_000;
/// Most redrives examined per task, and per redrive.
pub(crate) const REDRIVES_MAX: u32 = 1_000;
const LEVELS_MAX: u32 = 32;
/// Positions requested at a time.
const CHUNK: u64 = 10_000;

/// Outcome of a failure in redrives, in increasing order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// Not in any redrive, or failed in them too.
    Failed,
    /// In a redrive that hasn't settled it yet.
    UnderWay(TaskId),
    /// Recovered by a redrive.
    Recovered(TaskId),
}

/// Outcomes of a task's failures, in index order. `None` if there are too many failures or redrives, or if their rows
/// are no longer kept.
pub(crate) type Fates = Option<Vec<(ItemIndex, Fate)>>;

impl Failures {
    /// Returns the outcome of each failure of a task, in its own redrives and in those of the tasks that it redrives.
    pub(crate) async fn fates(&self, task: &TaskView) -> Result<Fates, ServiceError> {
        let Some(mut fates) = self.fates_below(task, LEVELS_MAX).await? else {
            return Ok(None);
        };
        let mut indexes: Vec<ItemIndex> = fates.iter().map(|(index, _)| *index).collect();
        let mut at = task.clone();
        for _ in 0..LEVELS_MAX {
            let Some(spec) = self.redrive_of(&at)? else { break };
            let Some(origin) = self.tasks.get(spec.origin).await? else {
                break;
            };
            let Some(positions) = self.positions(&spec).await? else {
                break;
            };
            let of_origin = indexes
                .iter()
                .map(|index| positions.get(at_position(*index)).copied());
            let Some(of_origin) = of_origin.collect::<Option<Vec<ItemIndex>>>() else {
                break;
            };
            indexes = of_origin;
            at = origin;
        }
        if at.id != task.id
            && let Some(above) = self.fates_below(&at, LEVELS_MAX).await?
        {
            for ((_, fate), index) in fates.iter_mut().zip(&indexes) {
                *fate = (*fate).max(fate_of(&above, *index).unwrap_or(Fate::Failed));
            }
        }
        Ok(Some(fates))
    }

    /// Returns the outcome of each failure of a task in its redrives and in theirs. Boxed because it is recursive.
    pub(crate) fn fates_below<'a>(
        &'a self,
        task: &'a TaskView,
        levels: u32,
    ) -> BoxFuture<'a, Result<Fates, ServiceError>> {
        Box::pin(async move {
            let Some(failures) = self.failures_of(task.id).await? else {
                return Ok(None);
            };
            let mut fates: Vec<(ItemIndex, Fate)> =
                failures.into_iter().map(|index| (index, Fate::Failed)).collect();
            let redrives = self.reports.redrives_of(task.id, REDRIVES_MAX).await?;
            if redrives.len() >= REDRIVES_MAX as usize || (levels == 0 && !redrives.is_empty()) {
                return Ok(None);
            }
            for redrive in &redrives {
                let Some(spec) = self.redrive_of(redrive)? else {
                    continue;
                };
                let Some(positions) = self.positions(&spec).await? else {
                    return Ok(None);
                };
                let progress = self.progress_of(redrive).await?;
                let Some(below) = self.fates_below(redrive, levels - 1).await? else {
                    return Ok(None);
                };
                for (position, index) in (0..).map(ItemIndex).zip(positions) {
                    let fate =
                        fate_of(&below, position).unwrap_or_else(|| progress.fate(redrive.id, position));
                    if let Ok(at) = fates.binary_search_by_key(&index, |(known, _)| *known) {
                        fates[at].1 = fates[at].1.max(fate);
                    }
                }
            }
            Ok(Some(fates))
        })
    }

    pub(in crate::service) fn redrive_of(
        &self,
        task: &TaskView,
    ) -> Result<Option<RedriveSpec>, ServiceError> {
        let spec = self.resolver.redrive_of(&task.source);
        spec.map_err(|error| ServiceError::Internal(error.to_string()))
    }

    /// Returns the failures of a task, sorted; `None` if there are too many, or if they are no longer kept.
    async fn failures_of(&self, task: TaskId) -> Result<Option<Vec<ItemIndex>>, ServiceError> {
        let groups = self.list.groups(task).await?;
        let parts = groups
            .into_iter()
            .filter(|group| group.count > 0)
            .map(|group| RedrivePart::Places {
                code: group.code,
                first: 0,
                count: group.count,
            });
        let spec = RedriveSpec {
            origin: task,
            keys_of: None,
            parts: parts.collect(),
            is_replay: false,
        };
        let mut found = self.positions(&spec).await?;
        found.iter_mut().for_each(|found| found.sort_unstable());
        Ok(found)
    }

    /// Returns the original items in the order of a redrive's positions; `None` if there are too many, or if they are
    /// no longer kept.
    pub(crate) async fn positions(&self, spec: &RedriveSpec) -> Result<Option<Vec<ItemIndex>>, ServiceError> {
        let total = spec
            .parts
            .iter()
            .map(RedrivePart::count)
            .fold(0, u64::saturating_add);
        if total > FATES_MAX {
            return Ok(None);
        }
        let mut items = Vec::with_capacity(at_position(ItemIndex(total)));
        for part in &spec.parts {
            match part {
                RedrivePart::Indexes { first, count } => items.extend((*first..first + count).map(ItemIndex)),
                RedrivePart::Places { code, first, count } => {
                    let wanted = items.len() + at_position(ItemIndex(*count));
                    for from in (*first..first + count).step_by(CHUNK as usize) {
                        let some = CHUNK.min(first + count - from) as u32;
                        items.extend(self.list.places(spec.origin, code, from, some).await?);
                    }
                    if items.len() != wanted {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(Some(items))
    }

    /// Returns the first of these items that isn't settled, as far as saved.
    pub(in crate::service) async fn first_unsettled(
        &self,
        task: &TaskView,
        indexes: &[ItemIndex],
    ) -> Result<Option<ItemIndex>, ServiceError> {
        let progress = self.progress_of(task).await?;
        let mut indexes = indexes.iter().copied();
        Ok(indexes.find(|index| !progress.has_settled(*index)))
    }

    async fn progress_of(&self, task: &TaskView) -> Result<Progress, ServiceError> {
        let saved = self.reports.saved_windows(task.id).await?;
        let waiting = self.reports.waiting_items(task.id).await?;
        let windows = saved.into_iter().filter_map(|saved| {
            let of = task.shards.iter().find(|shard| shard.no == saved.shard.no)?;
            Some(Window::new(of.first, of.range_end, &saved))
        });
        Ok(Progress {
            windows: windows.collect(),
            waiting: waiting.into_iter().collect(),
            is_over: matches!(task.status, Status::Finished | Status::Cancelled),
        })
    }
}

/// Returns the outcome of a failure, `None` if the item didn't fail.
pub(crate) fn fate_of(fates: &[(ItemIndex, Fate)], index: ItemIndex) -> Option<Fate> {
    fates
        .binary_search_by_key(&index, |(known, _)| *known)
        .ok()
        .map(|at| fates[at].1)
}

fn at_position(index: ItemIndex) -> usize {
    usize::try_from(index.0).unwrap_or(usize::MAX)
}

/// Progress of a task, from its saved windows.
struct Progress {
    windows: Vec<Window>,
    waiting: BTreeSet<ItemIndex>,
    is_over: bool,
}

impl Progress {
    fn has_settled(&self, index: ItemIndex) -> bool {
        let is_done = self.windows.iter().any(|window| window.has_done(index));
        is_done && !self.waiting.contains(&index)
    }

    /// Returns the outcome of an item that isn't a failure of the redrive.
    fn fate(&self, redrive: TaskId, position: ItemIndex) -> Fate {
        match self.has_settled(position) {
            true => Fate::Recovered(redrive),
            // The redrive was cancelled or finished early and will never process it.
            false if self.is_over => Fate::Failed,
            false => Fate::UnderWay(redrive),
        }
    }
}

/// Items that a shard has settled or parked.
pub(in crate::service) struct Window {
    first: ItemIndex,
    end: ItemIndex,
    watermark: ItemIndex,
    above: Option<Snapshot>,
}

impl Window {
    pub(in crate::service) fn new(first: ItemIndex, end: ItemIndex, saved: &SavedWindow) -> Window {
        // Missing before the first checkpoint; a damaged one is ignored.
        let above = checkpoint::decode(&saved.blob, saved.watermark).ok();
        Window {
            first,
            end,
            watermark: saved.watermark,
            above,
        }
    }

    pub(in crate::service) fn has_done(&self, index: ItemIndex) -> bool {
        let above = || self.above.as_ref().is_some_and(|above| above.contains(index));
        self.first <= index && index < self.end && (index < self.watermark || above())
    }

    /// Returns how many of these items are settled or parked.
    pub(in crate::service) fn done_among(&self, named: &Stretches) -> u64 {
        let below = named.count(self.first, self.watermark.min(self.end));
        let span = self.above.as_ref().map_or(0, Snapshot::len);
        let above = (1..=u64::from(span)).map(|at| self.watermark.plus(at));
        let above = above.filter(|index| named.contains(*index) && self.has_done(*index));
        below + above.count() as u64
    }
}
