//! Uploads: their rows, and their bytes in parts. Chunks are stored under the upload's own id.

use async_trait::async_trait;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::{Expr, ExprTrait as _};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use windrow_words::store as say;

use crate::sql::dialect::whole_sum;
use crate::sql::entity::{source, source_index, upload, upload_chunk};
use crate::sql::source::upload_use;
use crate::sql::{Fetch, Pluck, Run, Store, Transaction, damaged, error};
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::sources::uploads::{Upload, UploadDone, UploadId, UploadState, UploadStore};

const OPEN: &str = "open";
const READY: &str = "ready";
/// State of an upload that is being removed: nobody can take it any more.
const GONE: &str = "gone";

/// Parts that one transaction removes: 64 MiB, some tens of milliseconds of the writer.
const PARTS_REMOVED: u64 = 16;
/// Uploads removed per call.
const EXPIRED_AT_ONCE: u64 = 100;

#[async_trait]
impl UploadStore for Store {
    async fn begin(&self, kind: &str, format: &str, by: &str, now: WallMs) -> Result<UploadId, StoreError> {
        let row = upload::ActiveModel {
            id: NotSet,
            source_id: Set(None),
            state: Set(OPEN.to_owned()),
            kind: Set(kind.to_owned()),
            format: Set(Some(format.to_owned())),
            byte_size: Set(0),
            part_count: Set(0),
            sha256: Set(None),
            sample: Set(None),
            created_by: Set(by.to_owned()),
            created_at: Set(now.0),
            used_at: Set(0),
        };
        let made = upload::Entity::insert(row).exec(&self.writer).await;
        Ok(UploadId(made.map_err(error)?.last_insert_id))
    }

    async fn append(&self, id: UploadId, number: u32, body: &[u8]) -> Result<(), StoreError> {
        use upload::Column as C;
        let transaction = self.write().await?;
        let written = upload::Entity::update_many()
            .col_expr(C::PartCount, Expr::col(C::PartCount).add(1))
            .col_expr(C::ByteSize, Expr::col(C::ByteSize).add(body.len() as i64))
            .filter(C::Id.eq(id.0))
            .filter(C::State.eq(OPEN))
            .filter(C::PartCount.eq(number.cast_signed()))
            .run(&transaction)
            .await?;
        if written == 0 {
            return refuse_unless_repeated(&transaction, id, number, body).await;
        }
        let part = upload_chunk::ActiveModel {
            source_id: Set(id.0),
            part: Set(number.cast_signed()),
            body: Set(body.to_vec()),
        };
        upload_chunk::Entity::insert(part).run(&transaction).await?;
        transaction.commit().await
    }

    async fn finish(&self, id: UploadId, done: &UploadDone) -> Result<(), StoreError> {
        use upload::Column as C;
        let written = upload::Entity::update_many()
            .col_expr(C::State, Expr::value(READY))
            .col_expr(C::SourceId, Expr::value(done.source))
            .col_expr(C::Sha256, Expr::value(done.sha256.as_str()))
            .col_expr(C::Sample, Expr::value(done.sample.as_str()))
            .filter(C::Id.eq(id.0))
            .filter(C::State.eq(OPEN))
            .filter(C::ByteSize.eq(done.bytes.cast_signed()))
            .run(&self.writer)
            .await?;
        if written == 1 { Ok(()) } else { Err(not_open(id)) }
    }

    async fn upload(&self, id: UploadId) -> Result<Option<Upload>, StoreError> {
        let row = upload::Entity::find_by_id(id.0)
            .filter(upload::Column::State.ne(GONE))
            .row(&self.readers);
        row.await?.map(shown).transpose()
    }

    async fn upload_part(&self, id: UploadId, number: u32) -> Result<Option<Vec<u8>>, StoreError> {
        let key = (id.0, number.cast_signed());
        let row = upload_chunk::Entity::find_by_id(key).row(&self.readers).await?;
        Ok(row.map(|row| row.body))
    }

    async fn stored_by(&self, by: &str) -> Result<u64, StoreError> {
        use upload::Column as C;
        let sizes: Vec<i64> = upload::Entity::find()
            .filter(C::CreatedBy.eq(by))
            .filter(C::State.ne(GONE))
            .pluck([C::ByteSize], &self.readers)
            .await?;
        Ok(sizes.into_iter().map(i64::cast_unsigned).sum())
    }

    async fn stored_most(&self, prefix: &str, limit: u32) -> Result<Vec<(String, u64)>, StoreError> {
        use upload::Column as C;
        let stored = || whole_sum(&self.readers, Expr::col(C::ByteSize));
        let found: Vec<(String, i64)> = upload::Entity::find()
            .select_only()
            .column(C::CreatedBy)
            .column_as(stored(), "stored")
            .filter(C::CreatedBy.starts_with(prefix))
            .filter(C::State.ne(GONE))
            .group_by(C::CreatedBy)
            .order_by_desc(stored())
            .limit(u64::from(limit))
            .into_tuple()
            .rows(&self.readers)
            .await?;
        Ok(found
            .into_iter()
            .map(|(by, bytes)| (by, bytes.cast_unsigned()))
            .collect())
    }

