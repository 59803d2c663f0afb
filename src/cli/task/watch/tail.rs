//! Recent events of the task, one line each: lines of its log, and changes by users.
//!
//! A failed item has a line in the log. Events about failures by code (`failure`) are left out, because they would
//! repeat the first item of each code.

use chrono::{Local, Utc};

use super::state::told;
use crate::output::table::times::{TimeStyle, parsed};
use crate::output::table::{Tone, clean, human};
use windrow_client::Event;

/// Event with a text for one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Time of the event in the API's format.
    at: String,
    text: String,
    /// Data of the item concerned, printed after the text.
    pub(super) who: String,
    pub(super) tone: Tone,
}

impl Entry {
    /// Formats the line, with the time of day.
    pub(super) fn line(&self, style: TimeStyle) -> String {
        format!("{} {}", clock(&self.at, style), self.text)
    }
}

/// Converts an event to an entry, if it deserves a line.
pub(super) fn entry(event: &Event) -> Option<Entry> {
    let (at, line, tone, row) = match event.event.as_str() {
        "log" => {
            let line: api::LogEvent = told(event)?;
            let tone = match line.level.as_str() {
                "error" => Tone::Bad,
                "warn" => Tone::Warn,
                _ => Tone::Plain,
            };
            let index = line.index.map(item).unwrap_or_default();
            let code = line.code.map(|code| format!("{code} ")).unwrap_or_default();
            let text = format!("{:<5} {index}{code}{}", line.level, line.message);
            (line.at, text, tone, line.data)
        }
        "audit" => {
            let entry: api::AuditEntry = told(event)?;
            let reason = entry.reason.map(|reason| format!(" ({reason})"));
            let text = format!("{} {}{}", entry.actor, entry.action, reason.unwrap_or_default());
            (entry.at, text, Tone::Strong, None)
        }
        _ => return None,
    };
    Some(Entry {
        at,
        text: clean(line.trim_end()),
        who: row
            .map(|row| clean(&format!("  {}", row.get())))
            .unwrap_or_default(),
        tone,
    })
}

/// Formats the index of an item as `#388,012 `.
fn item(index: u64) -> String {
    format!("#{} ", human::count(index))
}

/// Formats the time of day. An age that changes in every picture would be hard to read.
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
    use serde::Serialize;
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    const AT: &str = "2026-11-20T17:02:11.000Z";

    fn told(kind: &str, data: impl Serialize) -> Option<Entry> {
        #[derive(Serialize)]
        struct Whole<T> {
            data: T,
        }
        entry(&Event {
            id: "1".to_owned(),
            event: kind.to_owned(),
            data: serde_json::to_string(&Whole { data }).expect("JSON"),
        })
    }

    fn line(level: &str, index: Option<u64>, code: Option<&str>, message: &str) -> api::LogEvent {
        api::LogEvent {
            at: AT.to_owned(),
            level: level.to_owned(),
            index,
            code: code.map(str::to_owned),
            message: message.to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn each_kind_has_its_line() {
        for (log, expected) in [
            (
                line("warn", Some(388_012), Some("RATE_LIMITED"), "429"),
                "17:02:11 warn  #388,012 RATE_LIMITED 429",
            ),
            (
                line("error", Some(3), Some("BAD"), "no"),
                "17:02:11 error #3 BAD no",
            ),
            (
                line("info", None, None, "a\u{1b}[2J\nb"),
                "17:02:11 info  a\u{FFFD}[2J b",
            ),
        ] {
            let entry = told("log", log).expect("an entry");
            assert_eq!(entry.line(TimeStyle::Utc), expected);
        }
        let audit = api::AuditEntry {
            at: AT.to_owned(),
            actor: "ann".to_owned(),
            action: "task.stop".to_owned(),
            reason: Some("r".to_owned()),
            ..Default::default()
        };
        let entry = told("audit", audit).expect("an entry");
        assert_eq!(entry.line(TimeStyle::Utc), "17:02:11 ann task.stop (r)");
        let row = "{\"id\":\"u3\",\"amount\":\"7\"}";
        let mut failed = line("error", Some(3), None, "no");
        failed.data = RawValue::from_string(row.to_owned()).ok();
        assert_eq!(
            told("log", failed).map(|entry| entry.who),
            Some(format!("  {row}")),
            "in the order of the file"
        );
        let group = json!({"last_at": AT, "code": "BAD", "count": 2, "example_index": 3, "example": "no"});
        assert_eq!(told("failure", group), None, "the log tells of each, once");
        assert_eq!(told("stats", json!({})), None);
    }
}
