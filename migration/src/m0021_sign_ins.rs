//! Sign-ins of browsers: what a cookie stands for.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{string_len, string_len_null};

use crate::columns::{create, index, number, sequence_key, table};

/// See the module.
#[derive(Debug)]
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0021_sign_ins"
    }
}

/// One row a sign-in that isn't over: whoever signs out takes theirs away.
fn sign_in() -> TableCreateStatement {
    table("sign_in")
        .col(sequence_key("id"))
        .col(string_len("cookie_hash", 64))
        .col(number("token_id"))
        // Where the browser was, so that people can tell theirs.
        .col(string_len_null("address", 64))
        .col(number("created_at"))
        .col(number("expires_at"))
        .to_owned()
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, sign_in()).await?;
        index("sign_in", "cookie", &["cookie_hash"])
            .unique()
            .make(manager)
            .await?;
        index("sign_in", "token", &["token_id", "id"]).make(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_table(Table::drop().table("sign_in").if_exists().to_owned())
            .await
    }
}
