//! What happened to the task, a line each: lines of its log, failures, changes that somebody made.

use chrono::{DateTime, Local, Utc};
use serde_json::Value;

use crate::output::table::times::TimeStyle;
use crate::output::table::{Tone, clean, human};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// When, as the API has it.
    at: String,
    text: String,
    /// Behind the text: whom it is about.
    pub(super) who: String,
    pub(super) tone: Tone,
}

impl Told {
    /// The line, with the time of the day.
    pub(super) fn line(&self, style: TimeStyle) -> String {
        format!("{} {}", clock(&self.at, style), self.text)
    }
}

/// What an event tells, if it is one to be told in a line.
pub(super) fn told(kind: &str, data: &Value) -> Option<Told> {
    let text = |name: &str| data[name].as_str();
    let (at, line, tone) = match kind {
        "log" => {
            let level = text("level").unwrap_or("info");
            let tone = match level {
                "error" => Tone::Bad,
                "warn" => Tone::Warn,
                _ => Tone::Plain,
            };
            let index = data["index"].as_u64().map(item).unwrap_or_default();
            let code = text("code").map(|code| format!("{code} ")).unwrap_or_default();
            (
                text("at")?,
                format!("{level:<5} {index}{code}{}", text("message").unwrap_or_default()),
                tone,
            )
        }
        "failure" => {
            let index = data["example_index"].as_u64().map(item).unwrap_or_default();
            let count = human::count(data["count"].as_u64()?);
            let line = format!(
                "fail  {} ×{count}  {index}{}",
                text("code")?,
                text("example").unwrap_or_default()
            );
            (text("last_at")?, line, Tone::Bad)
        }
        "audit" => {
            let reason = text("reason")
                .map(|reason| format!(" ({reason})"))
                .unwrap_or_default();
            let line = format!("{} {}{reason}", text("actor")?, text("action")?);
            (text("at")?, line, Tone::Strong)
        }
        _ => return None,
    };
    Some(Told {
        at: at.to_owned(),
        text: clean(line.trim_end()),
        who: who(&data["example_data"]),
        tone,
    })
}

/// Behind a failure: what its item carries, if anything.
pub(in crate::task) fn who(data: &Value) -> String {
    if data.is_null() {
        String::new()
    } else {
        clean(&format!("  {data}"))
    }
}

/// `#388,012 `.
fn item(index: u64) -> String {
    format!("#{} ", human::count(index))
}

/// The time of the day. An age that changes with every picture would be hard to read.
fn clock(at: &str, style: TimeStyle) -> String {
    let Ok(time) = DateTime::parse_from_rfc3339(at) else {
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
                told(kind, &data).map(|told| told.line(TimeStyle::Utc)).as_deref(),
                Some(line)
            );
        }
        let who = json!({"last_at": at, "code": "BAD", "count": 1, "example_data": {"id": "u3"}});
        assert_eq!(
            told("failure", &who).map(|told| told.who).as_deref(),
            Some("  {\"id\":\"u3\"}")
        );
        assert_eq!(told("stats", &json!({})), None);
        assert_eq!(told("failure", &json!({})), None);
    }
}
