//! Explanation of a task's actual rate: collects recent counts from the nodes and passes them to `core::explain`.

mod facts;
mod past;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use self::facts::{both, codes, counted, facts, free_rate, live, most, place, shared_limit, spent};
use crate::service::cluster::Cluster;
use crate::service::limits::Limits;
use crate::service::node::ThisNode;
use crate::service::stats::Stats;
use crate::service::tasks::would_stop_at_once;
use windrow_core::explain::{
    Explanation, Facts, HeldBack, LATE, Silent, SpentAllowance, Stay, Takeover, explain,
};
use windrow_core::handler::sight::{HandlerSight, together};
use windrow_core::ids::{ShardId, TaskId, WallMs};
use windrow_core::life::succession::Loss;
use windrow_core::limit::key::LimitKey;
use windrow_core::stats::stall::StallReason;
use windrow_core::task::lifecycle::{ShardState, Status};
use windrow_engine::ports::ownership::limit_store::PartView;
use windrow_engine::ports::ownership::peers::{ExplainPart, Unreachable};
use windrow_engine::ports::tasks::list::TaskList;
use windrow_engine::ports::tasks::store::{COORDINATOR_DOWN, ShardLife, TaskView};
use windrow_words::{Message, explain as say, list};

/// Default length of the explained period, in seconds.
pub const SECONDS_DEFAULT: u32 = 60;
/// Shortest explained period, in seconds: a few samples.
pub const SECONDS_MIN: u32 = 5;
/// Longest explained period, in seconds: the time for which per-second samples are kept.
pub const SECONDS_MAX: u32 = 900;
/// Minimum period explained after a rate change, even if the change is more recent. Unit: seconds.
const CHANGED_MIN: u64 = 3;

/// Explanation with the data behind it.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Causes of the missing rate, with advice.
    pub explanation: Explanation,
    /// Nodes that run a part of the task, with their number of runs.
    pub nodes: Vec<(String, u32)>,
    /// Shards of the task in range order.
    pub shards: Vec<ExplainedShard>,
    /// Nodes that own a part of the task but can't be reached, so that their activity is unknown.
    pub silent: Vec<Unreachable>,
    /// Handler state as seen by all runs.
    pub handler: HandlerSight,
    /// Limit that held back the task, with each node's share of it.
    pub limit: Option<HeldBy>,
}

/// Limit that held back a part of the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBy {
    /// Key of the limit, see [`LimitKey`].
    pub key: String,
    /// Limit in units of it that held the task back, as people write it.
    pub limit: Option<String>,
    /// Businesses that use the limit, as far as the caller may know them.
    pub businesses: Vec<String>,
    /// Shares of all nodes whose runs currently need the limit.
    pub parts: Vec<PartView>,
    /// Allowance of it that is used up and held the task back.
    pub spent: Option<SpentAllowance>,
}

/// Location and state of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedShard {
    /// Id of the shard.
    pub shard: ShardId,
    /// State of the shard as stored.
    pub state: ShardState,
    /// Node that runs the shard.
    pub node: Option<String>,
    /// Part of the rate for which the node has no capacity.
    pub held_back: Option<HeldBack>,
}

/// Service that explains the rates of tasks.
pub struct Explain {
    pub(super) node: Arc<ThisNode>,
    lists: Arc<dyn TaskList>,
    pub(super) cluster: Arc<Cluster>,
    pub(super) stats: Arc<Stats>,
    pub(super) limits: Arc<Limits>,
}

impl Explain {
    pub(in crate::service) fn new(
        node: Arc<ThisNode>,
        lists: Arc<dyn TaskList>,
        cluster: Arc<Cluster>,
        stats: Arc<Stats>,
        limits: Arc<Limits>,
    ) -> Explain {
        Explain {
            node,
            lists,
            cluster,
            stats,
            limits,
        }
    }

