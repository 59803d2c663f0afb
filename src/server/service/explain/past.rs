//! History of a task: its recorded runs, and the counts from the nodes that ran it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Explain;
use crate::service::cluster::RUNS_MAX;
use windrow_core::explain::{Past, Ran, RecordedRun, Stay};
use windrow_core::ids::{RunNo, TaskId, WallMs};
use windrow_core::life::succession::Loss;
use windrow_core::task::lifecycle::{ShardState, Status};
use windrow_engine::ports::ownership::peers::{ExplainPart, Peer, PeerReply, Question, Unreachable};
use windrow_engine::ports::tasks::list::{AuditFilter, AuditRow, RunRecord};
use windrow_engine::ports::tasks::store::TaskView;

/// Most losses read per kind: one for each shard that a task can have.
const LOSSES_MAX: u32 = 64;
/// Audit actions for a shard whose owner didn't release it: taken over by another node, or not yet.
const LOSSES: [&str; 2] = ["shard.taken_over", "shard.lost"];
/// Tolerance for samples before the explained period, as they are one second apart.
const SURPLUS: Duration = Duration::from_secs(1);

/// Replies of the nodes, combined.
pub(super) struct Gathered {
    /// Reply of each node; this node is first.
    pub parts: Vec<(String, ExplainPart)>,
    /// Owners that can't be reached.
    pub silent: Vec<Unreachable>,
    /// Part of the period in which the task ran.
    pub ran: Ran,
    /// Newest loss of a shard that has been taken over since, with the time it was found.
    pub newest_loss: Option<(WallMs, Loss)>,
}

impl Explain {
    /// Queries all nodes that own a part of the task or ran it in the last `seconds`. Shortens the period if the
    /// older part isn't fully known.
    pub(super) async fn gathered(&self, task: &TaskView, seconds: u32) -> Gathered {
        let now = self.node.now();
        let (_, mut peers, mut silent) = self.cluster.owners(task.id).await;
        let owners: Vec<String> = peers.iter().map(|peer| peer.node.clone()).collect();
        let runs = self.lists.runs(task.id, None, RUNS_MAX).await.unwrap_or_default();
        let losses = self.losses(task.id).await;
        let since = now.minus(Duration::from_secs(u64::from(seconds)));
        let recent = runs
            .iter()
            .filter(|run| run.ended_at.is_none_or(|ended| ended >= since));
        let recent: Vec<RunRecord> = recent.cloned().collect();
        let former = self.cluster.who_ran(&recent, &peers).await;
        peers.extend(former.into_iter().filter_map(|(_, peer)| peer));
        let mut unheard = Vec::new();
        let mut parts = self.ask(task.id, seconds, &peers, &mut unheard).await;
        let mut past = Past {
            asked: Duration::from_secs(u64::from(seconds)),
            runs: recorded(task, &runs, &losses, now),
            // For a task that isn't supposed to run, explain the time before.
            stands: match wants(task.status) {
                true => now.since(task.since),
                false => Duration::MAX,
            },
            ..past(task, &parts)
        };
        // Former owners don't count as missing, since the period is shortened instead.
        silent.extend(unheard.into_iter().filter(|one| owners.contains(&one.node)));
        past.silent = silent_shards(task, &silent);
        let reach = past.reach();
        if past.stays.iter().any(|stay| stay.from > reach + SURPLUS) {
            let seconds = u32::try_from(reach.as_secs().max(1)).unwrap_or(u32::MAX);
            parts = self.ask(task.id, seconds, &peers, &mut Vec::new()).await;
            past.stays = stays(&parts);
        }
        let ran = ran(task.status, &past, reach);
        Gathered {
            parts,
            silent,
            ran,
            newest_loss: newest_taken(losses, &runs),
        }
    }

    /// Returns the data of this node and of the peers.
    async fn ask(
        &self,
        task: TaskId,
        seconds: u32,
        peers: &[Peer],
        unheard: &mut Vec<Unreachable>,
    ) -> Vec<(String, ExplainPart)> {
        let question = Question::Explain(task, seconds);
        let read = |reply| match reply {
            PeerReply::Explain(part) => Some(*part),
            _ => None,
        };
        let theirs = self
            .cluster
            .gather(peers.to_vec(), &question, read, unheard)
            .await;
        let mut parts = vec![(self.node.name.clone(), self.part(task, seconds))];
        parts.extend(theirs);
        parts
    }

    /// Returns the losses of the task's shards, newest first; empty if the audit log can't be read.
    async fn losses(&self, task: TaskId) -> Vec<(WallMs, Loss)> {
        let mut rows = Vec::new();
        for action in LOSSES {
            let filter = AuditFilter {
                task: Some(task),
                action: Some(action.to_owned()),
                ..AuditFilter::default()
            };
            let found = self.lists.audits(&filter, None, LOSSES_MAX).await;
            rows.extend(found.unwrap_or_default());
        }
        rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.id));
        let loss = |row: AuditRow| {
            let (before, after) = (row.entry.before?, row.entry.after?);
            Some((row.entry.at, Loss::of(&before, &after)?))
        };
        rows.into_iter().filter_map(loss).collect()
    }
}

