//! Between the maps and a task's life; what a change leaves beside it.

use super::state::{ItemState, Shard, State, Task};
use super::{datasets, hooks};
use windrow_core::execution::Horizon;
use windrow_core::ids::{CheckpointSeq, Epoch, RunNo, TaskId, WallMs};
use windrow_core::life::{Deeds, Evidence, Life, ShardLife};
use windrow_core::task::lifecycle::Note;
use windrow_engine::ports::tasks::store::Actor;

/// The life of a task.
pub(super) fn read(id: TaskId, task: &Task) -> Life {
    let note = task.status_text.clone().map(|text| Note {
        reason: task.status_reason.clone(),
        text,
    });
    let new = &task.new;
    Life {
        id,
        spec: new.spec.clone(),
        total: new.total,
        source: new.source.clone(),
        meaning: new.meaning,
        tuning: task.tuning.clone(),
        failed_codes: task.failed_codes.clone(),
        skips: task.skips.clone(),
        desired: task.desired,
        status: task.status,
        since: task.since,
        note,
        cut_off: task.cut_off.clone(),
        next_at: task.next_at,
        stop_reason: task.stop_reason,
        result: task.result,
        start_no: task.start_no,
        queued_at: task.queued_at,
        started_at: task.started_at,
        finished_at: task.finished_at,
        awaiting_until: task.awaiting_until,
        start_token: task.start_token.clone(),
        control_rev: task.control_rev,
        finish_at: task.finish_at,
        pause: task.pause,
        slow: task.slow,
        intake: task.intake,
        publishing: task.publishing.clone(),
        shards: task.shards.iter().map(|shard| shard_life(shard, task)).collect(),
    }
}

fn shard_life(shard: &Shard, task: &Task) -> ShardLife {
    ShardLife {
        no: shard.no,
        first: shard.first,
        end: shard.end,
        range_end: shard.range_end,
        state: shard.state,
        desired: task.desired,
        session: shard.session,
        run: shard.run,
        watermark: shard.watermark,
        high_water: shard.high_water,
        horizon: shard.horizon.may_leave,
        counters: shard.counters,
        recoveries: shard.recoveries,
        claimed_at: shard.claimed_at,
        not_before: shard.not_before,
        updated_at: shard.updated_at,
        moves_until: shard.moves.as_ref().map(|(_, until)| *until),
        share: shard.share,
    }
}

/// Changes a task's life and keeps what came of it. `by` gave the command, which is a new version also where it changes
/// nothing; none for what runs bring about.
pub(super) fn change<E>(
    state: &mut State,
    id: TaskId,
    by: Option<&Actor>,
    now: WallMs,
    change: impl FnOnce(&mut Life, Evidence) -> Result<Vec<Deeds>, E>,
) -> Result<(), E> {
    let Some(task) = state.tasks.get_mut(&id) else {
        return Ok(());
    };
    let before = read(id, task);
    let mut life = before.clone();
    let deeds = change(&mut life, evidence(task))?;
    // A shard's progress alone is no new version of its task.
    let is_new = life
        != Life {
            shards: life.shards.clone(),
            ..before
        };
    write(task, &life);
    task.version += u64::from(by.is_some() || is_new);
    for deeds in deeds {
        perform(state, &life, deeds, by, now);
    }
    Ok(())
}

fn evidence(task: &Task) -> Evidence {
    Evidence {
        failures: task.groups.values().map(|group| group.count).sum(),
        is_parked: task
            .items
            .values()
            .any(|item| matches!(item.state, ItemState::Parked(_))),
        results_said: task.shards.iter().map(|shard| shard.results).sum(),
        results_stored: task.results.values().map(|outputs| outputs.len() as u64).sum(),
    }
}

