//! Lines of the worker protocol: writes those to a worker, classifies those from it.
//!
//! Never reads a verdict, since that vocabulary is shared and in `wire`. Every line written ends in one newline and
//! contains no other.

use std::time::Duration;

use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::wire::{OK, mark_of};
use windrow_core::ids::{Attempt, ItemIndex};
use windrow_core::items::trace::Traces;
use windrow_engine::ports::handling::handler::RunContext;

/// Version of the worker protocol.
pub(super) const PROTOCOL: u32 = 1;

/// Formats the first line that a worker gets.
pub(super) fn hello(run: &RunContext, max_in_flight: u32, heartbeat: Option<Duration>) -> String {
    let mut task = serde_json::json!({ "id": run.shard.task.to_string(), "revision": run.task_revision });
    if let Some(name) = &run.task_name {
        task["name"] = name.as_str().into();
    }
    let params = run.params.as_deref().map(|params| one_line(params.get()));
    let mut task = task.to_string();
    if let Some(params) = params {
        task.pop();
        task.push_str(&format!(",\"params\":{params}}}"));
    }
    let mut line = format!(
        "{{\"type\":\"hello\",\"protocol\":{PROTOCOL},\"business\":{},\"task\":{task},\"shard\":{},\"run\":{},\"epoch\":{},\
         \"mode\":\"{}\",\"max_in_flight\":{max_in_flight}",
        serde_json::Value::from(run.business.as_str()),
        run.shard.no,
        run.run.0,
        run.epoch.0,
        run.mode.as_str(),
    );
    if let Some(heartbeat) = heartbeat {
        line.push_str(&format!(
            ",\"heartbeat\":\"{}\"",
            humantime::format_duration(heartbeat)
        ));
    }
    line.push_str("}\n");
    line
}

/// Content of the line for an item.
pub(super) struct ItemLine<'a> {
    pub(super) id: u64,
    pub(super) index: ItemIndex,
    pub(super) attempt: Attempt,
    pub(super) data: Option<&'a str>,
}

/// Text that the items of one call have in common.
pub(super) struct CallText {
    /// Text between the attempt and the index in the key.
    key: String,
    /// Text between the data and the item's trace.
    tail: String,
    traces: Traces,
}

impl CallText {
    /// Formats the gate's wall-clock time and the time limit, as written in each item's line, and the beginning of
    /// keys.
    pub(super) fn new(gate_time_us: i64, timeout: Duration, (key_head, traces): (&str, Traces)) -> CallText {
        let (gate_time, timeout) = (rfc3339(gate_time_us), humantime::format_duration(timeout));
        let tail = format!("\"gate_time\":\"{gate_time}\",\"timeout\":\"{timeout}\",\"traceparent\":\"");
        let key = format!(",\"key\":\"{key_head}");
        CallText { key, tail, traces }
    }

    /// Formats the line of one item. Pieces are joined by hand: this is most of the cost of a line to a fast worker.
    pub(super) fn item(&self, item: &ItemLine<'_>) -> String {
        let data = item.data.map(one_line);
        let mut line = String::with_capacity(256 + data.as_ref().map_or(0, |data| data.len()));
        let mut digits = itoa::Buffer::new();
        let mut put = |text: &str, number: u64| {
            line.push_str(text);
            line.push_str(digits.format(number));
        };
        put("{\"type\":\"item\",\"id\":", item.id);
        put(",\"index\":", item.index.0);
        put(",\"attempt\":", u64::from(item.attempt.get()));
        put(&self.key, item.index.0);
        line.push_str("\",");
        if let Some(data) = data {
            line.push_str("\"data\":");
            line.push_str(&data);
            line.push(',');
        }
        line.push_str(&self.tail);
        let parent = self.traces.id(item.index).parent(item.attempt);
        line.extend(parent.into_iter().map(char::from));
        line.push_str("\"}\n");
        line
    }
}

/// Replaces newlines between JSON tokens: they mean nothing to JSON, but end a line of the protocol.
fn one_line(json: &str) -> std::borrow::Cow<'_, str> {
    if json.contains(['\n', '\r']) {
        json.replace(['\n', '\r'], " ").into()
    } else {
        json.into()
    }
}

fn rfc3339(wall_us: i64) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(wall_us) * 1000);
    time.ok()
        .and_then(|time| time.format(&Rfc3339).ok())
        .unwrap_or_default()
}

