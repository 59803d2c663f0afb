//! Datasets: results published by finished tasks, for readers, and changes made by people.

mod plan;
mod watch;

use std::sync::Arc;
use std::time::Duration;

pub(in crate::service) use plan::check as check_plan;

use self::watch::Watches;
use super::{FieldFault, ServiceError};
use crate::service::node::ThisNode;
use crate::service::results::{Keys, Reader};
use windrow_core::dataset::{GenerationNo, GenerationState, Sink, key_hash, key_of, sink_pointer};
use windrow_core::ids::{ItemIndex, ShardId, StoreId};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::datasets::store::{
    Dataset, DatasetChange, DatasetError, DatasetStore, Generation, NewDataset, Reading, Which,
};
use windrow_engine::ports::tasks::results::{ItemOutput, ResultShard, ResultStore};
use windrow_engine::ports::tasks::store::{TaskStore, Write};

/// Service for reading and changing datasets.
pub struct Datasets {
    node: Arc<ThisNode>,
    store: Arc<dyn DatasetStore>,
    results: Arc<dyn ResultStore>,
    tasks: Arc<dyn TaskStore>,
    watches: Watches,
}

impl Datasets {
    pub(super) fn new<S>(node: Arc<ThisNode>, store: &Arc<S>) -> Datasets
    where
        S: DatasetStore + ResultStore + TaskStore + 'static,
    {
        Datasets {
            node,
            store: store.clone(),
            results: store.clone(),
            tasks: store.clone(),
            watches: Watches::new(store.clone()),
        }
    }

    /// Waits until the dataset has a publication newer than `after`, for at most `patience`. The caller must read the
    /// dataset again afterwards. Cancel safe.
    pub async fn newer(&self, known: &Dataset, after: u64, patience: Duration) {
        let publication = known.pointer.publication;
        if publication <= after {
            self.watches
                .wait(&known.name, (known.id, publication), after, patience)
                .await;
        }
    }

    /// Returns the entry keys for readers of Redis; without a prefix if this node has no Redis for readers.
    pub async fn pointers(&self) -> Result<Pointers, ServiceError> {
        let config = self.node.config();
        let prefix = config
            .datasets
            .redis_url
            .as_ref()
            .map(|_| config.datasets.redis_prefix.clone());
        Ok(Pointers {
            prefix,
            store: self.tasks.store_id().await?,
        })
    }

    /// Returns datasets by name; for a business only its own.
    pub async fn list(
        &self,
        business: Option<&str>,
        after: Option<&str>,
        count: u32,
    ) -> Result<Vec<Dataset>, ServiceError> {
        Ok(self.store.datasets(business, after, count).await?)
    }

