//! Businesses and tasks: create, command, show.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::state::{Shard, State, Task};
use super::{Call, MemoryStore, commands, datasets, life, moves, schedules, shown};
use windrow_core::dataset::Publishing;
use windrow_core::ids::{StoreId, TaskId, WallMs};
use windrow_core::items::stretches::Stretches;
use windrow_core::life::{ShardLife, status_json};
use windrow_core::limit::key::LimitKey;
use windrow_core::task::failed_codes::FailedCodes;
use windrow_core::task::lifecycle::CutOff;
use windrow_core::task::lifecycle::{Desired, Status};
use windrow_core::task::supply::Intake;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::schedules::store::Fire;
use windrow_engine::ports::tasks::store::{
    AuditEntry, CommandError, CreateError, Family, Making, NewTask, TaskCommand, TaskStore, TaskView,
    TokenStart, WaitNote, Write,
};
use windrow_host::start_token;

#[async_trait]
impl TaskStore for MemoryStore {
    async fn store_id(&self) -> Result<StoreId, StoreError> {
        // Known since it was opened, as in a real store: no fault reaches it.
        Ok(self.lock().id.clone())
    }

    async fn ensure_business(&self, slug: &str, write: &Write, now: WallMs) -> Result<(), StoreError> {
        let make = |state: &mut State| {
            if state.businesses.insert(slug.to_owned()) {
                let after = Some(serde_json::json!({ "slug": slug }).to_string());
                state.record(
                    None,
                    &write.actor,
                    now,
                    "business.create".to_owned(),
                    (None, after),
                );
            }
            Ok(())
        };
        self.act(Call::Create, |state| on(state, write, make)).await
    }

    async fn make(
        &self,
        new: &NewTask,
        how: Making<'_>,
        write: &Write,
        now: WallMs,
    ) -> Result<TaskView, CreateError> {
        let make = |state: &mut State| {
            if let Some(seen) = how.beside {
                refuse_overtaken(state, new, seen)?;
            }
            create(state, (new, how), write, now)
        };
        let made = self.act(Call::Create, |state| on(state, write, make)).await?;
        if !how.starts || made.start_no > 0 {
            return Ok(made);
        }
        match self.command(made.id, &TaskCommand::Start, write, now).await {
            Ok(started) => Ok(started),
            Err(CommandError::Store(error)) => Err(error.into()),
            // Somebody steered it between the two: it stays as it is.
            Err(_) => Ok(self.get(made.id).await?.unwrap_or(made)),
        }
    }

    async fn get(&self, id: TaskId) -> Result<Option<TaskView>, StoreError> {
        self.act(Call::Read, |state| {
            Ok(state
                .tasks
                .get(&id)
                .map(|task| shown::view_with_owners(state, id, task)))
        })
        .await
    }

    async fn find(&self, slug: &str, name: &str) -> Result<Option<TaskView>, StoreError> {
        self.act(Call::Read, |state| {
            let mut tasks = state.tasks.iter().rev();
            let found = tasks
                .find(|(_, task)| task.new.business == slug && task.new.spec.name.as_deref() == Some(name));
            Ok(found.map(|(id, task)| shown::view_with_owners(state, *id, task)))
        })
        .await
    }

    async fn release_name(&self, id: TaskId, write: &Write, now: WallMs) -> Result<(), CommandError> {
        let release = |state: &mut State| {
            let task = state.tasks.get_mut(&id).ok_or(CommandError::NotFound(id))?;
            let Some(name) = task.new.spec.name.take() else {
                return Ok(());
            };
            task.version += 1;
            let before = Some(serde_json::json!({ "name": name }).to_string());
            let after = Some(serde_json::json!({ "name": null }).to_string());
            state.record(
                Some(id),
                &write.actor,
                now,
                "task.release_name".to_owned(),
                (before, after),
            );
            Ok(())
        };
        self.act(Call::Command, |state| on(state, write, release)).await
    }

