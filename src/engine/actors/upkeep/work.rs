//! One round of maintenance work. A step that fails is logged and tried again in a later round.

use std::collections::BTreeMap;
use std::time::Duration;
use windrow_words::engine as say;

use crate::actors::membership::orphans;
use crate::actors::runtime::context::{Keep, NodeContext};
use crate::actors::upkeep::delivery::system;
use crate::ports::StoreError;
use crate::ports::handling::data_log::{EXPIRE_MAX, LogRetention};
use crate::ports::ownership::session_store::SessionView;
use crate::ports::tasks::store::{CommandError, TaskCommand, WaitNote};
use crate::ports::tasks::upkeep::{SWEEP_MAX, Sweep};
use windrow_core::alert::Notice;
use windrow_core::handler::elsewhere::Elsewhere;
use windrow_core::ids::{ShardId, TaskId, WallMs};
use windrow_core::pilot::KEPT_FOR;
use windrow_core::task::lifecycle::{DORMANT, StopReason, dormant_text};

/// Maximum number of tasks of one kind per round.
const TASKS_MAX: u32 = 200;
/// Maximum number of tasks per check for those that no node serves.
const UNSERVED_MAX: u32 = 1_000;
/// Maximum number of transactions of one kind of sweep per round; the rest waits for the next one.
const SWEEPS_MAX: u32 = 20;
/// Time after which a handler that is down here may be down for this node only.
const DOWN_FOR: Duration = Duration::from_secs(30);
/// Maximum number of runs on other nodes checked for one business.
const REACHING_MAX: u32 = 100;
/// Retention of answers of repeated requests, and of delivered calls.
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Retention of hook calls that failed for good.
const GIVEN_UP_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Retention of result bytes that no row names: longer than any write takes.
const RESULT_BYTES_KEPT: Duration = Duration::from_secs(3600);
/// Minimum retention of the keys of appends: a producer that was away for a week may send again.
const APPEND_KEYS_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Retention of the rows of sessions that are over.
const SESSIONS_KEPT: Duration = Duration::from_secs(3600);

/// Work to do in one round.
pub(crate) struct Round {
    /// Time up to which the round before has seen starts.
    pub(crate) after: WallMs,
    pub(crate) now: WallMs,
    pub(crate) looks_for_unserved: bool,
    pub(crate) sweeps: bool,
    pub(crate) looks_elsewhere: bool,
    /// Result of the last check of other nodes.
    pub(crate) elsewhere: Elsewhere,
}

#[derive(Default)]
pub(crate) struct Done {
    pub(crate) commanded: Vec<TaskId>,
    /// Shards whose handler is down for this node only.
    pub(crate) left: Vec<ShardId>,
    pub(crate) elsewhere: Elsewhere,
    /// Set if something can be claimed now.
    pub(crate) wakes: bool,
    removed: u64,
}

impl Done {
    pub(crate) fn text(&self) -> String {
        say::upkeep_done(self.commanded.len(), self.removed).to_string()
    }
}

pub(crate) async fn work(node: &NodeContext, round: Round) -> Done {
    let mut done = Done {
        elsewhere: round.elsewhere,
        ..Done::default()
    };
    tell("deadlines", deadlines(node, round.now, &mut done).await);
    tell("unanswered hooks", unanswered(node, round.now, &mut done).await);
    match orphans::settle(node, round.now).await {
        Ok(is_left) => done.wakes |= is_left,
        Err(error) => tell("dead nodes", Err(error)),
    }
    match node.upkeep.is_start_due(round.after, round.now).await {
        Ok(is_due) => done.wakes |= is_due,
        Err(error) => tell("starts", Err(error)),
    }
    if round.looks_for_unserved {
        tell("dormant tasks", dormant(node, round.now).await);
        tell("unserved tasks", unserved(node, round.now).await);
    }
    if round.looks_elsewhere {
        tell("handlers down", one_sided(node, &mut done).await);
    }
    if let Some(keep) = node.keep.filter(|_| round.sweeps) {
        sweep(node, keep, round.now, &mut done).await;
    }
    done
}

