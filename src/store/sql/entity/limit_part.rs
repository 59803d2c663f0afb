//! What a session may use of a limit. Mirrors the table `limit_part`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "limit_part")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub session_id: String,
    pub seat: i64,
    pub seq: i64,
    pub rate: Option<i64>,
    pub burst: Option<i64>,
    pub slots: Option<i64>,
    pub demand: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
