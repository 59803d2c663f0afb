//! Copies of datasets for readers: claims on them, and what readers find.
//!
//! A claim is a number that grows: writes under it take effect only while it is the newest. A dataset's row is locked
//! before that of its sink.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use sea_orm::sea_query::{Expr, ExprTrait as _};
use sea_orm::{
    ActiveModelTrait as _, ColumnTrait, Condition, ConnectionTrait, EntityTrait, FromQueryResult,
    IntoActiveModel as _, JoinType, QueryFilter, QueryOrder, QuerySelect, RelationDef, Select,
};

use crate::sql::entity::{dataset, dataset_sink};
use crate::sql::{Fetch, Run, Store, Transaction, dialect, error};
use windrow_core::dataset::{GenerationNo, Sink};
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::datasets::sink::{Copied, SINK_LEASE, SinkAgenda, SinkEnd, SinkJob, SinkStore};
use windrow_engine::ports::datasets::store::{CopiedView, SinkView};

/// Maximum number of outdated copies that one query returns.
const BEHIND_MAX: u64 = 1_000;
/// Maximum length of the stored reason why a copy failed, in characters.
const FAULT_MAX: usize = 1_000;

#[async_trait]
impl SinkStore for Store {
    async fn take_sinks(&self, limit: u32) -> Result<SinkAgenda, StoreError> {
        take(self, limit).await
    }

    async fn keep_sink(&self, job: &SinkJob) -> Result<bool, StoreError> {
        use dataset_sink::Column as C;
        let now = dialect::time(&self.writer).await?;
        let kept = dataset_sink::Entity::update_many()
            .col_expr(C::LeaseUntil, Expr::value(now.plus(SINK_LEASE).0))
            .filter(own(job))
            .run(&self.writer)
            .await?;
        Ok(kept == 1)
    }

    async fn end_sink(&self, job: &SinkJob, end: &SinkEnd) -> Result<bool, StoreError> {
        self::end(self, job, end).await
    }

    async fn sinks_copied(&self, after: Option<i64>, limit: u32) -> Result<Vec<Copied>, StoreError> {
        let found = standing(dataset_sink::Column::PublicationNo.is_not_null())
            .filter(dataset_sink::Column::IsOn.eq(true))
            .filter(dataset_sink::Column::DatasetId.gt(after.unwrap_or_default()))
            .filter(
                Expr::col((dataset::Entity, dataset::Column::PublicationNo))
                    .equals((dataset_sink::Entity, dataset_sink::Column::PublicationNo)),
            )
            .order_by_asc(dataset_sink::Column::DatasetId)
            .limit(u64::from(limit))
            .rows(&self.readers)
            .await?;
        let copied = |row: dataset_sink::Model| {
            Some(Copied {
                dataset: row.dataset_id,
                publication: row.publication_no?.cast_unsigned(),
                name: row.name,
            })
        };
        Ok(found.into_iter().filter_map(copied).collect())
    }

    async fn lose_sink(&self, lost: &Copied) -> Result<(), StoreError> {
        use dataset_sink::Column as C;
        let now = dialect::time(&self.writer).await?;
        dataset_sink::Entity::update_many()
            .col_expr(C::PublicationNo, Expr::value(None::<i64>))
            .col_expr(C::GenerationNo, Expr::value(None::<i64>))
            .col_expr(C::CopiedAt, Expr::value(None::<i64>))
            .col_expr(C::Since, Expr::value(now.0))
            .filter(C::DatasetId.eq(lost.dataset))
            .filter(C::PublicationNo.eq(lost.publication.cast_signed()))
            .run(&self.writer)
            .await?;
        Ok(())
    }
}

/// Matches the row of a sink only while the claim is the newest.
fn own(job: &SinkJob) -> Condition {
    Condition::all()
        .add(dataset_sink::Column::DatasetId.eq(job.dataset))
        .add(dataset_sink::Column::Epoch.eq(job.epoch.cast_signed()))
}

/// Returns the relation from `dataset_sink` to its dataset, which may be gone.
fn to_dataset() -> RelationDef {
    dataset_sink::Entity::belongs_to(dataset::Entity)
        .from(dataset_sink::Column::DatasetId)
        .to(dataset::Column::Id)
        .into()
}

