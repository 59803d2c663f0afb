//! A line about a task or an item. Mirrors the table `data_log`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "data_log")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub task_id: i64,
    pub shard_no: i32,
    pub at_ms: i64,
    pub idx: Option<i64>,
    pub origin: String,
    pub level: i32,
    pub code: Option<String>,
    pub message: String,
    pub extra: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
