//! Where a dataset is copied to. Mirrors the table `dataset_sink`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "dataset_sink")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub dataset_id: i64,
    pub name: String,
    pub is_on: bool,
    pub is_clean: bool,
    pub publication_no: Option<i64>,
    pub generation_no: Option<i64>,
    pub copied_at: Option<i64>,
    pub epoch: i64,
    pub lease_until: i64,
    pub due_at: i64,
    pub attempts: i32,
    pub fault: Option<String>,
    pub since: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
