//! What a node warns of beside a task, on standard error, also when hints are not wanted.

use serde_json::Value;

use crate::link::Link;
use crate::output::body::{list, text};
use crate::output::table::clean;
use crate::output::table::times::TimeStyle;

/// Says them, in an answer about this task; of one that isn't there yet it has its own number.
pub(crate) fn tell(link: &Link<'_>, answer: &Value, task: &str) {
    let id = answer["id"].as_str().unwrap_or(task);
    let gap = if id.is_empty() { "" } else { "  " };
    for line in lines(answer, id, link.look.style) {
        link.must_say(&format!("warning: {id}{gap}{line}"));
    }
}

/// Whether a node warned of this.
pub(crate) fn has(task: &Value, code: &str) -> bool {
    list(&task["warnings"])
        .iter()
        .any(|warning| warning["code"] == code)
}

/// Each with what to do about it.
pub(crate) fn lines(task: &Value, id: &str, style: TimeStyle) -> Vec<String> {
    let line = |warning: &Value| {
        let text = |name: &str| clean(text(&warning[name]));
        let member = text("pointer").trim_start_matches('/').replace('_', " ");
        let advice = match (warning["code"].as_str(), id) {
            // A command is more than words.
            (Some("not_started"), "") => "--start, and it waits until then".to_owned(),
            (Some("not_started"), id) => format!("windrow task start {id}, and it waits until then"),
            _ => text("advice"),
        };
        style.within(&format!("{member}: {}; try {advice}", text("detail")))
    };
    list(&task["warnings"]).iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_warning_names_the_member_and_what_would_do() {
        let task = json!({"id": "t1", "warnings": [
            {"code": "deadline_too_early", "pointer": "/deadline", "detail": "no\u{1b}[2J time", "advice": "more"},
            {"code": "not_started", "pointer": "/start_at", "detail": "it isn't started", "advice": "x"}]});
        let told = lines(&task, "t1", TimeStyle::Relative);
        assert_eq!(told[0], "deadline: no\u{FFFD}[2J time; try more");
        assert_eq!(
            told[1],
            "start at: it isn't started; try windrow task start t1, and it waits until then"
        );
        assert!(has(&task, "not_started") && !has(&json!({"id": "t1"}), "not_started"));
        let new = lines(
            &json!({"id": null, "warnings": [{"code": "not_started"}]}),
            "",
            TimeStyle::Relative,
        );
        assert!(
            new[0].ends_with("try --start, and it waits until then"),
            "{new:?}"
        );
    }
}
