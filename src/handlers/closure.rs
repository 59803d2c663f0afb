//! Closures as handlers: called for each item of a call, one after the other.

use std::future::Future;

use serde::de::DeserializeOwned;

use super::answer::Answer;
use super::rust::{Batch, Item, ItemCtx, ItemHandler, Results, guarded, read, retry};
use windrow_core::ids::{Attempt, ItemIndex};
use windrow_core::items::verdict::{Failure, Outcome};
use windrow_engine::ports::handling::handler::ItemVerdict;

/// Code of a closure's error.
const ERROR: &str = "ERROR";

/// Error of a closure, whatever its type was.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Creates a handler from a closure that is called for each item of a call, one after the other: `Err` and panics are
/// failed attempts.
pub fn handler_fn<F, Fut, T, E>(work: F) -> impl ItemHandler
where
    F: Fn(OwnedItem) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send,
    T: Into<Answer>,
    E: Into<Cause>,
{
    ClosureHandler(work)
}

/// Item that a closure may keep while it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedItem {
    /// Number of the item in the task, from 0.
    pub index: ItemIndex,
    /// Number of this attempt, from 1.
    pub attempt: Attempt,
    /// Key of the item, the same for every attempt, run and node.
    pub key: String,
    /// Data of the item as JSON text; `None` for a task that is only a count.
    pub data: Option<String>,
}

impl OwnedItem {
    /// Reads the data of the item; `null` for one without data.
    ///
    /// # Errors
    /// Fails if the data has another shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        read(self.data.as_deref())
    }
}

struct ClosureHandler<F>(F);

impl<F, Fut, T, E> ItemHandler for ClosureHandler<F>
where
    F: Fn(OwnedItem) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send,
    T: Into<Answer>,
    E: Into<Cause>,
{
    async fn process(&self, ctx: &ItemCtx<'_>, items: Batch<'_>) -> Results {
        let mut verdicts = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let key = ctx.idempotency_key(item.index);
            let Item { index, attempt, data } = item;
            let owned = OwnedItem {
                index,
                attempt,
                key,
                data: data.map(str::to_owned),
            };
            // A panic is caught here too, so that it costs only its own item.
            let verdict = match guarded(|| (self.0)(owned)).await {
                Ok(Ok(answer)) => ctx.take_in(index, answer.into()),
                Ok(Err(why)) => retry(Failure::new(ERROR, why.into().to_string())),
                Err(failure) => retry(failure),
            };
            // Plain success, the usual case, needs no list.
            if verdict != ItemVerdict::Settled(Outcome::Succeeded) && verdicts.is_empty() {
                verdicts.reserve(items.len());
                verdicts.extend(
                    items
                        .iter()
                        .take(at)
                        .map(|done| (done.index, ItemVerdict::Settled(Outcome::Succeeded))),
                );
            }
            if verdict != ItemVerdict::Settled(Outcome::Succeeded) || !verdicts.is_empty() {
                verdicts.push((index, verdict));
            }
        }
        if verdicts.is_empty() {
            Results::AllOk
        } else {
            Results::Each(verdicts)
        }
    }
}
