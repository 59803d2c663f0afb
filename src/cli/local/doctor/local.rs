//! Checks on this machine: configuration and state directory of a node.

use std::path::Path;

use super::Report;
use crate::fault::Fault;
use crate::link::checks::Outcome;
use crate::local::db::args::Place;
use crate::local::db::configured;
use crate::local::serve::serviceable;
use crate::output::table::human;
use crate::shell::Shell;
use windrow_config::Config;
use windrow_engine::ports::StoreError;
use windrow_node::ServerAddress;
use windrow_node::database::{self, Inspection, Room};
use windrow_node::witness;

/// Free space below which the check warns. Unit: bytes.
const ROOM_WARN: u64 = 1_000_000_000;
/// Free space below which the check fails, because a node stops working soon. Unit: bytes.
const ROOM_FAIL: u64 = 100_000_000;

/// Checks the named state directory; does nothing if none is named.
pub(super) async fn look(place: &Place, shell: &Shell, report: &mut Report) {
    if place.config.is_none() && place.data_dir.is_none() {
        return;
    }
    let config = match configured(place, shell) {
        Ok(config) => config,
        Err(fault) => return report.fault("configuration", &fault),
    };
    match serviceable(config.clone()) {
        Ok(_) => report.ok("configuration", "sound"),
        Err(faults) => report.fault("configuration", &Fault::of_config(&faults)),
    }
    schema(&config, report).await;
    if let Ok(Some(server)) = database::address(&config) {
        durability(&server, report).await;
    }
    // Redis isn't authoritative; nodes run without it.
    match witness::look(&config.cluster).await {
        None => {}
        Some(Ok(())) => report.ok("redis", "reachable"),
        Some(Err(error)) => {
            let advice = "check cluster.redis_url and whether Redis runs";
            let meaning = config.cluster.without_redis("nodes take");
            report.fail("redis", format!("{error}; {meaning}"), advice);
        }
    }
    room(&config.node.data_dir, report);
}

/// Checks that the server waits for its disk on commit.
async fn durability(server: &ServerAddress, report: &mut Report) {
    let found = match Inspection::connect(server).await {
        Ok(inspection) => {
            let found = inspection.durability().await;
            inspection.close().await.and(found)
        }
        Err(error) => Err(error),
    };
    match found {
        Ok(found) => report.durability(found.is_durable, &found.setting),
        Err(error) => report.fault("durability", &error.into()),
    }
}

async fn schema(config: &Config, report: &mut Report) {
    let (opened, advice) = match database::address(config) {
        Ok(Some(server)) => (
            Inspection::connect(&server).await,
            "run windrow db migrate once for all nodes",
        ),
        Ok(None) => {
            let path = database::path(config);
            if !path.exists() {
                return report.ok("schema", format!("{} doesn't exist yet", path.display()));
            }
            let advice = "the next start of the node or windrow db migrate applies them";
            (Inspection::open(&path).await, advice)
        }
        Err(error) => return report.fault("schema", &error.into()),
    };
    match read(opened).await {
        Ok(schema) if !schema.unknown.is_empty() => {
            let detail = format!("the database is newer: {}", schema.unknown.join(", "));
            report.fail("schema", detail, "use the newer windrow");
        }
        Ok(schema) if !schema.pending.is_empty() => {
            let detail = format!("pending steps: {}", schema.pending.join(", "));
            report.warn("schema", detail, advice);
        }
        Ok(_) => report.ok("schema", "up to date"),
        Err(error) => report.fault("schema", &error.into()),
    }
}

async fn read(opened: Result<Inspection, StoreError>) -> Result<database::Schema, StoreError> {
    let inspection = opened?;
    let schema = inspection.schema().await?;
    inspection.close().await?;
    Ok(schema)
}

fn room(directory: &Path, report: &mut Report) {
    let shown = directory.display();
    match database::room(directory) {
        Ok(Room { free, total }) => {
            let detail = format!(
                "{} of {} free in {shown}",
                human::bytes(free),
                human::bytes(total)
            );
            let outcome = match free {
                ..ROOM_FAIL => Outcome::Fail,
                ROOM_FAIL..ROOM_WARN => Outcome::Warn,
                _ => Outcome::Ok,
            };
            let advice = "free disk space, or keep less data ([retention] in config.toml)";
            report.came_out("disk", outcome, detail, advice);
        }
        Err(error) => {
            let advice = "check node.data_dir and its permissions";
            report.fail("disk", format!("{shown}: {error}"), advice);
        }
    }
}
