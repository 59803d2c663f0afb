//! What a business hears of its tasks: at most one call of a kind in a start.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Deeds, Life};
use crate::business::{HookKind, Hooks, PREPARE_TIMEOUT_DEFAULT};
use crate::dataset::Publishing;
use crate::ids::WallMs;
use crate::items::counters::Counters;
use crate::task::lifecycle::Status;
use crate::task::spec::JsonText;

/// How long a call that nobody takes is tried.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Beyond what the business was promised, for the way of its answer.
const READY_MARGIN: Duration = Duration::from_secs(5);

/// A business, as one that wants to hear of its tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listener {
    /// Its slug.
    pub business: String,
    /// What it wants to hear.
    pub hooks: Hooks,
}

/// A call to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCall {
    /// Which hook.
    pub kind: HookKind,
    /// The start that it speaks of.
    pub start_no: u32,
    /// The body.
    pub body: Value,
    /// Until when it is tried.
    pub expires_at: WallMs,
}

/// Until when the business may answer a start that it wants to prepare; none when it doesn't want to.
pub(super) fn ready_until(hooks: &Hooks, now: WallMs) -> Option<WallMs> {
    let hook = hooks.get(HookKind::Prepare)?;
    Some(
        now.plus(hook.timeout.unwrap_or(PREPARE_TIMEOUT_DEFAULT))
            .plus(READY_MARGIN),
    )
}

impl Life {
    /// The call that says how a start ended, if the business wants it.
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

    /// The call by which the business is asked to prepare this start; the only place where the token is written.
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

    /// The body of the call by which the business is asked to reduce the results.
    pub fn reduce_body(&self, to: &Listener, publishing: &Publishing, token: &str) -> Value {
        let mut body = self.hook_body(HookKind::Reduce, to);
        body["dataset"] = json!(publishing.publish.dataset);
        body["generation"] = json!(publishing.generation);
        body["token"] = json!(token);
        body["results_path"] = json!(format!("/v1/tasks/{}/results", self.id));
        body["counts"] = self.counts();
        body
    }

    /// Gives the business a token with which it reads the results while they are reduced; that of the start is over, since
    /// nothing is left to be done with it.
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

    /// The sums over its shards; excluded is what lies outside of their ranges.
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
