//! How often the task of a fire is tried to be made, and what is said of one that was given up. Each take is a try, whatever
//! becomes of it, so that one which ends its node doesn't end all nodes for ever.

use crate::ports::schedules::store::FIRE_TEXT_MAX;
use windrow_core::ids::TaskId;
use windrow_core::task::lifecycle::Status;
use windrow_words::engine as say;

/// How often a fire's task is tried to be made, whatever ended the tries: a source may be so large that it ends each node that
/// reads it.
const TRIES_MAX: u32 = 5;
/// A fire that was tried so often is made while its node makes no other: what ends the node with it isn't the fault of those.
const ALONE_FROM: u32 = 3;

/// What is to be done about a pending fire that nobody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextTry {
    /// Its task is made.
    Make,
    /// Its task is made, and no other beside it.
    MakeAlone,
    /// It waits until its node makes no other.
    Wait,
    /// It was tried often enough, and has failed.
    GiveUp,
}

impl NextTry {
    /// The one after so many tries; `alone` says that the node makes no other.
    pub fn after(tries: u32, alone: bool) -> NextTry {
        match tries {
            TRIES_MAX.. => NextTry::GiveUp,
            ALONE_FROM.. if alone => NextTry::MakeAlone,
            ALONE_FROM.. => NextTry::Wait,
            _ => NextTry::Make,
        }
    }
}

/// What is said of a fire whose tries all ended without an answer, or the last of them; `before` is what an earlier one
/// came to.
pub fn given_up(tries: u32, before: Option<&str>) -> String {
    match before {
        None => say::given_up(tries).to_string(),
        Some(before) => say::given_up_after(tries, before).to_string(),
    }
}

/// The text of a fire that made no task since this one of its schedule had not ended, with its status and why it has that; none
/// where that task was still to be made.
pub fn skipped_for(task: Option<(TaskId, Status, Option<&str>)>) -> String {
    let text = match task {
        Some((task, status, Some(why))) => say::skipped_why(task.to_string(), status.as_str(), why),
        Some((task, status, None)) => say::skipped_for(task.to_string(), status.as_str()),
        None => say::skipped_for_coming(),
    };
    text.to_string().chars().take(FIRE_TEXT_MAX).collect()
}

/// What is said of a fire that somebody gave up; `before` is what a try came to.
pub fn skipped_by(who: &str, before: Option<&str>) -> String {
    match before {
        None => say::skipped_by(who).to_string(),
        Some(before) => say::skipped_by_after(who, before).to_string(),
    }
}