    async fn take(&self, id: UploadId, now: WallMs) -> Result<(), StoreError> {
        use upload::Column as C;
        let taken = upload::Entity::update_many()
            .col_expr(C::UsedAt, Expr::value(now.0))
            .filter(C::Id.eq(id.0))
            .filter(C::State.eq(READY))
            .run(&self.writer)
            .await?;
        if taken == 1 {
            Ok(())
        } else {
            Err(StoreError::Refused(format!("{id} isn't ready")))
        }
    }

    async fn discard(&self, id: UploadId) -> Result<(), StoreError> {
        if !mark_gone(self, id).await? {
            return Ok(());
        }
        while remove_parts(self, id).await? == PARTS_REMOVED {}
        remove(self, id).await
    }

    async fn expire_uploads(&self, before: WallMs) -> Result<u64, StoreError> {
        use upload::Column as C;
        upload_use::give_up_unnamed(self, before).await?;
        let old: Vec<i64> = upload::Entity::find()
            .filter(C::UsedAt.eq(0))
            .filter(C::CreatedAt.lt(before.0))
            .order_by_asc(C::Id)
            .limit(EXPIRED_AT_ONCE)
            .pluck([C::Id], &self.readers)
            .await?;
        for id in &old {
            self.discard(UploadId(*id)).await?;
        }
        Ok(old.len() as u64)
    }
}

fn not_open(id: UploadId) -> StoreError {
    StoreError::Refused(say::upload_not_open(id.to_string()).to_string())
}

/// Accepts a repeated part, since the answer to the first request may have been lost. Refuses anything else.
async fn refuse_unless_repeated(
    transaction: &Transaction,
    id: UploadId,
    number: u32,
    body: &[u8],
) -> Result<(), StoreError> {
    let key = (id.0, number.cast_signed());
    let stored = upload_chunk::Entity::find_by_id(key).row(transaction).await?;
    if stored.is_some_and(|stored| stored.body == body) {
        Ok(())
    } else {
        Err(not_open(id))
    }
}

/// Marks an upload as gone unless a task took it; from then on no task can. Returns true if it was marked.
async fn mark_gone(store: &Store, id: UploadId) -> Result<bool, StoreError> {
    use upload::Column as C;
    let marked = upload::Entity::update_many()
        .col_expr(C::State, Expr::value(GONE))
        .filter(C::Id.eq(id.0))
        .filter(C::UsedAt.eq(0))
        .run(&store.writer)
        .await?;
    Ok(marked == 1)
}

/// Removes the first remaining parts. Returns their number.
async fn remove_parts(store: &Store, id: UploadId) -> Result<u64, StoreError> {
    use upload_chunk::Column as C;
    let parts: Vec<i32> = upload_chunk::Entity::find()
        .filter(C::SourceId.eq(id.0))
        .order_by_asc(C::Part)
        .limit(PARTS_REMOVED)
        .pluck([C::Part], &store.writer)
        .await?;
    let removed = upload_chunk::Entity::delete_many()
        .filter(C::SourceId.eq(id.0))
        .filter(C::Part.is_in(parts))
        .run(&store.writer)
        .await?;
    Ok(removed)
}

/// Removes the row of an upload without parts, and its index.
async fn remove(store: &Store, id: UploadId) -> Result<(), StoreError> {
    let transaction = store.write().await?;
    let row = upload::Entity::find_by_id(id.0)
        .filter(upload::Column::State.eq(GONE))
        .row(&transaction);
    if let Some(indexed) = row.await?.and_then(|row| row.source_id) {
        let index = source_index::Entity::delete_many().filter(source_index::Column::SourceId.eq(indexed));
        index.run(&transaction).await?;
        source::Entity::delete_by_id(indexed).run(&transaction).await?;
    }
    let gone = upload::Entity::delete_many().filter(upload::Column::Id.eq(id.0));
    gone.filter(upload::Column::State.eq(GONE))
        .run(&transaction)
        .await?;
    transaction.commit().await
}

fn shown(row: upload::Model) -> Result<Upload, StoreError> {
    let state = match row.state.as_str() {
        OPEN => UploadState::Open,
        READY => UploadState::Ready,
        other => return Err(damaged("upload.state", other)),
    };
    Ok(Upload {
        id: UploadId(row.id),
        state,
        kind: row.kind,
        format: row.format.unwrap_or_default(),
        bytes: row.byte_size.cast_unsigned(),
        parts: row.part_count.cast_unsigned(),
        sha256: row.sha256,
        sample: row.sample,
        created_by: row.created_by,
        created_at: WallMs(row.created_at),
        used_at: (row.used_at > 0).then_some(WallMs(row.used_at)),
    })
}
