//! Datasets: what the results of finished tasks become for readers, one generation after another.
//!
//! A task that publishes has its generation's number from the day it was made; numbers that never come are legal. When
//! its items are settled, whoever claims its last shard ([`ShardId::publication`](crate::ids::ShardId::publication))
//! reduces the results and moves the pointer, in one transaction under its claim. Then:
//!
//! - D1: the current generation is one that was published and is still kept.
//! - D2: a publication is accepted only above the highest that ever was; so what is current goes back by a person's
//!   rollback alone.
//! - D3: the publication number grows with each move of the pointer, whichever way it goes.
//! - D4: what a sink shows was published, is whole, and its publication number never goes back.

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

/// Generations that a dataset keeps unless people say otherwise: the current one, some to roll back to, and one that
/// readers who began before the last move still read.
pub const KEEP_DEFAULT: NonZeroU32 = NonZeroU32::new(5).expect("it is not zero");
/// The most that it may keep.
pub const KEEP_MAX: u32 = 1_000;
/// Generations of a dataset that may be pinned at a time: each holds its results for good.
pub const PINNED_MAX: u32 = 100;
/// Datasets of one business.
pub const DATASETS_MAX: u64 = 200;
/// The largest answer of a reduce, as minified JSON. Unit: bytes.
pub const SUMMARY_BYTES_MAX: usize = 1 << 20;

/// The number of a generation within its dataset: 1, 2, 3 …, given when its task is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GenerationNo(pub u64);

impl fmt::Display for GenerationNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

crate::slugs! {
    /// Where a generation stands.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum GenerationState {
        /// Its task has not ended.
        Pending = "pending",
        /// It can be read.
        Published = "published",
        /// Its task ended and it was not published; it says why.
        Withheld = "withheld",
        /// It was published and is no longer kept.
        Expired = "expired",
    }
}
