//! An item that failed at least once: retrying, parked or abandoned. Mirrors the table `item`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "item")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub task_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub idx: i64,
    pub shard_no: i32,
    pub state: String,
    pub attempts: i32,
    pub due_at: i64,
    pub code: Option<String>,
    pub message: Option<String>,
    pub output: Option<String>,
    pub epoch: i64,
    pub first_at: i64,
    pub last_at: i64,
    pub history: Option<String>,
    pub grp: Option<String>,
    pub grp_no: Option<i64>,
    pub charged: Option<i64>,
    pub unconfirmed: Option<i64>,
    pub others_answered: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