    async fn command_if(
        &self,
        id: TaskId,
        expected: Option<u64>,
        command: &TaskCommand,
        write: &Write,
        now: WallMs,
    ) -> Result<TaskView, CommandError> {
        let obey = |state: &mut State| commands::obey(state, (id, expected), command, write, now);
        self.act(Call::Command, |state| on(state, write, obey)).await
    }

    async fn explain_waits(&self, notes: &[WaitNote], _now: WallMs) -> Result<BTreeSet<TaskId>, StoreError> {
        self.act(Call::Command, |state| {
            let mut say = BTreeSet::new();
            for note in notes {
                let WaitNote {
                    task: id,
                    reason,
                    text,
                } = note;
                let Some(task) = state.tasks.get_mut(id) else {
                    continue;
                };
                let some = |text: &String| Some(text.clone()).filter(|_| !reason.is_empty());
                let new = (some(reason), some(text));
                let known = (task.status_reason.clone(), task.status_text.clone());
                if known == new {
                    say.insert(*id);
                } else if note.is_for(task.status, known.0.as_deref()) {
                    (task.status_reason, task.status_text) = new;
                    task.next_at = None;
                    task.version += 1;
                    say.insert(*id);
                }
            }
            Ok(say)
        })
        .await
    }

    async fn delete(&self, id: TaskId, write: &Write, now: WallMs) -> Result<(), CommandError> {
        let delete = |state: &mut State| commands::delete(state, id, write, now);
        self.act(Call::Command, |state| on(state, write, delete)).await
    }

    async fn move_shards(
        &self,
        task: TaskId,
        shard: Option<u32>,
        to: &str,
        write: &Write,
        now: WallMs,
    ) -> Result<u32, CommandError> {
        self.act(Call::Command, |state| {
            on(state, write, |state| {
                moves::move_shards(state, (task, shard, to), write, now)
            })
        })
        .await
    }

    async fn start_of_token(&self, token: &str) -> Result<Option<TokenStart>, StoreError> {
        self.act(Call::Read, |state| {
            let hash = start_token::hash(token);
            let Some((task, start_no)) = state.start_tokens.get(&hash).copied() else {
                return Ok(None);
            };
            let live = state.tasks.get(&task).and_then(|task| task.start_token.as_ref());
            Ok(Some(TokenStart {
                task,
                start_no,
                is_live: live == Some(&hash),
            }))
        })
        .await
    }

    async fn audit(&self, id: TaskId) -> Result<Vec<AuditEntry>, StoreError> {
        self.act(Call::Read, |state| {
            let of_task = state.audit.iter().filter(|(task, _)| *task == Some(id));
            Ok(of_task.map(|(_, entry)| entry.clone()).collect())
        })
        .await
    }
}

/// Changes the state; a dry run changes a copy of it.
pub(super) fn on<T>(state: &mut State, write: &Write, change: impl FnOnce(&mut State) -> T) -> T {
    if write.dry_run {
        change(&mut state.clone())
    } else {
        change(state)
    }
}

