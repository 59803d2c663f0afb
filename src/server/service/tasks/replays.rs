//! Replays: new tasks for items that people name, whether these succeeded, were skipped or failed.
//!
//! A replay is a redrive whose items are named instead of selected by their failure, so it shares everything after
//! the selection. The task itself keeps its outcome: one result for each item.

use crate::service::tasks::Tasks;
use crate::service::tasks::create::TaskPlan;
use crate::service::tasks::preview::not_provided;
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::ItemIndex;
use windrow_core::items::stretches::Stretches;
use windrow_engine::ports::sources::resolver::{RedrivePart, RedriveSpec};
use windrow_engine::ports::tasks::store::{Making, TaskView, Write};

/// Most items in a replay, because the data of each is looked up before the replay is created.
const ITEMS_MAX: u64 = 1_000;

/// Request for a replay.
#[derive(Clone, Debug)]
pub struct ReplayRequest {
    /// Items to send again.
    pub items: Stretches,
    /// True if the items keep the keys of their first calls, so that a business that knows them may do nothing.
    pub same_keys: bool,
    /// Members of the new task that differ from the original.
    pub plan: TaskPlan,
}

impl Tasks {
    /// Creates a replay of settled items and starts it if requested.
    ///
    /// # Errors
    /// `Unprocessable` if there are no such items, too many of them, or if the source lost their data; `Conflict` if
    /// one of them isn't settled; otherwise the same as [`Tasks::create`].
    pub async fn replay(
        &self,
        origin: &TaskView,
        request: ReplayRequest,
        write: &Write,
    ) -> Result<TaskView, ServiceError> {
        let ReplayRequest {
            items,
            same_keys,
            plan,
        } = request;
        check(origin, &items)?;
        let checked = self.checked(&plan, origin, write).await?;
        let indexes: Vec<ItemIndex> = each(&items).collect();
        if let Some(index) = self.failures.first_unsettled(origin, &indexes).await? {
            return Err(unsettled(origin, index));
        }
        self.refuse_lost(origin, &indexes).await?;
        let keys_of = same_keys.then(|| self.failures.keys_of(origin)).transpose()?;
        let part = |(first, end): (u64, u64)| RedrivePart::Indexes {
            first,
            count: end - first,
        };
        let spec = RedriveSpec {
            origin: origin.id,
            keys_of,
            parts: bounds(&items).map(part).collect(),
            is_replay: true,
        };
        let how = Making {
            replay: Some(&items),
            ..Making::default()
        };
        self.make_redrive(origin, spec, (plan, checked), how, write).await
    }

    /// Fails if the source no longer holds the data of one of these items.
    async fn refuse_lost(&self, origin: &TaskView, indexes: &[ItemIndex]) -> Result<(), ServiceError> {
        let source = self.failures.items.source(origin).await.map_err(not_provided)?;
        let mut end = ItemIndex(0);
        for index in indexes.iter().filter(|_| source.has_data()) {
            if *index < end {
                continue;
            }
            let chunk = source.read(*index).await.map_err(|error| {
                let text = format!("the data of item {} can't be read: {error}", index.0);
                ServiceError::unprocessable("/indexes", text)
            })?;
            end = chunk.end();
        }
        Ok(())
    }
}

fn bounds(items: &Stretches) -> impl Iterator<Item = (u64, u64)> {
    items.iter().map(|stretch| (stretch.first.0, stretch.end.0))
}

fn each(items: &Stretches) -> impl Iterator<Item = ItemIndex> {
    bounds(items).flat_map(|(first, end)| first..end).map(ItemIndex)
}

fn check(origin: &TaskView, items: &Stretches) -> Result<(), ServiceError> {
    let (last, total) = (items.end().0.saturating_sub(1), origin.total.0);
    let fault = if last >= total {
        let text = format!("no item {last}: {} has {total} items, counted from 0", origin.id);
        FieldFault::new("/indexes", text)
    } else if items.items() > ITEMS_MAX {
        let text = format!("a replay takes at most {ITEMS_MAX} items");
        let advice = format!("`windrow task clone {}` sends all items again", origin.id);
        FieldFault::new("/indexes", text).advise(advice)
    } else {
        return Ok(());
    };
    Err(fault.into())
}

fn unsettled(origin: &TaskView, index: ItemIndex) -> ServiceError {
    let (id, index) = (origin.id, index.0);
    if origin.status.is_terminal() {
        let detail = format!("item {index} of {id} was never settled, because {id} ended before that");
        return ServiceError::conflict(detail, format!("`windrow task clone {id}` sends all items"));
    }
    ServiceError::conflict(
        format!("item {index} of {id} has no saved outcome yet"),
        format!("try again once it has: `windrow task item {id} {index}` shows its state"),
    )
}
