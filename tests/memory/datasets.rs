//! Datasets and generations: one map, changed under the one lock.

use std::convert::Infallible;
use std::num::NonZeroU32;

use async_trait::async_trait;

use super::state::{Dataset as Kept, State, Task};
use super::{Call, MemoryStore, life, progress, sinks};
use windrow_core::dataset::{
    DATASETS_MAX, GenerationNo, GenerationState, KEEP_DEFAULT, PINNED_MAX, Pointer, Publishing, Sink,
    outdated,
};
use windrow_core::ids::{Epoch, ItemIndex, TaskId, WallMs};
use windrow_core::task::lifecycle::ShardState;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::datasets::publication::{
    OwnClaim, PrepareError, Prepared, Preparer, PublicationStore,
};
use windrow_engine::ports::datasets::store::{
    Dataset, DatasetChange, DatasetError, DatasetStore, Generation, NewDataset, Reading, SinkView, Which,
};
use windrow_engine::ports::ownership::run_store::{CheckpointAck, RunClose};
use windrow_engine::ports::tasks::results::ResultShard;
use windrow_engine::ports::tasks::store::{Actor, CreateError, NewTask, TaskView, Write};

/// Gives the generation of a task that is made its number.
pub(super) fn begin(
    state: &mut State,
    new: &NewTask,
    task: TaskId,
    now: WallMs,
) -> Result<Option<Publishing>, CreateError> {
    let Some(publish) = new.publish.clone() else {
        return Ok(None);
    };
    if !state.datasets.contains_key(&publish.dataset) && !make(state, &new.business, &publish.dataset, now) {
        return Err(CreateError::TooManyDatasets(DATASETS_MAX));
    }
    let Some(dataset) = state.datasets.get_mut(&publish.dataset) else {
        return Ok(None);
    };
    if dataset.business != new.business {
        return Err(CreateError::DatasetTaken(publish.dataset));
    }
    let generation = GenerationNo(dataset.last.0 + 1);
    dataset.last = generation;
    touch(dataset, now);
    let begun = Generation {
        no: generation,
        task,
        state: GenerationState::Pending,
        pinned: false,
        results: 0,
        shards: Vec::new(),
        key: None,
        publication: None,
        why: None,
        created_at: now,
        published_at: None,
    };
    dataset.generations.insert(generation, (begun, None));
    Ok(Some(Publishing { publish, generation }))
}

/// Makes a dataset unless its business has as many as allowed.
fn make(state: &mut State, business: &str, name: &str, now: WallMs) -> bool {
    let all = state.datasets.values();
    if all.filter(|known| known.business == business).count() as u64 >= DATASETS_MAX {
        return false;
    }
    state.datasets_made += 1;
    let made = Kept {
        id: state.datasets_made,
        business: business.to_owned(),
        keep: KEEP_DEFAULT.get(),
        last: GenerationNo(0),
        pointer: Pointer::default(),
        published_at: None,
        version: 1,
        created_at: now,
        updated_at: now,
        generations: std::collections::BTreeMap::new(),
    };
    state.datasets.insert(name.to_owned(), made);
    true
}

fn touch(dataset: &mut Kept, now: WallMs) {
    dataset.version += 1;
    dataset.updated_at = now;
}

fn all(state: &State) -> impl Iterator<Item = &Generation> {
    let all = state
        .datasets
        .values()
        .flat_map(|dataset| dataset.generations.values());
    all.map(|(generation, _)| generation)
}

/// Generations that own the results of their tasks.
pub(super) fn owners(state: &State) -> impl Iterator<Item = &Generation> {
    let owning = [GenerationState::Published, GenerationState::Expired];
    all(state).filter(move |generation| owning.contains(&generation.state))
}

/// Says why the generation of a task will never be published.
pub(super) fn withhold(state: &mut State, task: TaskId, why: &str) {
    for (generation, _) in state
        .datasets
        .values_mut()
        .flat_map(|dataset| dataset.generations.values_mut())
    {
        if generation.task == task && generation.state == GenerationState::Pending {
            generation.state = GenerationState::Withheld;
            generation.why = Some(why.to_owned());
        }
    }
}

