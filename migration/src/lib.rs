//! The schema of the store, as an ordered list of steps, each with up and down.
//!
//! Column types are those that SQLite, PostgreSQL and MariaDB share: times are `BIGINT` milliseconds since the Unix
//! epoch, indexes and ids `BIGINT` (u64 digests bit-cast), texts that are compared bounded `VARCHAR`s, and no name
//! is a reserved word anywhere. Entities in `windrow_store::sql` mirror these tables.
//!
//! Running [`Migrator`] twice at once is made safe by its caller, who wraps it in a write transaction or lock.

pub use sea_orm_migration::{MigrationName, MigratorTrait};

mod columns;
mod m0001_work;
mod m0002_records;
mod m0003_service;
mod m0004_cluster;
mod m0005_history;
mod m0006_limits;
mod m0009_outage;
mod m0010_named_limits;
mod m0011_abandonments;
mod m0012_reach;
mod m0013_cut_off;
mod m0014_results;
mod m0015_schedules;
mod m0016_datasets;
mod m0017_statistics;
mod m0018_open_tasks;
mod m0019_skips;
mod m0020_sinks;
mod m0021_sign_ins;
mod m0022_sign_in_expiry;
mod m0023_key_holders;
mod m0024_audit_age;
mod m0025_audit_object;
mod m0026_unconfirmed;
mod m0027_judgements;

/// All steps in order.
#[derive(Debug)]
pub struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn sea_orm_migration::MigrationTrait>> {
        vec![
            Box::new(m0001_work::Migration),
            Box::new(m0002_records::Migration),
            Box::new(m0003_service::Migration),
            Box::new(m0004_cluster::Migration),
            Box::new(m0005_history::Migration),
            Box::new(m0006_limits::Migration),
            Box::new(m0009_outage::Migration),
            Box::new(m0010_named_limits::Migration),
            Box::new(m0011_abandonments::Migration),
            Box::new(m0012_reach::Migration),
            Box::new(m0013_cut_off::Migration),
            Box::new(m0014_results::Migration),
            Box::new(m0015_schedules::Migration),
            Box::new(m0016_datasets::Migration),
            Box::new(m0017_statistics::Migration),
            Box::new(m0018_open_tasks::Migration),
            Box::new(m0019_skips::Migration),
            Box::new(m0020_sinks::Migration),
            Box::new(m0021_sign_ins::Migration),
            Box::new(m0022_sign_in_expiry::Migration),
            Box::new(m0023_key_holders::Migration),
            Box::new(m0024_audit_age::Migration),
            Box::new(m0025_audit_object::Migration),
            Box::new(m0026_unconfirmed::Migration),
            Box::new(m0027_judgements::Migration),
        ]
    }
}
