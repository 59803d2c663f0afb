//! `/v1/cluster`: all nodes together, and whether they are well.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{NodeBody, all};
use crate::http::App;
use crate::http::problem::HttpResult;
use crate::service::cluster::nodes::ShardCounts;

/// A cluster.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClusterBody {
    /// Of the store; the first part of every item key.
    store: String,
    /// Which database it is: `sqlite`, `postgres` or `mysql`.
    database: &'static str,
    /// What keeps two nodes from running the same: `redis` with the database, or the `database` alone.
    witness: &'static str,
    /// `ok`, or `degraded` when there are reasons.
    status: &'static str,
    /// What isn't well.
    reasons: Vec<ClusterReason>,
    /// How many nodes have each version.
    versions: BTreeMap<String, u64>,
    /// Where the parts of tasks stand that have something left to do.
    shards: ClusterShards,
    /// The nodes, the one that answers first; each with what runs on it.
    nodes: Vec<NodeBody>,
}

/// Something that isn't well.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClusterReason {
    /// `node_silent`, `node_fenced`, `node_unreachable`, `none_takes_tasks` or `orphaned`.
    reason: &'static str,
    /// A sentence.
    text: String,
}

/// Where the parts of tasks stand.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClusterShards {
    /// Owned by a node that lives.
    owned: u64,
    /// Owned by one that is silent or has lost its session: others take them over.
    orphaned: u64,
    /// To be run, and owned by nobody.
    released: u64,
    /// To be tried again later.
    recovering: u64,
    /// A number that is as high as this may be higher.
    counted_up_to: u64,
}

impl From<ShardCounts> for ClusterShards {
    fn from(counts: ShardCounts) -> ClusterShards {
        ClusterShards {
            owned: counts.owned,
            orphaned: counts.orphaned,
            released: counts.released,
            recovering: counts.recovering,
            counted_up_to: counts.counted_up_to,
        }
    }
}

/// See the whole cluster
#[utoipa::path(
    get, path = "/v1/cluster", operation_id = "show_cluster", tag = "node", security(("bearer" = ["viewer"])),
    responses((status = 200, body = ClusterBody))
)]
pub(crate) async fn cluster(State(app): State<App>) -> HttpResult<Json<ClusterBody>> {
    let store = app.service.tasks.store.store_id().await?;
    let nodes = all(&app).await?;
    let counts = app.service.cluster.shard_counts().await?;
    let mut reasons: Vec<ClusterReason> = nodes.iter().filter_map(reason).collect();
    if counts.orphaned > 0 {
        let text = format!(
            "{} parts of tasks wait for another node to take them over",
            counts.orphaned
        );
        reasons.push(ClusterReason {
            reason: "orphaned",
            text,
        });
    }
    reasons.extend(none_takes_tasks(&nodes));
    let mut versions: BTreeMap<String, u64> = BTreeMap::new();
    // One that is gone runs no version any more.
    for node in nodes.iter().filter(|node| node.judged().1 != "fenced") {
        *versions.entry(node.version().to_owned()).or_default() += 1;
    }
    Ok(Json(ClusterBody {
        store: store.0,
        database: app.service.cluster.parts.database,
        witness: if app.service.config().cluster.redis_url.is_some() {
            "redis"
        } else {
            "database"
        },
        status: if reasons.is_empty() { "ok" } else { "degraded" },
        reasons,
        versions,
        shards: counts.into(),
        nodes,
    }))
}

fn reason(node: &NodeBody) -> Option<ClusterReason> {
    let (name, state, is_asked) = node.judged();
    let why = node.live.why.as_deref().unwrap_or_default();
    let (reason, text) = match state {
        "silent" => (
            "node_silent",
            format!("{name} gives no sign; after its time others take over what it has"),
        ),
        "fenced" => (
            "node_fenced",
            format!("{name} has lost its session and has begun no other"),
        ),
        _ if !is_asked => {
            let age = node.heartbeat_age_seconds.unwrap_or_default();
            let text = format!("{name} gave its last sign {age} s ago, and can't be asked from here: {why}");
            ("node_unreachable", text)
        }
        _ => return None,
    };
    Some(ClusterReason { reason, text })
}

/// That people drained every node that would take tasks: nothing runs then, and nothing but this looks wrong.
fn none_takes_tasks(nodes: &[NodeBody]) -> Option<ClusterReason> {
    let drained: Vec<&str> = nodes
        .iter()
        .filter(|node| node.is_drained())
        .map(|node| node.judged().0)
        .collect();
    if drained.is_empty() || nodes.iter().any(NodeBody::takes_tasks) {
        return None;
    }
    let text = format!(
        "no node takes tasks: {} drained; `windrow node undrain {}` lets it take tasks again",
        match drained.as_slice() {
            [one] => format!("{one} is"),
            several => format!("{} are", several.join(", ")),
        },
        drained[0]
    );
    Some(ClusterReason {
        reason: "none_takes_tasks",
        text,
    })
}
