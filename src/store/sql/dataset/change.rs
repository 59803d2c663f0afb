//! Changes that people make to datasets: creation, edits, pins, rollbacks, deletion.

use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};

use super::{begin, let_go, lock, moved, pointer, read, save, sink};
use crate::sql::entity::{dataset, generation};
use crate::sql::task::create::find_business;
use crate::sql::task::record::{self, Change};
use crate::sql::{Fetch, Run, Store, Transaction, error, keep};
use windrow_core::dataset::{DATASETS_MAX, GenerationNo, GenerationState, PINNED_MAX, Sink};
use windrow_core::ids::{TaskId, WallMs};
use windrow_engine::ports::access::audit_object::{AuditObject, ObjectKind};
use windrow_engine::ports::datasets::store::{Dataset, DatasetChange, DatasetError, NewDataset};
use windrow_engine::ports::tasks::store::Write;

/// Implements [`windrow_engine::ports::datasets::store::DatasetStore::create_dataset`] in one transaction with the
/// audit entry.
pub(super) async fn create(
    store: &Store,
    new: &NewDataset,
    write: &Write,
    now: WallMs,
) -> Result<Dataset, DatasetError> {
    let transaction = store.write().await?;
    let owner = find_business(&transaction, &new.business).await?;
    let owner = owner.ok_or_else(|| DatasetError::NoBusiness(new.business.clone()))?;
    let taken = || DatasetError::Taken(new.name.clone());
    if lock(&transaction, &new.name).await?.is_some() {
        return Err(taken());
    }
    let row = begin::make(&transaction, owner.id, &new.name, now).await?;
    let row = row.ok_or(DatasetError::Full(DATASETS_MAX))?;
    // Another transaction may have created it since the look above.
    if row.business_id != owner.id {
        return Err(taken());
    }
    let wanted = DatasetChange::Edit {
        keep: new.keep,
        sink: new.sink,
    };
    let row = changed(&transaction, &row, wanted, now).await?.unwrap_or(row);
    let row = save(&transaction, row, now).await?;
    let change = Change {
        before: None,
        after: Some(told(&row, wanted)),
        ..said(&row, "dataset.create")
    };
    record::audit(&transaction, &write.actor, change, now).await?;
    let made = read::view(&transaction, row).await?;
    keep(transaction, write).await?;
    Ok(made)
}

/// Implements [`windrow_engine::ports::datasets::store::DatasetStore::change_dataset`] in one transaction with the
/// audit entry.
pub(super) async fn change(
    store: &Store,
    (name, expected): (&str, Option<u64>),
    wanted: DatasetChange,
    write: &Write,
    now: WallMs,
) -> Result<Dataset, DatasetError> {
    let transaction = store.write().await?;
    let before = held(&transaction, name).await?;
    let found = before.version.cast_unsigned();
    if let Some(expected) = expected.filter(|expected| *expected != found) {
        return Err(DatasetError::Changed { expected, found });
    }
    let Some(row) = changed(&transaction, &before, wanted, now).await? else {
        return Ok(read::view(&transaction, before).await?);
    };
    let row = save(&transaction, row, now).await?;
    let_go(&transaction, &row).await?;
    let mut change = said(&before, wanted.action());
    change.after = Some(told(&row, wanted));
    record::audit(&transaction, &write.actor, change, now).await?;
    let after = read::view(&transaction, row).await?;
    keep(transaction, write).await?;
    Ok(after)
}

/// Returns the changed row, or `None` if nothing changes.
async fn changed(
    transaction: &Transaction,
    before: &dataset::Model,
    wanted: DatasetChange,
    now: WallMs,
) -> Result<Option<dataset::Model>, DatasetError> {
    match wanted {
        DatasetChange::Edit { keep, sink } => {
            let row = dataset::Model {
                keep_count: keep.map_or(before.keep_count, |keep| keep.get().cast_signed()),
                ..before.clone()
            };
            let is_elsewhere = match sink {
                Some(sink) => sink::set(transaction, before, sink).await?,
                None => false,
            };
            Ok((is_elsewhere || row != *before).then_some(row))
        }
        DatasetChange::Pin(no, on) => {
            let known = published(transaction, before, no).await?;
            if known.pinned == on {
                return Ok(None);
            }
            pin(transaction, &known, on).await?;
            Ok(Some(before.clone()))
        }
        DatasetChange::RollBack(no) => {
            published(transaction, before, no).await?;
            let pointer = pointer(before);
            let is_there = pointer.current == Some(no);
            Ok((!is_there).then(|| moved(before.clone(), pointer.move_to(no), now)))
        }
    }
}

