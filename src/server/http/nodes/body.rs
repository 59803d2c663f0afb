//! API view of a node: the stored session, combined with the node's own reply if it can be reached.

use serde_json::{Value, json};

use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::service::cluster::nodes::NodeRow;
use windrow_core::ids::ShardId;
use windrow_engine::ports::ownership::peers::{NodeFace, Unreachable};

fn run(shard: ShardId, run: u32) -> api::NodeRun {
    api::NodeRun {
        task: shard.task.to_string(),
        shard: shard.no,
        run,
    }
}

/// Returns the state that this node advertises.
pub(in crate::http) async fn face(app: &App) -> NodeFace {
    let (config, supervisor) = (app.service.config(), app.service.supervisor());
    let room = supervisor.room();
    let runs = supervisor.run_numbers().into_iter();
    let runs: Vec<(ShardId, u32)> = runs.map(|(shard, run)| (shard, run.0)).collect();
    let stands_by = app.service.cluster.stands_by().await;
    NodeFace {
        state: match (app.front.is_ending(), stands_by) {
            (false, Some(true)) => drained_word(runs.len()),
            (false, Some(false)) => "draining",
            _ => app.front.state(),
        }
        .to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capacity_rate: config.node.capacity_rate.to_string(),
        reserved_rate: room.reserved.rounded(),
        unlimited_reserves: config.node.unlimited_reserves.to_string(),
        run_tasks: config.node.run_tasks,
        log_filter: app
            .front
            .log_filter()
            .unwrap_or_else(|| config.log.filter.clone()),
        waiting: room.waiting,
        uptime_seconds: app.service.node.uptime(app.front.since).as_secs(),
        now: app.service.now(),
        runs,
        redis_fault: app.service.health.meters.redis().and_then(Result::err),
    }
}

fn drained_word(runs: usize) -> &'static str {
    if runs == 0 { "drained" } else { "draining" }
}

/// Returns the state the node would have after a drain or undrain.
pub(super) fn wished(node: &api::Node, drained: bool) -> String {
    let word = if drained {
        drained_word(node.runs.len())
    } else {
        "serving"
    };
    word.to_owned()
}

/// Returns this node, which handles the request.
pub(crate) async fn here(app: &App) -> api::Node {
    let config = app.service.config();
    let face = face(app).await;
    let runs = face.runs.iter().map(|(shard, no)| run(*shard, *no)).collect();
    api::Node {
        id: app.front.node.clone(),
        address: app.service.cluster.parts.address.clone(),
        pools: config.node.pools.clone(),
        labels: config.node.labels.clone(),
        last_seen: Some(rfc3339(app.service.now())),
        heartbeat_age_seconds: app
            .service
            .cluster
            .own_heartbeat_age()
            .await
            .map(|age| rounded(age.as_secs_f64())),
        runs,
        live: api::NodeLive {
            state: "here".to_owned(),
            why: None,
            clock_ahead_seconds: None,
        },
        version: face.version,
        state: face.state,
        capacity_rate: face.capacity_rate,
        reserved_rate: Some(face.reserved_rate),
        unlimited_reserves: Some(face.unlimited_reserves),
        run_tasks: face.run_tasks,
        log_filter: Some(face.log_filter),
        waiting: Some(face.waiting),
        uptime_seconds: face.uptime_seconds,
        redis_fault: face.redis_fault,
    }
}

/// Returns another node, from its stored session and its reply.
pub(crate) fn there(app: &App, row: &NodeRow, face: Result<NodeFace, Unreachable>) -> api::Node {
    let session = &row.session;
    let now = app.service.now();
    let ahead = |face: &NodeFace| (face.now.0 - now.0) as f64 / 1e3;
    let live = api::NodeLive {
        state: if face.is_ok() {
            "live".to_owned()
        } else {
            "unreachable".to_owned()
        },
        clock_ahead_seconds: face.as_ref().ok().map(ahead),
        why: face.as_ref().err().map(|unreachable| unreachable.why.clone()),
    };
    let face = face.ok();
    let told = |part: fn(&NodeFace) -> &String| face.as_ref().map(|face| part(face).clone());
    let stored = session
        .face
        .capacity
        .map_or_else(|| "unlimited".to_owned(), |load| load.to_string());
    let runs = match &face {
        Some(face) => face.runs.iter().map(|(shard, no)| run(*shard, *no)).collect(),
        None => row.holds.iter().map(|held| run(held.shard, held.run.0)).collect(),
    };
    let takes_none = session.face.pools.as_ref().is_some_and(Vec::is_empty);
    api::Node {
        id: session.node.clone(),
        version: session.version.clone(),
        state: state(row, face.as_ref()),
        address: session.face.address.clone(),
        capacity_rate: told(|face| &face.capacity_rate).unwrap_or(stored),
        reserved_rate: told(|face| &face.reserved_rate),
        unlimited_reserves: told(|face| &face.unlimited_reserves),
        run_tasks: face.as_ref().map_or(!takes_none, |face| face.run_tasks),
        pools: session.face.pools.clone().unwrap_or_default(),
        labels: session.face.labels.clone(),
        log_filter: told(|face| &face.log_filter),
        waiting: face.as_ref().map(|face| face.waiting),
        last_seen: row.age.map(|age| rfc3339(now.minus(age))),
        heartbeat_age_seconds: row.age.map(|age| rounded(age.as_secs_f64())),
        uptime_seconds: face.as_ref().map_or_else(
            || now.since(session.started_at).as_secs(),
            |face| face.uptime_seconds,
        ),
        runs,
        live,
        redis_fault: face.and_then(|face| face.redis_fault),
    }
}

/// Returns the live numbers, for event streams.
pub(in crate::http) fn numbers(node: &api::Node) -> Value {
    json!({
        "id": node.id,
        "state": node.state,
        "capacity_rate": node.capacity_rate,
        "reserved_rate": node.reserved_rate,
        "runs": node.runs.len(),
        "waiting": node.waiting,
        "live": node.live.state,
    })
}

/// Applies the possibly changed settings of a node to its advertised state.
pub(in crate::http) fn overlay(node: &api::Node, face: &mut NodeFace) {
    face.capacity_rate.clone_from(&node.capacity_rate);
    if let Some(filter) = &node.log_filter {
        face.log_filter.clone_from(filter);
    }
}

fn state(row: &NodeRow, face: Option<&NodeFace>) -> String {
    let session = &row.session;
    match face {
        _ if session.fenced => "fenced".to_owned(),
        // The node learns of the drain request with its next heartbeat, and may claim shards until then.
        Some(face) if session.drain && face.state == "serving" => "draining".to_owned(),
        Some(face) => face.state.clone(),
        None if row.is_silent() => "silent".to_owned(),
        None if session.face.draining => drained_word(row.holds.len()).to_owned(),
        None if session.drain => "draining".to_owned(),
        None => "serving".to_owned(),
    }
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}