/// What becomes of a task's results when it is deleted.
pub(super) fn keep_results(state: &mut State, id: TaskId, gone: Option<Task>) {
    if owners(state).any(|generation| generation.task == id)
        && let Some(gone) = gone
    {
        state.owned.insert(id, gone.results);
    }
    for dataset in state.datasets.values_mut() {
        dataset
            .generations
            .retain(|_, (one, _)| one.task != id || one.state != GenerationState::Withheld);
    }
}

/// Removes the results of generations that are no longer kept.
pub(super) fn sweep(state: &mut State) -> u64 {
    let expired = all(state).filter(|one| one.state == GenerationState::Expired);
    let tasks: Vec<TaskId> = expired.map(|one| one.task).collect();
    for task in &tasks {
        state.owned.remove(task);
        state.keys_written.retain(|(of, _, _), _| of != task);
        if let Some(task) = state.tasks.get_mut(task) {
            task.results.clear();
        }
    }
    for dataset in state.datasets.values_mut() {
        dataset
            .generations
            .retain(|_, (one, _)| one.state != GenerationState::Expired);
    }
    tasks.len() as u64
}

fn let_go(dataset: &mut Kept) {
    let published = dataset.generations.values().map(|(one, _)| one);
    let published: Vec<_> = published
        .filter(|one| one.state == GenerationState::Published)
        .map(|one| (one.no, one.pinned))
        .collect();
    for no in outdated(&published, dataset.pointer, dataset.keep) {
        if let Some((one, summary)) = dataset.generations.get_mut(&no) {
            one.state = GenerationState::Expired;
            *summary = None;
        }
    }
}