async fn pin(transaction: &Transaction, known: &generation::Model, on: bool) -> Result<(), DatasetError> {
    use generation::Column as C;
    let pinned = generation::Entity::find()
        .filter(C::DatasetId.eq(known.dataset_id))
        .filter(C::Pinned.eq(true))
        .filter(C::State.eq(GenerationState::Published.as_str()));
    if on && pinned.count(transaction).await.map_err(error)? >= u64::from(PINNED_MAX) {
        return Err(DatasetError::TooManyPins(PINNED_MAX));
    }
    generation::Entity::update_many()
        .col_expr(C::Pinned, on.into())
        .filter(C::DatasetId.eq(known.dataset_id))
        .filter(C::No.eq(known.no))
        .run(transaction)
        .await?;
    Ok(())
}

async fn held(transaction: &Transaction, name: &str) -> Result<dataset::Model, DatasetError> {
    let row = lock(transaction, name).await?;
    row.ok_or_else(|| DatasetError::NotFound(name.to_owned()))
}

/// Returns a generation that can be read, or fails if it is not published.
async fn published(
    transaction: &Transaction,
    of: &dataset::Model,
    no: GenerationNo,
) -> Result<generation::Model, DatasetError> {
    let found = generation::Entity::find_by_id((of.id, no.0.cast_signed()))
        .filter(generation::Column::State.eq(GenerationState::Published.as_str()))
        .row(transaction)
        .await?;
    found.ok_or_else(|| DatasetError::NoGeneration(of.name.clone(), no))
}

/// Implements [`windrow_engine::ports::datasets::store::DatasetStore::delete_dataset`]; refused while a generation is
/// pending.
pub(super) async fn delete(
    store: &Store,
    name: &str,
    write: &Write,
    now: WallMs,
) -> Result<Dataset, DatasetError> {
    use generation::Column as C;
    let transaction = store.write().await?;
    let row = held(&transaction, name).await?;
    let of_dataset = || C::DatasetId.eq(row.id);
    let pending = generation::Entity::find()
        .filter(of_dataset())
        .filter(C::State.eq(GenerationState::Pending.as_str()))
        .row(&transaction)
        .await?;
    if let Some(pending) = pending {
        return Err(DatasetError::InUse(TaskId(pending.task_id)));
    }
    // Removes the copy that readers of its sink find.
    sink::set(&transaction, &row, Sink::None).await?;
    // The sweep removes the results of expired generations.
    generation::Entity::update_many()
        .col_expr(C::State, GenerationState::Expired.as_str().into())
        .col_expr(C::Summary, Expr::value(None::<String>))
        .filter(of_dataset())
        .filter(C::State.eq(GenerationState::Published.as_str()))
        .run(&transaction)
        .await?;
    generation::Entity::delete_many()
        .filter(of_dataset())
        .filter(C::State.eq(GenerationState::Withheld.as_str()))
        .run(&transaction)
        .await?;
    dataset::Entity::delete_by_id(row.id).run(&transaction).await?;
    record::audit(&transaction, &write.actor, said(&row, "dataset.delete"), now).await?;
    let gone = read::view(&transaction, row).await?;
    keep(transaction, write).await?;
    Ok(gone)
}

fn said(before: &dataset::Model, action: &str) -> Change {
    Change {
        object: AuditObject::new(ObjectKind::Dataset, &before.name),
        task: None,
        business: Some(before.business_id),
        action: action.to_owned(),
        before: Some(shown(before)),
        after: None,
    }
}

/// Formats a dataset for the audit.
pub(super) fn shown(row: &dataset::Model) -> String {
    members(row).to_string()
}

fn members(row: &dataset::Model) -> serde_json::Value {
    serde_json::json!({
        "dataset": row.name, "generation": row.current_no, "publication": row.publication_no, "keep": row.keep_count,
    })
}

/// Formats a dataset after a change, with the generation or the sink that changed.
fn told(row: &dataset::Model, wanted: DatasetChange) -> String {
    let mut shown = members(row);
    match wanted {
        DatasetChange::Pin(no, on) => shown[if on { "pinned" } else { "unpinned" }] = no.0.into(),
        DatasetChange::Edit { sink: Some(sink), .. } => shown["sink"] = sink.as_str().into(),
        DatasetChange::Edit { sink: None, .. } | DatasetChange::RollBack(_) => {}
    }
    shown.to_string()
}