    /// Explains the last `seconds` of a task, wherever it ran. A business isn't told which others use a limit.
    pub async fn task(&self, task: &TaskView, seconds: u32, business: Option<&str>) -> Explained {
        let gathered = self.gathered(task, seconds).await;
        let (parts, silent) = (gathered.parts, gathered.silent);
        let holding = parts.iter().filter(|(_, part)| part.runs > 0);
        let handler = holding.map(|(node, part)| (node.as_str(), &part.handler));
        let mut facts = facts(task, &parts, gathered.ran);
        facts.is_alone = self.node.config().store.url.is_file();
        if would_stop_at_once(task, self.node.now()) {
            facts.standing.reason = Some(LATE.to_owned());
        }
        facts.taken_over = self.taken_over(gathered.newest_loss, seconds);
        let redis_lost = self.node.redis_lost();
        facts.silent = Silent {
            nodes: silent
                .iter()
                .map(|one| (one.node.clone(), one.why.clone()))
                .collect(),
            prospect: Some(prospect(task, redis_lost.as_deref())),
        };
        facts.handler = HandlerSight::of(handler, self.node.now());
        let handler = facts.handler.clone();
        let limit = self.limit_of(task, &facts, &parts, business).await;
        facts.limit = limit.as_ref().map(shared_limit);
        let mut explanation = explain(&facts);
        let nobody = nobody(task, &facts, &silent, redis_lost.as_deref());
        self.tell_before_all_else(task, nobody, &mut explanation);
        let shard = |life: &ShardLife| {
            let id = ShardId {
                task: task.id,
                no: life.no,
            };
            place(id, life.state, task.owners.get(&life.no), &parts)
        };
        let shards = task.shards.iter().map(shard).collect();
        let nodes = parts.into_iter().filter(|(_, part)| part.runs > 0);
        Explained {
            explanation,
            nodes: nodes.map(|(node, part)| (node, part.runs)).collect(),
            shards,
            silent,
            handler,
            limit,
        }
    }

    /// Puts an unreachable owner or a full disk first: then no counted cause is the real one, and no advice helps.
    fn tell_before_all_else(&self, task: &TaskView, nobody: Option<Message>, explanation: &mut Explanation) {
        if let Some(nobody) = nobody {
            explanation.why = vec![nobody];
        }
        if task.status == Status::Running
            && let Some(full) = self.node.store_full(task.id)
        {
            explanation.why = vec![list::quoted(full)];
            explanation.advice.clear();
        }
    }

    /// Returns the takeover of a lost node's shard, if it happened within the explained period.
    fn taken_over(&self, newest: Option<(WallMs, Loss)>, seconds: u32) -> Option<Takeover> {
        let (at, loss) = newest?;
        let age = self.node.now().since(at);
        let (text, by) = (loss.sentence()?, loss.heir?);
        (age.as_secs() < u64::from(seconds)).then_some(Takeover { by, text })
    }

    /// Returns the shared limit that most recently held back most of the task's runs, if any did. If its users can't
    /// be read they are left out, since the cause says enough.
    async fn limit_of(
        &self,
        task: &TaskView,
        facts: &Facts,
        parts: &[(String, ExplainPart)],
        business: Option<&str>,
    ) -> Option<HeldBy> {
        let at = StallReason::Limit as usize;
        let stalled = facts
            .live
            .as_ref()
            .map_or(Duration::ZERO, |live| live.stalled[at]);
        if facts.permits.lost[at] == 0 && stalled.is_zero() {
            return None;
        }
        let held = parts.iter().flat_map(|(_, part)| &part.held_by);
        let held = most(held.map(|(key, runs)| (key, u64::from(*runs))));
        let held = held.map_or_else(|| LimitKey::Business(&task.business).text(), |(key, _)| key);
        let (key, limit) = match held.split_once(' ') {
            Some((key, limit)) => (key.to_owned(), Some(limit.to_owned())),
            None => (held, None),
        };
        let businesses = self.users_of(&key, business).await;
        let parts = self
            .node
            .supervisor
            .parts_of_limit(&key)
            .await
            .unwrap_or_default();
        let parts = parts.into_iter().filter(|part| part.runs > 0).collect();
        let spent = match &limit {
            Some(limit) => self.spent_of(&key, limit).await,
            None => None,
        };
        Some(HeldBy {
            key,
            limit,
            businesses,
            parts,
            spent,
        })
    }

