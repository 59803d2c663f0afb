//! What a shard settled in a day. Mirrors the table `shard_day`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "shard_day")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub task_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub shard_no: i32,
    #[sea_orm(primary_key, auto_increment = false)]
    pub day: i64,
    pub succeeded: i64,
    pub skipped: i64,
    pub abandoned: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
