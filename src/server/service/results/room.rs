//! Space used and needed by the results of a task, and the space available.

use super::Results;
use crate::service::ServiceError;
use windrow_core::settings::Results as Keeping;
use windrow_core::settings::text::ByteSize;
use windrow_engine::ports::tasks::store::TaskView;

/// Space used and needed by a task's results. Estimated from a sample of recent results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Size of the results so far, in bytes.
    pub stored: Option<u64>,
    /// Expected size of the remaining results, in bytes.
    pub needed: Option<u64>,
    /// Free space where results are stored, in bytes; `None` if this machine can't tell.
    pub free: Option<u64>,
}

impl Room {
    /// Returns a warning if the free space is too small.
    pub fn shortage(&self) -> Option<String> {
        let (needed, free) = self.needed.zip(self.free)?;
        (needed > free).then(|| {
            format!(
                "the results of the remaining items need about {}, but only {} is free where results are \
                 stored",
                size(needed),
                size(free)
            )
        })
    }
}

/// Advice in case of a shortage.
pub const ADVICE: &str = "free some space there; when it is full the task waits, and nothing is lost";

/// Formats a size in the largest unit that fits.
fn size(bytes: u64) -> String {
    let unit = [1 << 40, 1 << 30, 1 << 20, 1 << 10]
        .into_iter()
        .find(|unit| bytes >= *unit)
        .unwrap_or(1);
    ByteSize(bytes / unit * unit).to_string()
}

impl Results {
    /// Returns the space for a task's results; `None` if it keeps none.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn room(&self, task: &TaskView) -> Result<Option<Room>, ServiceError> {
        if task.tuning.results == Keeping::Off {
            return Ok(None);
        }
        let (sample, free) = self.store.result_room(task.id).await?;
        let shards = self.store.result_shards(task.id).await?;
        let kept = shards.iter().map(|shard| shard.kept).sum();
        let settled = task.counters.settled();
        let left = task.total.0.saturating_sub(settled + task.counters.excluded);
        Ok(Some(Room {
            stored: sample.room_of(kept),
            needed: sample.room_needed(kept, settled, left),
            free,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_told_where_the_room_is_known() {
        let room = |needed, free| Room {
            stored: None,
            needed,
            free,
        };
        let told = room(Some(3 << 30), Some((1 << 30) + 5))
            .shortage()
            .expect("it is short");
        assert!(
            told.contains("about 3 GiB") && told.contains("only 1 GiB is free where"),
            "{told}"
        );
        for enough in [room(Some(5), Some(5)), room(None, Some(0)), room(Some(5), None)] {
            assert_eq!(enough.shortage(), None, "{enough:?}");
        }
    }
}
