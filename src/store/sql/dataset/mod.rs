//! Datasets and generations: started with their tasks, published under a claim, read, changed by people, swept.
//!
//! A dataset's row is locked after tasks and shards, and before limits. The holder of the lock decides which
//! generations are kept.

pub mod begin;
pub mod change;
pub mod keys;
pub mod publish;
pub mod read;
pub mod sink;
pub mod sweep;

use sea_orm::{ActiveModelTrait as _, ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use windrow_words::store as say;

use crate::sql::entity::{dataset, generation};
use crate::sql::{Fetch, Pluck, Run, Transaction, damaged};
use windrow_core::dataset::{GenerationNo, GenerationState, Pointer, outdated};
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;

/// Locks a dataset by name and reads it.
async fn lock(transaction: &Transaction, name: &str) -> Result<Option<dataset::Model>, StoreError> {
    let found = dataset::Entity::find()
        .filter(dataset::Column::Name.eq(name))
        .lock_exclusive();
    found.row(transaction).await
}

fn pointer(row: &dataset::Model) -> Pointer {
    let no = |column: i64| GenerationNo(column.cast_unsigned());
    Pointer {
        current: row.current_no.map(no),
        highest: no(row.highest_no),
        publication: row.publication_no.cast_unsigned(),
    }
}

/// Returns the row with its pointer moved.
fn moved(row: dataset::Model, pointer: Pointer, now: WallMs) -> dataset::Model {
    let no = |no: GenerationNo| no.0.cast_signed();
    dataset::Model {
        current_no: pointer.current.map(no),
        highest_no: no(pointer.highest),
        publication_no: pointer.publication.cast_signed(),
        published_at: Some(now.0),
        ..row
    }
}

/// Saves a dataset whose lock is held, as a new version.
async fn save(
    transaction: &Transaction,
    row: dataset::Model,
    now: WallMs,
) -> Result<dataset::Model, StoreError> {
    let row = dataset::Model {
        version: row.version + 1,
        updated_at: now.0,
        ..row
    };
    let mut written = dataset::ActiveModel::from(row.clone()).reset_all();
    written.id = sea_orm::ActiveValue::NotSet;
    let saved = dataset::Entity::update_many()
        .set(written)
        .filter(dataset::Column::Id.eq(row.id))
        .run(transaction)
        .await?;
    match saved {
        1 => Ok(row),
        _ => Err(StoreError::Unavailable(say::dataset_gone(&row.name).to_string())),
    }
}

/// Expires the published generations that are no longer kept; the sweep removes them.
async fn let_go(transaction: &Transaction, row: &dataset::Model) -> Result<(), StoreError> {
    use generation::Column as C;
    let published: Vec<(i64, bool)> = generation::Entity::find()
        .filter(C::DatasetId.eq(row.id))
        .filter(C::State.eq(GenerationState::Published.as_str()))
        .order_by_asc(C::No)
        .pluck([C::No, C::Pinned], transaction)
        .await?;
    let published: Vec<_> = published
        .into_iter()
        .map(|(no, pinned)| (GenerationNo(no.cast_unsigned()), pinned))
        .collect();
    let gone = outdated(&published, pointer(row), row.keep_count.cast_unsigned());
    if gone.is_empty() {
        return Ok(());
    }
    generation::Entity::update_many()
        .col_expr(C::State, GenerationState::Expired.as_str().into())
        .col_expr(C::Summary, sea_orm::sea_query::Expr::value(None::<String>))
        .filter(C::DatasetId.eq(row.id))
        .filter(C::No.is_in(gone.into_iter().map(|no| no.0.cast_signed())))
        .run(transaction)
        .await?;
    Ok(())
}

fn state(row: &generation::Model) -> Result<GenerationState, StoreError> {
    GenerationState::parse(&row.state).ok_or_else(|| damaged("generation.state", &row.state))
}
