//! Schema of the store, as an ordered list of steps.
//!
//! Column types are those that SQLite, PostgreSQL and MariaDB share: times are `BIGINT` milliseconds since the Unix
//! epoch, indexes and ids `BIGINT` (u64 digests bit-cast), texts that are compared bounded `VARCHAR`s, and no name
//! is a reserved word anywhere. Entities in `windrow_store::sql` mirror these tables.
//!
//! Steps only go up: the way back is a backup. Running [`Migrator`] twice at once is made safe by its caller, who wraps
//! it in a write transaction or lock.

pub use sea_orm_migration::{MigrationName, MigratorTrait};

mod columns;
mod m0001_schema;
mod schema;
mod table;

/// All steps in order.
#[derive(Debug)]
pub struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn sea_orm_migration::MigrationTrait>> {
        vec![Box::new(m0001_schema::Migration)]
    }
}
