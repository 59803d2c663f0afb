//! Fenced writes of runs, and how runs end.

use std::convert::Infallible;

use super::history::Past;
use super::state::{Shard, State};
use super::{items, life, results, statistics};
use windrow_core::ids::{CheckpointSeq, ClaimId, Epoch, ShardId, TaskId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::life::succession::Fate;
use windrow_core::life::{Deeds, Evidence, Life};
use windrow_core::task::lifecycle::ShardState;
use windrow_engine::ports::handling::data_log::DropReason;
use windrow_engine::ports::ownership::run_store::{CheckpointAck, LeftBy, RunClose, ShardCheckpoint};

/// One checkpoint: believed whole, or not at all.
pub(super) fn write(state: &mut State, checkpoint: &ShardCheckpoint) -> CheckpointAck {
    let Some(shard) = state.shard_mut(checkpoint.shard) else {
        return CheckpointAck::Fenced;
    };
    if shard.epoch != checkpoint.epoch || shard.claim != Some(checkpoint.claim) {
        return CheckpointAck::Fenced;
    }
    if shard.seq == checkpoint.seq && checkpoint.seq.0 > 0 {
        return CheckpointAck::Stored;
    }
    let goes_back = checkpoint.seq <= shard.seq || checkpoint.watermark < shard.watermark;
    if shard.state != ShardState::Running || goes_back {
        return CheckpointAck::Fenced;
    }
    let (stored, before) = (shard.seq, shard.counters);
    advance(shard, checkpoint);
    statistics::gain(state, checkpoint, &before);
    note_replies(state, checkpoint, stored);
    results::keep(state, checkpoint);
    if let Some(task) = state.tasks.get_mut(&checkpoint.shard.task) {
        let lines = items::apply(task, checkpoint);
        state.write_lines(lines);
    }
    brought_about(state, checkpoint.shard.task, checkpoint.now, |life, _| {
        if checkpoint.canary_passed {
            life.pass_canary(checkpoint.now);
        }
        if checkpoint.finish_at.is_some() {
            life.cut_short();
        }
        if !checkpoint.told.is_empty() {
            life.tell(checkpoint.told, checkpoint.now);
        }
        Vec::new()
    });
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
    shard.watermark = checkpoint.watermark;
    shard.high_water = shard.high_water.max(checkpoint.high_water);
    shard.horizon.may_leave = checkpoint.horizon;
    shard.counters = Counters {
        in_flight: 0,
        excluded: 0,
        ..checkpoint.counters
    };
    shard.blob = checkpoint.blob.clone();
    shard.results = checkpoint.results_kept;
    shard.outage = checkpoint.outage;
    shard.updated_at = checkpoint.now;
    if let Some(end) = checkpoint.finish_at {
        shard.end = shard.end.min(end.max(shard.high_water));
    }
}

fn end_run(state: &mut State, id: ShardId, close: &RunClose, now: WallMs) {
    let Some(past) = state.shard(id).map(|(_, shard)| Past::of(shard)) else {
        return;
    };
    if let Some(shard) = state.shard_mut(id) {
        let node = shard.node.clone().filter(|_| *close == RunClose::Released);
        shard.left_by = node.map(|node| LeftBy { node, is_lost: false });
    }
    if let RunClose::Recovering { text, .. } = close {
        past.tell(state, id.task, Fate::Recovering(text), now);
    }
    brought_about(state, id.task, now, |life, evidence| {
        let news = life.end_run(id.no, close, now);
        vec![life.refresh(news, evidence, now)]
    });
}

/// Changes the life of a task by what a run brought about.
fn brought_about(
    state: &mut State,
    id: TaskId,
    now: WallMs,
    change: impl FnOnce(&mut Life, Evidence) -> Vec<Deeds>,
) {
    let Ok(()) = life::change(state, id, None, now, |life, evidence| {
        Ok::<_, Infallible>(change(life, evidence))
    });
}

/// Gives a shard back that its node doesn't run.
pub(super) fn release(
    state: &mut State,
    (id, epoch, claim): (ShardId, Epoch, ClaimId),
    close: &RunClose,
    now: WallMs,
) -> CheckpointAck {
    let Some(shard) = state.shard_mut(id) else {
        return CheckpointAck::Fenced;
    };
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
    let Some((_, shard)) = state.shard(id) else {
        return false;
    };
    if shard.session.is_none_or(|owner| state.is_live(owner)) {
        return false;
    }
    Past::of(shard).tell(state, id.task, Fate::Lost, now);
    if let Some(shard) = state.shard_mut(id) {
        let node = shard.node.clone();
        shard.left_by = node.map(|node| LeftBy { node, is_lost: true });
    }
    brought_about(state, id.task, now, |life, evidence| {
        let news = life.disown(id.no);
        vec![life.refresh(news, evidence, now)]
    });
    true
}

/// Stores what a task is now, after a shard of it was claimed.
pub(super) fn refresh_claimed(state: &mut State, id: TaskId, now: WallMs) {
    brought_about(state, id, now, |life, evidence| {
        vec![life.refresh_claimed(evidence, now)]
    });
}
