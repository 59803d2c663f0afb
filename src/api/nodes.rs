//! Nodes, the cluster, and their health.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use windrow_core::settings::RateLimit;

/// A node of the cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Name of the node.
    pub id: String,
    /// Version of its program.
    pub version: String,
    /// `serving`; `draining` while it hands its work over, `drained` afterwards; `silent` when its heartbeat is
    /// overdue, `fenced` when it has lost its session.
    pub state: String,
    /// Address at which other nodes reach it; null if it announced none.
    pub address: Option<String>,
    /// Total of task rates that it may hold, such as `2000/s`, or `unlimited`.
    pub capacity_rate: String,
    /// Reserved part of that capacity. Null while the node can't be asked, like every value that only the node knows.
    pub reserved_rate: Option<String>,
    /// Rate reserved for a task without a rate.
    pub unlimited_reserves: Option<String>,
    /// True if the node runs tasks at all.
    pub run_tasks: bool,
    /// Pools whose businesses run on it.
    pub pools: Vec<String>,
    /// Labels from its configuration.
    pub labels: BTreeMap<String, String>,
    /// Filter for the lines of its own log.
    pub log_filter: Option<String>,
    /// Number of tasks waiting for capacity, as of the latest check.
    pub waiting: Option<usize>,
    /// Time of its last heartbeat, as seen by the responding node.
    pub last_seen: Option<String>,
    /// Time since its last heartbeat, in seconds, as seen by the responding node.
    pub heartbeat_age_seconds: Option<f64>,
    /// Time that it has been serving, in seconds.
    pub uptime_seconds: u64,
    /// Runs on the node.
    pub runs: Vec<NodeRun>,
    /// Reachability of the node; shows if these values come from the node itself.
    pub live: NodeLive,
    /// Reason why it can't reach the Redis of leases; becomes a reason of the cluster.
    #[serde(skip)]
    pub redis_fault: Option<String>,
}

/// Reachability of a node from the responding node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NodeLive {
    /// `here` for the responding node, `live` for a node that was asked, `unreachable` for one that can't be asked.
    pub state: String,
    /// Reason why it can't be asked.
    pub why: Option<String>,
    /// Seconds by which its wall clock is ahead of the responding node's, accurate to within the time of the request.
    pub clock_ahead_seconds: Option<f64>,
}

/// A run on a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NodeRun {
    /// Id of the task, e.g. `t42`.
    pub task: String,
    /// Number of the shard.
    pub shard: u32,
    /// Number of the run within the shard.
    pub run: u32,
}

/// The cluster and its health.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Cluster {
    /// Id of the store, the first part of every item key.
    pub store: String,
    /// Kind of database: `sqlite`, `postgres` or `mysql`.
    pub database: String,
    /// Durability of acknowledged writes if the database machine loses power.
    pub durability: ClusterDurability,
    /// Witness that keeps two nodes from running the same shard: `redis` together with the database, or the
    /// `database` alone.
    pub witness: String,
    /// `ok`, or `degraded` when there are reasons.
    pub status: String,
    /// Problems found in the cluster.
    pub reasons: Vec<ClusterReason>,
    /// Number of nodes on each version.
    pub versions: BTreeMap<String, u64>,
    /// Shards with work left, by ownership.
    pub shards: ClusterShards,
    /// All nodes with their runs, the responding one first.
    pub nodes: Vec<Node>,
}

/// Durability of database commits.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ClusterDurability {
    /// True if acknowledged writes survive a power cut; if false, it can undo the latest ones.
    pub durable: bool,
    /// Database settings that decide it.
    pub setting: String,
}

/// A problem of the cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ClusterReason {
    /// `node_silent`, `node_fenced`, `node_unreachable`, `redis_lost`, `none_takes_tasks` or `orphaned`.
    pub reason: String,
    /// Explanation in one sentence.
    pub text: String,
}

/// Number of shards in each state of ownership.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ClusterShards {
    /// Owned by a live node.
    pub owned: u64,
    /// Owned by a node that is silent or has lost its session; other nodes take them over.
    pub orphaned: u64,
    /// Ready to run, without an owner.
    pub released: u64,
    /// Waiting to be tried again.
    pub recovering: u64,
    /// Counting limit: a count that reaches it may be higher in fact.
    pub counted_up_to: u64,
}

/// An actor with its children.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// Path in the actor tree, e.g. `n1/t42.0/executor`.
    pub path: String,
    /// Kind of the actor.
    pub kind: String,
    /// `ok`, `DRAINING` or `BACKOFF`.
    pub state: String,
    /// Time since its last start, in seconds.
    pub uptime_seconds: f64,
    /// Number of restarts so far.
    pub restarts: u32,
    /// Number of messages waiting.
    pub mailbox: u64,
    /// Time since it last handled a message, in seconds.
    pub last_handled_seconds: f64,
    /// Status text written by the actor itself.
    pub text: String,
    /// Actors started by this one.
    #[schema(no_recursion)]
    pub children: Vec<Actor>,
}

/// Liveness: the process responds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Always `ok` while the process responds.
    pub status: String,
}

/// Readiness of the node to take work.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// True if the node can take work.
    pub ready: bool,
    /// Reasons why it can't take work.
    pub reasons: Vec<ReadinessReason>,
    /// Missing dependencies that don't stop it: a node is ready without Redis.
    pub degraded: Vec<ReadinessReason>,
}

/// Reason why a node can't take work, or works degraded.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReadinessReason {
    /// `draining`, `drained`, `store`, `session` or `actors`; in `degraded`, `redis`.
    pub reason: String,
    /// Explanation in one sentence.
    pub text: String,
}

/// Name and version of the program.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// Always `windrow`, the program's name.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Version of the API.
    pub api: String,
    /// Name of the responding node.
    pub node: String,
}

/// Changes to a node, in effect until its next restart.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditNode {
    /// Total of task rates that it may hold.
    #[schema(value_type = Option<String>, max_length = 80, examples("3000/s"))]
    pub capacity_rate: Option<RateLimit>,
    /// Filter for the lines of its own log.
    #[schema(max_length = 1024, examples("info,windrow_engine=debug"))]
    pub log_filter: Option<String>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

impl Node {
    /// Returns the name, the state, and true if the node could be asked: all that the health of a list depends on.
    pub fn judged(&self) -> (&str, &str, bool) {
        (&self.id, &self.state, self.live.state != "unreachable")
    }

    /// True if the node runs tasks but an operator drained it.
    pub fn is_drained(&self) -> bool {
        matches!(self.state.as_str(), "drained" | "draining") && self.run_tasks
    }

    /// True if the node accepts tasks now.
    pub fn takes_tasks(&self) -> bool {
        self.state == "serving" && self.run_tasks
    }
}
