//! Tasks as every surface shows them, and what is read without changing anything.

use super::state::{Item, ItemState, Shard, State, Task};
use crate::domain::business::POOL_DEFAULT;
use crate::domain::counters::Counters;
use crate::domain::ids::{ItemIndex, TaskId, WallMs};
use crate::domain::lifecycle::ShardState;
use crate::domain::shards::Share;
use crate::ports::task_store::{FailedItem, FailureGroup, ShardView, TaskView};

/// A task with the sums over its shards.
pub(super) fn view(id: TaskId, task: &Task) -> TaskView {
    TaskView {
        id,
        business: task.new.business.clone(),
        name: task.name.clone(),
        status: task.status,
        status_reason: task.status_reason.clone(),
        status_text: task.status_text.clone(),
        wish: task.wish,
        control_rev: task.control_rev,
        version: task.version,
        total: task.new.total,
        counters: counters(task),
        low_water: low_water(task),
        shards: task.shards.iter().map(shard).collect(),
        shards_wanted: task.new.shards,
        tuning: task.tuning.clone(),
        params: task.new.params.clone(),
        source: task.new.source.clone(),
        meaning: task.new.meaning,
        result: task.result,
        stop_reason: task.stop_reason,
        start_no: task.start_no,
        created_at: task.created_at,
        started_at: task.started_at,
        finished_at: task.finished_at,
        since: task.since,
        next_at: next_at(task),
        skip_first: task.new.skip_first,
        labels: task.new.labels.clone(),
        priority: task.new.priority,
        pool: POOL_DEFAULT.to_owned(),
        send_params: task.new.send_params,
        limits: task.new.limits.clone(),
        canary: task.canary,
        abandonments: task.abandonments.clone(),
        start_at: task.new.start_at,
        deadline: task.new.deadline,
        parent: task.new.parent,
        awaiting_until: task.awaiting_until,
        finish_at: task.finish_at,
        recoveries: task.shards.iter().map(|shard| shard.recoveries).max().unwrap_or_default(),
    }
}

/// The same, with the names of the nodes that own its shards.
pub(super) fn view_with_owners(state: &State, id: TaskId, task: &Task) -> TaskView {
    let mut view = view(id, task);
    for shard in &mut view.shards {
        let owner = shard.session.and_then(|id| state.sessions.get(&id));
        shard.node = owner.map(|session| session.node.clone());
    }
    view
}

fn shard(shard: &Shard) -> ShardView {
    let is_done = shard.state == ShardState::Done;
    ShardView {
        no: shard.no,
        first: shard.first,
        end: shard.end,
        range_end: shard.range_end,
        state: shard.state,
        session: shard.session,
        node: None,
        run: shard.run,
        low_water: shard.low_water,
        high_water: shard.high_water,
        counters: Counters { excluded: shard.range_end.0 - shard.end.0, ..shard.counters },
        share: (!is_done).then(|| Share::read(shard.share)),
        next_at: (shard.state == ShardState::Recovering).then_some(shard.not_before),
    }
}

fn next_at(task: &Task) -> Option<WallMs> {
    let waiting = task.shards.iter().filter(|shard| shard.state == ShardState::Recovering);
    waiting.map(|shard| shard.not_before).min()
}

fn counters(task: &Task) -> Counters {
    let mut sum = Counters { excluded: task.new.skip_first.0.min(task.new.total.0), ..Counters::default() };
    for shard in &task.shards {
        sum = sum.plus(&shard.counters);
        sum.excluded += shard.range_end.0 - shard.end.0;
    }
    sum
}

fn low_water(task: &Task) -> ItemIndex {
    let open = task.shards.iter().find(|shard| shard.state != ShardState::Done);
    open.or_else(|| task.shards.last()).map_or(ItemIndex(0), |shard| shard.low_water)
}

/// Groups, most frequent first.
pub(super) fn groups(state: &State, id: TaskId) -> Vec<FailureGroup> {
    let Some(task) = state.tasks.get(&id) else { return Vec::new() };
    let mut groups: Vec<FailureGroup> = task.groups.values().cloned().collect();
    groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.code.cmp(&b.code)));
    groups
}

/// Abandoned items in index order.
pub(super) fn failures(state: &State, id: TaskId, after: Option<ItemIndex>, limit: u32) -> Vec<FailedItem> {
    let Some(task) = state.tasks.get(&id) else { return Vec::new() };
    let abandoned = task.items.values().filter(|item| item.state == ItemState::Abandoned);
    let wanted = abandoned.filter(|item| after.is_none_or(|after| item.trouble.index > after));
    wanted.take(limit as usize).map(failed).collect()
}

fn failed(item: &Item) -> FailedItem {
    let failure = item.trouble.failure.clone();
    let (code, message, output) =
        failure.map_or_else(Default::default, |f| (f.code.into_owned(), f.message, f.output));
    FailedItem {
        index: item.trouble.index,
        attempts: item.trouble.attempts,
        code,
        message,
        output,
        at: item.trouble.at,
    }
}
