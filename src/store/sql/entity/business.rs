//! A registered consumer of items. Mirrors the table `business`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "business")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub slug: String,
    pub display_name: Option<String>,
    pub pool: Option<String>,
    pub revision: i64,
    pub handler: Option<String>,
    pub hooks: Option<String>,
    pub defaults_json: Option<String>,
    pub limits_json: Option<String>,
    pub secrets: Option<Vec<u8>>,
    pub archived_at: Option<i64>,
    pub version: i64,
    pub created_at: i64,
    pub updated_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
