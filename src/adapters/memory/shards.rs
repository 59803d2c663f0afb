//! The shards of a task together: cut when it starts, sharing its rate, told what one of them was told.

use super::state::{Shard, State, Task};
use crate::domain::business::POOL_DEFAULT;
use crate::domain::counters::Counters;
use crate::domain::execution::{Reach, Shared, wanted};
use crate::domain::ids::{CheckpointSeq, Epoch, ItemIndex, RunNo, WallMs};
use crate::domain::lifecycle::ShardState;
use crate::domain::shards::{Nodes, Pause, PauseReason, Share, Told, cut};
use crate::domain::task::ShardRange;

/// Until when a shard can't be claimed that waits for the canary.
const HELD: WallMs = WallMs(i64::MAX);

/// A shard that never ran.
pub(super) fn shard(no: u32, range: ShardRange, now: WallMs) -> Shard {
    Shard {
        no,
        first: range.start,
        end: range.end,
        range_end: range.end,
        state: ShardState::Idle,
        run: RunNo(0),
        epoch: Epoch(0),
        claim: None,
        session: None,
        seq: CheckpointSeq(0),
        low_water: range.start,
        high_water: range.start,
        reach: Reach { may_leave: range.start, may_have_left: range.start },
        counters: Counters::default(),
        blob: Vec::new(),
        stalls: 0,
        outage: None,
        recoveries: 0,
        claimed_at: None,
        not_before: WallMs(0),
        updated_at: now,
        moves: None,
        share: None,
        node: None,
    }
}

/// The indexes of a task that are not left out at its head.
pub(super) fn whole(task: &Task) -> ShardRange {
    let (total, head) = (task.new.total.0, task.new.skip_first.0);
    ShardRange { start: ItemIndex(head.min(total)), end: ItemIndex(total) }
}

/// Makes the shards of a task that is started and of which nothing ever ran.
pub(super) fn make(task: &mut Task, nodes: Nodes, now: WallMs) {
    let is_cut = task.finish_at.is_some() || task.shards.iter().any(|shard| shard.end < shard.range_end);
    if is_cut || task.shards.iter().any(|shard| shard.run.0 > 0) {
        return;
    }
    let range = whole(task);
    let wanted = wanted(task.new.shards, &task.tuning, task.canary);
    let parts = cut(range, wanted.count(range, nodes));
    if parts.len() > 1 || task.shards.len() > 1 {
        task.shards = (0..).zip(parts).map(|(no, part)| shard(no, part, now)).collect();
    }
}

/// The live nodes that take tasks.
pub(super) fn nodes(state: &State) -> Nodes {
    let serves = |pools: &Option<Vec<String>>| {
        pools.as_ref().is_none_or(|pools| pools.iter().any(|pool| pool == POOL_DEFAULT))
    };
    let mut nodes = Nodes { count: 0, capacity_micros: Some(0) };
    let live = state.sessions.values().filter(|session| !session.fenced && !session.face.draining);
    for session in live.filter(|session| serves(&session.face.pools)) {
        nodes.count += 1;
        let offered = session.face.capacity.map(|load| load.0);
        nodes.capacity_micros = nodes.capacity_micros.zip(offered).map(|(most, other)| most.max(other));
    }
    nodes
}

/// Shares a task that is about to run. Only the first shard can be claimed before the canary has passed.
pub(super) fn deal(task: &mut Task) {
    share_alike(task);
    if task.canary.is_some() {
        let others = task.shards.iter_mut().filter(|shard| shard.no != 0 && shard.state == ShardState::Idle);
        others.for_each(|shard| shard.not_before = HELD);
    }
}

fn share_alike(task: &mut Task) {
    if task.shards.len() < 2 {
        return;
    }
    let open = task.shards.iter().filter(|shard| shard.state != ShardState::Done).count();
    let share = Share::one_of(u32::try_from(open).unwrap_or(u32::MAX));
    for shard in &mut task.shards {
        shard.share = Some(if shard.state == ShardState::Done { 0 } else { share.stored() });
    }
}

/// After a shard was done: its part goes to the others.
pub(super) fn settle(task: &mut Task, now: WallMs) {
    if task.shards.len() < 2 {
        return;
    }
    share_alike(task);
    task.control_rev += 1;
    let is_first_done = task.shards.iter().any(|shard| shard.no == 0 && shard.state == ShardState::Done);
    if is_first_done && task.canary.take().is_some() {
        let_go(task, now);
    }
}

/// The canary has passed: every shard can be claimed.
pub(super) fn let_go(task: &mut Task, now: WallMs) {
    for shard in task.shards.iter_mut().filter(|shard| shard.not_before == HELD) {
        (shard.not_before, shard.updated_at) = (WallMs(0), now);
    }
}

/// Keeps what a handler told one shard where all of them read it.
pub(super) fn tell(task: &mut Task, told: Told, now: WallMs) {
    let held = task.pause.filter(|pause| pause.until > now);
    task.pause = Pause::longer(held, told.pause);
    task.slow = told.slow.or(task.slow);
    if let Some(end) = told.finish {
        task.finish_at = Some(task.finish_at.map_or(end, |earlier| earlier.min(end)));
        cut_unowned(task, end, now);
        settle(task, now);
    }
    task.control_rev += 1;
    task.version += 1;
}

/// Cuts the shards that nobody owns: what was dispatched stays, one with nothing left is done.
pub(super) fn cut_unowned(task: &mut Task, end: ItemIndex, now: WallMs) {
    let is_open = |shard: &&mut Shard| !matches!(shard.state, ShardState::Running | ShardState::Done);
    for shard in task.shards.iter_mut().filter(is_open) {
        shard.end = shard.end.min(end.max(shard.may_have_left()));
        shard.updated_at = now;
        if shard.low_water >= shard.end && shard.counters.parked == 0 {
            shard.state = ShardState::Done;
        }
    }
}

/// The whole task recovers: says when.
pub(super) fn recover_all(task: &mut Task, until: WallMs, nth: Option<u32>, now: WallMs) -> WallMs {
    let is_under_way = |held: &Pause| held.reason == PauseReason::ErrorBudget && held.until > now;
    let until = task.pause.filter(is_under_way).map_or(until, |held| held.until);
    task.pause = Some(Pause { until, reason: PauseReason::ErrorBudget });
    task.control_rev += 1;
    for shard in task.shards.iter_mut().filter(|shard| shard.state != ShardState::Done) {
        shard.recoveries = nth.unwrap_or(shard.recoveries);
        shard.updated_at = now;
        let is_unowned = matches!(shard.state, ShardState::Idle | ShardState::Recovering);
        if is_unowned && shard.not_before < until {
            (shard.state, shard.not_before) = (ShardState::Recovering, until);
        }
    }
    until
}

/// What a run of one shard knows of the others.
pub(super) fn shared(task: &Task, no: u32) -> Shared {
    let own = task.shards.iter().find(|shard| shard.no == no);
    let others = || task.shards.iter().filter(|shard| shard.no != no);
    let is_up = |shard: &Shard| shard.outage.is_none() && shard.state != ShardState::Done;
    Shared {
        share: Share::read(own.and_then(|shard| shard.share)),
        items: whole(task).len(),
        abandoned_elsewhere: others().map(|shard| shard.counters.abandoned).sum(),
        all_down: !others().any(is_up),
    }
}