fn create(
    state: &mut State,
    (new, how): (&NewTask, Making<'_>),
    write: &Write,
    now: WallMs,
) -> Result<TaskView, CreateError> {
    let fire = how.fire;
    new.check()?;
    if !state.businesses.contains(&new.business) {
        return Err(CreateError::NoBusiness(new.business.clone()));
    }
    let key = new.idempotency_key.clone().map(|key| (new.business.clone(), key));
    if let Some((request, id)) = key.as_ref().and_then(|key| state.keys.get(key)) {
        if request != new {
            return Err(CreateError::KeyReused(*id));
        }
        // A task that was deleted since leaves its key free.
        if let Some(task) = state.tasks.get(id) {
            return Ok(shown::view_with_owners(state, *id, task));
        }
    }
    if let (Some(name), Some(holder)) = (&new.spec.name, holder_of_name(state, new)) {
        return Err(CreateError::NameTaken(name.clone(), holder));
    }
    if let Some(parent) = new.parent.filter(|parent| !state.tasks.contains_key(parent)) {
        return Err(CreateError::NoParent(parent));
    }
    let is_missing = |name: &&String| !state.bounds.contains_key(&LimitKey::Named(name).text());
    if let Some(name) = new.spec.limits.iter().find(is_missing) {
        return Err(CreateError::NoLimit(name.clone()));
    }
    if let Some(fire) = fire {
        schedules::check(state, fire)?;
    }
    let id = TaskId(state.tasks_made + 1);
    let later = fire.and_then(|fire| schedules::overtaking(state, fire));
    let publishing = match later {
        Some(_) => None,
        None => datasets::begin(state, new, id, now)?,
    };
    state.tasks_made += 1;
    let task = Task {
        fire,
        ..made(new, publishing, now)
    };
    state.tasks.insert(id, task);
    if let Some(fire) = fire {
        let note = later.filter(|_| new.publish.is_some()).map(Fire::overtaken);
        schedules::settle(state, (fire, note), id)?;
    }
    if let Some(key) = key {
        state.keys.insert(key, (new.clone(), id));
    }
    let after = Some(status_json(Status::Created));
    state.record(
        Some(id),
        &write.actor,
        now,
        "task.create".to_owned(),
        (None, after),
    );
    if let Some((origin, after)) = how.replayed(new, id) {
        let change = (None, Some(after));
        state.record(Some(origin), &write.actor, now, "task.replay".to_owned(), change);
    }
    Ok(shown::view(id, &state.tasks[&id]))
}

fn refuse_overtaken(state: &State, new: &NewTask, seen: &Family) -> Result<(), CreateError> {
    let key = new.idempotency_key.clone().map(|key| (new.business.clone(), key));
    let is_repeat = key.is_some_and(|key| state.keys.contains_key(&key));
    let is_child = |task: &Task| {
        task.new
            .parent
            .is_some_and(|parent| seen.members().any(|id| id == parent))
    };
    let mut redrives = state.tasks.iter().filter(|(_, task)| is_child(task));
    if !is_repeat && redrives.any(|(id, _)| !seen.redrives.contains(id)) {
        return Err(CreateError::Overtaken(seen.root));
    }
    Ok(())
}

fn holder_of_name(state: &State, new: &NewTask) -> Option<TaskId> {
    let mut tasks = state.tasks.iter();
    let holder =
        tasks.find(|(_, task)| task.new.business == new.business && task.new.spec.name == new.spec.name);
    holder.map(|(id, _)| *id)
}

fn made(new: &NewTask, publishing: Option<Publishing>, now: WallMs) -> Task {
    Task {
        publishing,
        new: new.clone(),
        fire: None,
        status: Status::Created,
        status_reason: None,
        status_text: None,
        since: now,
        next_at: None,
        desired: Desired::Rest,
        tuning: new.tuning.clone(),
        control_rev: 1,
        version: 1,
        start_no: 0,
        result: None,
        stop_reason: None,
        created_at: now,
        queued_at: WallMs(0),
        started_at: None,
        finished_at: None,
        failed_codes: FailedCodes::default(),
        skips: Stretches::default(),
        cut_off: CutOff::default(),
        finish_at: None,
        awaiting_until: None,
        start_token: None,
        pause: None,
        slow: None,
        shards: vec![shard(new, now)],
        items: std::collections::BTreeMap::new(),
        groups: std::collections::BTreeMap::new(),
        results: std::collections::BTreeMap::new(),
        intake: new.is_open.then_some(Intake::Open),
        appended: std::collections::BTreeMap::new(),
    }
}

fn shard(new: &NewTask, now: WallMs) -> Shard {
    life::shard(&ShardLife::new(0, new.range(), Desired::Rest, now))
}