    /// Returns a dataset by its name.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn get(&self, name: &str) -> Result<Dataset, ServiceError> {
        let found = self.store.dataset(name).await?;
        found.ok_or_else(|| ServiceError::not_found("dataset", name))
    }

    /// Returns a readable generation with its dataset, as of one moment. Generations never change, so later reads of
    /// it are consistent.
    ///
    /// # Errors
    /// `NotFound` if it was never published or is no longer kept.
    pub async fn reading(&self, name: &str, which: Which) -> Result<Reading, ServiceError> {
        let found = self.store.reading(name, which).await?;
        let found = found.filter(|reading| reading.generation.state == GenerationState::Published);
        found.ok_or_else(|| {
            let which = match which {
                Which::Current => "current".to_owned(),
                Which::No(no) => no.to_string(),
            };
            ServiceError::not_found("generation", format!("{which} of {name}"))
        })
    }

    /// Returns a generation in any state, with its dataset.
    ///
    /// # Errors
    /// `NotFound` if there is no such number, or if it is no longer kept.
    pub async fn generation(&self, name: &str, no: GenerationNo) -> Result<Reading, ServiceError> {
        let found = self.store.reading(name, Which::No(no)).await?;
        let found = found.filter(|reading| reading.generation.state != GenerationState::Expired);
        found.ok_or_else(|| ServiceError::not_found("generation", format!("{no} of {name}")))
    }

    /// Returns the generations of a dataset, newest first.
    pub async fn generations(
        &self,
        name: &str,
        below: Option<GenerationNo>,
        count: u32,
    ) -> Result<Vec<Generation>, ServiceError> {
        Ok(self.store.generations(name, below, count).await?)
    }

    /// Creates a reader for the results of a generation, starting at an index.
    pub fn results(&self, reading: &Reading, from: ItemIndex) -> Results {
        let shards = reading.generation.shards.clone();
        Results {
            reader: Reader::new(self.results.clone(), shards.into(), from),
            store: self.store.clone(),
            name: reading.dataset.name.clone(),
            dataset: reading.dataset.id,
            no: reading.generation.no,
        }
    }

    /// Returns the key builder for a generation's items.
    pub async fn keys(&self, reading: &Reading) -> Result<Keys, ServiceError> {
        Ok(Keys {
            store: self.tasks.store_id().await?,
            task: reading.generation.task,
        })
    }

    /// Returns the output of one item as JSON text.
    pub async fn output(
        &self,
        generation: &Generation,
        index: ItemIndex,
    ) -> Result<Option<Box<str>>, ServiceError> {
        match shard_of(&generation.shards, index) {
            Some(shard) => Ok(self.results.output(shard, index).await?),
            None => Ok(None),
        }
    }

    /// Returns up to `count` items of a generation that have this key, in ascending order from an index.
    ///
    /// # Errors
    /// `Conflict` if the generation has no keys.
    pub async fn with_key(
        &self,
        generation: &Generation,
        key: &str,
        from: ItemIndex,
        count: u32,
    ) -> Result<Vec<ItemOutput>, ServiceError> {
        let Some((member, epoch)) = &generation.key else {
            let detail = format!("generation {} has no keys to look up", generation.no);
            return Err(ServiceError::conflict(
                detail,
                "set `publish_key` of its task to the member with the key",
            ));
        };
        let (mut found, mut from) = (Vec::new(), from);
        loop {
            let hash = key_hash(key);
            let indexes = self
                .store
                .key_indexes(generation.task, *epoch, hash, from, count)
                .await?;
            let is_last = indexes.len() < count as usize;
            for index in indexes {
                from = index.plus(1);
                let Some(json) = self.output(generation, index).await? else {
                    continue;
                };
                // Compare the key itself, since hashes may collide.
                if key_of(&json, member).as_deref() == Some(key) {
                    found.push(ItemOutput { index, json });
                }
                if found.len() == count as usize {
                    return Ok(found);
                }
            }
            if is_last {
                return Ok(found);
            }
        }
    }

    /// Creates a dataset, which a task can also do by publishing to it.
    ///
    /// # Errors
    /// `NameTaken`, `Conflict`; `Unprocessable` for an invalid name, an unknown business, or a sink that isn't
    /// configured on this node.
    pub async fn create(&self, new: &NewDataset, write: &Write) -> Result<Dataset, ServiceError> {
        let fault = plan::name_fault("/name", &new.name, &new.business, write);
        ServiceError::refuse(fault.into_iter().collect())?;
        self.check_sink(new.sink)?;
        let made = self.store.create_dataset(new, write, self.node.now()).await?;
        if !write.dry_run {
            tracing::info!(dataset = new.name, by = write.actor.name, "dataset created");
        }
        Ok(made)
    }

    fn check_sink(&self, sink: Option<Sink>) -> Result<(), ServiceError> {
        if sink != Some(Sink::Redis) || self.node.config().datasets.redis_url.is_some() {
            return Ok(());
        }
        let fault = FieldFault::new("/sink", "no Redis for readers is configured on this node");
        Err(fault.advise("set datasets.redis_url in its config.toml").into())
    }

    /// Changes a dataset; with `expected`, only at that version.
    ///
    /// # Errors
    /// `NotFound`, `EtagMismatch`, `Conflict`; `Unprocessable` for a sink that isn't configured on this node.
    pub async fn change(
        &self,
        name: &str,
        expected: Option<u64>,
        change: DatasetChange,
        write: &Write,
    ) -> Result<Dataset, ServiceError> {
        if let DatasetChange::Edit { sink, .. } = change {
            self.check_sink(sink)?;
        }
        let now = self.node.now();
        let changed = self
            .store
            .change_dataset(name, expected, change, write, now)
            .await?;
        if !write.dry_run {
            let by = &write.actor.name;
            tracing::info!(dataset = name, action = change.action(), by, "dataset changed");
        }
        Ok(changed)
    }

    /// Deletes a dataset with all its generations.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` while a task is set to publish to it.
    pub async fn delete(&self, name: &str, write: &Write) -> Result<Dataset, ServiceError> {
        let gone = self.store.delete_dataset(name, write, self.node.now()).await?;
        if !write.dry_run {
            tracing::info!(dataset = name, by = write.actor.name, "dataset deleted");
        }
        Ok(gone)
    }
}