fn tell(what: &str, outcome: Result<(), StoreError>) {
    if let Err(error) = outcome {
        tracing::warn!(what, %error, "upkeep failed; trying again");
    }
}

async fn deadlines(node: &NodeContext, now: WallMs, done: &mut Done) -> Result<(), StoreError> {
    for task in node.upkeep.past_deadline(now, TASKS_MAX).await? {
        let command = TaskCommand::Stop {
            reason: StopReason::Deadline,
        };
        obey(node, task, &command, now, done).await?;
    }
    Ok(())
}

async fn unanswered(node: &NodeContext, now: WallMs, done: &mut Done) -> Result<(), StoreError> {
    for (task, start_no) in node.upkeep.unanswered(now, TASKS_MAX).await? {
        let text = say::not_ready().to_string();
        obey(node, task, &TaskCommand::NotReady { start_no, text }, now, done).await?;
    }
    Ok(())
}

/// Gives a command; another node, or a person, may have been first.
async fn obey(
    node: &NodeContext,
    task: TaskId,
    command: &TaskCommand,
    now: WallMs,
    done: &mut Done,
) -> Result<(), StoreError> {
    match node.tasks.command(task, command, &system(None), now).await {
        Ok(_) => done.commanded.push(task),
        Err(CommandError::Store(error)) => return Err(error),
        Err(error) => tracing::debug!(%task, %error, "already done by another node or a person"),
    }
    Ok(())
}

/// Finds the shards whose handler has been down for long here, but answers other nodes.
async fn one_sided(node: &NodeContext, done: &mut Done) -> Result<(), StoreError> {
    let mut down: BTreeMap<String, Vec<ShardId>> = BTreeMap::new();
    for (shard, business) in node.directory.down_for(DOWN_FOR) {
        down.entry(business).or_default().push(shard);
    }
    if let Some(alerts) = node.hooks.as_ref().and_then(|hooks| hooks.alerts.as_ref()) {
        for business in down.keys() {
            let notice = Notice::handler_down(business, &node.node);
            alerts.store.raise(&notice, node.clock.wall()).await?;
        }
    }
    done.elsewhere.retain(|business| down.contains_key(business));
    let Some(me) = node.heartbeats.me() else {
        return Ok(());
    };
    for (business, shards) in down {
        let runs = node.upkeep.reaching(&business, me, REACHING_MAX).await?;
        if done.elsewhere.answers(&business, &runs) {
            tracing::warn!(
                business,
                shards = shards.len(),
                "handler down for this node only; leaving its shards to other nodes"
            );
            done.left.extend(shards);
        }
    }
    Ok(())
}

/// Stores for waiting tasks that they were idle too long for any node to resume them.
async fn dormant(node: &NodeContext, now: WallMs) -> Result<(), StoreError> {
    let window = node.times.restore_window;
    let found = node.upkeep.dormant(now.minus(window), TASKS_MAX).await?;
    if found.is_empty() {
        return Ok(());
    }
    let note = |task| WaitNote {
        task,
        reason: DORMANT.to_owned(),
        text: dormant_text(window),
    };
    let notes: Vec<WaitNote> = found.into_iter().map(note).collect();
    node.tasks.explain_waits(&notes, now).await.map(drop)
}

/// Stores for waiting tasks that no live node takes them. A node that begins to take them stores another reason, or
/// runs them.
async fn unserved(node: &NodeContext, now: WallMs) -> Result<(), StoreError> {
    let sessions = node.sessions.list().await?;
    let (drained, taking): (Vec<SessionView>, Vec<SessionView>) = sessions
        .into_iter()
        .filter(|session| !session.fenced)
        .partition(|session| session.face.draining);
    let mut served = Vec::new();
    for session in taking {
        let Some(pools) = session.face.pools else {
            return Ok(());
        };
        served.extend(pools);
    }
    let found = node.upkeep.unserved(&served, now, UNSERVED_MAX).await?;
    if found.is_empty() {
        return Ok(());
    }
    let notes: Vec<WaitNote> = found
        .into_iter()
        .map(|(task, pool)| note(task, &pool, &drained))
        .collect();
    node.tasks.explain_waits(&notes, now).await.map(drop)
}

