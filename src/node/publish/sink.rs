//! Copy of the current generation in the readers' Redis, exactly as stored, written in batches.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::runtime::Handle;

use crate::Store;
use windrow_config::Datasets;
use windrow_core::dataset::{GenerationState, key_of};
use windrow_core::ids::{ItemIndex, StoreId};
use windrow_engine::actors::runtime::context::SinkParts;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::datasets::sink::{Copied, SinkCopier, SinkEnd, SinkError, SinkJob};
use windrow_engine::ports::datasets::store::{DatasetStore, Reading, Which};
use windrow_engine::ports::tasks::results::ItemOutput;
use windrow_server::service::results::Reader;
use windrow_store::redis::{Begun, CopyPlace, Finished, RedisOptions, RedisSink};

/// Maximum results per call. Redis is single-threaded and handles this many within about a millisecond.
const ITEMS_AT_ONCE: usize = 500;
/// Maximum bytes per call. One output has at most 64 KiB.
const BYTES_AT_ONCE: usize = 256 << 10;

/// Returns the parts needed for copying, or `None` if no readers' Redis is configured.
///
/// # Errors
/// `Refused` if its URL can't be read.
pub(crate) fn parts(
    config: &Datasets,
    (store, id): (&Arc<Store>, StoreId),
    clock: &Arc<dyn Clock>,
    runtime: &Handle,
) -> Result<Option<SinkParts>, StoreError> {
    let options = RedisOptions::of_readers(config, id)?;
    Ok(options.map(|options| SinkParts {
        store: store.clone(),
        copier: Arc::new(Copier {
            store: store.clone(),
            redis: RedisSink::new(options, config.redis_grace, clock.clone(), runtime),
        }),
    }))
}

/// Copies the current generation to the readers' Redis.
struct Copier {
    store: Arc<Store>,
    redis: RedisSink,
}

#[async_trait]
impl SinkCopier for Copier {
    async fn follow(&self, job: &SinkJob) -> Result<SinkEnd, SinkError> {
        if job.removes {
            self.redis.remove(job).await?;
            return Ok(SinkEnd::Removed);
        }
        let reading = self.store.reading(&job.name, Which::Current).await?;
        let reading = reading.filter(|reading| {
            reading.dataset.id == job.dataset && reading.generation.state == GenerationState::Published
        });
        let reading =
            reading.ok_or_else(|| SinkError::Failed("no generation is current any more".to_owned()))?;
        let place = CopyPlace {
            job: job.clone(),
            publication: reading.dataset.pointer.publication,
            generation: reading.generation.no,
        };
        if let Begun::Copy { copy, from } = self.redis.begin(&place).await? {
            self.fill((job, &copy), &reading, from).await?;
            let finished = Finished {
                results: reading.generation.results,
                is_keyed: reading.generation.key.is_some(),
                summary: reading.summary.as_deref(),
            };
            self.redis.flip(&place, &copy, &finished).await?;
        }
        Ok(SinkEnd::Copied {
            publication: place.publication,
            generation: place.generation,
        })
    }

    async fn is_there(&self, copied: &Copied) -> Result<bool, SinkError> {
        self.redis.is_there(copied).await
    }
}

impl Copier {
    /// Copies the results of a generation, starting at an index.
    async fn fill(&self, own: (&SinkJob, &str), reading: &Reading, from: ItemIndex) -> Result<(), SinkError> {
        let (generation, mut at) = (&reading.generation, from);
        let mut reader = Reader::new(self.store.clone(), generation.shards.clone().into(), from);
        let member = generation.key.as_ref().map(|(member, _)| member.as_str());
        loop {
            let page = reader.page().await;
            let page = page.map_err(|why| SinkError::Failed(why.to_string()))?;
            if page.is_empty() {
                return Ok(());
            }
            for outputs in portions(page, member) {
                let Some((last, _)) = outputs.last() else { continue };
                let to = last.index.plus(1);
                self.redis.append(own, (at, to), &outputs).await?;
                at = to;
            }
        }
    }
}

/// Splits outputs, with their keys, into batches that fit one call.
fn portions(page: Vec<ItemOutput>, member: Option<&str>) -> Vec<Vec<(ItemOutput, Option<String>)>> {
    let mut portions: Vec<Vec<(ItemOutput, Option<String>)>> = Vec::new();
    let mut bytes = usize::MAX;
    for output in page {
        let is_full = portions.last().is_none_or(|last| last.len() >= ITEMS_AT_ONCE);
        if is_full || bytes.saturating_add(output.json.len()) > BYTES_AT_ONCE {
            portions.push(Vec::new());
            bytes = 0;
        }
        bytes += output.json.len();
        let key = member.and_then(|member| key_of(&output.json, member));
        if let Some(last) = portions.last_mut() {
            last.push((output, key));
        }
    }
    portions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_is_bounded_by_number_and_by_bytes() {
        let outputs = |count: u64, bytes: usize| {
            let json = format!("\"{}\"", "x".repeat(bytes)).into_boxed_str();
            let output = |index| ItemOutput {
                index: ItemIndex(index),
                json: json.clone(),
            };
            (0..count).map(output).collect::<Vec<_>>()
        };
        let sizes = |page| portions(page, None).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(outputs(1_001, 3)), [500, 500, 1]);
        assert_eq!(sizes(outputs(5, 100 << 10)), [2, 2, 1]);
        assert_eq!(sizes(outputs(0, 3)), [0_usize; 0]);
    }
}
