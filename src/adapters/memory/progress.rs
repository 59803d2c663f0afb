//! Fenced writes of runs, how runs end, and what a task is afterwards.

use super::history::Past;
use super::state::{ItemState, Shard, State, Task};
use super::{hooks, items, shards};
use crate::domain::counters::Counters;
use crate::domain::ids::{CheckpointSeq, ClaimId, Epoch, ItemIndex, ShardId, TaskId, WallMs};
use crate::domain::lifecycle::{
    self, ShardState, Shards, Status, StopReason, TASK_RECOVERS, TaskResult, Wish, note_after, status_of,
};
use crate::domain::succession::Fate;
use crate::ports::data_log::DropReason;
use crate::ports::run_store::{CheckpointAck, MOVE_PATIENCE, RunClose, ShardCheckpoint};
use crate::ports::task_store::{Actor, COORDINATOR_DOWN};
use crate::ports::upkeep::OWNER_GONE;

/// What is shown beside a new status: a slug and a sentence.
pub(super) type Note = (Option<String>, String);

/// One checkpoint: believed whole, or not at all.
pub(super) fn write(state: &mut State, checkpoint: &ShardCheckpoint) -> CheckpointAck {
    let Some(shard) = state.shard_mut(checkpoint.shard) else { return CheckpointAck::Fenced };
    if shard.epoch != checkpoint.epoch || shard.claim != Some(checkpoint.claim) {
        return CheckpointAck::Fenced;
    }
    if shard.seq == checkpoint.seq && checkpoint.seq.0 > 0 {
        return CheckpointAck::Stored;
    }
    let goes_back = checkpoint.seq <= shard.seq || checkpoint.low_water < shard.low_water;
    if shard.state != ShardState::Running || goes_back {
        return CheckpointAck::Fenced;
    }
    let stored = shard.seq;
    advance(shard, checkpoint);
    note_replies(state, checkpoint, stored);
    if let Some(task) = state.tasks.get_mut(&checkpoint.shard.task) {
        let lines = items::apply(task, checkpoint);
        if checkpoint.canary_passed && task.canary.take().is_some() {
            task.version += 1;
            shards::let_go(task, checkpoint.now);
        }
        if !checkpoint.told.is_empty() {
            shards::tell(task, checkpoint.told, checkpoint.now);
        }
        state.write_lines(lines);
    }
    if let Some(close) = &checkpoint.close {
        end_run(state, checkpoint.shard, close, checkpoint.now);
    }
    CheckpointAck::Stored
}

/// Lines that the checkpoint carries again, and that are stored already, are not written twice.
fn note_replies(state: &mut State, checkpoint: &ShardCheckpoint, stored: CheckpointSeq) {
    for replies in checkpoint.unwritten_lines(stored) {
        state.write_lines(replies.lines.iter().cloned());
        if replies.dropped > 0 {
            state.count_dropped(checkpoint.shard.task, DropReason::Queue, replies.dropped);
        }
    }
}

fn advance(shard: &mut Shard, checkpoint: &ShardCheckpoint) {
    shard.seq = checkpoint.seq;
    shard.low_water = checkpoint.low_water;
    shard.high_water = shard.high_water.max(checkpoint.high_water);
    shard.reach.may_leave = checkpoint.reach;
    shard.counters = Counters { in_flight: 0, excluded: 0, ..checkpoint.counters };
    shard.blob = checkpoint.blob.clone();
    shard.outage = checkpoint.outage;
    shard.updated_at = checkpoint.now;
    if let Some(end) = checkpoint.finish_at {
        shard.end = shard.end.min(end.max(shard.high_water));
    }
}