fn note(task: TaskId, pool: &str, drained: &[SessionView]) -> WaitNote {
    let serves = |session: &&SessionView| {
        session
            .face
            .pools
            .as_ref()
            .is_none_or(|pools| pools.iter().any(|served| served == pool))
    };
    // A node that ends drains, too, and nobody can undrain it.
    let text = match drained.iter().filter(|session| session.drain).find(serves) {
        Some(one) => say::pool_drained(pool, &one.node),
        None => say::pool_unserved(pool),
    };
    WaitNote {
        task,
        reason: "no_node".to_owned(),
        text: text.to_string(),
    }
}

async fn sweep(node: &NodeContext, keep: Keep, now: WallMs, done: &mut Done) {
    for what in Sweep::ALL {
        let kept = match what {
            Sweep::Answers | Sweep::Delivered | Sweep::ArchiveHalves => DAY,
            Sweep::Found => KEPT_FOR,
            Sweep::GivenUp => GIVEN_UP_KEPT,
            Sweep::Sessions => SESSIONS_KEPT,
            Sweep::Failures => keep.failures,
            Sweep::Results => keep.results,
            // Readers lose what a publication released at once; a sign-in that is over is never accepted.
            Sweep::Generations | Sweep::SignIns => Duration::ZERO,
            Sweep::ResultBytes => RESULT_BYTES_KEPT,
            Sweep::Statistics => keep.statistics,
            Sweep::Appended => keep.appended,
            Sweep::Audit => keep.audit,
            // At least as long as the appended rows that a repeat may be told apart by.
            Sweep::AppendKeys => APPEND_KEYS_KEPT.max(keep.appended),
        };
        let before = now.minus(kept);
        let swept = repeat(SWEEP_MAX, || node.upkeep.sweep(what, before), done).await;
        tell("retention", swept);
    }
    let retention = LogRetention {
        keep_from: now.minus(keep.log),
        max_per_task: keep.log_lines,
    };
    tell(
        "data log",
        repeat(EXPIRE_MAX, || node.data_log.expire(retention), done).await,
    );
    tell("ended tasks", ended(node, now.minus(keep.tasks), now, done).await);
    if let Some(schedules) = &node.schedules {
        let before = now.minus(keep.fires);
        let expired = repeat(SWEEP_MAX, || schedules.store.expire_fires(before), done).await;
        tell("schedules", expired);
    }
    if let Some(uploads) = &node.uploads {
        match uploads.expire_uploads(now.minus(DAY)).await {
            Ok(removed) => done.removed += removed,
            Err(error) => tell("uploads", Err(error)),
        }
    }
}

/// Repeats a removal while it removes a whole transaction's worth.
async fn repeat<F>(full: u64, remove: impl Fn() -> F, done: &mut Done) -> Result<(), StoreError>
where
    F: Future<Output = Result<u64, StoreError>>,
{
    for _ in 0..SWEEPS_MAX {
        let removed = remove().await?;
        done.removed += removed;
        if removed < full {
            break;
        }
    }
    Ok(())
}

async fn ended(node: &NodeContext, before: WallMs, now: WallMs, done: &mut Done) -> Result<(), StoreError> {
    for task in node.upkeep.ended_before(before, TASKS_MAX).await? {
        match node.tasks.delete(task, &system(None), now).await {
            Ok(()) => done.removed += 1,
            // The others can't be archived either.
            Err(CommandError::Store(error) | CommandError::NotArchived(error)) => return Err(error),
            // A redrive of it has not ended: the task is kept until then.
            Err(error) => tracing::debug!(%task, %error, "old task not deleted"),
        }
    }
    Ok(())
}
