//! Where datasets are copied to for readers; whether a fire for a time that was over publishes.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::text_null;

use crate::columns::{
    add_all, create, flag, index, key, number, number_null, remove_all, slug, small, table,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0020_sinks"
    }
}

/// One row a dataset that is, or was, copied. It outlives the dataset until the copy is gone.
fn sink() -> TableCreateStatement {
    table("dataset_sink")
        .col(number("dataset_id"))
        .col(slug("name", 40))
        // False: what readers find is to be taken away.
        .col(flag("is_on"))
        // Nothing of it is left there.
        .col(flag("is_clean"))
        // The publication that readers find, and its generation.
        .col(number_null("publication_no"))
        .col(number_null("generation_no"))
        .col(number_null("copied_at"))
        // Grows with each claim.
        .col(number("epoch"))
        .col(number("lease_until"))
        // Nobody tries before.
        .col(number("due_at"))
        .col(small("attempts"))
        .col(text_null("fault"))
        // Since when readers find something else than what is current, if that is not for the publication alone.
        .col(number("since"))
        .primary_key(&mut key(&["dataset_id"]))
        .to_owned()
}

/// Columns that older tables get, in the order in which they are added.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![("fire", flag("publishes"))]
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, sink()).await?;
        index("dataset_sink", "due", &["is_clean", "due_at"])
            .make(manager)
            .await?;
        add_all(manager, columns()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        remove_all(manager, columns()).await?;
        manager
            .drop_table(Table::drop().table("dataset_sink").if_exists().to_owned())
            .await
    }
}
