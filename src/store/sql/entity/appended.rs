//! Table `appended`: the items that were added to open tasks, in blocks.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "appended")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub task_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub first_index: i64,
    pub end_index: i64,
    pub bytes_before: i64,
    pub byte_count: i64,
    pub key_hash: Option<String>,
    pub body_hash: String,
    pub body: Vec<u8>,
    pub appended_at: i64,
    pub is_kept: bool,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