fn write(task: &mut Task, life: &Life) {
    let new = &mut task.new;
    (new.spec, new.total) = (life.spec.clone(), life.total);
    (new.source, new.meaning) = (life.source.clone(), life.meaning);
    task.tuning = life.tuning.clone();
    task.failed_codes = life.failed_codes.clone();
    task.skips = life.skips.clone();
    (task.desired, task.status, task.since) = (life.desired, life.status, life.since);
    task.status_reason = life.note.as_ref().and_then(|note| note.reason.clone());
    task.cut_off = life.cut_off.clone();
    task.status_text = life.note.as_ref().map(|note| note.text.clone());
    (task.next_at, task.stop_reason, task.result) = (life.next_at, life.stop_reason, life.result);
    task.start_no = life.start_no;
    (task.queued_at, task.started_at) = (life.queued_at, life.started_at);
    (task.finished_at, task.awaiting_until) = (life.finished_at, life.awaiting_until);
    (task.start_token, task.control_rev) = (life.start_token.clone(), life.control_rev);
    (task.finish_at, task.pause, task.slow) = (life.finish_at, life.pause, life.slow);
    task.intake = life.intake;
    let mut old = std::mem::take(&mut task.shards);
    let rest = |new: &ShardLife| {
        let kept = old
            .iter()
            .position(|shard| shard.no == new.no)
            .map(|at| old.swap_remove(at));
        kept.unwrap_or_else(|| shard(new))
    };
    let shards: Vec<Shard> = life.shards.iter().map(rest).collect();
    task.shards = shards;
    for (shard, life) in task.shards.iter_mut().zip(&life.shards) {
        write_shard(shard, life);
    }
}

fn write_shard(shard: &mut Shard, life: &ShardLife) {
    if shard.first != life.first {
        shard.horizon.may_have_left = life.first;
    }
    (shard.first, shard.end, shard.range_end) = (life.first, life.end, life.range_end);
    (shard.state, shard.session) = (life.state, life.session);
    (shard.watermark, shard.high_water) = (life.watermark, life.high_water);
    shard.horizon.may_leave = life.horizon;
    (shard.recoveries, shard.claimed_at) = (life.recoveries, life.claimed_at);
    (shard.not_before, shard.updated_at, shard.share) = (life.not_before, life.updated_at, life.share);
    if let (Some((_, until)), Some(moved)) = (&mut shard.moves, life.moves_until) {
        *until = moved;
    }
}

/// A shard that never ran.
pub(super) fn shard(life: &ShardLife) -> Shard {
    Shard {
        no: life.no,
        first: life.first,
        end: life.end,
        range_end: life.range_end,
        state: life.state,
        run: RunNo(0),
        epoch: Epoch(0),
        claim: None,
        session: None,
        seq: CheckpointSeq(0),
        watermark: life.watermark,
        high_water: life.high_water,
        horizon: Horizon {
            may_leave: life.horizon,
            may_have_left: life.first,
        },
        counters: life.counters,
        blob: Vec::new(),
        results: 0,
        stalls: 0,
        outage: None,
        recoveries: life.recoveries,
        claimed_at: life.claimed_at,
        not_before: life.not_before,
        updated_at: life.updated_at,
        moves: None,
        share: life.share,
        node: None,
        left_by: None,
    }
}

fn perform(state: &mut State, life: &Life, deeds: Deeds, by: Option<&Actor>, now: WallMs) {
    if let Some(hash) = life.start_token.clone().filter(|_| deeds.takes_token) {
        state.start_tokens.insert(hash, (life.id, life.start_no));
    }
    for record in deeds.records {
        let author = Actor::of(record.by, by);
        let change = (Some(record.before), Some(record.after));
        state.record(Some(life.id), &author, now, record.action, change);
    }
    if let Some(call) = deeds.call {
        hooks::leave(state, life.id, call, now);
    }
    if let Some(why) = deeds.withholds {
        datasets::withhold(state, life.id, &why);
    }
    if deeds.ends_start {
        let listener = hooks::listener(state, life.id);
        if let Some(call) = life.announcement(&listener, now) {
            hooks::leave(state, life.id, call, now);
        }
    }
}
