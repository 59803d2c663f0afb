//! What happened to the task, a line each: lines of its log, failures, changes that somebody made.

use chrono::{Local, Utc};
use serde_json::Value;

use crate::output::body::text;
use crate::output::table::times::{TimeStyle, parsed};
use crate::output::table::{Tone, clean, human};
use crate::task::look::failures;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// When, as the API has it.
    at: String,
    text: String,
    /// Behind the text: whom it is about.
    pub(super) who: String,
    pub(super) tone: Tone,
}

impl Entry {
    /// The line, with the time of the day.
    pub(super) fn line(&self, style: TimeStyle) -> String {
        format!("{} {}", clock(&self.at, style), self.text)
    }
}

/// What an event tells, if it is one to be told in a line.
pub(super) fn entry(kind: &str, data: &Value) -> Option<Entry> {
    let is = |name: &str| data[name].as_str();
    let item = |name: &str| data[name].as_u64().map(item).unwrap_or_default();
    let (at, line, who, tone) = match kind {
        "log" => {
            let level = is("level").unwrap_or("info");
            let tone = match level {
                "error" => Tone::Bad,
                "warn" => Tone::Warn,
                _ => Tone::Plain,
            };
            let code = is("code").map(|code| format!("{code} ")).unwrap_or_default();
            let line = format!("{level:<5} {}{code}{}", item("index"), text(&data["message"]));
            (is("at")?, line, &data["data"], tone)
        }
        "failure" => {
            let count = human::count(data["count"].as_u64()?);
            let (code, example) = (is("code")?, text(&data["example"]));
            let line = format!("fail  {code} ×{count}  {}{example}", item("example_index"));
            (is("last_at")?, line, &data["example_data"], Tone::Bad)
        }
        "audit" => {
            let reason = is("reason").map(|reason| format!(" ({reason})"));
            let line = format!("{} {}{}", is("actor")?, is("action")?, reason.unwrap_or_default());
            (is("at")?, line, &Value::Null, Tone::Strong)
        }
        _ => return None,
    };
    Some(Entry {
        at: at.to_owned(),
        text: clean(line.trim_end()),
        who: failures::who(who),
        tone,
    })
}

/// `#388,012 `.
fn item(index: u64) -> String {
    format!("#{} ", human::count(index))
}

/// The time of the day. An age that changes with every picture would be hard to read.
fn clock(at: &str, style: TimeStyle) -> String {
    let Some(time) = parsed(at) else {
        return clean(at);
    };
    match style {
        TimeStyle::Relative | TimeStyle::Local => time.with_timezone(&Local).format("%H:%M:%S").to_string(),
        TimeStyle::Utc | TimeStyle::Iso => time.with_timezone(&Utc).format("%H:%M:%S").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_has_its_line() {
        let at = "2026-11-20T17:02:11.000Z";
        for (kind, data, line) in [
            (
                "log",
                json!({"at": at, "level": "warn", "index": 388_012, "code": "RATE_LIMITED", "message": "429"}),
                "17:02:11 warn  #388,012 RATE_LIMITED 429",
            ),
            (
                "log",
                json!({"at": at, "level": "error", "index": 3, "code": "BAD", "message": "no", "data": {"id": "u3"}}),
                "17:02:11 error #3 BAD no",
            ),
            (
                "log",
                json!({"at": at, "level": "info", "message": "a\u{1b}[2J\nb"}),
                "17:02:11 info  a\u{FFFD}[2J b",
            ),
            (
                "failure",
                json!({"last_at": at, "code": "BAD", "count": 1204, "example_index": 3, "example": "no"}),
                "17:02:11 fail  BAD ×1,204  #3 no",
            ),
            (
                "audit",
                json!({"at": at, "actor": "ann", "action": "task.stop", "reason": "r"}),
                "17:02:11 ann task.stop (r)",
            ),
        ] {
            assert_eq!(
                entry(kind, &data)
                    .map(|entry| entry.line(TimeStyle::Utc))
                    .as_deref(),
                Some(line)
            );
        }
        let who = json!({"last_at": at, "code": "BAD", "count": 1, "example_data": {"id": "u3"}});
        assert_eq!(
            entry("failure", &who).map(|entry| entry.who).as_deref(),
            Some("  {\"id\":\"u3\"}")
        );
        let failed = json!({"at": at, "level": "error", "index": 3, "message": "no", "data": {"id": "u3"}});
        assert_eq!(
            entry("log", &failed).map(|entry| entry.who).as_deref(),
            Some("  {\"id\":\"u3\"}")
        );
        assert_eq!(entry("stats", &json!({})), None);
        assert_eq!(entry("failure", &json!({})), None);
    }
}
