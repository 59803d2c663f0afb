//! Restored database: everything numbered from now on gets numbers that nobody outside has seen.
//!
//! Numbers assigned since the backup are unknown to the database but known to others: businesses know items by keys
//! that contain the task's number, and runs by their epochs; readers know publications. So every counter is raised by
//! far more than was assigned in the meantime. Whatever existed at the time of the backup keeps its numbers.

use sea_orm::sea_query::{Expr, ExprTrait as _};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use windrow_words::store as say;

use crate::sql::dialect::counters;
pub use crate::sql::dialect::sqlite::restoring;
use crate::sql::entity::{dataset, dataset_sink, shard, shard_head, task};
use crate::sql::session::limits;
use crate::sql::task::record::{self, Change};
use crate::sql::{Fetch, Pluck, Run, Store};
use windrow_core::checkpoint::{self, Snapshot};
use windrow_core::execution::Extension;
use windrow_core::ids::{ItemIndex, TaskId, WallMs};
use windrow_core::task::lifecycle::{ShardState, Status};
use windrow_core::task::spec::TaskSpec;
use windrow_core::task::supply::Intake;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::actor::Actor;
use windrow_engine::ports::access::audit_object::{AuditObject, ObjectKind};
use windrow_engine::ports::schedules::store::{ScheduleEdit, ScheduleFilter, ScheduleStore};
use windrow_engine::ports::tasks::store::{CommandError, TaskCommand, TaskStore, Write};

/// Increase of numbers that people and businesses know: more than are assigned between two backups.
pub const STEP: i64 = 1_000_000;
/// Increase of numbers that grow with every line of a log.
const STEP_OF_LINES: i64 = 1_000_000_000_000;
/// Tables whose rows the database numbers, with their increase.
const COUNTERS: [(&str, i64); 11] = [
    ("task", STEP),
    ("business", STEP),
    ("schedule", STEP),
    ("dataset", STEP),
    ("source", STEP),
    ("upload", STEP),
    ("token", STEP),
    ("sign_in", STEP),
    ("audit", STEP_OF_LINES),
    ("outbox", STEP_OF_LINES),
    ("data_log", STEP_OF_LINES),
];
/// Schedules read per query.
const PAGE: u32 = 100;

/// Changes made to a restored database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Number of the first task created from now on.
    pub first_task: TaskId,
    /// Open tasks that accept no more items, since new ones would get the keys of lost items.
    pub sealed: Vec<TaskId>,
    /// Number of schedules that fire on their own, also for times since the backup.
    pub firing: u64,
    /// Number of schedules that were paused just now.
    pub paused: u64,
}

impl Store {
    /// Marks the database as restored. A second call raises all numbers once more. No node may use the database
    /// meanwhile.
    ///
    /// # Errors
    /// If the store fails; numbers raised until then do no harm.
    pub async fn mark_restored(&self, pauses: bool, now: WallMs) -> Result<Restored, StoreError> {
        let mut first_task = TaskId(0);
        for (table, step) in COUNTERS {
            let number = counters::highest(&self.writer, table).await?.saturating_add(step);
            counters::begin_above(&self.writer, table, number).await?;
            if table == "task" {
                first_task = TaskId(number.saturating_add(1));
            }
        }
        self.raise_within_rows(now).await?;
        self.forget_use().await?;
        let write = Write {
            actor: Actor::windrow(Some(say::restored().to_string())),
            dry_run: false,
        };
        let sealed = self.seal_all(&write, now).await?;
        let (firing, paused) = self.look_at_schedules(pauses, &write).await?;
        Ok(Restored {
            first_task,
            sealed,
            firing,
            paused,
        })
    }

