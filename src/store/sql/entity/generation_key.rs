//! A block of hashes of keys with the indexes of their items. Mirrors the table `generation_key`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "generation_key")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub task_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub epoch: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub block_no: i64,
    pub first_hash: i64,
    pub last_hash: i64,
    pub body: Vec<u8>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
