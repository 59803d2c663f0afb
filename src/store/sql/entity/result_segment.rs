//! Table `result_segment`: what items came to.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "result_segment")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub task_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub shard_no: i32,
    #[sea_orm(primary_key, auto_increment = false)]
    pub epoch: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub seg_no: i32,
    pub first_index: i64,
    pub last_index: i64,
    pub items: i64,
    pub byte_size: i64,
    pub body: Vec<u8>,
    pub location: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
