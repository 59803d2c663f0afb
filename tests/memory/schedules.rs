//! Schedules and their fires. The database's clock is the machine's.

use std::time::Duration;

use async_trait::async_trait;

use super::state::{State, StoredFire, StoredSchedule};
use super::tasks::on;
use super::{Call, MemoryStore};
use windrow_core::ids::{ScheduleId, TaskId, WallMs};
use windrow_core::schedule::plan::{Outcome, Standing, plan, plan_one};
use windrow_core::schedule::{Overlap, Spec};
use windrow_core::task::lifecycle::{Desired, Status};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::actor::Actor;
use windrow_engine::ports::clock::Clock as _;
use windrow_engine::ports::schedules::store::{
    Agenda, BACKFILL_MAX, Backfill, CLOCK_SLACK, Due, FIRE_LEASE, FIRES_KEPT_MAX, Fire, FireKind,
    FireOutcome, Fired, InTheWay, NewSchedule, NextTry, OpenFires, PER_BUSINESS_MAX, Schedule, ScheduleEdit,
    ScheduleError, ScheduleFilter, ScheduleStore, Taken, TakenFire, given_up, skipped_by, skipped_for,
};
use windrow_engine::ports::tasks::store::{CreateError, FireKey, Write};
use windrow_host::clock::SystemClock;

/// Tasks of one schedule that lets them overlap which are made at once of fires that waited.
const AT_ONCE_MAX: u32 = 10;

pub(super) fn now() -> WallMs {
    SystemClock::new().wall()
}

impl MemoryStore {
    /// Moves what a schedule knows of time back by a span, as if it had been left alone for so long; with a negative one
    /// it was armed by a clock that was ahead.
    pub fn rewind_schedule(&self, id: ScheduleId, by_ms: i64) {
        if let Some(stored) = self.lock().schedules.get_mut(&id) {
            let back = |time: &mut WallMs| time.0 -= by_ms;
            stored.schedule.next_fire.as_mut().map(back);
            stored.schedule.next_due.as_mut().map(back);
            stored.armed_at.0 -= by_ms;
        }
    }

    /// Moves the fires of a schedule back in time: its times are free again.
    pub fn shift_fires(&self, id: ScheduleId, by_ms: i64) {
        let state = &mut *self.lock();
        let all = std::mem::take(&mut state.fires);
        state.fires = all
            .into_iter()
            .map(|((schedule, mut time), mut stored)| {
                if schedule == id {
                    time.0 -= by_ms;
                    stored.fire.time = time;
                }
                ((schedule, time), stored)
            })
            .collect();
        for fire in state.tasks.values_mut().filter_map(|task| task.fire.as_mut()) {
            if fire.schedule == id {
                fire.time.0 -= by_ms;
            }
        }
    }

    /// Ends the leases of all fires of a schedule.
    pub fn lapse_fires(&self, id: ScheduleId) {
        for ((schedule, _), stored) in &mut self.lock().fires {
            if *schedule == id {
                stored.lease_until = WallMs(0);
            }
        }
    }
}

#[async_trait]
impl ScheduleStore for MemoryStore {
    async fn database_time(&self) -> Result<WallMs, StoreError> {
        self.act(Call::Read, |_| Ok(now())).await
    }

    async fn create_schedule(&self, new: &NewSchedule, write: &Write) -> Result<Schedule, ScheduleError> {
        self.act(Call::Create, |state| {
            on(state, write, |state| create(state, new, write))
        })
        .await
    }

    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>, StoreError> {
        let find = |state: &mut State| Ok(state.schedules.get(&id).map(|stored| stored.schedule.clone()));
        self.act(Call::Read, find).await
    }

    async fn schedules(
        &self,
        filter: &ScheduleFilter,
        after: Option<ScheduleId>,
        count: u32,
    ) -> Result<Vec<Schedule>, StoreError> {
        self.act(Call::Read, |state| {
            let all = state.schedules.values().map(|stored| &stored.schedule);
            let found = all
                .filter(|one| after.is_none_or(|after| one.id > after))
                .filter(|one| filter.business.as_ref().is_none_or(|slug| one.business == *slug))
                .filter(|one| filter.name.as_ref().is_none_or(|name| one.name == *name));
            Ok(found.take(count as usize).cloned().collect())
        })
        .await
    }