    /// Returns the businesses that name a limit, for a business only itself.
    async fn users_of(&self, key: &str, business: Option<&str>) -> Vec<String> {
        let LimitKey::Named(name) = LimitKey::parse(key) else {
            return Vec::new();
        };
        let mut users = self.limits.store.limit_users(name).await.unwrap_or_default();
        users
            .businesses
            .retain(|user| business.is_none_or(|own| own == user));
        users.businesses
    }

    /// Returns an allowance of a shared limit if it is used up. If its use can't be read, the cause says enough.
    async fn spent_of(&self, key: &str, limit: &str) -> Option<SpentAllowance> {
        let uses = self.node.supervisor.uses_of_limit(key).await;
        let uses = uses.unwrap_or_default();
        spent(uses.iter().find(|used| used.limit == limit)?)
    }

    /// Returns this node's data about the last `seconds` of a task.
    pub(super) fn part(&self, task: TaskId, seconds: u32) -> ExplainPart {
        let asked = Duration::from_secs(u64::from(seconds));
        let changed = self.stats.same_rate_for(task).filter(|age| *age < asked);
        let seconds = changed.map_or_else(|| u64::from(seconds), |age| age.as_secs().max(CHANGED_MIN));
        let told = Duration::from_secs(seconds);
        let span = self.stats.span(task, seconds);
        let runs = self.node.supervisor.runs_of(task);
        let reach = span.as_ref().map(|span| span.reach);
        let mut stays = reach.map_or_else(Vec::new, |reach| self.stats.stays(task, reach));
        // A run without samples also ends the time in which nothing ran.
        for run in &runs {
            let (shard, age) = (run.shard.no, run.age);
            if !stays.iter().any(|stay| stay.shard == shard && stay.to <= age) {
                let (from, to) = (age, age);
                stays.push(Stay { shard, from, to });
            }
        }
        ExplainPart {
            stays,
            span: span.as_ref().map(|span| (span.covered, span.running)),
            point: span.map(|span| span.point).unwrap_or_default(),
            live: runs.iter().map(live).reduce(both),
            runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
            shards: runs
                .iter()
                .map(|run| (run.shard, run.held_back.clone()))
                .collect(),
            // The run's own histogram has four times the resolution.
            latency_p95: runs.iter().filter_map(|run| run.progress.latency_p95).max(),
            handler: together(runs.iter().map(|run| &run.progress.handler)),
            codes: codes(&runs),
            free_rate: free_rate(self.node.supervisor.room()),
            since_change: changed.is_some(),
            unsaved: self.node.unsaved().filter(|spell| spell.to < told),
            stood_still: self.stats.stood_still(task, told),
            company: self.node.supervisor.company_of(task),
            held_by: runs
                .iter()
                .filter_map(|run| run.held_by.clone())
                .fold(BTreeMap::new(), counted),
        }
    }
}
/// Explains a running task that no reachable node runs: its node is gone, or another has just taken it over.
fn nobody(
    task: &TaskView,
    facts: &Facts,
    silent: &[Unreachable],
    redis_lost: Option<&str>,
) -> Option<Message> {
    if task.status != Status::Running || facts.live.is_some() {
        return None;
    }
    let owner = silent.first();
    let is_owner = |taken: &&Takeover| owner.is_some_and(|owner| owner.node == taken.by);
    match (facts.taken_over.as_ref().filter(|taken| !is_owner(taken)), owner) {
        (Some(taken), _) => Some(list::both(taken.text.clone(), say::run_just_started())),
        (None, Some(owner)) => {
            let silent = say::owner_unreachable(&owner.node, &owner.why);
            Some(list::both(silent, prospect(task, redis_lost)))
        }
        (None, None) => None,
    }
}

/// Describes the fate of a task, or a part of it, whose owner is gone. Promises nothing that depends on a lost Redis.
fn prospect(task: &TaskView, redis_lost: Option<&str>) -> Message {
    let waits = task.status_reason.as_deref() == Some(COORDINATOR_DOWN);
    match (task.status_text.as_ref().filter(|_| waits), redis_lost) {
        // If one node couldn't take it over, the same holds for all others, or one of them would have.
        (Some(text), _) => list::quoted(text),
        (None, Some(lost)) => say::redis_lost(lost),
        (None, None) => say::will_be_taken_over(),
    }
}