fn standing(which: Expr) -> Select<dataset_sink::Entity> {
    dataset_sink::Entity::find()
        .join(JoinType::LeftJoin, to_dataset())
        .filter(which)
}

/// Sink that is behind, with the publication time of its dataset.
#[derive(Debug, FromQueryResult)]
struct Behind {
    dataset_id: i64,
    is_on: bool,
    since: i64,
    epoch: i64,
    lease_until: i64,
    due_at: i64,
    attempts: i32,
    name: String,
    published_at: Option<i64>,
}

/// Implements [`SinkStore::take_sinks`]: claims copies that are behind and not leased, and measures the lag.
async fn take(store: &Store, limit: u32) -> Result<SinkAgenda, StoreError> {
    let now = dialect::time(&store.readers).await?;
    let behind = behind(store).await?;
    let wanted = behind.iter().filter(|row| row.is_on);
    let lags = wanted.map(|row| {
        let since = WallMs(row.since);
        now.since(row.published_at.map_or(since, WallMs).max(since))
    });
    let agenda = SinkAgenda {
        behind: lags.clone().count() as u64,
        lag: lags.max().unwrap_or(Duration::ZERO),
        jobs: Vec::new(),
    };
    let loose = behind
        .into_iter()
        .filter(|row| row.lease_until <= now.0 && row.due_at <= now.0);
    let mut jobs = Vec::new();
    for row in loose.take(limit as usize) {
        jobs.extend(take_one(store, row).await?);
    }
    Ok(SinkAgenda { jobs, ..agenda })
}

async fn behind(store: &Store) -> Result<Vec<Behind>, StoreError> {
    use dataset_sink::Column as C;
    let column = |column: dataset::Column| Expr::col((dataset::Entity, column));
    let lacks = Condition::any()
        .add(C::PublicationNo.is_null())
        .add(column(dataset::Column::PublicationNo).gt(Expr::col((dataset_sink::Entity, C::PublicationNo))));
    let is_behind = Condition::all()
        .add(C::IsOn.eq(true))
        .add(dataset::Column::CurrentNo.is_not_null())
        .add(lacks);
    let is_left = Condition::all().add(C::IsOn.eq(false)).add(C::IsClean.eq(false));
    standing(Condition::any().add(is_behind).add(is_left).into())
        .column_as(dataset::Column::PublishedAt, "published_at")
        .order_by_asc(C::DueAt)
        .order_by_asc(C::DatasetId)
        .limit(BEHIND_MAX)
        .into_model::<Behind>()
        .rows(&store.readers)
        .await
}

async fn take_one(store: &Store, row: Behind) -> Result<Option<SinkJob>, StoreError> {
    use dataset_sink::Column as C;
    let now = dialect::time(&store.writer).await?;
    let taken = dataset_sink::Entity::update_many()
        .col_expr(C::LeaseUntil, Expr::value(now.plus(SINK_LEASE).0))
        .col_expr(C::Epoch, Expr::col(C::Epoch).add(1))
        .filter(C::DatasetId.eq(row.dataset_id))
        .filter(C::Epoch.eq(row.epoch))
        .filter(C::IsOn.eq(row.is_on))
        .filter(C::LeaseUntil.eq(row.lease_until))
        .run(&store.writer)
        .await?;
    Ok((taken == 1).then(|| SinkJob {
        dataset: row.dataset_id,
        name: row.name,
        epoch: row.epoch.cast_unsigned() + 1,
        removes: !row.is_on,
        attempts: row.attempts.cast_unsigned(),
    }))
}