    async fn change_schedule(
        &self,
        id: ScheduleId,
        expected: u64,
        edit: &ScheduleEdit,
        write: &Write,
    ) -> Result<Schedule, ScheduleError> {
        let change = |state: &mut State| change(state, (id, expected), edit, write);
        self.act(Call::Command, |state| on(state, write, change)).await
    }

    async fn delete_schedule(&self, id: ScheduleId, write: &Write) -> Result<Schedule, ScheduleError> {
        let delete = |state: &mut State| {
            let gone = state.schedules.remove(&id).ok_or(ScheduleError::NotFound(id))?;
            state.fires.retain(|(schedule, _), _| *schedule != id);
            record(state, &write.actor, "schedule.delete");
            Ok(gone.schedule)
        };
        self.act(Call::Command, |state| on(state, write, delete)).await
    }

    async fn trigger(&self, id: ScheduleId, write: &Write) -> Result<Fire, ScheduleError> {
        self.act(Call::Command, |state| {
            on(state, write, |state| trigger(state, id, write))
        })
        .await
    }

    async fn backfill(
        &self,
        id: ScheduleId,
        wanted: Backfill<'_>,
        write: &Write,
    ) -> Result<Vec<Fire>, ScheduleError> {
        let backfill = |state: &mut State| backfill(state, id, wanted, write);
        self.act(Call::Command, |state| on(state, write, backfill)).await
    }

    async fn skip_fires(
        &self,
        id: ScheduleId,
        time: Option<WallMs>,
        write: &Write,
    ) -> Result<Vec<Fire>, ScheduleError> {
        let skip = |state: &mut State| skip(state, (id, time), write);
        self.act(Call::Command, |state| on(state, write, skip)).await
    }

    async fn fires(
        &self,
        id: ScheduleId,
        outcome: Option<FireOutcome>,
        before: Option<WallMs>,
        count: u32,
    ) -> Result<Vec<Fire>, StoreError> {
        self.act(Call::Read, |state| {
            let all = state.fires.values().rev().map(|stored| &stored.fire);
            let found = all
                .filter(|fire| fire.schedule == id)
                .filter(|fire| outcome.is_none_or(|outcome| fire.outcome == outcome))
                .filter(|fire| before.is_none_or(|before| fire.time < before));
            Ok(found.take(count as usize).cloned().collect())
        })
        .await
    }

    async fn open_fires(&self, id: ScheduleId) -> Result<OpenFires, StoreError> {
        self.act(Call::Read, |state| {
            Ok(OpenFires {
                pending: count(state, id, FireOutcome::Pending),
                queued: count(state, id, FireOutcome::Queued),
            })
        })
        .await
    }

    async fn agenda(&self, limit: u32) -> Result<Agenda, StoreError> {
        self.act(Call::Read, |state| Ok(agenda(state, limit))).await
    }

    async fn fire_due(&self, due: Due) -> Result<Fired, StoreError> {
        self.act(Call::Command, |state| Ok(fire_due(state, due))).await
    }

    async fn take_fires(&self, limit: u32, alone: bool) -> Result<Taken, StoreError> {
        self.act(Call::Command, |state| Ok(take(state, limit, alone)))
            .await
    }

    async fn put_back_fire(&self, id: ScheduleId, time: WallMs) -> Result<(), StoreError> {
        self.act(Call::Command, |state| {
            if let Some(stored) = pending(state, id, time) {
                stored.fire.attempts = stored.fire.attempts.saturating_sub(1);
            }
            Ok(())
        })
        .await
    }

    async fn keep_fire(&self, id: ScheduleId, time: WallMs) -> Result<bool, StoreError> {
        self.act(Call::Command, |state| {
            let kept = pending(state, id, time);
            Ok(kept
                .map(|stored| stored.lease_until = now().plus(FIRE_LEASE))
                .is_some())
        })
        .await
    }

