//! Limit on the tries to make a fire's task, and the texts of fires that were given up. Each take is a try, whatever
//! its result, so that a fire which ends its node doesn't end all nodes forever.

use crate::ports::schedules::store::FIRE_TEXT_MAX;
use windrow_core::ids::TaskId;
use windrow_core::task::lifecycle::Status;
use windrow_words::engine as say;

/// Maximum number of tries to make a fire's task, whatever ended them: a source may be so large that it ends each
/// node that reads it.
const TRIES_MAX: u32 = 5;
/// Tries after which a fire is made only while its node makes no other: fires that end their node must not harm
/// others.
const ALONE_FROM: u32 = 3;

/// Next step for a pending fire that no node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextTry {
    /// The task is to be made.
    Make,
    /// The task is to be made, with no other at the same time.
    MakeAlone,
    /// Waiting until its node makes no other.
    Wait,
    /// Failed: it was tried often enough.
    GiveUp,
}

impl NextTry {
    /// Returns the next step after `tries` tries; `alone` is true if the node makes no other.
    pub fn after(tries: u32, alone: bool) -> NextTry {
        match tries {
            TRIES_MAX.. => NextTry::GiveUp,
            ALONE_FROM.. if alone => NextTry::MakeAlone,
            ALONE_FROM.. => NextTry::Wait,
            _ => NextTry::Make,
        }
    }
}

/// Returns the text of a fire whose last try, or all tries, ended without an answer; `before` is the result of an
/// earlier one.
pub fn given_up(tries: u32, before: Option<&str>) -> String {
    match before {
        None => say::given_up(tries).to_string(),
        Some(before) => say::given_up_after(tries, before).to_string(),
    }
}

/// Returns the text of a fire that made no task because this task of its schedule had not ended, with the task's
/// status and reason; `None` if that task was still to be made.
pub fn skipped_for(task: Option<(TaskId, Status, Option<&str>)>) -> String {
    let text = match task {
        Some((task, status, Some(why))) => say::skipped_why(task.to_string(), status.as_str(), why),
        Some((task, status, None)) => say::skipped_for(task.to_string(), status.as_str()),
        None => say::skipped_for_coming(),
    };
    text.to_string().chars().take(FIRE_TEXT_MAX).collect()
}

/// Returns the text of a fire that someone skipped; `before` is the result of an earlier try.
pub fn skipped_by(who: &str, before: Option<&str>) -> String {
    match before {
        None => say::skipped_by(who).to_string(),
        Some(before) => say::skipped_by_after(who, before).to_string(),
    }
}