fn end_run(state: &mut State, id: ShardId, close: &RunClose, now: WallMs) {
    let Some(task) = state.tasks.get_mut(&id.task) else { return };
    if let (RunClose::Stopped { reason, .. }, Wish::Run) = (close, task.wish) {
        task.stop_reason = Some(*reason);
        task.version += 1;
        set_wish(task, Wish::Stop, now);
    }
    let is_ending = !matches!(task.wish, Wish::Run | Wish::Rest);
    let mut close = close.clone();
    if let RunClose::Recovering { not_before, reason, nth, .. } = &mut close
        && reason == TASK_RECOVERS
        && !is_ending
        && task.shards.len() > 1
    {
        *not_before = shards::recover_all(task, *not_before, *nth, now);
        task.version += 1;
    }
    let Some(shard) = task.shards.iter_mut().find(|shard| shard.no == id.no) else { return };
    shard.session = None;
    shard.updated_at = now;
    let past = Past::of(shard);
    shard.not_before = WallMs(0);
    if let Some((_, until)) = &mut shard.moves {
        *until = now.plus(MOVE_PATIENCE);
    }
    let (after, note) = match &close {
        RunClose::Done => (ShardState::Done, None),
        RunClose::Stopped { text, .. } => (ShardState::Stopped, Some((None, text.clone()))),
        RunClose::Released => (ShardState::Idle, None),
        RunClose::Recovering { not_before, reason, text, nth } => {
            shard.not_before = *not_before;
            shard.recoveries = nth.unwrap_or(shard.recoveries);
            (ShardState::Recovering, Some((Some(reason.clone()), text.clone())))
        }
    };
    shard.state = if is_ending && after != ShardState::Done { ShardState::Stopped } else { after };
    if close.is_calm() {
        shard.claimed_at = None;
    }
    if shard.state == ShardState::Done && task.shards.len() > 1 {
        shards::settle(task, now);
        task.version += 1;
    }
    if let RunClose::Recovering { text, .. } = &close {
        past.tell(state, id.task, Fate::Recovering(text), now);
    }
    refresh(state, id.task, now, note);
}

/// Gives a shard back that its node doesn't run.
pub(super) fn release(
    state: &mut State,
    (id, epoch, claim): (ShardId, Epoch, ClaimId),
    close: &RunClose,
    now: WallMs,
) -> CheckpointAck {
    let Some(shard) = state.shard_mut(id) else { return CheckpointAck::Fenced };
    if shard.epoch != epoch || shard.claim != Some(claim) {
        return CheckpointAck::Fenced;
    }
    if shard.session.is_some() {
        end_run(state, id, close, now);
    }
    CheckpointAck::Stored
}

/// Takes a shard from a session that is fenced or missing; says whether it did.
pub(super) fn disown(state: &mut State, id: ShardId, now: WallMs) -> bool {
    let Some((task, shard)) = state.shard(id) else { return false };
    let is_lost = shard.session.is_some_and(|owner| !state.is_live(owner));
    let stays = matches!(task.wish, Wish::Run | Wish::Rest);
    let Some(shard) = state.shard_mut(id).filter(|_| is_lost) else { return false };
    let past = Past::of(shard);
    (shard.session, shard.state) = (None, if stays { ShardState::Idle } else { ShardState::Stopped });
    past.tell(state, id.task, Fate::Lost, now);
    refresh(state, id.task, now, Some((None, OWNER_GONE.to_owned())));
    true
}

/// Sets what a task wants; shards that nobody owns follow at once.
pub(super) fn set_wish(task: &mut Task, wish: Wish, now: WallMs) {
    task.wish = wish;
    for shard in &mut task.shards {
        shard.updated_at = now;
        match (wish, shard.state) {
            (Wish::Run, ShardState::Stopped) => {
                shard.state = ShardState::Idle;
                shard.not_before = WallMs(0);
                shard.recoveries = 0;
                shard.claimed_at = None;
            }
            (Wish::Stop | Wish::StopNow | Wish::Cancel, ShardState::Idle | ShardState::Recovering) => {
                shard.state = ShardState::Stopped;
            }
            _ => {}
        }
    }
}

