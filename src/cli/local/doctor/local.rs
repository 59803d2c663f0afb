//! What is looked at on this machine: the configuration and the state directory of a node.

use std::path::Path;

use serde_json::Value;

use super::told;
use crate::Shell;
use crate::fault::Fault;
use crate::local::db::args::Place;
use crate::local::db::configured;
use crate::local::serve::serviceable;
use crate::output::checks::{Outcome, line};
use crate::output::table::human;
use windrow_config::Config;
use windrow_engine::ports::StoreError;
use windrow_node::ServerAddress;
use windrow_node::database::{self, Inspection, Room};
use windrow_node::witness;

/// Less room than this is worth a look. Unit: bytes.
const ROOM_WARN: u64 = 1_000_000_000;
/// With less room than this a node stands still soon. Unit: bytes.
const ROOM_FAIL: u64 = 100_000_000;

/// Looks at the state directory that is named; at none that isn't.
pub(super) async fn look(place: &Place, shell: &Shell, report: &mut Vec<Value>) {
    if place.config.is_none() && place.data_dir.is_none() {
        return;
    }
    let config = match configured(place, shell) {
        Ok(config) => config,
        Err(fault) => return report.push(told("configuration", &fault)),
    };
    report.push(match serviceable(config.clone()) {
        Ok(_) => line("configuration", Outcome::Ok, "sound", None),
        Err(faults) => told("configuration", &Fault::of_config(&faults)),
    });
    report.push(database(&config).await);
    if let Ok(Some(server)) = database::address(&config) {
        report.push(durability(&server).await);
    }
    if let Some(outcome) = witness::look(&config.cluster).await {
        report.push(redis_line(outcome));
    }
    report.push(room(&config.node.data_dir));
}

/// No authority, so a node runs without it.
fn redis_line(outcome: Result<(), StoreError>) -> Value {
    match outcome {
        Ok(()) => line("redis", Outcome::Ok, "it answers", None),
        Err(StoreError::Unavailable(text) | StoreError::Refused(text)) => line(
            "redis",
            Outcome::Fail,
            text,
            Some("check cluster.redis_url and whether Redis runs"),
        ),
        Err(error @ (StoreError::NewerSchema(_) | StoreError::OlderSchema)) => {
            line("redis", Outcome::Fail, error.to_string(), None)
        }
    }
}

/// Whether a server's commits wait for its disk.
async fn durability(server: &ServerAddress) -> Value {
    let found = match Inspection::connect(server).await {
        Ok(inspection) => {
            let found = inspection.durability().await;
            inspection.close().await.and(found)
        }
        Err(error) => Err(error),
    };
    match found {
        Ok(found) if found.is_durable => line("durability", Outcome::Ok, found.setting, None),
        Ok(found) => {
            let detail = format!(
                "{}: a power cut of the database's machine takes back commits",
                found.setting
            );
            line(
                "durability",
                Outcome::Warn,
                detail,
                Some("synchronous_commit = on, innodb_flush_log_at_trx_commit = 1"),
            )
        }
        Err(error) => told("durability", &error.into()),
    }
}

async fn database(config: &Config) -> Value {
    match database::address(config) {
        Ok(None) => {}
        Ok(Some(server)) => {
            return shown(
                schema(Inspection::connect(&server).await).await,
                "windrow db migrate, once for all nodes",
            );
        }
        Err(error) => return told("schema", &error.into()),
    }
    let path = database::path(config);
    if !path.exists() {
        let detail = format!("{} isn't there yet", path.display());
        return line("schema", Outcome::Ok, detail, None);
    }
    shown(
        schema(Inspection::open(&path).await).await,
        "the node's next start does them, or windrow db migrate",
    )
}

fn shown(schema: Result<database::Schema, Fault>, advice: &str) -> Value {
    match schema {
        Ok(schema) if !schema.unknown.is_empty() => {
            let detail = format!("the database is newer: {}", schema.unknown.join(", "));
            line("schema", Outcome::Fail, detail, Some("use the newer windrow"))
        }
        Ok(schema) if !schema.pending.is_empty() => {
            let detail = format!("steps are missing: {}", schema.pending.join(", "));
            line("schema", Outcome::Warn, detail, Some(advice))
        }
        Ok(schema) => line(
            "schema",
            Outcome::Ok,
            format!("up to date ({} steps)", schema.done.len()),
            None,
        ),
        Err(fault) => told("schema", &fault),
    }
}

async fn schema(opened: Result<Inspection, StoreError>) -> Result<database::Schema, Fault> {
    let inspection = opened?;
    let schema = inspection.schema().await?;
    inspection.close().await?;
    Ok(schema)
}

fn room(directory: &Path) -> Value {
    match database::room(directory) {
        Ok(Room { free, total }) => {
            let detail = format!(
                "{} of {} free in {}",
                human::bytes(free),
                human::bytes(total),
                directory.display()
            );
            let outcome = match free {
                ..ROOM_FAIL => Outcome::Fail,
                ROOM_FAIL..ROOM_WARN => Outcome::Warn,
                _ => Outcome::Ok,
            };
            let advice =
                (outcome != Outcome::Ok).then_some("make room; [retention] in config.toml says what is kept");
            line("disk", outcome, detail, advice)
        }
        Err(error) => {
            let detail = format!("{}: {error}", directory.display());
            line(
                "disk",
                Outcome::Fail,
                detail,
                Some("check node.data_dir and its permissions"),
            )
        }
    }
}
