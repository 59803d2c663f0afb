//! Results of a task joined with those of its redrives: for each item that failed there, what a redrive made of it.
//!
//! Two sequences in index order are merged: the task's own results, and what became of its failures, which are looked at
//! page by page. A failure's position in a redrive is computed from its place in its group, so that nothing is held but
//! a page of failures and some segments of the redrives, however many there are.

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

/// Failures that are looked at together.
const FAILURES_AT_ONCE: u32 = 500;
/// One past every index.
const END: ItemIndex = ItemIndex(u64::MAX);

/// Reads the results of a task and of its redrives, page by page, as they are now.
pub struct Joined {
    own: Reader,
    /// What was read of the task's own, and below which index that is all.
    of_own: (VecDeque<ItemOutput>, ItemIndex),
    failures: Failed,
    of_failures: (VecDeque<ItemOutput>, ItemIndex),
}

impl Joined {
    /// The next outputs, in index order; none at the end of what can be read now.
    ///
    /// # Errors
    /// When the store can't be read, or what it holds is damaged.
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

    /// Takes what nothing can come before any more.
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

/// The failures of a task with what became of them.
struct Failed {
    task: TaskId,
    list: Arc<dyn FailureList>,
    /// The last one that was looked at.
    after: Option<ItemIndex>,
    /// Where the task's own results end now: nothing is given beyond.
    end: ItemIndex,
    redrives: Vec<Redrive>,
    outputs: Outputs,
}

impl Failed {
    /// What became of the next failures, and below which index that is all.
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

/// An output, and the redrive that it is of.
type Newest = (TaskId, Box<str>);

/// Notes for each item, by its place in `newest`, the output of the newest redrive that has one. Boxed, since it looks into
/// redrives of redrives.
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
    /// Reads the results of a task and of its redrives from an index on: for each item its own output, or the newest that a
    /// redrive has. It ends where [`Results::read`] does; what redrives that still run come to follows on a later read.
    ///
    /// # Errors
    /// As [`Results::read`]; `Conflict` where there are too many redrives, or what they did again isn't known any more.
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

    /// The same of a task whose redrives are known: each goes over what the one before it failed.
    ///
    /// # Errors
    /// As [`Results::read_joined`].
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

    /// The redrives of a task that keep results, with those of theirs. Boxed, since it asks itself.
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
                    ServiceError::conflict(detail, "read the results of each of them")
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

/// That the failures of a task are still known: what redrives do again is said by them.
async fn check_failures(list: &dyn FailureList, task: &TaskView) -> Result<(), ServiceError> {
    for group in list.groups(task.id).await? {
        let first = list.places(task.id, &group.code, 0, 1).await?;
        if group.count > 0 && first.is_empty() {
            let detail = format!("which items of {} failed is no longer known", task.id);
            let advice =
                "`retention.failures` says how long it is; the results of each redrive can be read alone";
            return Err(ServiceError::conflict(detail, advice));
        }
    }
    Ok(())
}
