//! Lines of the data log, for people and scripts.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Form;
use crate::link::Link;
use crate::output::body::shown;
use crate::output::table::times::{TimeStyle, Times};
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone, clean, human};
use crate::task::look::carried::{carried, who};

/// Parsed line, with its original JSON from the node.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub(super) struct Line {
    pub(super) line: api::LogLine,
    written: Box<RawValue>,
}

impl TryFrom<Box<RawValue>> for Line {
    type Error = serde_json::Error;

    fn try_from(written: Box<RawValue>) -> serde_json::Result<Line> {
        let line = serde_json::from_str(written.get())?;
        Ok(Line { line, written })
    }
}

/// Listing of data log lines.
pub(super) const LINES: Listing<Line> = Listing {
    columns: &[
        Column::plain("NUMBER", Keep::Always, 4, |line| {
            Some(line.line.number.to_string())
        }),
        Column::time("AT", Keep::Always, |line| Some(&line.line.at)),
        Column::text("LEVEL", Keep::Always, 4, |line| &line.line.level),
        Column::text("TASK", Keep::Always, 4, |line| &line.line.task),
        Column::plain("INDEX", Keep::Always, 4, |line| {
            line.line.index.map(|index| index.to_string())
        }),
        Column::text("ORIGIN", Keep::Always, 4, |line| &line.line.origin),
        Column::maybe("CODE", Keep::Always, 4, |line| line.line.code.as_deref()),
        Column::text("MESSAGE", Keep::Always, 4, |line| &line.line.message),
        Column::new("EXTRA", Side::Left, Keep::Always, 4, |line, _| {
            Cell::text(line.line.extra.as_ref().map(shown))
        }),
        Column::new("DATA", Side::Left, Keep::Always, 4, |line, _| {
            carried(line.line.data.as_deref(), None)
        }),
    ],
    name: |line| line.line.number.to_string(),
    none: "no lines",
};

/// Formats a line in the requested format, including the line break.
pub(super) fn told(link: &Link<'_>, line: &Line, names_task: bool, now_ms: i64) -> String {
    let look = &link.look;
    if look.form == Form::Ndjson {
        return line.written.get().replace(['\n', '\r'], " ") + "\n";
    }
    // "3m ago" would be wrong a minute later, while a log stays on the screen.
    let style = match look.style {
        TimeStyle::Relative => TimeStyle::Local,
        style => style,
    };
    let (times, is_wide) = (Times { style, now_ms }, look.form == Form::Wide);
    text(&line.line, &times, names_task, is_wide, look.paper.colours)
}

/// Formats a line as `17:02:11 warn  t42 #388,012 RATE_LIMITED upstream 429`.
fn text(line: &api::LogLine, times: &Times, names_task: bool, is_wide: bool, colours: bool) -> String {
    let level = clean(&line.level);
    let tone = match level.as_str() {
        "error" => Tone::Bad,
        "warn" => Tone::Warn,
        "debug" => Tone::Dim,
        _ => Tone::Plain,
    };
    let mut parts = vec![
        Tone::Dim.paint(&times.text(&clean(&line.at)), colours),
        tone.paint(&format!("{level:<5}"), colours),
    ];
    parts.extend(names_task.then(|| clean(&line.task)));
    parts.extend(line.index.map(|index| format!("#{}", human::count(index))));
    parts.extend(line.code.as_deref().filter(|code| !code.is_empty()).map(clean));
    parts.push(clean(&line.message));
    let who = who(line.data.as_deref());
    if !who.is_empty() {
        parts.push(Tone::Dim.paint(who.trim_start(), colours));
    }
    let extra = line.extra.as_ref().filter(|_| is_wide);
    parts.extend(extra.map(|extra| Tone::Dim.paint(&clean(&extra.to_string()), colours)));
    parts.join(" ") + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_has_its_time_level_item_code_and_message() {
        let line = api::LogLine {
            at: "2026-11-20T17:02:11.000Z".to_owned(),
            level: "warn".to_owned(),
            task: "t42".to_owned(),
            index: Some(388_012),
            code: Some("RATE_LIMITED".to_owned()),
            message: "upstream\u{1b}[2J 429".to_owned(),
            extra: Some(json!({"a": 1})),
            number: 7,
            ..Default::default()
        };
        let times = Times {
            style: TimeStyle::Utc,
            now_ms: 0,
        };
        let short = text(&line, &times, false, false, false);
        assert_eq!(
            short,
            "2026-11-20 17:02:11Z warn  #388,012 RATE_LIMITED upstream\u{FFFD}[2J 429\n"
        );
        let all = text(&line, &times, true, true, false);
        assert!(
            all.contains(" t42 #388,012 ") && all.ends_with(" {\"a\":1}\n"),
            "{all}"
        );
        let bare = api::LogLine {
            at: "x".to_owned(),
            level: "info".to_owned(),
            message: "m".to_owned(),
            ..Default::default()
        };
        assert_eq!(text(&bare, &times, false, true, false), "x info  m\n");
    }
}
