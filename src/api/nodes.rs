//! Nodes, the cluster, and whether they are well.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use windrow_core::settings::RateLimit;

/// A node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Its name.
    pub id: String,
    /// Of its program.
    pub version: String,
    /// `serving`; `draining` while it hands its work over, `drained` when it has; `silent` when its heart hasn't beaten
    /// for as long as it promised, `fenced` when it has lost its session.
    pub state: String,
    /// How other nodes reach it; null when it has said nothing.
    pub address: Option<String>,
    /// The sum of task rates that it may hold, such as `2000/s`, or `unlimited`.
    pub capacity_rate: String,
    /// How much of it is taken; like everything that only the node knows, null while it can't be asked.
    pub reserved_rate: Option<String>,
    /// What a task without a rate counts as.
    pub unlimited_reserves: Option<String>,
    /// Whether tasks run there at all.
    pub run_tasks: bool,
    /// Businesses of these pools run there.
    pub pools: Vec<String>,
    /// As configured.
    pub labels: BTreeMap<String, String>,
    /// Which lines its own log has.
    pub log_filter: Option<String>,
    /// Tasks that wait for room, as the last look found them.
    pub waiting: Option<usize>,
    /// When it last gave a sign, as far as the node that answers has seen.
    pub last_seen: Option<String>,
    /// How long its heart hasn't beaten, as far as the node that answers has seen.
    pub heartbeat_age_seconds: Option<f64>,
    /// For how long it has served.
    pub uptime_seconds: u64,
    /// What runs there.
    pub runs: Vec<NodeRun>,
    /// Whether this is what it says itself.
    pub live: NodeLive,
    /// Why it can't reach the Redis of leases: a reason of the cluster.
    #[serde(skip)]
    pub redis_fault: Option<String>,
}

/// Whether a node could be asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NodeLive {
    /// `here` for the node that answers, `live` for one that was asked, `unreachable` for one that can't be.
    pub state: String,
    /// Why it can't be asked.
    pub why: Option<String>,
    /// How far its wall clock is ahead of that of the node that answers: to within the time of the question.
    pub clock_ahead_seconds: Option<f64>,
}

/// What runs on a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NodeRun {
    /// The task, `t42`.
    pub task: String,
    /// Which part of it.
    pub shard: u32,
    /// The how many-th ownership of that part.
    pub run: u32,
}

/// A cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Cluster {
    /// Of the store; the first part of every item key.
    pub store: String,
    /// Which database it is: `sqlite`, `postgres` or `mysql`.
    pub database: String,
    /// Whether what is acknowledged survives a power cut of the database's machine.
    pub durability: ClusterDurability,
    /// What keeps two nodes from running the same: `redis` with the database, or the `database` alone.
    pub witness: String,
    /// `ok`, or `degraded` when there are reasons.
    pub status: String,
    /// What isn't well.
    pub reasons: Vec<ClusterReason>,
    /// How many nodes have each version.
    pub versions: BTreeMap<String, u64>,
    /// Where the parts of tasks stand that have something left to do.
    pub shards: ClusterShards,
    /// The nodes, the one that answers first; each with what runs on it.
    pub nodes: Vec<Node>,
}

/// How durable commits are.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ClusterDurability {
    /// False: a power cut can take back what was acknowledged last.
    pub durable: bool,
    /// The settings of the database that say so.
    pub setting: String,
}

/// Something that isn't well.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ClusterReason {
    /// `node_silent`, `node_fenced`, `node_unreachable`, `redis_lost`, `none_takes_tasks` or `orphaned`.
    pub reason: String,
    /// A sentence.
    pub text: String,
}

/// Where the parts of tasks stand.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ClusterShards {
    /// Owned by a node that lives.
    pub owned: u64,
    /// Owned by one that is silent or has lost its session: others take them over.
    pub orphaned: u64,
    /// To be run, and owned by nobody.
    pub released: u64,
    /// To be tried again later.
    pub recovering: u64,
    /// A number that is as high as this may be higher.
    pub counted_up_to: u64,
}

/// An actor and those below it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// `n1/t42.0/executor`.
    pub path: String,
    /// Its kind.
    pub kind: String,
    /// `ok`, `DRAINING` or `BACKOFF`.
    pub state: String,
    /// Since its last start.
    pub uptime_seconds: f64,
    /// How often it was started again.
    pub restarts: u32,
    /// Messages that wait.
    pub mailbox: u64,
    /// Since it last handled a message.
    pub last_handled_seconds: f64,
    /// Its own words.
    pub text: String,
    /// Those below it.
    #[schema(no_recursion)]
    pub children: Vec<Actor>,
}

/// That the process answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Always `ok`.
    pub status: String,
}

/// Whether the node can take work.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// Whether it can.
    pub ready: bool,
    /// What keeps it from it.
    pub reasons: Vec<ReadinessReason>,
    /// What it does its work without: a node is ready without Redis.
    pub degraded: Vec<ReadinessReason>,
}

/// What keeps a node from taking work, or makes that harder.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReadinessReason {
    /// `draining`, `drained`, `store`, `session` or `actors`; `redis` of what is degraded.
    pub reason: String,
    /// A sentence.
    pub text: String,
}

/// Which program this is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// `windrow`.
    pub name: String,
    /// Of the program.
    pub version: String,
    /// Of the API.
    pub api: String,
    /// The node's name.
    pub node: String,
}

/// What can be changed of a node until its next restart.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditNode {
    /// The sum of task rates that it may hold.
    #[schema(value_type = Option<String>, max_length = 80, examples("3000/s"))]
    pub capacity_rate: Option<RateLimit>,
    /// Which lines its own log has.
    #[schema(max_length = 1024, examples("info,windrow_engine=debug"))]
    pub log_filter: Option<String>,
    /// Why.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

impl Node {
    /// Name, state, and whether the node could be asked: the facts that a list is judged by.
    pub fn judged(&self) -> (&str, &str, bool) {
        (&self.id, &self.state, self.live.state != "unreachable")
    }

    /// True if the node would take tasks if people hadn't drained it.
    pub fn is_drained(&self) -> bool {
        matches!(self.state.as_str(), "drained" | "draining") && self.run_tasks
    }

    /// True if the node takes tasks now.
    pub fn takes_tasks(&self) -> bool {
        self.state == "serving" && self.run_tasks
    }
}