/// Implements [`SinkStore::end_sink`]; has an effect only while the claim is the newest.
async fn end(store: &Store, job: &SinkJob, end: &SinkEnd) -> Result<bool, StoreError> {
    use dataset_sink::Column as C;
    let now = dialect::time(&store.writer).await?;
    let free = dataset_sink::Entity::update_many().col_expr(C::LeaseUntil, Expr::value(0_i64));
    let ended = match end {
        SinkEnd::Copied {
            publication,
            generation,
        } => calm(free)
            .col_expr(C::PublicationNo, Expr::value(publication.cast_signed()))
            .col_expr(C::GenerationNo, Expr::value(generation.0.cast_signed()))
            .col_expr(C::CopiedAt, Expr::value(now.0)),
        SinkEnd::Removed => calm(free).col_expr(C::IsClean, Expr::value(true)),
        SinkEnd::Failed { text, again } => {
            let text: String = text.chars().take(FAULT_MAX).collect();
            free.col_expr(C::Fault, Expr::value(text))
                .col_expr(C::Attempts, Expr::col(C::Attempts).add(1))
                .col_expr(C::DueAt, Expr::value(now.plus(*again).0))
        }
    };
    let ended = ended.filter(own(job)).run(&store.writer).await?;
    if *end == SinkEnd::Removed {
        forget(store, job).await?;
    }
    Ok(ended == 1)
}

fn calm(update: sea_orm::UpdateMany<dataset_sink::Entity>) -> sea_orm::UpdateMany<dataset_sink::Entity> {
    use dataset_sink::Column as C;
    update
        .col_expr(C::Attempts, Expr::value(0))
        .col_expr(C::DueAt, Expr::value(0_i64))
        .col_expr(C::Fault, Expr::value(None::<String>))
}

/// Removes the row of a copy whose dataset is gone; a dataset's number is never reused.
async fn forget(store: &Store, job: &SinkJob) -> Result<(), StoreError> {
    let known = dataset::Entity::find_by_id(job.dataset).row(&store.writer).await;
    if known?.is_some() {
        return Ok(());
    }
    dataset_sink::Entity::delete_many()
        .filter(own(job))
        .filter(dataset_sink::Column::IsClean.eq(true))
        .run(&store.writer)
        .await?;
    Ok(())
}

/// Returns what readers find of these datasets, for those that have a sink.
pub(super) async fn views(
    db: &impl ConnectionTrait,
    datasets: impl IntoIterator<Item = i64>,
) -> Result<BTreeMap<i64, SinkView>, StoreError> {
    let found = dataset_sink::Entity::find()
        .filter(dataset_sink::Column::DatasetId.is_in(datasets))
        .filter(dataset_sink::Column::IsOn.eq(true))
        .rows(db)
        .await?;
    Ok(found.into_iter().map(|row| (row.dataset_id, view(row))).collect())
}

fn view(row: dataset_sink::Model) -> SinkView {
    let copied = row.publication_no.zip(row.generation_no).zip(row.copied_at);
    SinkView {
        copied: copied.map(|((publication, generation), at)| CopiedView {
            publication: publication.cast_unsigned(),
            generation: GenerationNo(generation.cast_unsigned()),
            at: WallMs(at),
        }),
        since: WallMs(row.since),
        fault: row.fault,
    }
}

/// Turns the copying of a dataset on or off, while its lock is held. Returns true if that is a change.
pub(super) async fn set(
    transaction: &Transaction,
    of: &dataset::Model,
    sink: Sink,
) -> Result<bool, StoreError> {
    let wanted = sink != Sink::None;
    let found = dataset_sink::Entity::find_by_id(of.id).lock_exclusive();
    let found = found.row(transaction).await?;
    if found.as_ref().is_some_and(|row| row.is_on) == wanted {
        return Ok(false);
    }
    let now = dialect::time(transaction).await?;
    let row = dataset_sink::Model {
        dataset_id: of.id,
        name: of.name.clone(),
        is_on: wanted,
        is_clean: false,
        publication_no: None,
        generation_no: None,
        copied_at: None,
        // Ends the claim of a copier at work.
        epoch: found.as_ref().map_or(0, |row| row.epoch) + 1,
        lease_until: 0,
        due_at: 0,
        attempts: 0,
        fault: None,
        since: now.0,
    };
    let is_new = found.is_none();
    let row = row.into_active_model().reset_all();
    if is_new {
        dataset_sink::Entity::insert(row).run(transaction).await?;
    } else {
        let changed = dataset_sink::Entity::update(row).exec(transaction).await;
        changed.map_err(error)?;
    }
    Ok(true)
}
