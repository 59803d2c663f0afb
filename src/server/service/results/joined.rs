//! Results of a task merged with those of its redrives: for each failed item, the output from a redrive.
//!
//! Merges two sequences in index order: the task's own results, and the outcome of its failures, which are read page
//! by page. A failure's position in a redrive is computed from its place in its group, so that only one page of
//! failures and a few segments of the redrives are in memory, whatever their number.

mod outputs;
mod redrive;

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{Reader, Results};
use crate::service::ServiceError;
use crate::service::failures::Failures;
use crate::service::failures::fates::REDRIVES_MAX;
use outputs::Outputs;
use redrive::Redrive;
use windrow_core::ids::{ItemIndex, TaskId};
use windrow_engine::ports::sources::resolver::RedriveSpec;
use windrow_engine::ports::tasks::failure_list::{FailureList, FailurePage, RecordedItem};
use windrow_engine::ports::tasks::results::ItemOutput;
use windrow_engine::ports::tasks::store::TaskView;

/// Failures looked up at a time.
const FAILURES_AT_ONCE: u32 = 500;
/// Upper end of all indexes, used when nothing follows.
const END: ItemIndex = ItemIndex(u64::MAX);

/// Paged reader for the results of a task and its redrives, as of now.
pub struct Joined {
    own: Reader,
    /// The task's own outputs read so far, and the index below which they are complete.
    of_own: (VecDeque<ItemOutput>, ItemIndex),
    failures: Failed,
    of_failures: (VecDeque<ItemOutput>, ItemIndex),
}

impl Joined {
    /// Returns the next outputs in index order; empty at the end of those available now.
    ///
    /// # Errors
    /// If the store can't be read or its data is damaged.
    pub async fn page(&mut self) -> Result<Vec<ItemOutput>, ServiceError> {
        loop {
            if self.of_own.0.is_empty() && self.of_own.1 < END {
                let page = self.own.page().await?;
                let to = page.last().map_or(END, |last| last.index.plus(1));
                self.of_own = (page.into(), to);
            }
            if self.of_failures.0.is_empty() && self.of_failures.1 < END {
                let (page, to) = self.failures.page().await?;
                self.of_failures = (page.into(), to);
            }
            let page = self.merged();
            let is_over = self.of_own.1 == END && self.of_failures.1 == END;
            if !page.is_empty() || is_over {
                return Ok(page);
            }
        }
    }

    /// Takes the outputs that no later output can precede.
    fn merged(&mut self) -> Vec<ItemOutput> {
        let to = self.of_own.1.min(self.of_failures.1);
        let (own, failures) = (&mut self.of_own.0, &mut self.of_failures.0);
        let mut page = Vec::with_capacity(own.len() + failures.len());
        loop {
            let [first, second] = [&*own, &*failures].map(|side| side.front().map_or(END, |one| one.index));
            let side = if first <= second {
                &mut *own
            } else {
                &mut *failures
            };
            match side.pop_front_if(|one| one.index < to) {
                Some(output) => page.push(output),
                None => return page,
            }
        }
    }
}

/// Failures of a task with their outcomes.
struct Failed {
    task: TaskId,
    list: Arc<dyn FailureList>,
    /// Last failure that was looked up.
    after: Option<ItemIndex>,
    /// Current end of the task's own results; nothing beyond it is returned.
    end: ItemIndex,
    redrives: Vec<Redrive>,
    outputs: Outputs,
}

impl Failed {
    /// Returns the outcomes of the next failures, and the index below which they are complete.
    async fn page(&mut self) -> Result<(Vec<ItemOutput>, ItemIndex), ServiceError> {
        let page = FailurePage::ByIndex(self.after);
        let mut found = self.list.page(self.task, &page, FAILURES_AT_ONCE).await?;
        let is_last = found.len() < FAILURES_AT_ONCE as usize;
        let before = found.len();
        found.retain(|item| item.index < self.end);
        let is_over = is_last || found.len() < before;
        self.after = found.last().map(|item| item.index).or(self.after);
        let to = match (is_over, self.after) {
            (false, Some(after)) => after.plus(1),
            _ => END,
        };
        let mut newest = vec![None; found.len()];
        let items: Vec<(usize, RecordedItem)> = found.into_iter().enumerate().collect();
        look_up(
            self.list.as_ref(),
            &mut self.outputs,
            &self.redrives,
            &items,
            &mut newest,
        )
        .await?;
        let outputs = items.iter().zip(newest);
        let output = |((_, item), found): (&(usize, RecordedItem), Option<Newest>)| {
            let index = item.index;
            found.map(|(_, json)| ItemOutput { index, json })
        };
        Ok((outputs.filter_map(output).collect(), to))
    }
}

/// Output and the redrive that produced it.
type Newest = (TaskId, Box<str>);

