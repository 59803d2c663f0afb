//! Statements that fail with the store's error: reads of rows, of parts of rows and of a few columns, and writes.

use sea_orm::{
    ActiveModelTrait, ConnectionTrait, DeleteMany, EntityTrait, Insert, InsertMany, PartialModelTrait,
    QuerySelect, Select, Selector, SelectorTrait, TryGetableMany, UpdateMany, ValidatedDeleteOne,
};

use super::dialect::error;
use windrow_engine::ports::StoreError;

/// Query that returns rows in its own form.
pub(crate) trait Fetch {
    /// Type of a row found.
    type Row: Send;

    /// Returns all rows found.
    fn rows(
        self,
        db: &impl ConnectionTrait,
    ) -> impl Future<Output = Result<Vec<Self::Row>, StoreError>> + Send;

    /// Returns the first row found, if any.
    fn row(
        self,
        db: &impl ConnectionTrait,
    ) -> impl Future<Output = Result<Option<Self::Row>, StoreError>> + Send;
}

impl<E: EntityTrait> Fetch for Select<E> {
    type Row = E::Model;

    async fn rows(self, db: &impl ConnectionTrait) -> Result<Vec<E::Model>, StoreError> {
        self.all(db).await.map_err(error)
    }

    async fn row(self, db: &impl ConnectionTrait) -> Result<Option<E::Model>, StoreError> {
        self.one(db).await.map_err(error)
    }
}

impl<S: SelectorTrait<Item: Send> + Send> Fetch for Selector<S> {
    type Row = S::Item;

    async fn rows(self, db: &impl ConnectionTrait) -> Result<Vec<S::Item>, StoreError> {
        self.all(db).await.map_err(error)
    }

    async fn row(self, db: &impl ConnectionTrait) -> Result<Option<S::Item>, StoreError> {
        self.one(db).await.map_err(error)
    }
}

/// Query that can return less than whole rows.
pub(crate) trait Pluck<E: EntityTrait>: Into<Select<E>> {
    /// Returns the declared part of all rows found.
    fn parts<P: PartialModelTrait + Send>(
        self,
        db: &impl ConnectionTrait,
    ) -> impl Future<Output = Result<Vec<P>, StoreError>> + Send {
        self.into().into_partial_model().rows(db)
    }

    /// Returns the declared part of the first row found, if any.
    fn part<P: PartialModelTrait + Send>(
        self,
        db: &impl ConnectionTrait,
    ) -> impl Future<Output = Result<Option<P>, StoreError>> + Send {
        self.into().into_partial_model().row(db)
    }

    /// Returns one or two columns of all rows found.
    fn pluck<T: TryGetableMany + Send>(
        self,
        columns: impl IntoIterator<Item = E::Column>,
        db: &impl ConnectionTrait,
    ) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send {
        let query = self.into().select_only().columns(columns);
        query.into_tuple().rows(db)
    }

    /// Returns one or two columns of the first row found, if any.
    fn pluck_one<T: TryGetableMany + Send>(
        self,
        columns: impl IntoIterator<Item = E::Column>,
        db: &impl ConnectionTrait,
    ) -> impl Future<Output = Result<Option<T>, StoreError>> + Send {
        let query = self.into().select_only().columns(columns);
        query.into_tuple().row(db)
    }
}

impl<E: EntityTrait> Pluck<E> for Select<E> {}

/// Statement that changes rows.
pub(crate) trait Run {
    /// Runs the statement and returns the number of rows it changed.
    fn run(self, db: &impl ConnectionTrait) -> impl Future<Output = Result<u64, StoreError>> + Send;
}

macro_rules! run {
    ($($statement:ident<$of:ident: $bound:ident> by $exec:ident $(, $count:ident)?;)+) => {$(
        impl<$of: $bound + Send> Run for $statement<$of> {
            async fn run(self, db: &impl ConnectionTrait) -> Result<u64, StoreError> {
                let done = self.$exec(db).await.map_err(error)?;
                Ok(done$(.$count)?)
            }
        }
    )+};
}

run! {
    UpdateMany<E: EntityTrait> by exec, rows_affected;
    DeleteMany<E: EntityTrait> by exec, rows_affected;
    ValidatedDeleteOne<E: EntityTrait> by exec, rows_affected;
    Insert<A: ActiveModelTrait> by exec_without_returning;
    InsertMany<A: ActiveModelTrait> by exec_without_returning;
}
