//! Headers and body of a call. Whatever is the same for all calls of a run is built once.

mod stamp;

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Uri};
use serde::Serialize;
use serde_json::value::RawValue;

use self::stamp::{Ids, Precision, stamp};
use super::HttpOptions;
use super::client::GatedBody;
use super::direct::host_header;
use super::options::Checked;
use crate::sign::KeyRing;
use windrow_core::ids::{Attempt, ItemIndex};
use windrow_core::items::trace::Traces;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{Call, CallItems, RunContext};

/// Version of the protocol (`docs/handlers.md`).
const PROTOCOL: &str = "1";

/// Text before an item's key.
const KEY_MEMBER: &str = r#","key":""#;

const ATTEMPT: HeaderName = HeaderName::from_static("windrow-attempt");
const GATE_TIME: HeaderName = HeaderName::from_static("windrow-gate-time");
const DEADLINE: HeaderName = HeaderName::from_static("windrow-deadline");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Headers that only a call with one item has.
const OF_ONE_ITEM: [HeaderName; 2] = [ATTEMPT, IDEMPOTENCY_KEY];
/// Headers that get a new value in each call.
const VARYING: [HeaderName; 5] = [GATE_TIME, DEADLINE, WEBHOOK_ID, WEBHOOK_TIMESTAMP, TRACEPARENT];

/// Builder of the requests of one run.
pub(super) struct Requests {
    uri: Uri,
    method: Method,
    /// Headers of a callback, with a placeholder for each that varies, since a map that grows is copied.
    headers: HeaderMap,
    /// Body up to the first item's `{`.
    single_head: Vec<u8>,
    batch_head: Vec<u8>,
    /// `,"key":"k7f3q2-t1042-`: text between an item's attempt and the index in its key.
    key_head: Vec<u8>,
    is_batched: bool,
    signer: Arc<KeyRing>,
    ids: Ids,
    traces: Traces,
    context: Arc<RunContext>,
    clock: Arc<dyn Clock>,
}

impl Requests {
    pub(super) fn new(
        checked: Checked,
        options: &HttpOptions,
        context: Arc<RunContext>,
        clock: Arc<dyn Clock>,
    ) -> Requests {
        let mut headers = constant_headers(checked.headers, &context, &options.node);
        if let (false, Some(host)) = (checked.is_https, checked.uri.authority()) {
            headers.insert(HOST, host_header(&checked.uri, host));
        }
        add_places(&mut headers, &VARYING);
        if options.batch <= 1 {
            add_places(&mut headers, &OF_ONE_ITEM);
        }
        Requests {
            headers,
            uri: checked.uri,
            method: checked.method,
            single_head: head(&context, "item.process", "item\":"),
            batch_head: head(&context, "items.process", "items\":["),
            key_head: format!("{KEY_MEMBER}{}-{}-", context.store.0, context.key_task()).into_bytes(),
            is_batched: options.batch > 1,
            signer: checked.signer,
            ids: Ids::new(),
            traces: context.traces(),
            context,
            clock,
        }
    }

    /// Returns the item of a single callback; `None` if the call is sent as a batched one.
    pub(super) fn single(&self, items: &CallItems) -> Option<ItemIndex> {
        let dispatch = items
            .dispatches()
            .first()
            .filter(|_| !self.is_batched && items.len() == 1)?;
        Some(dispatch.run.first())
    }

    pub(super) fn build(&self, call: &Call) -> Request<GatedBody> {
        let single = self.single(&call.items);
        let mut headers = self.headers.clone();
        let (body, id) = match single {
            Some(index) => {
                let attempt = call.items.dispatches()[0].attempt;
                let key = self.key(index);
                headers.insert(ATTEMPT, HeaderValue::from(attempt.get()));
                headers.insert(IDEMPOTENCY_KEY, key.clone());
                (self.single_body(call, index, attempt), key)
            }
            None => {
                if !self.is_batched {
                    OF_ONE_ITEM.iter().for_each(|name| drop(headers.remove(name)));
                }
                (self.batch_body(call), ascii(&self.ids.batch(self.clock.wall())))
            }
        };
        self.add_times(&mut headers, call);
        self.add_webhook(&mut headers, id, &body);
        headers.insert(TRACEPARENT, self.traceparent(call));
        let body = GatedBody::new(Bytes::from(body), self.context.clone(), self.clock.clone());
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        request
    }

    /// Returns the span of the attempt; for a batch, that of its first item.
    fn traceparent(&self, call: &Call) -> HeaderValue {
        let first = call.items.dispatches()[0];
        let header = self.traces.id(first.run.first()).parent(first.attempt);
        HeaderValue::from_bytes(&header).expect("digits and signs are printable")
    }

    fn add_times(&self, headers: &mut HeaderMap, call: &Call) {
        let gate = self.clock.wall_micros(call.gate_time);
        let deadline = self.clock.wall_micros(call.gate_time.plus(call.timeout));
        headers.insert(GATE_TIME, stamp(gate, Precision::Micros));
        headers.insert(DEADLINE, stamp(deadline, Precision::Millis));
    }

