//! Query over the days of shards: completed ones, and those on which shards last settled something.

use std::collections::HashMap;

use sea_orm::sea_query::{Expr, ExprTrait as _, Query, SelectStatement, UnionType};
use sea_orm::{EntityTrait, QueryResult, TryGetableMany};

use super::only;
use crate::sql::dialect::whole_sum;
use crate::sql::entity::{shard_day, shard_head, task};
use crate::sql::{Transaction, error};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::statistics::Period;

/// Column of the query: row id of the business.
pub(super) const BUSINESS: &str = "business_id";
/// Column of the query: id of the task.
pub(super) const TASK: &str = "task_id";
/// Column of the query: number of the day.
pub(super) const DAY: &str = "day";
/// Columns of the query: items settled, by result.
const TERMS: [&str; 3] = ["succeeded", "skipped", "failed"];

/// Builds the query for the days of a period of kept tasks: one row per shard and day.
pub(super) fn days_of_tasks(period: &Period, slugs: &HashMap<i64, String>) -> SelectStatement {
    use {shard_day::Column as D, shard_head::Column as S};
    let over = [D::Succeeded, D::Skipped, D::Failed].map(|column| Expr::col((shard_day::Entity, column)));
    let last = [
        (S::Succeeded, S::DaySucceeded),
        (S::Skipped, S::DaySkipped),
        (S::Failed, S::DayFailed),
    ];
    let own = |column| Expr::col((shard_head::Entity, column));
    let last = last.map(|(now, begun)| own(now).sub(own(begun)));
    let mut days = arm(shard_day::Entity, (D::TaskId, D::Day), over, period, slugs);
    days.union(
        UnionType::All,
        arm(shard_head::Entity, (S::TaskId, S::Day), last, period, slugs),
    );
    days
}

/// Selects the days from one table. The period narrows each table, since not every database applies a condition
/// inside a union.
fn arm<E: EntityTrait>(
    table: E,
    (of_task, day): (E::Column, E::Column),
    terms: [Expr; 3],
    period: &Period,
    slugs: &HashMap<i64, String>,
) -> SelectStatement {
    let own = |column| Expr::col((table, column));
    let is_of_task = own(of_task).equals((task::Entity, task::Column::Id));
    let is_any = terms.iter().cloned().map(|term| term.ne(0)).reduce(Expr::or);
    let mut days = Query::select();
    days.expr_as(own(of_task), TASK)
        .expr_as(own(day), DAY)
        .expr_as(Expr::col((task::Entity, task::Column::BusinessId)), BUSINESS);
    for (term, name) in terms.into_iter().zip(TERMS) {
        days.expr_as(term, name);
    }
    days.from(table)
        .inner_join(task::Entity, is_of_task)
        .and_where(own(day).gte(period.from.0))
        .and_where(own(day).lt(period.until.0))
        .and_where_option(is_any);
    if let Some(ids) = only(period, slugs) {
        days.and_where(Expr::col((task::Entity, task::Column::BusinessId)).is_in(ids));
    }
    days
}

/// Sums the items settled on days; callers add the columns to group by after the sums.
pub(super) fn sums(snapshot: &Transaction, days: SelectStatement) -> SelectStatement {
    let mut sums = Query::select();
    for term in TERMS {
        sums.expr(whole_sum(snapshot, Expr::col(term)));
    }
    sums.from_subquery(days, "days");
    sums
}

/// Decodes rows by the position of their columns.
pub(super) fn tuples<T: TryGetableMany>(rows: &[QueryResult]) -> Result<Vec<T>, StoreError> {
    let rows = rows.iter().map(QueryResult::try_get_many_by_index);
    rows.collect::<Result<_, _>>().map_err(error)
}