/// Returns the newest loss of a shard that was taken over since, with the time it was found. If the shard waited for
/// a new owner, that is the node of the next run.
fn newest_taken(losses: Vec<(WallMs, Loss)>, runs: &[RunRecord]) -> Option<(WallMs, Loss)> {
    losses.into_iter().find_map(|(at, loss)| {
        let is_next = |run: &&RunRecord| run.shard.no == loss.shard && run.run.0 == loss.run.0 + 1;
        let next = || runs.iter().find(is_next)?.node.clone();
        let heir = Some(loss.heir.clone().or_else(next)?);
        Some((at, Loss { heir, ..loss }))
    })
}

/// Builds the history from the nodes' data, without the recorded runs.
fn past(task: &TaskView, parts: &[(String, ExplainPart)]) -> Past {
    let each = || parts.iter().map(|(_, part)| part);
    let changed = each().filter(|part| part.since_change);
    let shards = task.shards.iter();
    Past {
        changed: changed.filter_map(|part| Some(part.span?.0)).min(),
        stays: stays(parts),
        shards: shards.clone().map(|shard| shard.no).collect(),
        live: each()
            .flat_map(|part| part.shards.iter().map(|(shard, _)| shard.no))
            .collect(),
        done: shards
            .filter(|shard| shard.state == ShardState::Done)
            .map(|shard| shard.no)
            .collect(),
        ..Past::default()
    }
}

/// Returns the shards whose owner can't be reached.
fn silent_shards(task: &TaskView, silent: &[Unreachable]) -> BTreeSet<u32> {
    let is_silent = |owner: &String| silent.iter().any(|one| one.node == *owner);
    let owned = task.owners.iter().filter(|(_, owner)| is_silent(owner));
    owned.map(|(shard, _)| *shard).collect()
}

fn stays(parts: &[(String, ExplainPart)]) -> Vec<Stay> {
    let each = parts.iter().map(|(_, part)| part);
    each.flat_map(|part| match part.stays.is_empty() {
        true => stays_of_earlier_version(part),
        false => part.stays.clone(),
    })
    .collect()
}

/// Derives the running time for a node of an earlier version, which only reports how long something ran there.
fn stays_of_earlier_version(part: &ExplainPart) -> Vec<Stay> {
    let (covered, running) = part.span.unwrap_or_default();
    let stay = |shard: u32| Stay {
        shard,
        from: running.min(covered),
        to: Duration::ZERO,
    };
    part.shards.iter().map(|(shard, _)| stay(shard.no)).collect()
}

/// Converts the recorded runs. A run whose node was lost counts only up to the node's last sign of life, because
/// nothing after it lasted.
fn recorded(task: &TaskView, runs: &[RunRecord], losses: &[(WallMs, Loss)], now: WallMs) -> Vec<RecordedRun> {
    let silence = |(_, loss): &(WallMs, Loss)| ((loss.shard, loss.run), loss.silent);
    let silences: BTreeMap<(u32, RunNo), Duration> = losses.iter().map(silence).collect();
    let state = |no| {
        task.shards
            .iter()
            .find(|shard| shard.no == no)
            .map(|shard| shard.state)
    };
    let is_whole = task.status == Status::Running;
    let run = |run: &RunRecord| {
        let (shard, from) = (run.shard.no, now.since(run.started_at));
        let silent = silences.get(&(shard, run.run)).copied().unwrap_or_default();
        // The record of a lost run is closed only when another node takes over.
        let stood = (!is_whole && state(shard) != Some(ShardState::Running)).then(|| now.since(task.since));
        let to = run.ended_at.map(|ended| now.since(ended) + silent).or(stood);
        RecordedRun {
            shard,
            from,
            to: to.map(|to| to.min(from)),
            was_stopped: run.end_reason.as_deref() == Some("stopped"),
        }
    };
    let mut recorded: Vec<RecordedRun> = runs.iter().map(run).collect();
    // Older runs are unknown; treat the time before as a stop.
    if runs.len() == RUNS_MAX as usize
        && let Some(oldest) = recorded.last().copied()
    {
        recorded.push(RecordedRun {
            to: Some(oldest.from + Duration::from_millis(1)),
            was_stopped: true,
            ..oldest
        });
    }
    recorded
}

/// Returns true if the task is supposed to run, so that time without a run counts as missing.
fn wants(status: Status) -> bool {
    matches!(
        status,
        Status::Running | Status::Queued | Status::Recovering | Status::AwaitingBusiness
    )
}

/// Returns the part of the period in which the task ran.
fn ran(status: Status, past: &Past, reach: Duration) -> Ran {
    let wants = wants(status);
    if !past.stays.is_empty() || !past.runs.is_empty() {
        return past.ran(reach, wants);
    }
    // The task never ran, or its first run has no record yet.
    let waits = match status {
        Status::Running => Duration::ZERO,
        _ if wants => past.stands.min(past.asked),
        _ => Duration::ZERO,
    };
    Ran {
        covered: waits,
        idle: waits,
        ..Ran::default()
    }
}