    async fn fail_fire(
        &self,
        id: ScheduleId,
        time: WallMs,
        text: &str,
        again: Option<Duration>,
    ) -> Result<(), StoreError> {
        self.act(Call::Command, |state| {
            let Some(stored) = pending(state, id, time) else {
                return Ok(());
            };
            stored.fire.text = Some(text.to_owned());
            match again {
                Some(wait) => stored.lease_until = now().plus(wait),
                None => settle_as(stored, FireOutcome::Failed),
            }
            Ok(())
        })
        .await
    }

    async fn expire_fires(&self, before: WallMs) -> Result<u64, StoreError> {
        self.act(Call::Command, |state| Ok(expire(state, before))).await
    }
}

/// Settles a fire with the task that is made.
pub(super) fn settle(
    state: &mut State,
    (key, text): (FireKey, Option<String>),
    task: TaskId,
) -> Result<(), CreateError> {
    let over = CreateError::FireOver(key.schedule, key.time);
    let stored = pending(state, key.schedule, key.time).ok_or(over)?;
    settle_as(stored, FireOutcome::Made);
    (stored.fire.task, stored.fire.text) = (Some(task), text);
    Ok(())
}

/// The newest fire after one for a time that was over which made a task that may publish.
pub(super) fn overtaking(state: &State, key: FireKey) -> Option<WallMs> {
    let own = state.fires.get(&(key.schedule, key.time))?;
    let all = state.fires.values().rev().map(|stored| &stored.fire);
    let mut later = all.filter(|fire| fire.schedule == key.schedule && fire.time > key.time);
    let newest = later.find(|fire| fire.outcome == FireOutcome::Made && fire.publishes)?;
    (own.fire.kind == FireKind::Backfilled).then_some(newest.time)
}

/// Whether a fire can be settled with a task.
pub(super) fn check(state: &mut State, key: FireKey) -> Result<(), CreateError> {
    let found = pending(state, key.schedule, key.time);
    found
        .map(drop)
        .ok_or(CreateError::FireOver(key.schedule, key.time))
}

fn pending(state: &mut State, id: ScheduleId, time: WallMs) -> Option<&mut StoredFire> {
    let found = state.fires.get_mut(&(id, time));
    found.filter(|stored| stored.fire.outcome == FireOutcome::Pending)
}

fn settle_as(stored: &mut StoredFire, outcome: FireOutcome) {
    stored.fire.outcome = outcome;
    stored.fire.settled_at = Some(now());
}

fn record(state: &mut State, actor: &Actor, action: &str) {
    state.record(None, actor, now(), action.to_owned(), (None, None));
}

fn create(state: &mut State, new: &NewSchedule, write: &Write) -> Result<Schedule, ScheduleError> {
    if !state.businesses.contains(&new.business) {
        return Err(ScheduleError::NoBusiness(new.business.clone()));
    }
    let all = state.schedules.values().map(|stored| &stored.schedule);
    let own: Vec<&Schedule> = all.filter(|one| one.business == new.business).collect();
    if own.iter().any(|one| one.name == new.name) {
        return Err(ScheduleError::Taken(new.name.clone()));
    }
    if own.len() as u64 >= PER_BUSINESS_MAX {
        return Err(ScheduleError::Full(new.business.clone()));
    }
    state.schedules_made += 1;
    let (id, now) = (ScheduleId(state.schedules_made), now());
    let schedule = Schedule {
        id,
        business: new.business.clone(),
        name: new.name.clone(),
        spec: new.spec.clone(),
        template: new.template.clone(),
        is_guarded: new.is_guarded,
        paused: new.paused,
        next_fire: None,
        next_due: None,
        created_by: write.actor.name.clone(),
        revision: 1,
        created_at: now,
        updated_at: now,
    };
    let mut stored = StoredSchedule {
        schedule,
        armed_at: now,
    };
    arm(&mut stored, new.spec.next_after(now).filter(|_| !new.paused), now);
    let made = stored.schedule.clone();
    state.schedules.insert(id, stored);
    record(state, &write.actor, "schedule.create");
    Ok(made)
}

fn arm(stored: &mut StoredSchedule, next: Option<WallMs>, now: WallMs) {
    let schedule = &mut stored.schedule;
    schedule.next_fire = next;
    schedule.next_due = next.map(|next| schedule.spec.due(schedule.id, next));
    stored.armed_at = now;
}