    /// Raises epochs, generations and publications, which are counted in the rows they belong to.
    async fn raise_within_rows(&self, now: WallMs) -> Result<(), StoreError> {
        use dataset::Column as D;
        let transaction = self.write().await?;
        shard_head::Entity::update_many()
            .col_expr(
                shard_head::Column::Epoch,
                Expr::col(shard_head::Column::Epoch).add(STEP),
            )
            .filter(shard_head::Column::State.ne(ShardState::Done.as_str()))
            .run(&transaction)
            .await?;
        let mut datasets = dataset::Entity::update_many();
        for column in [D::LastNo, D::PublicationNo, D::Version] {
            datasets = datasets.col_expr(column, Expr::col(column).add(STEP));
        }
        datasets.run(&transaction).await?;
        dataset_sink::Entity::update_many()
            .col_expr(
                dataset_sink::Column::Epoch,
                Expr::col(dataset_sink::Column::Epoch).add(STEP),
            )
            .col_expr(dataset_sink::Column::LeaseUntil, Expr::value(0_i64))
            .col_expr(dataset_sink::Column::DueAt, Expr::value(0_i64))
            .run(&transaction)
            .await?;
        let change = Change {
            object: AuditObject::new(ObjectKind::Store, &self.id.0),
            task: None,
            business: None,
            action: "store.restored".to_owned(),
            before: None,
            after: None,
        };
        record::audit(
            &transaction,
            &Actor::windrow(Some(say::restored().to_string())),
            change,
            now,
        )
        .await?;
        transaction.commit().await
    }

    /// Marks what tasks and limits in units used as unknown: nothing says what was used since the backup.
    async fn forget_use(&self) -> Result<(), StoreError> {
        use shard::Column as S;
        let specs: Vec<(i64, String)> = task::Entity::find()
            .filter(task::Column::Status.is_not_in([Status::Finished.as_str(), Status::Cancelled.as_str()]))
            .pluck([task::Column::Id, task::Column::Spec], &self.writer)
            .await?;
        // Attributes that can't be read are as good as limits: no run begins with them anyway.
        let has_no_limits = |spec: TaskSpec| spec.metering.is_empty();
        let is_metered = |spec: &String| !serde_json::from_str(spec).is_ok_and(has_no_limits);
        let metered = specs
            .into_iter()
            .filter(|(_, spec)| is_metered(spec))
            .map(|(id, _)| id);
        let transaction = self.write().await?;
        limits::forget_use(&transaction).await?;
        for task in metered {
            let shards = shard::Entity::find()
                .filter(S::TaskId.eq(task))
                .filter(S::State.ne(ShardState::Done.as_str()))
                .rows(&transaction)
                .await?;
            for row in shards {
                // A damaged checkpoint stops its task by itself.
                let Some(blob) = with_unknown_use(&row.ckpt_blob, ItemIndex(row.watermark.cast_unsigned()))
                else {
                    continue;
                };
                shard::Entity::update_many()
                    .col_expr(S::CkptBlob, Expr::value(blob))
                    .filter(S::TaskId.eq(task))
                    .filter(S::ShardNo.eq(row.shard_no))
                    .run(&transaction)
                    .await?;
            }
        }
        transaction.commit().await
    }

    /// Seals open tasks: the next item would get the key of one appended since the backup.
    async fn seal_all(&self, write: &Write, now: WallMs) -> Result<Vec<TaskId>, StoreError> {
        use task::Column as C;
        let ended = [Status::Finished.as_str(), Status::Cancelled.as_str()];
        let open: Vec<i64> = task::Entity::find()
            .filter(C::Intake.eq(Intake::Open.as_str()))
            .filter(C::Status.is_not_in(ended))
            .order_by_asc(C::Id)
            .pluck([C::Id], &self.writer)
            .await?;
        let mut sealed = Vec::with_capacity(open.len());
        for id in open.into_iter().map(TaskId) {
            match self.command(id, &TaskCommand::Seal, write, now).await {
                Ok(_) => sealed.push(id),
                // A status that allows no seal allows no append either.
                Err(CommandError::Refused(_)) => {}
                Err(CommandError::Store(error)) => return Err(error),
                Err(other) => {
                    return Err(StoreError::Refused(
                        say::not_sealed(id.to_string(), other.to_string()).to_string(),
                    ));
                }
            }
        }
        Ok(sealed)
    }

