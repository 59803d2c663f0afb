//! How many items of a task were abandoned with one code. Mirrors the table `failure_group`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "failure_group")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub task_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub code: String,
    pub n: i64,
    pub first_at: i64,
    pub last_at: i64,
    pub example_idx: i64,
    pub example: String,
    pub unconfirmed: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