#[async_trait]
impl PublicationStore for MemoryStore {
    async fn publish(
        &self,
        own: OwnClaim,
        prepared: &Prepared,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError> {
        self.act(Call::Checkpoint, |state| Ok(publish(state, own, prepared, now)))
            .await
    }

    async fn write_keys(
        &self,
        own: OwnClaim,
        no: u32,
        keys: &[(u64, ItemIndex)],
    ) -> Result<CheckpointAck, StoreError> {
        self.act(Call::Checkpoint, |state| {
            if !is_own(state, own) {
                return Ok(CheckpointAck::Fenced);
            }
            let place = (own.shard.task, own.epoch, no);
            state.keys_written.insert(place, keys.to_vec());
            Ok(CheckpointAck::Stored)
        })
        .await
    }

    async fn lend_token(
        &self,
        own: OwnClaim,
        token_hash: &str,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError> {
        self.act(Call::Checkpoint, |state| {
            if !is_own(state, own) {
                return Ok(CheckpointAck::Fenced);
            }
            let Ok(()) = life::change(state, own.shard.task, None, now, |life, _| {
                Ok::<_, Infallible>(vec![life.lend(token_hash.to_owned())])
            });
            Ok(CheckpointAck::Stored)
        })
        .await
    }
}

fn is_own(state: &State, own: OwnClaim) -> bool {
    state.shard(own.shard).is_some_and(|(_, shard)| {
        let is_held = shard.state == ShardState::Running && shard.session.is_some();
        is_held && shard.epoch == own.epoch && shard.claim == Some(own.claim)
    })
}

/// The summary that anybody can work out again from the results.
#[async_trait]
impl Preparer for MemoryStore {
    async fn prepare(&self, task: &TaskView, _: OwnClaim) -> Result<Prepared, PrepareError> {
        let results = self.lock().tasks.get(&task.id).map(|task| {
            let outputs = task.results.values().map(|outputs| outputs.len() as u64);
            outputs.sum::<u64>()
        });
        Ok(Prepared {
            summary: results.map(|results| format!("{{\"results\":{results}}}").into()),
            is_keyed: false,
        })
    }
}

fn publish(state: &mut State, own: OwnClaim, prepared: &Prepared, now: WallMs) -> CheckpointAck {
    let Some((task, shard)) = state.shard(own.shard) else {
        return CheckpointAck::Fenced;
    };
    if shard.epoch != own.epoch || shard.claim != Some(own.claim) {
        return CheckpointAck::Fenced;
    }
    if shard.session.is_none() {
        return CheckpointAck::Stored;
    }
    if shard.state != ShardState::Running {
        return CheckpointAck::Fenced;
    }
    if let Some(publishing) = task.publishing.clone() {
        make_known(state, (own, &publishing), prepared, now);
    }
    progress::release(state, (own.shard, own.epoch, own.claim), &RunClose::Done, now)
}

fn make_known(
    state: &mut State,
    (own, publishing): (OwnClaim, &Publishing),
    prepared: &Prepared,
    now: WallMs,
) {
    let id = own.shard.task;
    let shards = shards(state, id);
    let Some(dataset) = state.datasets.get_mut(&publishing.publish.dataset) else {
        return withhold(state, id, "the dataset was deleted");
    };
    let moved = match dataset.pointer.publish(publishing.generation) {
        Ok(moved) => moved,
        Err(superseded) => return withhold(state, id, &superseded.to_string()),
    };
    let Some((one, summary)) = dataset
        .generations
        .get_mut(&publishing.generation)
        .filter(|(one, _)| one.task == id && one.state == GenerationState::Pending)
    else {
        return;
    };
    one.state = GenerationState::Published;
    one.results = shards.iter().map(|shard| shard.kept).sum();
    one.shards = shards;
    one.key = publishing
        .publish
        .key
        .clone()
        .filter(|_| prepared.is_keyed)
        .map(|key| (key, own.epoch));
    one.publication = Some(moved.publication);
    one.published_at = Some(now);
    summary.clone_from(&prepared.summary);
    let before = shown(&publishing.publish.dataset, dataset);
    (dataset.pointer, dataset.published_at) = (moved, Some(now));
    touch(dataset, now);
    let_go(dataset);
    let after = shown(&publishing.publish.dataset, dataset);
    let change = (Some(before), Some(after));
    state.record(
        Some(id),
        &Actor::windrow(None),
        now,
        "dataset.publish".to_owned(),
        change,
    );
}

fn shards(state: &State, id: TaskId) -> Vec<ResultShard> {
    let of_task = state.tasks.get(&id).into_iter().flat_map(|task| &task.shards);
    let with_items = of_task.filter(|shard| shard.first < shard.range_end);
    let mut shards: Vec<ResultShard> = with_items
        .map(|shard| ResultShard {
            shard: windrow_core::ids::ShardId {
                task: id,
                no: shard.no,
            },
            end: shard.end,
            frontier: shard.end,
            kept: shard.results,
        })
        .collect();
    shards.sort_by_key(|shard| shard.end);
    shards
}

fn shown(name: &str, dataset: &Kept) -> String {
    let Pointer {
        current, publication, ..
    } = dataset.pointer;
    serde_json::json!({
        "dataset": name, "generation": current, "publication": publication, "keep": dataset.keep,
    })
    .to_string()
}

fn view(name: &str, kept: &Kept, sink: Option<SinkView>) -> Dataset {
    Dataset {
        id: kept.id,
        name: name.to_owned(),
        business: kept.business.clone(),
        keep: NonZeroU32::new(kept.keep).unwrap_or(KEEP_DEFAULT),
        pointer: kept.pointer,
        published_at: kept.published_at,
        last: kept.last,
        version: kept.version,
        created_at: kept.created_at,
        updated_at: kept.updated_at,
        sink,
    }
}

#[async_trait]
impl DatasetStore for MemoryStore {
    async fn dataset(&self, name: &str) -> Result<Option<Dataset>, StoreError> {
        self.act(Call::Read, |state| {
            Ok(state
                .datasets
                .get(name)
                .map(|kept| view(name, kept, sinks::view(state, kept.id))))
        })
        .await
    }

    async fn datasets(
        &self,
        business: Option<&str>,
        after: Option<&str>,
        count: u32,
    ) -> Result<Vec<Dataset>, StoreError> {
        self.act(Call::Read, |state| {
            let found = state.datasets.iter().filter(|(name, kept)| {
                let is_own = business.is_none_or(|business| kept.business == business);
                is_own && after.is_none_or(|after| name.as_str() > after)
            });
            Ok(found
                .map(|(name, kept)| view(name, kept, sinks::view(state, kept.id)))
                .take(count as usize)
                .collect())
        })
        .await
    }

    async fn reading(&self, name: &str, which: Which) -> Result<Option<Reading>, StoreError> {
        self.act(Call::Read, |state| {
            let Some(kept) = state.datasets.get(name) else {
                return Ok(None);
            };
            let no = match which {
                Which::Current => kept.pointer.current,
                Which::No(no) => Some(no),
            };
            let found = no.and_then(|no| kept.generations.get(&no));
            Ok(found.map(|(generation, summary)| Reading {
                dataset: view(name, kept, sinks::view(state, kept.id)),
                generation: generation.clone(),
                summary: summary.clone(),
            }))
        })
        .await
    }

    async fn generations(
        &self,
        name: &str,
        below: Option<GenerationNo>,
        count: u32,
    ) -> Result<Vec<Generation>, StoreError> {
        self.act(Call::Read, |state| {
            let of_dataset = state.datasets.get(name).into_iter();
            let all = of_dataset.flat_map(|kept| kept.generations.values().rev());
            let found = all.map(|(one, _)| one).filter(|one| {
                one.state != GenerationState::Expired && below.is_none_or(|below| one.no < below)
            });
            Ok(found.take(count as usize).cloned().collect())
        })
        .await
    }

    async fn key_indexes(
        &self,
        task: TaskId,
        epoch: Epoch,
        hash: u64,
        from: ItemIndex,
        count: u32,
    ) -> Result<Vec<ItemIndex>, StoreError> {
        self.act(Call::Read, |state| {
            let written = state
                .keys_written
                .iter()
                .filter(|((of, by, _), _)| *of == task && *by == epoch);
            let all = written.flat_map(|(_, keys)| keys);
            let mut found: Vec<ItemIndex> = all
                .filter(|(known, index)| *known == hash && *index >= from)
                .map(|(_, index)| *index)
                .collect();
            found.sort_unstable();
            found.truncate(count as usize);
            Ok(found)
        })
        .await
    }

    async fn create_dataset(
        &self,
        new: &NewDataset,
        write: &Write,
        now: WallMs,
    ) -> Result<Dataset, DatasetError> {
        self.act(Call::Command, |state| {
            let mut copy = state.clone();
            let made = created(&mut copy, new, write, now)?;
            if !write.dry_run {
                *state = copy;
            }
            Ok(made)
        })
        .await
    }

    async fn change_dataset(
        &self,
        name: &str,
        expected: Option<u64>,
        change: DatasetChange,
        write: &Write,
        now: WallMs,
    ) -> Result<Dataset, DatasetError> {
        self.act(Call::Command, |state| {
            let mut copy = state.clone();
            let changed = changed(&mut copy, (name, expected), change, write, now)?;
            if !write.dry_run {
                *state = copy;
            }
            Ok(changed)
        })
        .await
    }

    async fn delete_dataset(&self, name: &str, write: &Write, now: WallMs) -> Result<Dataset, DatasetError> {
        self.act(Call::Command, |state| {
            let mut copy = state.clone();
            let gone = deleted(&mut copy, name, write, now)?;
            if !write.dry_run {
                *state = copy;
            }
            Ok(gone)
        })
        .await
    }
}

fn changed(
    state: &mut State,
    (name, expected): (&str, Option<u64>),
    change: DatasetChange,
    write: &Write,
    now: WallMs,
) -> Result<Dataset, DatasetError> {
    let missing = || DatasetError::NotFound(name.to_owned());
    let kept = state.datasets.get_mut(name).ok_or_else(missing)?;
    if let Some(expected) = expected.filter(|expected| *expected != kept.version) {
        let found = kept.version;
        return Err(DatasetError::Changed { expected, found });
    }
    let (id, before) = (kept.id, shown(name, kept));
    let mut is_new = change_kept(name, kept, change, now)?;
    if let DatasetChange::Edit { sink: Some(sink), .. } = change {
        is_new |= sinks::set(state, (id, name), sink);
    }
    let sink = sinks::view(state, id);
    let kept = state.datasets.get_mut(name).ok_or_else(missing)?;
    if !is_new {
        return Ok(view(name, kept, sink));
    }
    touch(kept, now);
    let_go(kept);
    let (after, changed) = (shown(name, kept), view(name, kept, sink));
    let said = (Some(before), Some(after));
    state.record(None, &write.actor, now, change.action().to_owned(), said);
    Ok(changed)
}

/// Says whether anything is different.
fn change_kept(
    name: &str,
    kept: &mut Kept,
    change: DatasetChange,
    now: WallMs,
) -> Result<bool, DatasetError> {
    let is_published = |(one, _): &&mut (Generation, _)| one.state == GenerationState::Published;
    match change {
        DatasetChange::Edit { keep, .. } => {
            let keep = keep.map_or(kept.keep, NonZeroU32::get);
            Ok(std::mem::replace(&mut kept.keep, keep) != keep)
        }
        DatasetChange::Pin(no, on) => {
            let pinned = kept
                .generations
                .values()
                .filter(|(one, _)| one.pinned && one.state == GenerationState::Published);
            let is_full = pinned.count() >= PINNED_MAX as usize;
            let missing = || DatasetError::NoGeneration(name.to_owned(), no);
            let (one, _) = kept
                .generations
                .get_mut(&no)
                .filter(is_published)
                .ok_or_else(missing)?;
            if on && !one.pinned && is_full {
                return Err(DatasetError::TooManyPins(PINNED_MAX));
            }
            Ok(std::mem::replace(&mut one.pinned, on) != on)
        }
        DatasetChange::RollBack(no) => {
            let missing = || DatasetError::NoGeneration(name.to_owned(), no);
            kept.generations
                .get_mut(&no)
                .filter(is_published)
                .ok_or_else(missing)?;
            let is_there = kept.pointer.current == Some(no);
            if !is_there {
                (kept.pointer, kept.published_at) = (kept.pointer.move_to(no), Some(now));
            }
            Ok(!is_there)
        }
    }
}

fn created(state: &mut State, new: &NewDataset, write: &Write, now: WallMs) -> Result<Dataset, DatasetError> {
    let name = new.name.as_str();
    if !state.businesses.contains(&new.business) {
        return Err(DatasetError::NoBusiness(new.business.clone()));
    }
    if state.datasets.contains_key(name) {
        return Err(DatasetError::Taken(name.to_owned()));
    }
    if !make(state, &new.business, name, now) {
        return Err(DatasetError::Full(DATASETS_MAX));
    }
    let kept = state
        .datasets
        .get_mut(name)
        .ok_or(DatasetError::Full(DATASETS_MAX))?;
    kept.keep = new.keep.map_or(kept.keep, NonZeroU32::get);
    touch(kept, now);
    let (id, after, made) = (kept.id, shown(name, kept), kept.clone());
    sinks::set(state, (id, name), new.sink.unwrap_or(Sink::None));
    state.record(
        None,
        &write.actor,
        now,
        "dataset.create".to_owned(),
        (None, Some(after)),
    );
    Ok(view(name, &made, sinks::view(state, id)))
}

fn deleted(state: &mut State, name: &str, write: &Write, now: WallMs) -> Result<Dataset, DatasetError> {
    let missing = || DatasetError::NotFound(name.to_owned());
    let kept = state.datasets.remove(name).ok_or_else(missing)?;
    let mut all = kept.generations.values().map(|(one, _)| one);
    if let Some(pending) = all.clone().find(|one| one.state == GenerationState::Pending) {
        return Err(DatasetError::InUse(pending.task));
    }
    for one in all.by_ref() {
        state.owned.remove(&one.task);
        if let Some(task) = state
            .tasks
            .get_mut(&one.task)
            .filter(|_| one.state != GenerationState::Withheld)
        {
            task.results.clear();
        }
    }
    let before = Some(shown(name, &kept));
    state.record(
        None,
        &write.actor,
        now,
        "dataset.delete".to_owned(),
        (before, None),
    );
    sinks::set(state, (kept.id, name), Sink::None);
    Ok(view(name, &kept, None))
}
