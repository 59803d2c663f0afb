//! Copies of datasets: one map, changed under the one lock.

use async_trait::async_trait;

use super::schedules::now;
use super::state::{Dataset, State, StoredSink};
use super::{Call, MemoryStore};
use windrow_core::dataset::{Sink, behind_since};
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::datasets::sink::{Copied, SINK_LEASE, SinkAgenda, SinkEnd, SinkJob, SinkStore};
use windrow_engine::ports::datasets::store::{CopiedView, SinkView};

/// Has a dataset copied or no longer copied; says whether that is new.
pub(super) fn set(state: &mut State, (id, name): (i64, &str), sink: Sink) -> bool {
    let wanted = sink != Sink::None;
    let known = state.sinks.get(&id);
    if known.is_some_and(|known| known.is_on) == wanted {
        return false;
    }
    let stored = StoredSink {
        name: name.to_owned(),
        is_on: wanted,
        is_clean: false,
        view: SinkView {
            copied: None,
            since: now(),
            fault: None,
        },
        epoch: known.map_or(0, |known| known.epoch) + 1,
        lease_until: WallMs(0),
        due_at: WallMs(0),
        attempts: 0,
    };
    state.sinks.insert(id, stored);
    true
}

/// What readers find of a dataset.
pub(super) fn view(state: &State, id: i64) -> Option<SinkView> {
    let known = state.sinks.get(&id).filter(|known| known.is_on);
    known.map(|known| known.view.clone())
}

fn dataset(state: &State, id: i64) -> Option<&Dataset> {
    state.datasets.values().find(|dataset| dataset.id == id)
}

fn behind(state: &State, id: i64, sink: &StoredSink) -> Option<WallMs> {
    let of = dataset(state, id)?;
    let copied = sink.view.copied.map(|copied| copied.publication);
    behind_since(of.pointer, of.published_at, (copied, sink.view.since)).filter(|_| sink.is_on)
}

fn take(state: &mut State, limit: u32) -> SinkAgenda {
    let (now, mut agenda) = (now(), SinkAgenda::default());
    let ids: Vec<i64> = state.sinks.keys().copied().collect();
    for id in ids {
        let sink = &state.sinks[&id];
        let since = behind(state, id, sink);
        if let Some(since) = since {
            (agenda.behind, agenda.lag) = (agenda.behind + 1, agenda.lag.max(now.since(since)));
        }
        let is_wanted = since.is_some() || (!sink.is_on && !sink.is_clean);
        let is_loose = sink.lease_until <= now && sink.due_at <= now;
        if is_wanted && is_loose && agenda.jobs.len() < limit as usize {
            let taken = state.sinks.get_mut(&id).map(|sink| {
                (sink.epoch, sink.lease_until) = (sink.epoch + 1, now.plus(SINK_LEASE));
                SinkJob {
                    dataset: id,
                    name: sink.name.clone(),
                    epoch: sink.epoch,
                    removes: !sink.is_on,
                    attempts: sink.attempts,
                }
            });
            agenda.jobs.extend(taken);
        }
    }
    agenda
}

fn end(state: &mut State, job: &SinkJob, end: &SinkEnd) -> bool {
    let is_known = dataset(state, job.dataset).is_some();
    let Some(sink) = own(state, job) else { return false };
    sink.lease_until = WallMs(0);
    match end {
        SinkEnd::Failed { text, again } => {
            (sink.attempts, sink.due_at) = (sink.attempts + 1, now().plus(*again));
            sink.view.fault = Some(text.clone());
            return true;
        }
        SinkEnd::Removed => sink.is_clean = true,
        SinkEnd::Copied {
            publication,
            generation,
        } => {
            sink.view.copied = Some(CopiedView {
                publication: *publication,
                generation: *generation,
                at: now(),
            });
        }
    }
    (sink.attempts, sink.due_at, sink.view.fault) = (0, WallMs(0), None);
    if sink.is_clean && !is_known {
        state.sinks.remove(&job.dataset);
    }
    true
}

fn own<'a>(state: &'a mut State, job: &SinkJob) -> Option<&'a mut StoredSink> {
    let found = state.sinks.get_mut(&job.dataset);
    found.filter(|sink| sink.epoch == job.epoch)
}

#[async_trait]
impl SinkStore for MemoryStore {
    async fn take_sinks(&self, limit: u32) -> Result<SinkAgenda, StoreError> {
        self.act(Call::Command, |state| Ok(take(state, limit))).await
    }

    async fn keep_sink(&self, job: &SinkJob) -> Result<bool, StoreError> {
        self.act(Call::Command, |state| {
            let kept = own(state, job).map(|sink| sink.lease_until = now().plus(SINK_LEASE));
            Ok(kept.is_some())
        })
        .await
    }

    async fn end_sink(&self, job: &SinkJob, said: &SinkEnd) -> Result<bool, StoreError> {
        self.act(Call::Command, |state| Ok(end(state, job, said))).await
    }

    async fn sinks_copied(&self, after: Option<i64>, limit: u32) -> Result<Vec<Copied>, StoreError> {
        self.act(Call::Read, |state| {
            let all = state.sinks.iter().filter(|(id, sink)| {
                let is_after = after.is_none_or(|after| **id > after);
                sink.is_on && is_after && behind(state, **id, sink).is_none()
            });
            let copied = all.filter_map(|(id, sink)| {
                Some(Copied {
                    dataset: *id,
                    name: sink.name.clone(),
                    publication: sink.view.copied?.publication,
                })
            });
            Ok(copied.take(limit as usize).collect())
        })
        .await
    }

    async fn lose_sink(&self, lost: &Copied) -> Result<(), StoreError> {
        self.act(Call::Command, |state| {
            let found = state.sinks.get_mut(&lost.dataset);
            let publication = |sink: &StoredSink| sink.view.copied.map(|copied| copied.publication);
            if let Some(sink) = found.filter(|sink| publication(sink) == Some(lost.publication)) {
                (sink.view.copied, sink.view.since) = (None, now());
            }
            Ok(())
        })
        .await
    }
}
