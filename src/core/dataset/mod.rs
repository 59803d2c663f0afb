//! Datasets: results of finished tasks, published for readers one generation after another.
//!
//! A task that publishes gets its generation number when it is created; gaps in the numbers are legal. When its items
//! are settled, the node that claims its last shard ([`ShardId::publication`](crate::ids::ShardId::publication))
//! reduces the results and moves the pointer, in one transaction under its claim. Then:
//!
//! - D1: the current generation was published and is still kept.
//! - D2: a publication is accepted only above the highest one ever, so the current generation goes back only by a
//!   manual rollback.
//! - D3: the publication number grows with each move of the pointer, in either direction.
//! - D4: the content of a sink was published, is complete, and its publication number never decreases.

mod key;
mod name;
mod pointer;
mod publish;
mod sink;
mod summary;

use std::fmt;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

pub use key::{key_hash, key_of};
pub use name::{NAME_BYTES_MAX, is_name, is_own_name};
pub use pointer::{Pointer, Superseded, outdated};
pub use publish::{KEY_BYTES_MAX, Publish, PublishIf, PublishIfFault, Publishing, Reduce, ReduceFault};
pub use sink::{Sink, behind_since, sink_key, sink_pointer};
pub use summary::{SummaryFault, summary};

/// Default number of generations that a dataset keeps: the current one, some to roll back to, and one for readers
/// that started before the last move.
pub const KEEP_DEFAULT: NonZeroU32 = NonZeroU32::new(5).expect("it is not zero");
/// Maximum number of generations that a dataset may keep.
pub const KEEP_MAX: u32 = 1_000;
/// Maximum number of pinned generations per dataset: each keeps its results for good.
pub const PINNED_MAX: u32 = 100;
/// Maximum number of datasets per business.
pub const DATASETS_MAX: u64 = 200;
/// Maximum size of a reduce response as minified JSON, in bytes.
pub const SUMMARY_BYTES_MAX: usize = 1 << 20;

/// Number of a generation within its dataset: 1, 2, 3 …, assigned when its task is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GenerationNo(pub u64);

impl fmt::Display for GenerationNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

crate::slugs! {
    /// Publication state of a generation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum GenerationState {
        /// The task has not ended.
        Pending = "pending",
        /// The generation can be read.
        Published = "published",
        /// The task ended and the generation was not published; a reason is kept.
        Withheld = "withheld",
        /// The generation was published and is no longer kept.
        Expired = "expired",
    }
}
