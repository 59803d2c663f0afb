//! Which items the present stop of a task cut off.

use sea_orm_migration::prelude::*;

use sea_orm_migration::schema::text_null;

use crate::columns::{add_all, remove_all};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0013_cut_off"
    }
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    // `{"items":3,"runs":[{"first":0,"len":3}]}`; none where nothing was cut off.
    vec![("task", text_null("cut_off"))]
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        add_all(manager, columns()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        remove_all(manager, columns()).await
    }
}