    /// Pauses the schedules that fire on their own, if wanted. Returns how many fire and how many were paused.
    async fn look_at_schedules(&self, pauses: bool, write: &Write) -> Result<(u64, u64), StoreError> {
        let (mut firing, mut paused, mut after) = (0, 0, None);
        loop {
            let page = self.schedules(&ScheduleFilter::default(), after, PAGE).await?;
            let Some(last) = page.last() else {
                return Ok((firing, paused));
            };
            after = Some(last.id);
            for schedule in page.iter().filter(|schedule| schedule.next_fire.is_some()) {
                if !pauses {
                    firing += 1;
                    continue;
                }
                let pause = ScheduleEdit {
                    paused: Some(true),
                    ..ScheduleEdit::default()
                };
                let changed = self
                    .change_schedule(schedule.id, schedule.revision, &pause, write)
                    .await;
                changed.map_err(|cause| {
                    StoreError::Refused(
                        say::not_paused(schedule.id.to_string(), cause.to_string()).to_string(),
                    )
                })?;
                paused += 1;
            }
        }
    }
}

/// Returns a checkpoint with its use marked as unknown; `None` if it can't be read.
fn with_unknown_use(blob: &[u8], watermark: ItemIndex) -> Option<Vec<u8>> {
    let (version, snapshot) = match checkpoint::version_of(blob) {
        None => (
            checkpoint::VERSION,
            Snapshot {
                watermark,
                ..Snapshot::default()
            },
        ),
        Some(version) => (version, checkpoint::decode(blob, watermark).ok()?),
    };
    let mut extension = Extension::of(&snapshot.extension).ok()?;
    extension.is_restored = true;
    let (words, extension) = (&snapshot.words, extension.bytes());
    Some(checkpoint::encode_as(version, watermark, words, &extension))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sea_orm::{ConnectionTrait as _, Statement};

    use super::*;

    #[test]
    fn a_checkpoint_is_marked_whatever_is_in_it_unless_it_is_damaged() {
        let found = |blob: &[u8]| {
            let snapshot = checkpoint::decode(blob, ItemIndex(3)).expect("a checkpoint");
            let extension = Extension::of(&snapshot.extension).expect("an extension");
            assert!(extension.is_restored);
            (snapshot.words, extension.meters.0.len())
        };
        let empty = with_unknown_use(&[], ItemIndex(3)).expect("nothing was saved");
        assert_eq!(found(&empty), (Vec::new(), 0));
        let used = br#"{"meters":[{"unit":"eur","spent":"1"}]}"#;
        let saved = checkpoint::encode(ItemIndex(3), &[0b101], used);
        let marked = with_unknown_use(&saved, ItemIndex(3)).expect("it can be read");
        assert_eq!(found(&marked), (vec![0b101], 1));
        assert_eq!(with_unknown_use(&saved[..saved.len() - 1], ItemIndex(3)), None);
    }

    #[tokio::test]
    async fn every_table_that_numbers_its_rows_begins_far_above_and_again_further() {
        let place = tempfile::tempdir().expect("a directory");
        let store = Store::open(&place.path().join("windrow.db"))
            .await
            .expect("a store");
        let backend = store.writer.get_database_backend();
        let tables = "SELECT name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%'";
        let rows = store
            .writer
            .query_all_raw(Statement::from_string(backend, tables))
            .await
            .expect("tables");
        let found: BTreeSet<String> = rows
            .iter()
            .map(|row| row.try_get("", "name").expect("a name"))
            .collect();
        assert_eq!(
            found,
            COUNTERS.iter().map(|(table, _)| (*table).to_owned()).collect()
        );
        for times in 1..=2 {
            let marked = store.mark_restored(false, WallMs(0)).await.expect("marked");
            assert_eq!(marked.first_task, TaskId(times * STEP + 1));
            for (table, step) in COUNTERS {
                let highest = counters::highest(&store.writer, table).await.expect("a number");
                assert!(highest >= times * step, "{table}: {highest}");
            }
        }
    }
}
