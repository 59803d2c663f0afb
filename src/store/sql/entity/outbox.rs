//! A hook call that is due, written with the change that causes it. Mirrors the table `outbox`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "outbox")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub task_id: i64,
    pub start_no: i32,
    pub kind: String,
    pub payload: String,
    pub state: String,
    pub due_at: i64,
    pub attempts: i32,
    pub created_at: i64,
    pub delivery_id: Option<String>,
    pub last_error: Option<String>,
    pub expires_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