fn change(
    state: &mut State,
    (id, expected): (ScheduleId, u64),
    edit: &ScheduleEdit,
    write: &Write,
) -> Result<Schedule, ScheduleError> {
    let stored = state.schedules.get_mut(&id).ok_or(ScheduleError::NotFound(id))?;
    let before = stored.schedule.clone();
    let found = before.revision;
    if found != expected {
        return Err(ScheduleError::Changed { expected, found });
    }
    let schedule = &mut stored.schedule;
    if let Some(spec) = &edit.spec {
        schedule.spec = spec.clone();
    }
    if let Some((template, is_guarded)) = &edit.template {
        (schedule.template, schedule.is_guarded) = (template.clone(), *is_guarded);
    }
    schedule.paused = edit.paused.unwrap_or(schedule.paused);
    if *schedule == before {
        return Ok(before);
    }
    let now = now();
    (schedule.revision, schedule.updated_at) = (found + 1, now);
    if schedule.spec != before.spec || schedule.paused != before.paused {
        let next = schedule.spec.next_after(now).filter(|_| !schedule.paused);
        arm(stored, next, now);
    }
    let after = stored.schedule.clone();
    let only_paused = edit
        .paused
        .filter(|_| edit.spec.is_none() && edit.template.is_none());
    let action = match only_paused {
        Some(true) => "schedule.pause",
        Some(false) => "schedule.resume",
        None => "schedule.edit",
    };
    record(state, &write.actor, action);
    Ok(after)
}

fn trigger(state: &mut State, id: ScheduleId, write: &Write) -> Result<Fire, ScheduleError> {
    let spec = spec(state, id).ok_or(ScheduleError::NotFound(id))?;
    let mut time = now();
    while state.fires.contains_key(&(id, time)) {
        time.0 += 1;
    }
    let outcome = plan_one(&spec, &standing(state, id, time));
    match outcome {
        Outcome::SkipOverlap | Outcome::SkipCrowded => {
            return Err(busy(state, id, spec.overlap));
        }
        Outcome::Supersede => supersede(state, id),
        Outcome::Make | Outcome::Queue => {}
    }
    let fire = decided(id, time, FireKind::Triggered, outcome);
    insert(state, fire.clone());
    record(state, &write.actor, "schedule.trigger");
    Ok(fire)
}

fn busy(state: &State, id: ScheduleId, overlap: Overlap) -> ScheduleError {
    let Some(stored) = state.schedules.get(&id) else {
        return ScheduleError::NotFound(id);
    };
    let schedule = &stored.schedule;
    ScheduleError::Busy(Box::new(InTheWay {
        schedule: format!("{}/{}", schedule.business, schedule.name),
        overlap,
        task: in_the_way(state, id).next().map(|(task, _)| task),
        waiting: count(state, id, FireOutcome::Queued),
    }))
}

fn backfill(
    state: &mut State,
    id: ScheduleId,
    wanted: Backfill<'_>,
    write: &Write,
) -> Result<Vec<Fire>, ScheduleError> {
    let spec = spec(state, id).ok_or(ScheduleError::NotFound(id))?;
    let waiting = count(state, id, FireOutcome::Queued);
    if waiting as usize + wanted.times.len() > BACKFILL_MAX {
        return Err(ScheduleError::Crowded { waiting });
    }
    let mut ordered = Vec::new();
    for time in wanted.times {
        if let Some(before) = state.fires.get(&(id, *time)).map(|stored| stored.fire.clone()) {
            let may_go = [FireOutcome::Missed, FireOutcome::Skipped, FireOutcome::Failed];
            if !may_go.contains(&before.outcome) {
                continue;
            }
            state.fires.remove(&(id, *time));
            keep_rest(state, &spec, &before);
        }
        let fire = Fire {
            publishes: wanted.publishes,
            ..decided(id, *time, FireKind::Backfilled, Outcome::Queue)
        };
        insert(state, fire.clone());
        ordered.push(fire);
    }
    record(state, &write.actor, "schedule.backfill");
    Ok(ordered)
}

