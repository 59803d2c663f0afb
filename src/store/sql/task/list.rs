//! Lists for people: tasks by filter, and runs. Keyset pages along indexes; nothing is counted beyond a bound.

use std::collections::HashMap;

use async_trait::async_trait;
use sea_orm::sea_query::{Expr, ExprTrait as _, LikeExpr, Query};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
};

use crate::sql::entity::{business, run, shard_head, task};
use crate::sql::log::audit_list;
use crate::sql::task::view;
use crate::sql::{Fetch, Pluck, Store, words};
use windrow_core::ids::{Epoch, ItemIndex, RunNo, ShardId, TaskId, WallMs};
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::list::{AuditFilter, AuditRow, RunRecord, TaskFilter, TaskList, TaskPage};
use windrow_engine::ports::tasks::store::TaskView;

#[async_trait]
impl TaskList for Store {
    async fn tasks(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<TaskPage, StoreError> {
        // A transaction only for its snapshot: the counts of each task have to add up.
        let snapshot = self.snapshot().await?;
        let query = narrowed(filter, after).limit(u64::from(limit) + 1);
        let mut rows = query.rows(&snapshot).await?;
        let is_last = rows.len() <= limit as usize;
        rows.truncate(limit as usize);
        let next = rows.last().filter(|_| !is_last).map(|row| TaskId(row.id));
        let mut tasks = views(&snapshot, rows).await?;
        // Databases compare labels as text, some ignoring case.
        if let Some((key, value)) = &filter.label {
            tasks.retain(|task| task.spec.labels.get(key) == Some(value));
        }
        Ok(TaskPage { tasks, next })
    }

    async fn status_counts(&self, most: u32) -> Result<Vec<(Status, u64)>, StoreError> {
        let mut counts = Vec::with_capacity(Status::ALL.len());
        for status in &Status::ALL {
            // Ids along the index on status, up to the bound.
            let ids: Vec<i64> = task::Entity::find()
                .filter(task::Column::Status.eq(status.as_str()))
                .limit(u64::from(most))
                .pluck([task::Column::Id], &self.readers)
                .await?;
            counts.push((*status, ids.len() as u64));
        }
        Ok(counts)
    }

    async fn runs(
        &self,
        id: TaskId,
        after: Option<(WallMs, ShardId, RunNo)>,
        limit: u32,
    ) -> Result<Vec<RunRecord>, StoreError> {
        use run::Column as C;
        let mut query = run::Entity::find().filter(C::TaskId.eq(id.0));
        if let Some((at, shard, run)) = after {
            let (shard, run) = (words::shard_no(shard), run.0.cast_signed());
            let same_shard = Condition::all().add(C::ShardNo.eq(shard)).add(C::RunNo.lt(run));
            let later = Condition::any().add(C::ShardNo.gt(shard)).add(same_shard);
            let same_time = Condition::all().add(C::StartedAt.eq(at.0)).add(later);
            query = query.filter(Condition::any().add(C::StartedAt.lt(at.0)).add(same_time));
        }
        let rows = query
            .order_by_desc(C::StartedAt)
            .order_by_asc(C::ShardNo)
            .order_by_desc(C::RunNo)
            .limit(u64::from(limit))
            .rows(&self.readers)
            .await?;
        Ok(rows.into_iter().map(record).collect())
    }

    async fn run(&self, shard: ShardId, number: RunNo) -> Result<Option<RunRecord>, StoreError> {
        let key = (shard.task.0, words::shard_no(shard), number.0.cast_signed());
        let row = run::Entity::find_by_id(key).row(&self.readers).await;
        Ok(row?.map(record))
    }

    async fn audits(
        &self,
        filter: &AuditFilter,
        after: Option<(WallMs, i64)>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        audit_list::audits(self, filter, after, limit).await
    }
}

fn narrowed(filter: &TaskFilter, after: Option<TaskId>) -> Select<task::Entity> {
    use task::Column as C;
    let statuses = filter.statuses.iter().map(|status| status.as_str());
    let has_status = (!filter.statuses.is_empty()).then(|| C::Status.is_in(statuses));
    let query = task::Entity::find()
        .apply_if(filter.business.as_deref(), |query, slug| {
            let own = Query::select()
                .column(business::Column::Id)
                .from(business::Entity)
                .and_where(business::Column::Slug.eq(slug))
                .to_owned();
            query.filter(C::BusinessId.in_subquery(own))
        })
        .apply_if(filter.name.as_deref(), |query, name| {
            query.filter(C::Name.eq(name))
        })
        .apply_if(has_status, |query, is| query.filter(is))
        .apply_if(filter.label.as_ref(), |query, label| {
            query.filter(has_label(label))
        })
        .apply_if(filter.text.as_deref(), |query, text| query.filter(mentions(text)))
        .apply_if(filter.created_after, |query, at| {
            query.filter(C::CreatedAt.gte(at.0))
        })
        .apply_if(filter.created_before, |query, at| {
            query.filter(C::CreatedAt.lt(at.0))
        })
        .apply_if(filter.parent, |query, id| query.filter(C::ParentId.eq(id.0)));
    if filter.oldest_first {
        query
            .apply_if(after, |query, id| query.filter(C::Id.gt(id.0)))
            .order_by_asc(C::Id)
    } else {
        query
            .apply_if(after, |query, id| query.filter(C::Id.lt(id.0)))
            .order_by_desc(C::Id)
    }
}

/// Matches tasks with a label. Labels are one JSON text, written without spaces, so a member is found as text.
fn has_label((key, value): &(String, String)) -> Expr {
    let member = serde_json::json!({ key: value }).to_string();
    Expr::col(task::Column::Labels).like(containing(member.trim_matches(['{', '}'])))
}

fn mentions(text: &str) -> Condition {
    let text = text.to_ascii_lowercase();
    let lower = |column: Expr| Expr::from(sea_orm::sea_query::Func::lower(column));
    let slugs = Query::select()
        .column(business::Column::Id)
        .from(business::Entity)
        .and_where(lower(Expr::col(business::Column::Slug)).like(containing(&text)))
        .to_owned();
    Condition::any()
        .add(lower(Expr::col(task::Column::Name)).like(containing(&text)))
        .add(task::Column::BusinessId.in_subquery(slugs))
}

/// Returns the pattern of everything that contains a text; `|` escapes the wildcards in it.
fn containing(text: &str) -> LikeExpr {
    let plain: String = text
        .chars()
        .flat_map(|c| {
            if matches!(c, '%' | '_' | '|') {
                vec!['|', c]
            } else {
                vec![c]
            }
        })
        .collect();
    LikeExpr::new(format!("%{plain}%")).escape('|')
}

/// Builds the views of many tasks with two queries.
async fn views<C: sea_orm::ConnectionTrait>(
    db: &C,
    rows: Vec<task::Model>,
) -> Result<Vec<TaskView>, StoreError> {
    let shards = shard_head::Entity::find()
        .filter(shard_head::Column::TaskId.is_in(rows.iter().map(|row| row.id)))
        .order_by_asc(shard_head::Column::TaskId)
        .order_by_asc(shard_head::Column::FirstIndex)
        .rows(db)
        .await?;
    let mut of_task: HashMap<i64, Vec<shard_head::Model>> = HashMap::new();
    for shard in shards {
        of_task.entry(shard.task_id).or_default().push(shard);
    }
    let owners = business::Entity::find()
        .filter(business::Column::Id.is_in(rows.iter().map(|row| row.business_id)))
        .rows(db)
        .await?;
    let slugs: HashMap<i64, String> = owners.into_iter().map(|owner| (owner.id, owner.slug)).collect();
    rows.into_iter()
        .map(|row| {
            let slug = slugs.get(&row.business_id).cloned();
            let slug =
                slug.ok_or_else(|| crate::sql::damaged("task.business_id", &row.business_id.to_string()))?;
            let shards = of_task.remove(&row.id).unwrap_or_default();
            view::together(row, slug, &shards)
        })
        .collect()
}

pub(crate) fn record(row: run::Model) -> RunRecord {
    RunRecord {
        shard: ShardId {
            task: TaskId(row.task_id),
            no: row.shard_no.cast_unsigned(),
        },
        run: RunNo(row.run_no.cast_unsigned()),
        epoch: Epoch(row.epoch.cast_unsigned()),
        node: row.node,
        started_at: WallMs(row.started_at),
        ended_at: row.ended_at.map(WallMs),
        end_reason: row.end_reason,
        end_text: row.end_text,
        watermark: ItemIndex(row.watermark.cast_unsigned()),
        settled: [row.succeeded, row.skipped, row.failed].map(i64::cast_unsigned),
        parked: row.parked.cast_unsigned(),
    }
}
