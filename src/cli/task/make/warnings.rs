//! Warnings of a node about a task, printed on standard error even with `--quiet`.

use serde::Deserialize;

use crate::link::Link;
use crate::output::table::clean;
use crate::output::table::times::TimeStyle;

/// Warnings in the answer to a change.
#[derive(Debug, Deserialize)]
pub(crate) struct Warned {
    id: Option<String>,
    #[serde(default)]
    warnings: Vec<api::TaskWarning>,
}

/// Prints the warnings about this task. A new task is identified by the number in the answer.
pub(crate) fn tell(link: &Link<'_>, answer: &Warned, task: &str) {
    let id = answer.id.as_deref().unwrap_or(task);
    let gap = if id.is_empty() { "" } else { "  " };
    for line in lines(&answer.warnings, id, link.look.style) {
        link.must_say(&format!("warning: {id}{gap}{line}"));
    }
}

/// True if a node gave this warning.
pub(crate) fn has(task: &api::Task, code: &str) -> bool {
    let warnings = &task.beside.warnings;
    warnings.iter().any(|warning| warning.code == code)
}

/// Formats the warnings with advice, one per line.
pub(crate) fn lines(warnings: &[api::TaskWarning], id: &str, style: TimeStyle) -> Vec<String> {
    let line = |warning: &api::TaskWarning| {
        let member = clean(&warning.pointer);
        let member = member.trim_start_matches('/').replace('_', " ");
        let advice = match (warning.code.as_str(), id) {
            // Advise the exact command instead of a description.
            ("not_started", "") => "--start; the task then waits until that time".to_owned(),
            ("not_started", id) => format!("windrow task start {id}; the task then waits until that time"),
            _ => warning.advice.as_deref().map(clean).unwrap_or_default(),
        };
        style.within(&format!("{member}: {}; try {advice}", clean(&warning.detail)))
    };
    warnings.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_names_the_member_and_what_would_do() {
        let warning = |code: &str, pointer: &str, detail: &str| api::TaskWarning {
            code: code.to_owned(),
            pointer: pointer.to_owned(),
            detail: detail.to_owned(),
            advice: Some("more".to_owned()),
        };
        let mut task = api::Task::default();
        assert!(!has(&task, "not_started"));
        task.beside.warnings = vec![
            warning("deadline_too_early", "/deadline", "no\u{1b}[2J time"),
            warning("not_started", "/start_at", "it isn't started"),
        ];
        let told = lines(&task.beside.warnings, "t1", TimeStyle::Relative);
        assert_eq!(told[0], "deadline: no\u{FFFD}[2J time; try more");
        assert_eq!(
            told[1],
            "start at: it isn't started; try windrow task start t1; the task then waits until that time"
        );
        assert!(has(&task, "not_started"));
        let new = lines(&task.beside.warnings[1..], "", TimeStyle::Relative);
        assert!(
            new[0].ends_with("try --start; the task then waits until that time"),
            "{new:?}"
        );
    }
}
