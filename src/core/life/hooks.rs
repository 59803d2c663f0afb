//! Hook calls to a business about its tasks: at most one call of each kind per start.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Deeds, Life};
use crate::business::{HookKind, Hooks, PREPARE_TIMEOUT_DEFAULT};
use crate::dataset::Publishing;
use crate::ids::WallMs;
use crate::items::counters::Counters;
use crate::task::lifecycle::Status;
use crate::task::spec::JsonText;

/// Time for which an undelivered call is retried.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Time added to the timeout promised to the business, so that its answer can still arrive.
const READY_MARGIN: Duration = Duration::from_secs(5);

/// Business with the hooks it subscribes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listener {
    /// Slug of the business.
    pub business: String,
    /// Hooks that the business subscribes to.
    pub hooks: Hooks,
}

/// Hook call to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCall {
    /// Kind of the hook.
    pub kind: HookKind,
    /// Number of the start that the call is about.
    pub start_no: u32,
    /// JSON body of the call.
    pub body: Value,
    /// Time until which delivery is tried.
    pub expires_at: WallMs,
}

/// Returns the deadline for the business to answer a start, or `None` if it has no `prepare` hook.
pub(super) fn ready_until(hooks: &Hooks, now: WallMs) -> Option<WallMs> {
    let hook = hooks.get(HookKind::Prepare)?;
    Some(
        now.plus(hook.timeout.unwrap_or(PREPARE_TIMEOUT_DEFAULT))
            .plus(READY_MARGIN),
    )
}

impl Life {
    /// Returns the call that reports the end of a start, if the business subscribes to it.
    pub fn announcement(&self, to: &Listener, now: WallMs) -> Option<HookCall> {
        let kind = match self.status {
            Status::Stopped => HookKind::Stopped,
            Status::Finished => HookKind::Finished,
            _ => return None,
        };
        to.hooks.get(kind)?;
        let mut body = self.hook_body(kind, to);
        body["result"] = json!(self.result.map(|result| result.as_str()));
        body["reason"] = json!(self.stop_reason.map(|reason| reason.as_str()));
        body["text"] = json!(self.note.as_ref().map(|note| &note.text));
        body["counts"] = self.counts();
        body["at"] = json!(now.to_rfc3339());
        Some(HookCall {
            kind,
            start_no: self.start_no,
            body,
            expires_at: now.plus(GIVEN_UP_AFTER),
        })
    }

    fn counts(&self) -> Value {
        let counters = self.counters();
        json!({
            "succeeded": counters.succeeded, "skipped": counters.skipped, "failed": counters.failed,
            "parked": counters.parked, "in_flight": counters.in_flight, "excluded": counters.excluded,
            "pending": counters.pending(self.total),
        })
    }

    /// Builds the `prepare` call for this start; the only place where the plain token is written.
    pub(super) fn ask(&self, to: &Listener, token: &str, until: WallMs) -> HookCall {
        let mut body = self.hook_body(HookKind::Prepare, to);
        body["start_token"] = json!(token);
        body["ready_by"] = json!(until.to_rfc3339());
        body["ready_path"] = json!(format!("/v1/tasks/{}/ready", self.id));
        HookCall {
            kind: HookKind::Prepare,
            start_no: self.start_no,
            body,
            expires_at: until,
        }
    }

    /// Returns the body of the call that asks the business to reduce the results.
    pub fn reduce_body(&self, to: &Listener, publishing: &Publishing, token: &str) -> Value {
        let mut body = self.hook_body(HookKind::Reduce, to);
        body["dataset"] = json!(publishing.publish.dataset);
        body["generation"] = json!(publishing.generation);
        body["token"] = json!(token);
        body["results_path"] = json!(format!("/v1/tasks/{}/results", self.id));
        body["counts"] = self.counts();
        body
    }

    /// Gives the business a token to read the results while it reduces them. Replaces the start's token, which is no
    /// longer needed.
    pub fn lend(&mut self, token_hash: String) -> Deeds {
        self.start_token = Some(token_hash);
        Deeds {
            takes_token: true,
            ..Deeds::default()
        }
    }

    fn hook_body(&self, kind: HookKind, to: &Listener) -> Value {
        json!({
            "type": kind.as_str(), "business": to.business, "start": self.start_no,
            "task": {
                "id": self.id.to_string(), "name": self.spec.name, "total": self.total.0,
                "skip_first": self.spec.skip_first, "params": self.spec.params.as_ref().map(JsonText::value),
            },
        })
    }

    /// Returns the sum over all shards; indexes outside of their ranges count as excluded.
    pub fn counters(&self) -> Counters {
        let head = Counters {
            excluded: self.whole().start.0,
            ..Counters::default()
        };
        self.shards.iter().fold(head, |sum, shard| {
            let excluded = shard.range_end.0 - shard.end.0;
            sum.plus(&Counters {
                excluded,
                ..shard.counters
            })
        })
    }
}
