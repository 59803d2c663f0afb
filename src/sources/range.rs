//! Items that are only numbers.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use windrow_core::ids::{ItemCount, ItemIndex};
use windrow_engine::ports::sources::source::{RowChunk, Source, SourceError};

/// A number of items without data.
#[derive(Clone, Copy, Debug)]
pub struct RangeSource {
    total: ItemCount,
}

impl RangeSource {
    /// Creates a source of `total` items.
    pub fn new(total: ItemCount) -> RangeSource {
        RangeSource { total }
    }
}

impl Source for RangeSource {
    fn total(&self) -> ItemCount {
        self.total
    }

    fn has_data(&self) -> bool {
        false
    }

    fn read(&self, at: ItemIndex) -> BoxFuture<'_, Result<Arc<RowChunk>, SourceError>> {
        Box::pin(async move {
            Err(SourceError::BadRow(format!(
                "item {} of a range has no data",
                at.0
            )))
        })
    }
}