/// Stores what a task is now, after a shard of it changed.
pub(super) fn refresh(state: &mut State, id: TaskId, now: WallMs, note: Option<Note>) {
    let Some(task) = state.tasks.get_mut(&id) else { return };
    let before = task.status;
    let states = task.states();
    let awaiting_business = before == Status::AwaitingBusiness;
    let mut status = status_of(task.wish, &Shards { states: &states, awaiting_business, finalized: false });
    let mut proof = None;
    if status == Status::Finalizing {
        match prove(task) {
            Some(result) => {
                status = Status::Finished;
                task.result = Some(result);
            }
            None => proof = Some((Some("proof_failed".to_owned()), "the items don't add up".to_owned())),
        }
    }
    let note = proof.or_else(|| said(task, before, status, note));
    if status == before {
        if status == Status::Running && task.status_reason.as_deref() == Some(COORDINATOR_DOWN) {
            // Somebody owns it again.
            (task.status_reason, task.status_text) = (None, None);
            task.version += 1;
        }
        if let Some((slug, text)) = note.filter(|note| known(task).as_ref() != Some(note)) {
            (task.status_reason, task.status_text) = (slug, Some(text));
            task.version += 1;
        }
        return;
    }
    enter(task, status, note, now);
    task.version += 1;
    let reason = task.stop_reason.map(|reason| reason.as_str().to_owned());
    if matches!(status, Status::Finished | Status::Stopped | Status::Cancelled) {
        let actor = Actor::windrow(reason);
        let change = (Some(status_json(before)), Some(status_json(status)));
        state.record(Some(id), &actor, now, format!("task.{status}"), change);
        hooks::announce(state, id, status, now);
    }
}

fn known(task: &Task) -> Option<Note> {
    task.status_text.clone().map(|text| (task.status_reason.clone(), text))
}

/// What is shown from now on beside the status.
fn said(task: &Task, before: Status, status: Status, news: Option<Note>) -> Option<Note> {
    let note = |note: Option<Note>| note.map(|(reason, text)| lifecycle::Note { reason, text });
    note_after(before, note(known(task)), status, note(news)).map(|note| (note.reason, note.text))
}

/// A status as the audit shows it.
pub(super) fn status_json(status: Status) -> String {
    format!("{{\"status\":\"{status}\"}}")
}

/// Sets a status with what belongs to it.
pub(super) fn enter(task: &mut Task, status: Status, note: Option<Note>, now: WallMs) {
    task.status = status;
    task.since = now;
    (task.status_reason, task.status_text) = note.map_or((None, None), |(slug, text)| (slug, Some(text)));
    if !matches!(status, Status::Stopping | Status::Stopped) {
        task.stop_reason = None::<StopReason>;
    }
    if status != Status::AwaitingBusiness {
        task.awaiting_until = None;
    }
    if status == Status::Stopped || status.is_terminal() {
        task.start_token = None;
    }
    if status.is_terminal() {
        task.finished_at = Some(now);
    }
}

/// The result of a task whose items are all accounted for; none when they aren't.
fn prove(task: &Task) -> Option<TaskResult> {
    let mut next = ItemIndex(task.new.skip_first.0.min(task.new.total.0));
    let (mut abandoned, mut is_early) = (0, false);
    for shard in &task.shards {
        let is_whole = shard.low_water == shard.end
            && shard.counters.parked == 0
            && shard.counters.settled() == shard.end.0 - shard.first.0;
        if shard.first != next || !is_whole {
            return None;
        }
        next = shard.range_end;
        abandoned += shard.counters.abandoned;
        is_early |= shard.end < shard.range_end;
    }
    let recorded: u64 = task.groups.values().map(|group| group.count).sum();
    let is_parked = task.items.values().any(|item| matches!(item.state, ItemState::Parked(_)));
    if next.0 != task.new.total.0 || recorded != abandoned || is_parked {
        return None;
    }
    Some(match (abandoned, is_early) {
        (1.., _) => TaskResult::WithFailures,
        (_, true) => TaskResult::Early,
        (_, false) => TaskResult::Succeeded,
    })
}
