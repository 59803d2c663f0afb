//! Start of a generation, together with its task, which carries the generation's number from then on. The first
//! generation creates the dataset.

use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};

use super::{lock, save};
use crate::sql::business::alerts;
use crate::sql::entity::{business, dataset, generation};
use crate::sql::task::life::Held;
use crate::sql::{Run, Transaction, damaged, error};
use windrow_core::alert::{AlertKind, Notice};
use windrow_core::dataset::{DATASETS_MAX, GenerationNo, GenerationState, KEEP_DEFAULT, Publish, Publishing};
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::store::CreateError;

/// Generation number that was assigned before its task has an id.
pub(crate) struct Begun {
    dataset: i64,
    /// Publication settings and generation number, stored with the task.
    pub(crate) publishing: Publishing,
}

/// Assigns a number to the generation of a task that is being created.
pub(crate) async fn begin(
    transaction: &Transaction,
    owner: &business::Model,
    publish: &Publish,
    now: WallMs,
) -> Result<Begun, CreateError> {
    let row = match lock(transaction, &publish.dataset).await? {
        Some(row) => row,
        None => {
            let made = make(transaction, owner.id, &publish.dataset, now).await?;
            made.ok_or(CreateError::TooManyDatasets(DATASETS_MAX))?
        }
    };
    if row.business_id != owner.id {
        return Err(CreateError::DatasetTaken(row.name));
    }
    let row = dataset::Model {
        last_no: row.last_no + 1,
        ..row
    };
    let row = save(transaction, row, now).await?;
    Ok(Begun {
        dataset: row.id,
        publishing: Publishing {
            publish: publish.clone(),
            generation: GenerationNo(row.last_no.cast_unsigned()),
        },
    })
}

/// Creates a dataset unless another transaction just did; returns it locked either way, or `None` if the business has
/// as many as allowed.
pub(super) async fn make(
    transaction: &Transaction,
    business: i64,
    name: &str,
    now: WallMs,
) -> Result<Option<dataset::Model>, StoreError> {
    let of_business = dataset::Entity::find().filter(dataset::Column::BusinessId.eq(business));
    if of_business.count(transaction).await.map_err(error)? >= DATASETS_MAX {
        return Ok(None);
    }
    let row = dataset::ActiveModel {
        id: NotSet,
        name: Set(name.to_owned()),
        business_id: Set(business),
        keep_count: Set(KEEP_DEFAULT.get().cast_signed()),
        version: Set(1),
        created_at: Set(now.0),
        updated_at: Set(now.0),
        ..Default::default()
    };
    let known = OnConflict::column(dataset::Column::Name)
        .update_column(dataset::Column::Name)
        .to_owned();
    dataset::Entity::insert(row)
        .on_conflict(known)
        .run(transaction)
        .await?;
    let made = lock(transaction, name).await?;
    made.map(Some).ok_or_else(|| damaged("dataset", name))
}

/// Inserts the generation of a task that is being created.
pub(crate) async fn register(
    transaction: &Transaction,
    begun: &Begun,
    task: TaskId,
    now: WallMs,
) -> Result<(), StoreError> {
    let row = generation::ActiveModel {
        dataset_id: Set(begun.dataset),
        no: Set(begun.publishing.generation.0.cast_signed()),
        task_id: Set(task.0),
        state: Set(GenerationState::Pending.as_str().to_owned()),
        pinned: Set(false),
        created_at: Set(now.0),
        ..Default::default()
    };
    generation::Entity::insert(row).run(transaction).await?;
    Ok(())
}

/// Marks the generation of a task as withheld, with the reason it will never be published. People are told, unless one
/// of them cancelled the task.
pub(crate) async fn withhold(
    transaction: &Transaction,
    task: TaskId,
    why: &str,
    now: WallMs,
) -> Result<(), StoreError> {
    use generation::Column as C;
    let withheld = generation::Entity::update_many()
        .col_expr(C::State, GenerationState::Withheld.as_str().into())
        .col_expr(C::Why, why.into())
        .filter(C::TaskId.eq(task.0))
        .filter(C::State.eq(GenerationState::Pending.as_str()))
        .run(transaction)
        .await?;
    if withheld == 0 || !alerts::is_any(transaction, AlertKind::Withheld).await? {
        return Ok(());
    }
    let held = Held::find(transaction, task).await?;
    let business = held.listener(transaction).await?.business;
    match &held.life.publishing {
        Some(publishing) if held.life.status != Status::Cancelled => {
            let notice = Notice::withheld(&held.life, (&business, publishing), why);
            alerts::raise(transaction, &notice, now).await
        }
        _ => Ok(()),
    }
}
