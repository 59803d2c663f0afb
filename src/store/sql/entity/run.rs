//! One ownership of a shard. Mirrors the table `run`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "run")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub task_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub shard_no: i32,
    #[sea_orm(primary_key, auto_increment = false)]
    pub run_no: i32,
    pub epoch: i64,
    pub claim_id: String,
    pub session_id: String,
    pub started_at: i64,
    pub ended_at: Option<i64>,
    pub end_reason: Option<String>,
    pub low_water: i64,
    pub succeeded: i64,
    pub skipped: i64,
    pub abandoned: i64,
    pub parked: i64,
    pub node: Option<String>,
    pub end_text: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
