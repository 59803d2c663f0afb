//! Ownership of shards: candidates, claims, and what is read for a run.

use async_trait::async_trait;

use super::history::Past;
use super::state::{ItemState, Shard, State, Task};
use super::{Call, MemoryStore, progress, shards};
use windrow_core::business::POOL_DEFAULT;
use windrow_core::capacity::Rank;
use windrow_core::checkpoint;
use windrow_core::execution::{HORIZON_OF_CLAIM, Horizon};
use windrow_core::ids::{CheckpointSeq, ClaimId, Epoch, ItemIndex, RunNo, ShardId, TaskId, WallMs};
use windrow_core::items::verdict::{FailingItem, ParkedItem};
use windrow_core::life::succession::Fate;
use windrow_core::shards::Share;
use windrow_core::task::ShardRange;
use windrow_core::task::lifecycle::{Desired, ShardState};
use windrow_core::task::supply::{Intake, Supply};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::{
    CHECKPOINT_SHARDS_MAX, CLAIMABLE, Candidate, CandidateCursor, CandidatePage, CandidateQuery,
    CheckpointAck, ClaimOutcome, ClaimRequest, ClaimedShard, Control, LeftBy, RunClose, RunStore,
    ShardCheckpoint,
};

#[async_trait]
impl RunStore for MemoryStore {
    async fn candidates(&self, hunt: &CandidateQuery) -> Result<CandidatePage, StoreError> {
        self.act(Call::Candidates, |state| Ok(candidates(state, hunt)))
            .await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        self.act(Call::Claim, |state| Ok(claim(state, &request))).await
    }

    async fn checkpoint(&self, checkpoints: &[ShardCheckpoint]) -> Result<Vec<CheckpointAck>, StoreError> {
        self.act(Call::Checkpoint, |state| {
            if checkpoints.len() > CHECKPOINT_SHARDS_MAX {
                let text = format!(
                    "{} checkpoints at once; at most {CHECKPOINT_SHARDS_MAX}",
                    checkpoints.len()
                );
                return Err(StoreError::Refused(text));
            }
            Ok(checkpoints
                .iter()
                .map(|one| progress::write(state, one))
                .collect())
        })
        .await
    }

