//! Sources and their block indexes.

use async_trait::async_trait;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use windrow_words::store as say;

use crate::sql::entity::{source, source_index};
use crate::sql::{Fetch, Run, Store, Transaction, damaged, error, settled, words};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::sources::store::{IndexedSource, SourceStore};

#[async_trait]
impl SourceStore for Store {
    async fn save(&self, indexed: &IndexedSource, parts: &[Vec<u8>]) -> Result<i64, StoreError> {
        settled(|| replace(self, indexed, parts)).await
    }

    async fn find(&self, location: &str, format: &str) -> Result<Option<(i64, IndexedSource)>, StoreError> {
        let found = source::Entity::find()
            .filter(source::Column::LocationHash.eq(location_hash(location, format)))
            .row(&self.readers)
            .await?;
        found.map(|row| Ok((row.id, indexed(row)?))).transpose()
    }

    async fn part(&self, source: i64, number: u32) -> Result<Option<Vec<u8>>, StoreError> {
        let key = (source, number.cast_signed());
        let found = source_index::Entity::find_by_id(key).row(&self.readers).await?;
        Ok(found.map(|row| row.body))
    }
}

async fn replace(store: &Store, indexed: &IndexedSource, parts: &[Vec<u8>]) -> Result<i64, StoreError> {
    let row = row(indexed, parts.len())?;
    let transaction = store.write().await?;
    delete_older(&transaction, &location_hash(&indexed.location, &indexed.format)).await?;
    let id = source::Entity::insert(row)
        .exec(&transaction)
        .await
        .map_err(error)?
        .last_insert_id;
    // One statement per part: each may be 64 KiB.
    for (part, body) in (0..).zip(parts) {
        let part = source_index::ActiveModel {
            source_id: Set(id),
            part: Set(part),
            body: Set(body.clone()),
        };
        source_index::Entity::insert(part).run(&transaction).await?;
    }
    transaction.commit().await?;
    Ok(id)
}

async fn delete_older(transaction: &Transaction, hash: &str) -> Result<(), StoreError> {
    let older = source::Entity::find()
        .filter(source::Column::LocationHash.eq(hash))
        .lock_exclusive()
        .row(transaction)
        .await?;
    let Some(older) = older else { return Ok(()) };
    source_index::Entity::delete_many()
        .filter(source_index::Column::SourceId.eq(older.id))
        .run(transaction)
        .await?;
    source::Entity::delete_by_id(older.id).run(transaction).await?;
    Ok(())
}

fn location_hash(location: &str, format: &str) -> String {
    words::digest(&[location, format])
}

fn row(indexed: &IndexedSource, parts: usize) -> Result<source::ActiveModel, StoreError> {
    let columns = serde_json::to_string(&indexed.columns);
    Ok(source::ActiveModel {
        id: NotSet,
        kind: Set(indexed.kind.clone()),
        location_hash: Set(location_hash(&indexed.location, &indexed.format)),
        location: Set(indexed.location.clone()),
        format: Set(indexed.format.clone()),
        byte_size: Set(indexed.bytes.cast_signed()),
        modified_ns: Set(indexed.modified_ns),
        checksum: Set(indexed.checksum.cast_signed()),
        row_count: Set(indexed.rows.cast_signed()),
        column_names: Set(columns.map_err(|cause| StoreError::Refused(format!("columns: {cause}")))?),
        stride: Set(indexed.stride.cast_signed()),
        part_count: Set(
            i32::try_from(parts).map_err(|_| StoreError::Refused(say::too_many_parts().to_string()))?
        ),
    })
}

fn indexed(row: source::Model) -> Result<IndexedSource, StoreError> {
    let columns = serde_json::from_str(&row.column_names);
    Ok(IndexedSource {
        kind: row.kind,
        location: row.location,
        format: row.format,
        bytes: row.byte_size.cast_unsigned(),
        modified_ns: row.modified_ns,
        checksum: row.checksum.cast_unsigned(),
        rows: row.row_count.cast_unsigned(),
        columns: columns.map_err(|_| damaged("source.column_names", &row.column_names))?,
        stride: row.stride.cast_unsigned(),
    })
}