/// Formats the line that takes an item back: it timed out, or nobody waits for it any more.
pub(super) fn cancel(id: u64) -> String {
    format!("{{\"type\":\"cancel\",\"id\":{id}}}\n")
}

/// Formats a line that asks for a `pong`.
pub(super) fn ping(number: u64) -> String {
    format!("{{\"type\":\"ping\",\"n\":{number}}}\n")
}

/// Formats the end: no more items, and the time that the worker has to leave.
pub(super) fn farewell(grace: &str) -> String {
    format!("{{\"type\":\"drain\"}}\n{{\"type\":\"shutdown\",\"grace\":\"{grace}\"}}\n")
}

/// Kind of a line from a worker.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The worker is ready for items.
    Ready {
        /// Items it works on at once, at least 1.
        concurrency: u32,
    },
    /// One of the four words, which answers the oldest item.
    Word(&'static str),
    /// A result, with the verdict in the line; without an id it answers the oldest item.
    Result {
        /// Id of the item, if the line has one.
        id: Option<u64>,
    },
    /// A line for the data log.
    Log,
    /// A command to the task.
    Command,
    /// The worker answers a ping.
    Pong,
    /// The worker is about to leave.
    Bye,
    /// A type of line that only workers are sent.
    Echo,
    /// An empty line, or a type of a later protocol.
    Nothing,
    /// Anything else, with the reason.
    Garbage(String),
}

#[derive(Deserialize)]
struct Head {
    r#type: Option<String>,
    id: Option<u64>,
    protocol: Option<u32>,
    concurrency: Option<u32>,
    #[serde(default, deserialize_with = "is_there")]
    result: bool,
}

fn is_there<'de, D: serde::Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    serde::de::IgnoredAny::deserialize(value).map(|_| true)
}

/// Classifies a line from a worker.
pub(super) fn read(line: &[u8]) -> Said {
    match line.trim_ascii() {
        b"" => Said::Nothing,
        b"ok" => Said::Word(OK),
        b"skip" => Said::Word(r#"{"result":"skip"}"#),
        b"retry" => Said::Word(r#"{"result":"retry"}"#),
        b"fail" => Said::Word(r#"{"result":"fail"}"#),
        object @ [b'{', ..] => match serde_json::from_slice(object) {
            Ok(head) => of_head(&head),
            Err(why) => Said::Garbage(format!("invalid JSON: {why}")),
        },
        other => Said::Garbage(match (mark_of(other), word_with_more(other)) {
            (Some(mark), _) => format!("it begins with {mark}; write UTF-8 without one"),
            (None, Some(word)) => format!(
                "{word} takes nothing after it; to give a reason, print \
                 {{\"type\":\"result\",\"id\":…,\"result\":\"{word}\",\"code\":\"…\",\"message\":\"…\"}}"
            ),
            (None, None) => "it is neither a JSON object nor one of ok, skip, retry, fail".to_owned(),
        }),
    }
}

/// Returns one of the four words if more follows it.
fn word_with_more(line: &[u8]) -> Option<&'static str> {
    let first = line.split(u8::is_ascii_whitespace).next()?;
    let words = ["ok", "skip", "retry", "fail"];
    words.into_iter().find(|word| first == word.as_bytes())
}

fn of_head(head: &Head) -> Said {
    match head.r#type.as_deref() {
        Some("result") => Said::Result { id: head.id },
        Some("ready") => match head.protocol {
            Some(other) if other != PROTOCOL => Said::Garbage(format!(
                "the worker asks for protocol {other}, but this windrow speaks {PROTOCOL}"
            )),
            _ => Said::Ready {
                concurrency: head.concurrency.unwrap_or(1).max(1),
            },
        },
        Some("log") => Said::Log,
        Some("command") => Said::Command,
        Some("pong") => Said::Pong,
        Some("bye") => Said::Bye,
        // Unknown types are ignored: a worker may be newer than this program.
        Some("hello" | "item" | "ping" | "cancel" | "drain" | "shutdown") => Said::Echo,
        Some(_) => Said::Nothing,
        None if head.result => Said::Result { id: head.id },
        None => Said::Garbage("it has neither a type nor a result".to_owned()),
    }
}

#[cfg(test)]
mod tests;