fn skip(
    state: &mut State,
    (id, time): (ScheduleId, Option<WallMs>),
    write: &Write,
) -> Result<Vec<Fire>, ScheduleError> {
    spec(state, id).ok_or(ScheduleError::NotFound(id))?;
    let is_open = |fire: &Fire| matches!(fire.outcome, FireOutcome::Pending | FireOutcome::Queued);
    let is_meant =
        |fire: &Fire| fire.schedule == id && is_open(fire) && time.is_none_or(|time| fire.time == time);
    let mut skipped = Vec::new();
    for stored in state.fires.values_mut().filter(|stored| is_meant(&stored.fire)) {
        stored.fire.text = Some(skipped_by(&write.actor.name, stored.fire.text.as_deref()));
        settle_as(stored, FireOutcome::Skipped);
        skipped.push(stored.fire.clone());
    }
    if let (Some(time), true) = (time, skipped.is_empty()) {
        return Err(ScheduleError::NotOpen(time));
    }
    record(state, &write.actor, "schedule.skip");
    Ok(skipped)
}

fn keep_rest(state: &mut State, spec: &Spec, row: &Fire) {
    let times = std::iter::successors(spec.next_after(row.time), |last| spec.next_after(*last));
    let mut count = row.count.saturating_sub(1);
    for time in times.take_while(|time| *time <= row.last) {
        if count == 0 {
            return;
        }
        if !state.fires.contains_key(&(row.schedule, time)) {
            let rest = Fire {
                time,
                count,
                ..row.clone()
            };
            return insert(state, rest);
        }
        count -= 1;
    }
}

fn spec(state: &State, id: ScheduleId) -> Option<Spec> {
    state
        .schedules
        .get(&id)
        .map(|stored| stored.schedule.spec.clone())
}

fn in_the_way(state: &State, id: ScheduleId) -> impl Iterator<Item = (TaskId, Desired)> {
    let out = [Status::Finished, Status::Cancelled, Status::Stopped];
    let own = state
        .tasks
        .iter()
        .filter(move |(_, task)| task.fire.is_some_and(|fire| fire.schedule == id));
    own.filter(move |(_, task)| !out.contains(&task.status))
        .map(|(id, task)| (*id, task.desired))
}

fn count(state: &State, id: ScheduleId, outcome: FireOutcome) -> u64 {
    let all = state.fires.values().map(|stored| &stored.fire);
    all.filter(|fire| fire.schedule == id && fire.outcome == outcome)
        .count() as u64
}

fn standing(state: &State, id: ScheduleId, next: WallMs) -> Standing {
    Standing {
        id,
        next,
        is_busy: in_the_way(state, id).next().is_some(),
        pending: count(state, id, FireOutcome::Pending) as u32,
        queued: count(state, id, FireOutcome::Queued) as u32,
    }
}

fn agenda(state: &State, limit: u32) -> Agenda {
    let now = now();
    let mut due: Vec<(WallMs, Due)> = Vec::new();
    let mut nearest: Option<WallMs> = None;
    for (id, stored) in &state.schedules {
        let (Some(next_fire), Some(next_due)) = (stored.schedule.next_fire, stored.schedule.next_due) else {
            continue;
        };
        if next_due <= now || stored.armed_at > now.plus(CLOCK_SLACK) {
            due.push((next_due, Due { id: *id, next_fire }));
        }
        if next_due > now {
            nearest = Some(nearest.map_or(next_due, |known| known.min(next_due)));
        }
    }
    due.sort_by_key(|(next_due, due)| (*next_due, due.id));
    let is_open = |stored: &StoredFire| match stored.fire.outcome {
        FireOutcome::Pending => stored.lease_until <= now,
        outcome => outcome == FireOutcome::Queued,
    };
    Agenda {
        now,
        due: due.into_iter().take(limit as usize).map(|(_, due)| due).collect(),
        has_open: state.fires.values().any(is_open),
        nearest,
    }
}

