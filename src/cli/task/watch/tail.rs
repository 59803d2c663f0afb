//! What happened to the task, a line each: lines of its log, changes that somebody made.
//!
//! An item that is given up has a line in the log. What is told of failures by code (`failure`) would repeat the first
//! item of its code beside each.

use chrono::{Local, Utc};
use serde_json::Value;

use crate::output::body::text;
use crate::output::table::times::{TimeStyle, parsed};
use crate::output::table::{Tone, clean, human};

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

/// What an event tells, if it is one to be told in a line. `row` is what its item carries, as it is written in its source.
pub(super) fn entry(kind: &str, data: &Value, row: Option<&str>) -> Option<Entry> {
    let is = |name: &str| data[name].as_str();
    let item = |name: &str| data[name].as_u64().map(item).unwrap_or_default();
    let (at, line, tone) = match kind {
        "log" => {
            let level = is("level").unwrap_or("info");
            let tone = match level {
                "error" => Tone::Bad,
                "warn" => Tone::Warn,
                _ => Tone::Plain,
            };
            let code = is("code").map(|code| format!("{code} ")).unwrap_or_default();
            let line = format!("{level:<5} {}{code}{}", item("index"), text(&data["message"]));
            (is("at")?, line, tone)
        }
        "audit" => {
            let reason = is("reason").map(|reason| format!(" ({reason})"));
            let line = format!("{} {}{}", is("actor")?, is("action")?, reason.unwrap_or_default());
            (is("at")?, line, Tone::Strong)
        }
        _ => return None,
    };
    Some(Entry {
        at: at.to_owned(),
        text: clean(line.trim_end()),
        who: row.map(|row| clean(&format!("  {row}"))).unwrap_or_default(),
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
                "audit",
                json!({"at": at, "actor": "ann", "action": "task.stop", "reason": "r"}),
                "17:02:11 ann task.stop (r)",
            ),
        ] {
            assert_eq!(
                entry(kind, &data, None)
                    .map(|entry| entry.line(TimeStyle::Utc))
                    .as_deref(),
                Some(line)
            );
        }
        let failed = json!({"at": at, "level": "error", "index": 3, "message": "no"});
        let row = "{\"id\":\"u3\",\"amount\":\"7\"}";
        assert_eq!(
            entry("log", &failed, Some(row)).map(|entry| entry.who),
            Some(format!("  {row}")),
            "in the order of the file"
        );
        let group = json!({"last_at": at, "code": "BAD", "count": 2, "example_index": 3, "example": "no"});
        assert_eq!(
            entry("failure", &group, None),
            None,
            "the log tells of each, once"
        );
        assert_eq!(entry("stats", &json!({}), None), None);
    }
}
