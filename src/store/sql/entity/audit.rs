//! Who changed what, and why. Mirrors the table `audit`.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "audit")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub task_id: Option<i64>,
    pub at_ms: i64,
    pub actor: String,
    pub source: String,
    pub action: String,
    pub reason: Option<String>,
    pub before_json: Option<String>,
    pub after_json: Option<String>,
    pub request_id: Option<String>,
    pub business_id: Option<i64>,
    pub object_kind: Option<String>,
    pub object_name: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
