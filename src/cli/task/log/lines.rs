//! Lines of the data log as people and scripts see them.

use serde_json::Value;

use super::Form;
use crate::link::Link;
use crate::output::body;
use crate::output::table::times::{TimeStyle, Times};
use crate::output::table::{Column, Keep, Listing, Side, Tone, clean, human};
use crate::task::look::carried::{carried, who};

/// Lines of the data log.
pub(super) const LINES: Listing = Listing {
    columns: &[
        Column::plain("NUMBER", Keep::Always, 4, "number"),
        Column::time("AT", Keep::Always, "at"),
        Column::text("LEVEL", Keep::Always, 4, "level"),
        Column::text("TASK", Keep::Always, 4, "task"),
        Column::plain("INDEX", Keep::Always, 4, "index"),
        Column::text("ORIGIN", Keep::Always, 4, "origin"),
        Column::text("CODE", Keep::Always, 4, "code"),
        Column::text("MESSAGE", Keep::Always, 4, "message"),
        Column::text("EXTRA", Keep::Always, 4, "extra"),
        Column::new("DATA", Side::Left, Keep::Always, 4, |line, _| {
            carried(line, "data")
        }),
    ],
    name: |line| line["number"].to_string(),
    none: "no lines",
};

/// A line in the form that was asked for, with its end.
pub(super) fn told(link: &Link<'_>, line: &Value, names_task: bool, now_ms: i64) -> String {
    let look = &link.look;
    if look.form == Form::Ndjson {
        return body::line(line) + "\n";
    }
    // "3m ago" is wrong a minute later, and a log stays on the screen.
    let style = match look.style {
        TimeStyle::Relative => TimeStyle::Local,
        style => style,
    };
    let (times, is_wide) = (Times { style, now_ms }, look.form == Form::Wide);
    text(line, &times, names_task, is_wide, look.paper.colours)
}

/// `17:02:11 warn  t42 #388,012 RATE_LIMITED upstream 429`.
fn text(line: &Value, times: &Times, names_task: bool, is_wide: bool, colours: bool) -> String {
    let member = |name: &str| clean(line[name].as_str().unwrap_or_default());
    let level = member("level");
    let tone = match level.as_str() {
        "error" => Tone::Bad,
        "warn" => Tone::Warn,
        "debug" => Tone::Dim,
        _ => Tone::Plain,
    };
    let mut parts = vec![
        Tone::Dim.paint(&times.text(&member("at")), colours),
        tone.paint(&format!("{level:<5}"), colours),
    ];
    if names_task {
        parts.push(member("task"));
    }
    let index = line["index"].as_u64();
    parts.extend(index.map(|index| format!("#{}", human::count(index))));
    parts.extend(Some(member("code")).filter(|code| !code.is_empty()));
    parts.push(member("message"));
    let who = who(line, "data");
    if !who.is_empty() {
        parts.push(Tone::Dim.paint(who.trim_start(), colours));
    }
    if is_wide && !line["extra"].is_null() {
        parts.push(Tone::Dim.paint(&clean(&line["extra"].to_string()), colours));
    }
    parts.join(" ") + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_has_its_time_level_item_code_and_message() {
        let line = json!({"at": "2026-11-20T17:02:11.000Z", "level": "warn", "task": "t42", "index": 388_012,
            "code": "RATE_LIMITED", "message": "upstream\u{1b}[2J 429", "extra": {"a": 1}, "number": 7});
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
        let bare =
            json!({"at": "x", "level": "info", "index": null, "code": null, "message": "m", "extra": null});
        assert_eq!(text(&bare, &times, false, true, false), "x info  m\n");
    }
}
