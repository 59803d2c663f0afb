//! Test call of a business without a task: with data entered by a person, in mode `preview`.
//!
//! - It is sent like a call of a run: signed, through the same proxies, with the same address rules.
//! - It doesn't count towards a task, a limit or the handler's circuit breaker. The audit log records it before it is
//!   sent.
//! - Each caller can run one at a time per node, so that nobody drives a business by hand.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::Businesses;
use crate::service::tasks::preview::{MARGIN, PreviewedItem, READY_WITHIN, dispatches, not_provided, read};
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::{Epoch, INDEX_MAX, ItemIndex, RunNo, ShardId, StoreId, TaskId};
use windrow_core::items::output::Output;
use windrow_core::items::trace::Sampling;
use windrow_core::items::verdict::{Failure, FailureClass};
use windrow_engine::ports::access::audit_object::{AuditObject, ObjectKind};
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::access::node_audit::{NodeAudit, NodeChange};
use windrow_engine::ports::handling::handler::{
    Call, CallRows, Handler, ItemVerdict, LogLine, Mode, Reply, RunContext,
};
use windrow_engine::ports::ownership::gate::Gate;
use windrow_engine::ports::sources::provision::BusinessHandlers;
use windrow_engine::ports::sources::source::RowChunk;
use windrow_engine::ports::tasks::store::Write;

/// Largest item data of a test call, in bytes of JSON: as much as a person types or pastes.
pub const DATA_MAX: usize = 64 << 10;
/// Longest timeout of a test call, because a person waits for it.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Parameters of a test call.
#[derive(Debug)]
pub struct Wanted {
    /// Index of the item.
    pub index: ItemIndex,
    /// Data of the item as JSON; `None` for an item of a range, which has no data.
    pub data: Option<Box<RawValue>>,
    /// Timeout of the call; `None` for the usual timeout of the business's tasks.
    pub timeout: Option<Duration>,
}

/// Outcome of a test call.
#[derive(Debug)]
pub struct Tried {
    /// Idempotency key sent to the handler.
    pub item_key: String,
    /// Verdict on the item.
    pub item: PreviewedItem,
    /// Output of the item as JSON text.
    pub output: Option<Output>,
    /// Log lines returned by the handler.
    pub logs: Vec<LogLine>,
}

/// Service that makes test calls.
pub struct Tries {
    businesses: Arc<Businesses>,
    handlers: Arc<dyn BusinessHandlers>,
    audit: Arc<dyn NodeAudit>,
    /// Callers with a test call in progress.
    busy: Arc<Mutex<HashSet<String>>>,
}

impl Tries {
    pub(in crate::service) fn new(
        businesses: Arc<Businesses>,
        handlers: Arc<dyn BusinessHandlers>,
        audit: Arc<dyn NodeAudit>,
    ) -> Tries {
        Tries {
            businesses,
            handlers,
            audit,
            busy: Arc::default(),
        }
    }

    /// Makes a test call on behalf of `caller`.
    ///
    /// # Errors
    /// `NotFound`; `Unprocessable` for invalid parameters or a handler that can't be called at all; `Conflict` while
    /// the caller has another test call in progress; `StoreUnavailable` if the audit log can't be written, in which
    /// case no call is made.
    pub async fn once(
        &self,
        slug: &str,
        wanted: &Wanted,
        caller: &str,
        write: &Write,
    ) -> Result<Tried, ServiceError> {
        refuse_faults(wanted)?;
        let business = self.businesses.get(slug).await?;
        let _turn = Turn::take(&self.busy, caller)?;
        let factory = self.handlers.handler_of(&business).map_err(not_provided)?;
        let context = Arc::new(context(&business));
        let unusable = |text: String| ServiceError::unprocessable("/business", text);
        let item_key = context.item_key(wanted.index);
        let handler = factory.open(context).map_err(|why| unusable(why.to_string()))?;
        self.note(slug, wanted, write).await?;
        let limit = wanted.timeout.unwrap_or_else(|| self.usual_timeout(&business));
        let (reply, took) = self.call(&*handler, wanted, limit).await;
        handler.close().await;
        Ok(told(item_key, wanted.index, reply, took))
    }

    async fn note(&self, slug: &str, wanted: &Wanted, write: &Write) -> Result<(), ServiceError> {
        let bytes = wanted.data.as_ref().map(|data| data.get().len());
        let change = NodeChange {
            action: "handler.try",
            object: AuditObject::new(ObjectKind::Business, slug),
            business: Some(slug.to_owned()),
            before: None,
            // The data may be personal, so the audit log records only its size.
            after: json!({"index": wanted.index.0, "data_bytes": bytes}).to_string(),
        };
        Ok(self
            .audit
            .note(&change, write, self.businesses.node.now())
            .await?)
    }

    fn usual_timeout(&self, business: &Business) -> Duration {
        let usual = &self.businesses.node.config().task_defaults.tuning;
        business.spec.defaults.apply(usual).timeout.min(TIMEOUT_MAX)
    }

    async fn call(&self, handler: &dyn Handler, wanted: &Wanted, limit: Duration) -> (Reply, Duration) {
        let mut slots = handler.slots();
        // If no slot becomes free, call anyway: the handler's reply gives the reason.
        timeout(READY_WITHIN, slots.wait_for(|slots| *slots != Some(0)))
            .await
            .ok();
        let clock = &self.businesses.node.clock;
        let begun = clock.now();
        let call = Call {
            items: dispatches(&[wanted.index]),
            rows: rows(wanted),
            gate_time: begun,
            timeout: limit,
        };
        let reply = timeout(limit + MARGIN, handler.process(call)).await;
        let late = || Failure::new("TIMEOUT", "no response in time");
        let reply = reply.unwrap_or_else(|_| Reply::failed(FailureClass::Unclear, late()));
        (reply, clock.now().since(begun))
    }
}

