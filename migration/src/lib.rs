//! Schema of the store, as an ordered list of steps.
//!
//! Column types are those that SQLite, PostgreSQL and MariaDB share: times are `BIGINT` milliseconds since the Unix
//! epoch, indexes and ids are `BIGINT` (u64 digests bit-cast), texts that are compared are bounded `VARCHAR`s, and no
//! name is a reserved word anywhere. Entities in `windrow_store::sql` mirror these tables.
//!
//! Steps only go up: the way back is a backup. The caller makes concurrent runs of [`Migrator`] safe by wrapping it
//! in a write transaction or lock.

pub use sea_orm_migration::{MigrationName, MigratorTrait};

mod columns;
mod m0001_schema;
mod schema;
mod table;

/// Migration steps of this program, in order.
#[derive(Debug)]
pub struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn sea_orm_migration::MigrationTrait>> {
        vec![Box::new(m0001_schema::Migration)]
    }
}
