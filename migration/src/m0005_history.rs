//! What is remembered of runs after their sessions are gone: the names of their nodes.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::string_len_null;

use crate::columns::{add, remove};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0005_history"
    }
}

fn node() -> ColumnDef {
    string_len_null("node", 190)
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        add(manager, "run", node()).await?;
        // Those that are still known.
        let known = "UPDATE run SET node = (SELECT session.node FROM session WHERE session.id = run.session_id) \
                     WHERE node IS NULL";
        manager.get_connection().execute_unprepared(known).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        remove(manager, "run", &node()).await
    }
}