/// Permit for a caller's test call, released on drop.
struct Turn {
    busy: Arc<Mutex<HashSet<String>>>,
    caller: String,
}

impl Turn {
    fn take(busy: &Arc<Mutex<HashSet<String>>>, caller: &str) -> Result<Turn, ServiceError> {
        let is_free = busy
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(caller.to_owned());
        if !is_free {
            return Err(ServiceError::conflict(
                "another test call of yours is in progress",
                "wait until it ends, at most a minute",
            ));
        }
        Ok(Turn {
            busy: busy.clone(),
            caller: caller.to_owned(),
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.remove(&self.caller);
    }
}

fn refuse_faults(wanted: &Wanted) -> Result<(), ServiceError> {
    let mut faults = Vec::new();
    if wanted.index.0 >= INDEX_MAX {
        let text = format!("must be at most {}", INDEX_MAX - 1);
        faults.push(FieldFault::new("/index", text));
    }
    let bytes = wanted.data.as_ref().map_or(0, |data| data.get().len());
    if bytes > DATA_MAX {
        let text = format!("{bytes} bytes; a test call may have {DATA_MAX}");
        faults.push(FieldFault::new("/data", text).advise("create a task instead: POST /v1/tasks"));
    }
    if wanted
        .timeout
        .is_some_and(|limit| limit.is_zero() || limit > TIMEOUT_MAX)
    {
        let text = format!("must be more than 0s and at most {}s", TIMEOUT_MAX.as_secs());
        faults.push(FieldFault::new("/timeout", text).advise("10s"));
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(ServiceError::Unprocessable(faults)),
    }
}

/// Builds the context of a run that doesn't exist, for the handler.
fn context(business: &Business) -> RunContext {
    RunContext {
        shard: ShardId {
            task: TaskId(0),
            no: 0,
        },
        task_name: None,
        task_revision: 0,
        business: business.slug.clone(),
        params: None,
        run: RunNo(0),
        epoch: Epoch(0),
        // No real store has this id, so the key differs from every item key of a task.
        store: StoreId("try".to_owned()),
        keys_of: None,
        is_proven: false,
        keeps_results: true,
        mode: Mode::Preview,
        sampling: Sampling::default(),
        metering: Arc::default(),
        gate: Arc::new(Gate::always_open()),
    }
}

fn rows(wanted: &Wanted) -> CallRows {
    let mut rows = CallRows::default();
    if let Some(data) = &wanted.data {
        let text = data.get();
        // Never overflows, as the data has at most `DATA_MAX` bytes.
        let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let bytes = Bytes::from(text.to_owned());
        rows.chunks
            .push(Arc::new(RowChunk::new(wanted.index, bytes, vec![end])));
    }
    rows
}

fn told(item_key: String, index: ItemIndex, reply: Reply, took: Duration) -> Tried {
    let reply = reply.plain();
    let (mut output, mut logs) = (None, Vec::new());
    if let Reply::Items(replies) = &reply {
        logs.clone_from(&replies.logs);
        output = replies.verdicts.iter().find_map(|(_, verdict)| match verdict {
            ItemVerdict::SucceededWith(output) => Some(output.clone()),
            ItemVerdict::Settled(_) | ItemVerdict::Unclear(_) | ItemVerdict::Failed { .. } => None,
        });
    }
    let missing = || PreviewedItem {
        index,
        result: "broken",
        failure: Some(Failure::new("BAD_REPLY", "the response doesn't mention the item")),
        took,
    };
    Tried {
        item_key,
        item: read(&[index], reply, took)
            .into_iter()
            .next()
            .unwrap_or_else(missing),
        output,
        logs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(data: &str, timeout: Option<Duration>) -> Wanted {
        Wanted {
            index: ItemIndex(7),
            data: RawValue::from_string(data.to_owned()).ok(),
            timeout,
        }
    }

    #[test]
    fn what_is_too_much_is_refused_before_anybody_is_called() {
        let long = format!("\"{}\"", "x".repeat(DATA_MAX));
        assert!(refuse_faults(&wanted(&long, None)).is_err());
        for wrong in [Duration::ZERO, TIMEOUT_MAX + Duration::from_millis(1)] {
            assert!(refuse_faults(&wanted("1", Some(wrong))).is_err(), "{wrong:?}");
        }
        let no_item = Wanted {
            index: ItemIndex(u64::MAX),
            ..wanted("1", None)
        };
        assert!(refuse_faults(&no_item).is_err());
        assert_eq!(refuse_faults(&wanted("1", Some(TIMEOUT_MAX))), Ok(()));
    }

    #[test]
    fn a_caller_has_one_turn_at_a_time_and_another_caller_has_their_own() {
        let busy = Arc::default();
        let first = Turn::take(&busy, "token 1").expect("nobody has it");
        assert!(Turn::take(&busy, "token 1").is_err());
        assert!(Turn::take(&busy, "token 2").is_ok());
        drop(first);
        assert!(Turn::take(&busy, "token 1").is_ok());
    }

    #[test]
    fn data_goes_to_its_item_as_it_was_typed() {
        let rows = rows(&wanted("{\"n\":1.50}", None));
        assert_eq!(rows.data(ItemIndex(7)), Some("{\"n\":1.50}"));
    }
}