fn fire_due(state: &mut State, due: Due) -> Fired {
    let now = now();
    let Some(stored) = state.schedules.get_mut(&due.id) else {
        return Fired::default();
    };
    if stored.schedule.next_fire != Some(due.next_fire) {
        return Fired::default();
    }
    let spec = stored.schedule.spec.clone();
    if stored.armed_at > now.plus(CLOCK_SLACK) {
        let next = spec.next_after(now);
        let is_mended = next != stored.schedule.next_fire;
        arm(stored, next, now);
        if is_mended {
            record(state, &Actor::windrow(None), "schedule.rearm");
        }
        return Fired {
            is_mended,
            ..Fired::default()
        };
    }
    let plan = plan(&spec, &standing(state, due.id, due.next_fire), now);
    let mut fires = Vec::new();
    if let Some(gap) = plan.missed {
        let whole = Fire {
            last: gap.last,
            count: gap.count,
            outcome: FireOutcome::Missed,
            ..decided(due.id, gap.first, FireKind::Scheduled, Outcome::SkipOverlap)
        };
        let whole = Fire { text: None, ..whole };
        if state.fires.contains_key(&(due.id, gap.first)) {
            keep_rest(state, &spec, &whole);
        } else {
            insert(state, whole.clone());
            fires.push(whole);
        }
    }
    let mut late = None;
    for (time, outcome) in plan.fires {
        if state.fires.contains_key(&(due.id, time)) {
            continue;
        }
        if outcome == Outcome::Supersede {
            supersede(state, due.id);
        }
        if !matches!(outcome, Outcome::SkipOverlap | Outcome::SkipCrowded) {
            late = Some(now.since(spec.due(due.id, time)));
        }
        let mut fire = decided(due.id, time, FireKind::Scheduled, outcome);
        if outcome == Outcome::SkipOverlap {
            let task = in_the_way(state, due.id)
                .next()
                .and_then(|(id, _)| Some((id, state.tasks.get(&id)?)));
            let task = task.map(|(id, task)| (id, task.status, task.status_text.as_deref()));
            fire.text = Some(skipped_for(task));
        }
        insert(state, fire.clone());
        fires.push(fire);
    }
    if let Some(stored) = state.schedules.get_mut(&due.id) {
        arm(stored, plan.next, now);
    }
    // A newer one of the same plan may have taken the place of one that was to wait.
    let kept = |fire: Fire| {
        state
            .fires
            .get(&(fire.schedule, fire.time))
            .map(|kept| kept.fire.clone())
    };
    Fired {
        fires: fires.into_iter().filter_map(kept).collect(),
        late,
        is_mended: false,
    }
}

fn insert(state: &mut State, fire: Fire) {
    let stored = StoredFire {
        lease_until: WallMs(0),
        fire,
    };
    state
        .fires
        .insert((stored.fire.schedule, stored.fire.time), stored);
}

fn decided(schedule: ScheduleId, time: WallMs, kind: FireKind, outcome: Outcome) -> Fire {
    let now = now();
    let (outcome, text) = match outcome {
        Outcome::Make => (FireOutcome::Pending, None),
        Outcome::Queue | Outcome::Supersede => (FireOutcome::Queued, None),
        Outcome::SkipOverlap => (FireOutcome::Skipped, None),
        Outcome::SkipCrowded => (FireOutcome::Skipped, Some("too many tasks were about to be made")),
    };
    let is_open = matches!(outcome, FireOutcome::Pending | FireOutcome::Queued);
    Fire {
        schedule,
        time,
        kind,
        outcome,
        task: None,
        last: time,
        count: 1,
        decided_at: now,
        settled_at: (!is_open).then_some(now),
        attempts: 0,
        text: text.map(str::to_owned),
        publishes: kind != FireKind::Backfilled,
    }
}

fn supersede(state: &mut State, id: ScheduleId) {
    let waits = |fire: &Fire| {
        fire.schedule == id && fire.outcome == FireOutcome::Queued && fire.kind != FireKind::Backfilled
    };
    for stored in state.fires.values_mut().filter(|stored| waits(&stored.fire)) {
        settle_as(stored, FireOutcome::Skipped);
        stored.fire.text = Some("a newer fire took its place".to_owned());
    }
}