/// Returns the shard whose range contains an index. Ranges are in index order without gaps.
fn shard_of(shards: &[ResultShard], index: ItemIndex) -> Option<ShardId> {
    let at = shards.partition_point(|shard| shard.end <= index);
    shards.get(at).map(|shard| shard.shard)
}

/// Entry keys of datasets for readers of Redis.
#[derive(Clone, Debug)]
pub struct Pointers {
    prefix: Option<String>,
    store: StoreId,
}

impl Pointers {
    /// Returns the entry key of a dataset.
    pub fn of(&self, dataset: &str) -> Option<String> {
        let prefix = self.prefix.as_deref()?;
        Some(sink_pointer(prefix, &self.store, dataset))
    }
}

/// Paged reader for the results of one generation.
pub struct Results {
    reader: Reader,
    store: Arc<dyn DatasetStore>,
    name: String,
    dataset: i64,
    no: GenerationNo,
}

impl Results {
    /// Returns the next outputs in index order; empty at the end.
    ///
    /// # Errors
    /// If the store can't be read, or if the generation was removed during the read, so that the results are
    /// incomplete.
    pub async fn page(&mut self) -> Result<Vec<ItemOutput>, ServiceError> {
        let page = self.reader.page().await?;
        if page.is_empty() && !self.is_kept().await? {
            let detail = format!(
                "generation {} of {} was removed during the read",
                self.no, self.name
            );
            return Err(ServiceError::conflict(
                detail,
                "read the current one, or pin the one you read",
            ));
        }
        Ok(page)
    }

    /// Returns true if the generation is still published, because no part of a published generation is removed.
    async fn is_kept(&self) -> Result<bool, StoreError> {
        let found = self.store.reading(&self.name, Which::No(self.no)).await?;
        Ok(found.is_some_and(|reading| {
            reading.dataset.id == self.dataset && reading.generation.state == GenerationState::Published
        }))
    }
}

impl From<DatasetError> for ServiceError {
    fn from(error: DatasetError) -> ServiceError {
        let text = error.to_string();
        match error {
            DatasetError::NotFound(name) => ServiceError::not_found("dataset", name),
            DatasetError::NoBusiness(slug) => FieldFault::new("/business", text)
                .missing(format!("/v1/businesses/{slug}"))
                .into(),
            DatasetError::Taken(_) => ServiceError::NameTaken(text),
            DatasetError::Full(_) => {
                ServiceError::conflict(text, "`windrow dataset delete` one that is no longer needed")
            }
            DatasetError::NoGeneration(name, no) => {
                ServiceError::not_found("generation", format!("{no} of {name}"))
            }
            DatasetError::Changed { .. } => ServiceError::EtagMismatch(text),
            DatasetError::TooManyPins(_) => {
                ServiceError::conflict(text, "`windrow dataset unpin` one that is no longer needed")
            }
            DatasetError::InUse(task) => {
                ServiceError::conflict(text, format!("cancel {task}, or wait until it ends"))
            }
            DatasetError::Store(error) => error.into(),
        }
    }
}
