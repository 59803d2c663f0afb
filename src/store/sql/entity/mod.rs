//! Tables as sea-orm entities, grouped as in the migration: rows in and out, no logic. Conversion to domain types is
//! in `sql::words`.
#![allow(
    missing_docs,
    unreachable_pub,
    reason = "one line per column; the migration describes them"
)]

/// Declares the entity of a table in a module of its own: first the primary key, then the other columns. A `sequence`
/// is a key that the database numbers.
macro_rules! entity {
    ($name:ident $table:literal sequence $id:ident $($columns:tt)*) => {
        entity! { @ $name $table [#[sea_orm(primary_key)] pub $id: i64,] $($columns)* }
    };
    ($name:ident $table:literal key ($($key:ident: $of:ty),+) $($columns:tt)*) => {
        entity! {
            @ $name $table [$(#[sea_orm(primary_key, auto_increment = false)] pub $key: $of,)+] $($columns)*
        }
    };
    (@ $name:ident $table:literal [$($key:tt)+] $($column:ident: $of:ty,)*) => {
        pub mod $name {
            use sea_orm::entity::prelude::*;

            #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
            #[sea_orm(table_name = $table)]
            pub struct Model {
                $($key)+
                $(pub $column: $of,)*
            }

            #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
            pub enum Relation {}

            impl ActiveModelBehavior for ActiveModel {}
        }
    };
}

mod businesses;
mod datasets;
mod items;
mod limits;
mod nodes;
mod records;
mod schedules;
mod shards;
mod sources;
mod tasks;

pub use self::businesses::{alert, business, idempotency, outbox, sign_in, token};
pub use self::datasets::{dataset, dataset_sink, generation, generation_key};
pub use self::items::{appended, failure_group, item, result_segment};
pub use self::limits::{found, limit_part, named_limit, shared_limit};
pub use self::nodes::{meta, session};
pub use self::records::{audit, data_log, data_log_drop};
pub use self::schedules::{fire, schedule};
pub use self::shards::{business_day, run, shard, shard_day, shard_head};
pub use self::sources::{source, source_index, upload, upload_chunk};
pub use self::tasks::{start_token, task};