    fn add_webhook(&self, headers: &mut HeaderMap, id: HeaderValue, body: &[u8]) {
        let timestamp = self.clock.wall().0.div_euclid(1000);
        let text = id.to_str().expect("an id is printable");
        if let Some(signature) = self.signer.signature(text, timestamp, body) {
            headers.insert(WEBHOOK_SIGNATURE, ascii(&signature));
        }
        headers.insert(WEBHOOK_ID, id);
        headers.insert(WEBHOOK_TIMESTAMP, HeaderValue::from(timestamp));
    }

    /// Returns an item's key as a header value.
    fn key(&self, index: ItemIndex) -> HeaderValue {
        let mut key = Vec::with_capacity(self.key_head.len() + 20);
        key.extend_from_slice(&self.key_head[KEY_MEMBER.len()..]);
        push_number(&mut key, index.0);
        HeaderValue::from_maybe_shared(Bytes::from(key)).expect("a key is printable")
    }

    fn single_body(&self, call: &Call, index: ItemIndex, attempt: Attempt) -> Vec<u8> {
        let data = call.rows.data(index);
        let mut body = Vec::with_capacity(self.single_head.len() + self.room(data) + 1);
        body.extend_from_slice(&self.single_head);
        self.push_item(&mut body, index, attempt, data);
        body.push(b'}');
        body
    }

    fn room(&self, data: Option<&str>) -> usize {
        80 + self.key_head.len() + data.map_or(0, str::len)
    }

    /// Appends the JSON of an item. A store's id is `[a-z0-9]{6}`, so a key needs no escaping.
    fn push_item(&self, body: &mut Vec<u8>, index: ItemIndex, attempt: Attempt, data: Option<&str>) {
        body.extend_from_slice(br#"{"index":"#);
        push_number(body, index.0);
        body.extend_from_slice(br#","attempt":"#);
        push_number(body, u64::from(attempt.get()));
        body.extend_from_slice(&self.key_head);
        push_number(body, index.0);
        body.push(b'"');
        if let Some(data) = data {
            body.extend_from_slice(br#","data":"#);
            body.extend_from_slice(data.as_bytes());
        }
        body.push(b'}');
    }

    fn batch_body(&self, call: &Call) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.batch_head.len() + call.items.len() * 192 + 2);
        body.extend_from_slice(&self.batch_head);
        for (at, (index, attempt)) in call.items.iter().enumerate() {
            if at > 0 {
                body.push(b',');
            }
            self.push_item(&mut body, index, attempt, call.rows.data(index));
        }
        body.extend_from_slice(b"]}");
        body
    }
}

/// Appends a number's digits; `write!` would take most of the time of a batched body.
fn push_number(body: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    body.extend_from_slice(&digits[at..]);
}

#[derive(Serialize)]
struct Head<'a> {
    r#type: &'a str,
    business: &'a str,
    shard: u32,
    run: u32,
    epoch: u64,
    task: TaskHead<'a>,
}

#[derive(Serialize)]
struct TaskHead<'a> {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    revision: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

/// Builds the body up to where the items begin.
fn head(context: &RunContext, kind: &str, items: &str) -> Vec<u8> {
    let task = TaskHead {
        id: context.shard.task.to_string(),
        name: context.task_name.as_deref(),
        revision: context.task_revision,
        params: context.params.as_deref(),
    };
    let head = Head {
        r#type: kind,
        business: &context.business,
        shard: context.shard.no,
        run: context.run.0,
        epoch: context.epoch.0,
        task,
    };
    let mut json = serde_json::to_vec(&head).expect("texts and numbers are always JSON");
    json.pop();
    json.extend_from_slice(b",\"");
    json.extend_from_slice(items.as_bytes());
    json
}

fn constant_headers(mut headers: HeaderMap, context: &RunContext, node: &str) -> HeaderMap {
    let agent = format!("windrow/{} (+{node})", env!("CARGO_PKG_VERSION"));
    headers.entry(USER_AGENT).or_insert_with(|| lossy(&agent));
    let fixed = [
        ("windrow-protocol", PROTOCOL.to_owned()),
        ("windrow-mode", context.mode.as_str().to_owned()),
        ("windrow-task", context.shard.task.to_string()),
        ("windrow-shard", context.shard.no.to_string()),
        ("windrow-run", context.run.0.to_string()),
        ("windrow-epoch", context.epoch.0.to_string()),
    ];
    for (name, value) in fixed {
        headers.insert(name, ascii(&value));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Without it any encoding is acceptable (RFC 9110, 12.5.3).
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers
}

/// Adds placeholders for headers whose values come with each call.
fn add_places(headers: &mut HeaderMap, names: &[HeaderName]) {
    for name in names {
        headers.insert(name.clone(), HeaderValue::from_static(""));
    }
}

fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("ids, numbers and times are printable")
}

/// Returns a text, such as a name that a person chose, without characters that no header may have.
pub(crate) fn lossy(text: &str) -> HeaderValue {
    let kept: String = text
        .chars()
        .map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' })
        .collect();
    ascii(&kept)
}
