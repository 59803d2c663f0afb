//! Notes shown with a task's status when one of its shards changes: each reason once, whichever shard is last.

use std::time::Duration;
use windrow_words::task as say;

use super::{Status, StopReason, Verb};

/// Slug of a recovery that all shards of a task share.
pub const TASK_RECOVERS: &str = "error_budget";
/// Slug of a task whose last node doesn't have the key with which its business's secrets were sealed.
pub const KEY_MISSING: &str = "key_missing";
/// Slug of a task that waits for its own `start_at`.
pub const START_AT: &str = "start_at";
/// Slug of a task that is to run but was idle for longer than a node restores by itself.
pub const DORMANT: &str = "dormant";
/// Slug of a task of which some shards are to be retried, when the others have ended.
const PART_RECOVERS: &str = "part_recovers";

/// Note with an optional slug and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Machine-readable slug, if any.
    pub reason: Option<String>,
    /// Sentence that is shown to people.
    pub text: String,
}

impl Note {
    /// Creates a note without a slug.
    pub fn text(text: impl Into<String>) -> Note {
        let (reason, text) = (None, text.into());
        Note { reason, text }
    }

    /// Creates a note with a slug.
    pub fn because(reason: &str, text: impl Into<String>) -> Note {
        Note {
            reason: Some(reason.to_owned()),
            ..Note::text(text)
        }
    }
}

/// Returns the note of a task after a shard has changed. The task had the note `held` in the status `before`, the
/// shard brings `news`, and the new status is `after`.
pub fn note_after(before: Status, held: Option<Note>, after: Status, news: Option<Note>) -> Option<Note> {
    let is_shared = |note: &Note| note.reason.as_deref() == Some(TASK_RECOVERS);
    match (before, after) {
        (Status::Running, Status::Running) if held.as_ref().is_some_and(is_shared) => held,
        (Status::Running, Status::Running) => news.filter(is_shared).or(held),
        // The first shard that stops gives the reason.
        (Status::Stopping, Status::Stopping | Status::Stopped | Status::Cancelled) => {
            held.or_else(|| news.filter(|note| note.reason.is_none()))
        }
        (_, Status::Recovering) if before != after => {
            held.filter(is_shared).or(news).or_else(|| Some(part_recovers()))
        }
        // A publication that is retried gives its reason.
        (Status::Finalizing, Status::Finalizing) => news.or(held),
        // The note of a retry is shown only while it lasts; elsewhere only sentences without a slug apply.
        _ if before != after => news.filter(|note| note.reason.is_none()),
        _ => held,
    }
}

/// Returns the note of a dormant task: a node restores by itself only tasks that were active within this time.
pub fn dormant_text(restore_window: Duration) -> String {
    say::dormant(restore_window, "cluster.restore_window").to_string()
}

/// Returns the note for a command that ends a task. It gives the reason, because the runs only learn that they must
/// end. `None` if "by command" is all there is to say, which the runs say themselves.
pub fn note_of_command(verb: Verb, reason: StopReason) -> Option<Note> {
    let text = match (verb, reason) {
        (Verb::Cancel, _) => say::cancelled_by_command(),
        (_, StopReason::Deadline) => say::deadline_passed(),
        (_, StopReason::Business) => say::stopped_by_business(),
        _ => return None,
    };
    Some(Note::text(text.to_string()))
}

fn part_recovers() -> Note {
    Note::because(PART_RECOVERS, say::part_recovers().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Option<Note> {
        Some(Note {
            reason: None,
            text: text.to_owned(),
        })
    }

    fn recovers(reason: &str, text: &str) -> Option<Note> {
        Some(Note {
            reason: Some(reason.to_owned()),
            text: text.to_owned(),
        })
    }

    #[test]
    fn the_first_shard_that_stops_says_why() {
        use Status::{Running, Stopped, Stopping};
        let why = note_after(Running, None, Stopping, said("item 7 used all 5 attempts"));
        let second = note_after(Stopping, why, Stopping, said("stopped by command"));
        assert_eq!(
            note_after(Stopping, second, Stopped, None),
            said("item 7 used all 5 attempts")
        );
        assert_eq!(
            note_after(Stopping, None, Stopped, said("stopped")),
            said("stopped")
        );
        assert_eq!(
            note_after(Stopping, None, Stopped, recovers("unavailable", "x")),
            None
        );
    }

    #[test]
    fn who_ended_a_task_is_said_and_not_what_its_runs_heard() {
        use Status::{Stopped, Stopping};
        let why = note_of_command(Verb::Stop, StopReason::Deadline);
        let last = note_after(Stopping, why, Stopped, said("stopped by command"));
        assert_eq!(last, said("its deadline passed"));
        assert_eq!(
            note_of_command(Verb::Cancel, StopReason::Operator),
            said("cancelled by command")
        );
        let plain = note_of_command(Verb::Stop, StopReason::Operator);
        assert_eq!(
            note_after(Stopping, plain, Stopped, said("stopped by command")),
            said("stopped by command")
        );
    }

    #[test]
    fn a_recovery_of_all_is_told_from_its_first_shard_on() {
        use Status::{Recovering, Running, Stopped};
        let first = recovers(TASK_RECOVERS, "too many failed attempts");
        let while_others_end = note_after(Running, None, Running, first.clone());
        assert_eq!(while_others_end, first);
        let last = recovers(TASK_RECOVERS, "another shard had too many");
        assert_eq!(
            note_after(Running, while_others_end.clone(), Running, last.clone()),
            first
        );
        assert_eq!(note_after(Running, while_others_end, Recovering, last), first);
        assert_eq!(
            note_after(Running, None, Running, recovers("unavailable", "x")),
            None
        );
        let part = note_after(Running, None, Recovering, None).expect("it says something");
        assert_eq!(part.reason.as_deref(), Some(PART_RECOVERS));
        assert_eq!(
            note_after(Running, None, Stopped, recovers("unavailable", "x")),
            None,
            "no next time"
        );
    }
}
