//! Outputs of a job's items, read back.

use std::collections::VecDeque;
use std::fmt;

use serde::de::DeserializeOwned;
use windrow_engine::ports::tasks::results::ItemOutput;
use windrow_server::service::results::Reader;

use crate::Error;

/// Output of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// Number of the item, from 0.
    pub index: u64,
    /// Output as JSON text.
    pub text: Box<str>,
}

impl Output {
    /// Reads the output.
    ///
    /// # Errors
    /// Fails if it has another shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.text)
    }
}

/// Outputs of a job in index order. Holds a few hundred at a time, however many there are.
pub struct Outputs {
    reader: Reader,
    page: VecDeque<ItemOutput>,
}

impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outputs").finish_non_exhaustive()
    }
}

impl Outputs {
    pub(crate) fn of(reader: Reader) -> Outputs {
        Outputs {
            reader,
            page: VecDeque::new(),
        }
    }

    /// Returns the next output; `None` after the last one.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn next(&mut self) -> Result<Option<Output>, Error> {
        if self.page.is_empty() {
            self.page = self.reader.page().await.map_err(Box::new)?.into();
        }
        let next = self.page.pop_front();
        Ok(next.map(|output| Output {
            index: output.index.0,
            text: output.json,
        }))
    }
}