fn take(state: &mut State, limit: u32, alone: bool) -> Taken {
    let now = now();
    let ids: Vec<ScheduleId> = state.schedules.keys().copied().collect();
    let mut cancels = Vec::new();
    for id in &ids {
        promote(state, *id);
        let overlap = state.schedules.get(id).map(|stored| stored.schedule.spec.overlap);
        let is_newer = |fire: &Fire| {
            fire.schedule == *id && fire.outcome == FireOutcome::Queued && fire.kind != FireKind::Backfilled
        };
        if overlap == Some(Overlap::CancelRunning)
            && state.fires.values().any(|stored| is_newer(&stored.fire))
        {
            let tasks = in_the_way(state, *id).filter(|(_, desired)| *desired != Desired::Cancel);
            cancels.extend(tasks.map(|(task, _)| task));
        }
    }
    let loose =
        |stored: &&mut StoredFire| stored.fire.outcome == FireOutcome::Pending && stored.lease_until <= now;
    let mut open: Vec<&mut StoredFire> = state.fires.values_mut().filter(loose).collect();
    open.sort_by_key(|stored| stored.fire.attempts);
    let (mut taken, mut over) = (Vec::new(), Vec::new());
    for stored in open.into_iter().take(limit as usize) {
        let tries = stored.fire.attempts;
        let next = NextTry::after(tries, alone && taken.is_empty());
        match next {
            NextTry::Wait => continue,
            NextTry::GiveUp => {
                stored.fire.text = Some(given_up(tries, stored.fire.text.as_deref()));
                settle_as(stored, FireOutcome::Failed);
                over.push(stored.fire.clone());
                continue;
            }
            NextTry::Make | NextTry::MakeAlone => {}
        }
        // What it was before this try.
        taken.push(stored.fire.clone());
        stored.lease_until = now.plus(FIRE_LEASE);
        stored.fire.attempts += 1;
        if next == NextTry::MakeAlone {
            break;
        }
    }
    let fires = taken
        .into_iter()
        .filter_map(|fire| taken_fire(state, &fire))
        .collect();
    Taken {
        fires,
        cancels,
        given_up: over,
    }
}

fn taken_fire(state: &State, fire: &Fire) -> Option<TakenFire> {
    let schedule = state.schedules.get(&fire.schedule)?.schedule.clone();
    let made = state.fires.values().rev().map(|stored| &stored.fire);
    let previous = made
        .filter(|one| one.schedule == fire.schedule && one.outcome == FireOutcome::Made)
        .find(|one| one.time < fire.time);
    Some(TakenFire {
        schedule,
        time: fire.time,
        kind: fire.kind,
        previous: previous.map(|one| one.time),
        attempts: fire.attempts,
        publishes: fire.publishes,
    })
}

/// The first fire that waits goes, if nothing is in its way.
fn promote(state: &mut State, id: ScheduleId) {
    let Some(schedule) = state.schedules.get(&id).map(|stored| stored.schedule.clone()) else {
        return;
    };
    let stands = standing(state, id, WallMs(0));
    let may_go = match schedule.spec.overlap {
        Overlap::Allow => stands.pending < AT_ONCE_MAX,
        Overlap::Skip | Overlap::Queue | Overlap::CancelRunning => !stands.is_busy && stands.pending == 0,
    };
    let waits = |fire: &Fire| {
        let is_held = schedule.paused && fire.kind == FireKind::Scheduled;
        fire.schedule == id && fire.outcome == FireOutcome::Queued && !is_held
    };
    let head = state.fires.values_mut().find(|stored| waits(&stored.fire));
    if let Some(head) = head.filter(|_| may_go) {
        (head.fire.outcome, head.lease_until) = (FireOutcome::Pending, WallMs(0));
    }
}

fn expire(state: &mut State, before: WallMs) -> u64 {
    let is_open = |fire: &Fire| matches!(fire.outcome, FireOutcome::Pending | FireOutcome::Queued);
    let known = state.fires.len();
    state
        .fires
        .retain(|_, stored| is_open(&stored.fire) || stored.fire.decided_at >= before);
    let ids: Vec<ScheduleId> = state.schedules.keys().copied().collect();
    for id in ids {
        let own = state.fires.keys().rev().filter(|(schedule, _)| *schedule == id);
        let Some((_, oldest)) = own.take(FIRES_KEPT_MAX as usize).last().copied() else {
            continue;
        };
        state
            .fires
            .retain(|(schedule, time), stored| *schedule != id || *time >= oldest || is_open(&stored.fire));
    }
    (known - state.fires.len()) as u64
}
