//! Removal of results that a generation owned and that are no longer kept.

use sea_orm::sea_query::{Expr, ExprTrait as _, Query, SelectStatement};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::sql::entity::{generation, task};
use crate::sql::run::result_place;
use crate::sql::task::delete;
use crate::sql::{Fetch, Run, Store};
use windrow_core::dataset::GenerationState;
use windrow_core::ids::TaskId;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::upkeep::SWEEP_MAX;

/// Removes what is left of one expired generation.
pub(crate) async fn sweep(store: &Store) -> Result<u64, StoreError> {
    use generation::Column as C;
    let found = generation::Entity::find()
        .filter(C::State.eq(GenerationState::Expired.as_str()))
        .order_by_asc(C::DatasetId)
        .order_by_asc(C::No)
        .row(&store.readers)
        .await?;
    let Some(gone) = found else { return Ok(0) };
    let task = TaskId(gone.task_id);
    result_place::forget(store, task).await?;
    delete::clear_results(store, task).await?;
    delete::clear_keys(store, task).await?;
    generation::Entity::delete_by_id((gone.dataset_id, gone.no))
        .run(&store.writer)
        .await?;
    // Another expired generation may be left.
    Ok(SWEEP_MAX)
}

/// Returns true if a generation owns the results of a task.
pub(crate) async fn owns_results(store: &Store, id: TaskId) -> Result<bool, StoreError> {
    use generation::Column as C;
    let found = generation::Entity::find()
        .filter(C::TaskId.eq(id.0))
        .filter(C::State.is_in(OWNING.map(GenerationState::as_str)))
        .row(&store.readers)
        .await?;
    Ok(found.is_some())
}

/// Builds the subquery for generations that own the results of the outer query's task.
pub(crate) fn owners_of_task() -> SelectStatement {
    use generation::Column as C;
    Query::select()
        .column(C::No)
        .from(generation::Entity)
        .and_where(Expr::col((generation::Entity, C::TaskId)).equals((task::Entity, task::Column::Id)))
        .and_where(Expr::col((generation::Entity, C::State)).is_in(OWNING.map(GenerationState::as_str)))
        .to_owned()
}

/// States in which a generation owns its results: an expired one does until it is swept.
const OWNING: [GenerationState; 2] = [GenerationState::Published, GenerationState::Expired];