    async fn release(
        &self,
        shard: ShardId,
        epoch: Epoch,
        claim: ClaimId,
        close: &RunClose,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError> {
        self.act(Call::Checkpoint, |state| {
            Ok(progress::release(state, (shard, epoch, claim), close, now))
        })
        .await
    }

    async fn parked_due(
        &self,
        shard: ShardId,
        before: WallMs,
        after: Option<(WallMs, ItemIndex)>,
        limit: u32,
    ) -> Result<Vec<ParkedItem>, StoreError> {
        self.act(Call::Parked, |state| {
            let due = parked(state, shard)
                .into_iter()
                .filter(|item| item.due_at <= before);
            let rest = due.filter(|item| after.is_none_or(|after| (item.due_at, item.index) > after));
            Ok(rest.take(limit as usize).collect())
        })
        .await
    }

    async fn control(&self, shard: ShardId) -> Result<Control, StoreError> {
        self.act(Call::Control, |state| {
            let task = state.tasks.get(&shard.task);
            let task = task.ok_or_else(|| StoreError::Refused(format!("there is no task {}", shard.task)))?;
            Ok(Control {
                desired: task.desired,
                rev: task.control_rev,
                tuning: task.tuning.clone(),
                finish_at: task.finish_at,
                canary: task.new.spec.canary,
                failed_codes: task.failed_codes.clone(),
                skips: task.skips.clone(),
                shared: shards::shared(task, shard.no),
                pause: task.pause,
                slow: task.slow,
                deadline: task.new.spec.deadline,
                supply: task.intake.map(|intake| Supply {
                    end: ItemIndex(task.new.total.0),
                    is_sealed: intake == Intake::Sealed,
                }),
            })
        })
        .await
    }
}

/// The parked items of a shard in the order in which they are due.
fn parked(state: &State, id: ShardId) -> Vec<ParkedItem> {
    let Some(task) = state.tasks.get(&id.task) else {
        return Vec::new();
    };
    let mut parked: Vec<ParkedItem> = Vec::new();
    for item in task.items.values().filter(|item| item.shard == id.no) {
        if let ItemState::Parked(due_at) = item.state {
            let FailingItem {
                index,
                attempts,
                charged,
                failure,
                at,
                history,
                ..
            } = item.retrying.clone();
            parked.push(ParkedItem {
                index,
                attempts,
                charged,
                failure,
                at,
                due_at,
                history,
            });
        }
    }
    parked.sort_by_key(|item| (item.due_at, item.index));
    parked
}

fn is_ending(desired: Desired) -> bool {
    matches!(desired, Desired::Stop | Desired::StopNow | Desired::Cancel)
}

fn is_claimable(task: &Task, shard: &Shard, now: WallMs) -> bool {
    let is_open = CLAIMABLE.contains(&shard.state);
    let is_timely = is_ending(task.desired) || (task.desired == Desired::Run && shard.not_before <= now);
    is_open && is_timely
}

fn candidates(state: &State, hunt: &CandidateQuery) -> CandidatePage {
    let mut found: Vec<(CandidateCursor, Candidate)> = Vec::new();
    for (id, task) in &state.tasks {
        for shard in &task.shards {
            let owner = shard
                .session
                .filter(|owner| state.is_live(*owner) && hunt.alive.contains(owner));
            if owner.is_none() && is_claimable(task, shard, hunt.now) && is_hunted(task, shard, hunt) {
                let shard_id = ShardId {
                    task: *id,
                    no: shard.no,
                };
                let place = CandidateCursor {
                    state: shard.state,
                    shard: shard_id,
                };
                found.push((place, candidate(task, shard, (shard_id, hunt))));
            }
        }
    }
    let rank = |place: &CandidateCursor| {
        (
            CLAIMABLE.iter().position(|state| *state == place.state),
            place.shard,
        )
    };
    found.sort_by_key(|(place, _)| rank(place));
    found.retain(|(place, _)| hunt.after.is_none_or(|after| rank(place) > rank(&after)));
    let is_full = found.len() >= hunt.limit as usize;
    found.truncate(hunt.limit as usize);
    let next = found.last().map(|(place, _)| *place).filter(|_| is_full);
    CandidatePage {
        found: found.into_iter().map(|(_, candidate)| candidate).collect(),
        next,
    }
}

/// Whether a shard that is to run was active recently and belongs to a pool that is looked for.
fn is_hunted(task: &Task, shard: &Shard, hunt: &CandidateQuery) -> bool {
    let window = i64::try_from(hunt.restore_window.as_millis()).unwrap_or(i64::MAX);
    let oldest = hunt.now.0.saturating_sub(window);
    let is_recent = shard.updated_at.0 >= oldest || shard.not_before.0 >= oldest.max(1);
    let is_left = shard
        .moves
        .as_ref()
        .is_some_and(|(to, until)| *to != hunt.node && *until > hunt.now);
    let is_served = hunt
        .pools
        .as_ref()
        .is_none_or(|pools| pools.iter().any(|pool| pool == POOL_DEFAULT));
    let is_publication = ShardId {
        task: TaskId(0),
        no: shard.no,
    }
    .is_publication();
    let is_in_time = is_publication || task.new.spec.deadline.is_none_or(|deadline| deadline > hunt.now);
    is_ending(task.desired) || (is_recent && is_served && !is_left && is_in_time)
}

fn candidate(task: &Task, shard: &Shard, (id, hunt): (ShardId, &CandidateQuery)) -> Candidate {
    // The part that it began with: never more than it has now.
    let share = shard
        .share
        .map_or(Share::ALL, |_| Share::of_each(task.shards.len()));
    Candidate {
        rank: Rank::new(task.new.spec.priority, task.queued_at, id),
        epoch: shard.epoch,
        session: shard.session,
        desired: task.desired,
        rate: share.of_limit(task.tuning.rate),
        share,
        business: task.new.business.as_str().into(),
        is_sent_here: shard.moves.as_ref().is_some_and(|(to, _)| *to == hunt.node),
        written_at: shard.updated_at,
        left: (!task.new.is_open).then(|| {
            let whole = shard.end.0.saturating_sub(shard.first.0);
            whole.saturating_sub(shard.counters.settled())
        }),
    }
}

fn claim(state: &mut State, request: &ClaimRequest) -> ClaimOutcome {
    if !state.is_live(request.session) {
        return ClaimOutcome::Lost;
    }
    let Some((task, shard)) = state.shard(request.shard) else {
        return ClaimOutcome::Lost;
    };
    let is_own = shard.state == ShardState::Running
        && shard.claim == Some(request.claim)
        && shard.session == Some(request.session);
    let mut left_by = None;
    if !is_own {
        let is_owned = shard.session.is_some_and(|owner| state.is_live(owner));
        if is_owned || shard.epoch != request.seen || !is_claimable(task, shard, request.now) {
            return ClaimOutcome::Lost;
        }
        if let Some(version) = checkpoint::version_of(&shard.blob).filter(|it| *it > checkpoint::VERSION) {
            return ClaimOutcome::Newer(version);
        }
        let shard = state.shard_mut(request.shard);
        left_by = shard.and_then(|shard| shard.left_by.take());
        take(state, request);
    }
    claimed(state, request, left_by)
}

fn take(state: &mut State, request: &ClaimRequest) {
    let heir = state
        .sessions
        .get(&request.session)
        .map(|session| session.node.clone());
    let Some(shard) = state.shard_mut(request.shard) else {
        return;
    };
    let past = shard.session.map(|_| Past::of(shard));
    let was_down = shard.outage.is_some();
    let has_moved = was_down || shard.claimed_at.is_none_or(|before| shard.watermark > before);
    shard.stalls = if has_moved { 0 } else { shard.stalls + 1 };
    shard.claimed_at = Some(shard.watermark);
    let before = shard.may_have_left();
    let may_leave = before.max(shard.high_water.plus(HORIZON_OF_CLAIM));
    shard.horizon = Horizon {
        may_leave,
        may_have_left: before,
    };
    shard.epoch = Epoch((shard.epoch.0 + 1).max(request.now.0.unsigned_abs()));
    shard.claim = Some(request.claim);
    shard.session = Some(request.session);
    shard.run = RunNo(shard.run.0 + 1);
    shard.seq = CheckpointSeq(0);
    shard.state = ShardState::Running;
    shard.updated_at = request.now;
    shard.moves = None;
    shard.node.clone_from(&heir);
    if let (Some(past), Some(heir)) = (past, &heir) {
        past.tell(state, request.shard.task, Fate::TakenOver(heir), request.now);
    }
    progress::refresh_claimed(state, request.shard.task, request.now);
}

fn claimed(state: &State, request: &ClaimRequest, left_by: Option<LeftBy>) -> ClaimOutcome {
    let Some((task, shard)) = state.shard(request.shard) else {
        return ClaimOutcome::Lost;
    };
    let retrying = task.items.values().filter(|item| item.shard == shard.no);
    let retrying = retrying.filter(|item| item.state == ItemState::Retrying);
    ClaimOutcome::Claimed(Box::new(ClaimedShard {
        shard: request.shard,
        range: ShardRange {
            start: shard.first,
            end: shard.range_end,
        },
        epoch: shard.epoch,
        claim: request.claim,
        run: shard.run,
        desired: task.desired,
        watermark: shard.watermark,
        high_water: shard.high_water,
        horizon: shard.horizon,
        counters: shard.counters,
        blob: shard.blob.clone(),
        stalls: shard.stalls,
        recoveries: shard.recoveries,
        finish_at: (shard.end < shard.range_end).then_some(shard.end),
        outage: shard.outage,
        retrying: retrying.map(|item| item.retrying.clone()).collect(),
        results_kept: shard.results,
        left_by,
    }))
}