/// Sets the output of the newest redrive that has one, for each item at its place in `newest`. Boxed because it
/// recurses into redrives of redrives.
fn look_up<'a>(
    list: &'a dyn FailureList,
    outputs: &'a mut Outputs,
    redrives: &'a [Redrive],
    items: &'a [(usize, RecordedItem)],
    newest: &'a mut [Option<Newest>],
) -> BoxFuture<'a, Result<(), ServiceError>> {
    Box::pin(async move {
        for redrive in redrives {
            let at = |(at, item): &(usize, RecordedItem)| Some((redrive.position(item)?, *at));
            let mut positions: Vec<(ItemIndex, usize)> = items.iter().filter_map(at).collect();
            positions.sort_unstable();
            let mut left = Vec::new();
            for (position, at) in positions {
                match outputs.find(redrive, position).await? {
                    Some(json) if newest[at].as_ref().is_none_or(|(of, _)| *of < redrive.task) => {
                        newest[at] = Some((redrive.task, json));
                    }
                    Some(_) => {}
                    None => left.push((position, at)),
                }
            }
            if left.is_empty() || redrive.below.is_empty() {
                continue;
            }
            let indexes: Vec<ItemIndex> = left.iter().map(|(position, _)| *position).collect();
            let again = list.among(redrive.task, &indexes).await?.into_iter();
            let at = |item: RecordedItem| {
                let place = left
                    .binary_search_by_key(&item.index, |(position, _)| *position)
                    .ok()?;
                Some((left[place].1, item))
            };
            let again: Vec<(usize, RecordedItem)> = again.filter_map(at).collect();
            look_up(list, &mut *outputs, &redrive.below, &again, &mut *newest).await?;
        }
        Ok(())
    })
}

impl Results {
    /// Reads the results of a task and its redrives from an index on. Each item has its own output or the newest one
    /// from a redrive. Ends where [`Results::read`] ends; later results of running redrives require another read.
    ///
    /// # Errors
    /// Same as [`Results::read`]; `Conflict` if there are too many redrives, or if the items they redrove are no
    /// longer known.
    pub async fn read_joined(
        &self,
        failures: &Failures,
        task: &TaskView,
        from: ItemIndex,
    ) -> Result<Joined, ServiceError> {
        let mut left = REDRIVES_MAX as usize;
        let redrives = self.redrives_of(failures, task, &mut left).await?;
        self.joined(failures.list.clone(), task, redrives, from).await
    }

    /// Reads results with a known chain of redrives, each of which covers the failures of the one before.
    ///
    /// # Errors
    /// Same as [`Results::read_joined`].
    pub async fn read_with(
        &self,
        list: Arc<dyn FailureList>,
        task: &TaskView,
        redrives: &[(TaskView, RedriveSpec)],
        from: ItemIndex,
    ) -> Result<Joined, ServiceError> {
        let mut below = Vec::new();
        for (view, spec) in redrives.iter().rev() {
            if !below.is_empty() {
                check_failures(list.as_ref(), view).await?;
            }
            let shards = self.shards(view).await?;
            below = vec![Redrive::new(view.id, spec, shards, below)];
        }
        self.joined(list, task, below, from).await
    }

    async fn joined(
        &self,
        list: Arc<dyn FailureList>,
        task: &TaskView,
        redrives: Vec<Redrive>,
        from: ItemIndex,
    ) -> Result<Joined, ServiceError> {
        let own = self.read(task, from).await?;
        if !redrives.is_empty() {
            check_failures(list.as_ref(), task).await?;
        }
        let is_over = redrives.is_empty();
        let failed = Failed {
            task: task.id,
            list,
            after: from.0.checked_sub(1).map(ItemIndex),
            end: own.end(),
            redrives,
            outputs: Outputs::new(self.store.clone()),
        };
        Ok(Joined {
            own,
            of_own: (VecDeque::new(), from),
            failures: failed,
            of_failures: (VecDeque::new(), if is_over { END } else { from }),
        })
    }

    /// Returns the redrives of a task that keep results, and their own redrives. Boxed because it is recursive.
    fn redrives_of<'a>(
        &'a self,
        failures: &'a Failures,
        task: &'a TaskView,
        left: &'a mut usize,
    ) -> BoxFuture<'a, Result<Vec<Redrive>, ServiceError>> {
        Box::pin(async move {
            let mut all = Vec::new();
            for view in failures.redrives_of(task.id).await? {
                *left = left.checked_sub(1).ok_or_else(|| {
                    let detail = format!(
                        "{} and its redrives have more than {REDRIVES_MAX} redrives",
                        task.id
                    );
                    ServiceError::conflict(detail, "read the results of each task separately")
                })?;
                let Some(spec) = failures.redrive_of(&view)? else {
                    continue;
                };
                let below = self.redrives_of(failures, &view, &mut *left).await?;
                if !below.is_empty() {
                    check_failures(failures.list.as_ref(), &view).await?;
                }
                let shards = self.shards(&view).await?;
                all.push(Redrive::new(view.id, &spec, shards, below));
            }
            Ok(all)
        })
    }
}

/// Checks that the failures of a task are still stored, because they define the items of its redrives.
async fn check_failures(list: &dyn FailureList, task: &TaskView) -> Result<(), ServiceError> {
    for group in list.groups(task.id).await? {
        let first = list.places(task.id, &group.code, 0, 1).await?;
        if group.count > 0 && first.is_empty() {
            let detail = format!("the list of failed items of {} is no longer kept", task.id);
            let advice = "see `retention.failures`; the results of each redrive can be read separately";
            return Err(ServiceError::conflict(detail, advice));
        }
    }
    Ok(())
}
