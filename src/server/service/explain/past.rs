//! What is known of the past of a task: which runs it had, and what the nodes of these counted.

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

/// Losses of either kind that are looked at: one of each shard that a task can have.
const LOSSES_MAX: u32 = 64;
/// What the audit says of a shard whose owner didn't give it back: taken by another, or by nobody yet.
const LOSSES: [&str; 2] = ["shard.taken_over", "shard.lost"];
/// What was counted so much before the time that is told of is not left out: samples are a second apart.
const SURPLUS: Duration = Duration::from_secs(1);

/// What the nodes say, and what that comes to.
pub(super) struct Gathered {
    /// What each says; the first one is this node.
    pub parts: Vec<(String, ExplainPart)>,
    /// Owners that can't be asked.
    pub silent: Vec<Unreachable>,
    /// For how much of the time it ran.
    pub ran: Ran,
    /// The newest loss of a shard that a node has again, and when it was found.
    pub newest_loss: Option<(WallMs, Loss)>,
}

impl Explain {
    /// Asks all that own a part of a task or ran it in the last `seconds`; of less where not all of it is known.
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
            // A task that rests tells of the time before.
            stands: match wants(task.status) {
                true => now.since(task.since),
                false => Duration::MAX,
            },
            ..past(task, &parts)
        };
        // Who ran a part of it before isn't missed where less is told.
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

    /// This node's part, and those of others.
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

    /// The newest ones first. Where they can't be read, the rest is told.
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

/// The newest loss of a shard that a node has again, and when it was found: where the shard waited for one, that is who began
/// the next run.
fn newest_taken(losses: Vec<(WallMs, Loss)>, runs: &[RunRecord]) -> Option<(WallMs, Loss)> {
    losses.into_iter().find_map(|(at, loss)| {
        let is_next = |run: &&RunRecord| run.shard.no == loss.shard && run.run.0 == loss.run.0 + 1;
        let next = || runs.iter().find(is_next)?.node.clone();
        let heir = Some(loss.heir.clone().or_else(next)?);
        Some((at, Loss { heir, ..loss }))
    })
}

/// What parts say of the time, without the records.
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

/// Those whose owner can't be asked.
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

/// A node of an earlier version tells only for how much of the time something ran there.
fn stays_of_earlier_version(part: &ExplainPart) -> Vec<Stay> {
    let (covered, running) = part.span.unwrap_or_default();
    let stay = |shard: u32| Stay {
        shard,
        from: running.min(covered),
        to: Duration::ZERO,
    };
    part.shards.iter().map(|(shard, _)| stay(shard.no)).collect()
}

/// The runs as they are recorded. One whose node was lost did nothing that lasted since its last word.
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
        // The record of a run whose node is gone is ended by who takes it over.
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
    // What was before is not known, so that it is told of as if it rested until then.
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

/// Whether a task is to run, and misses the time in which it doesn't.
fn wants(status: Status) -> bool {
    matches!(
        status,
        Status::Running | Status::Queued | Status::Recovering | Status::AwaitingBusiness
    )
}

/// For how much of the time it ran.
fn ran(status: Status, past: &Past, reach: Duration) -> Ran {
    let wants = wants(status);
    if !past.stays.is_empty() || !past.runs.is_empty() {
        return past.ran(reach, wants);
    }
    // It never ran. A run that has just begun has no record yet.
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
