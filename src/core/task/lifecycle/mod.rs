//! Life cycle of a task: its states and their slugs; `transitions` holds the one table of transitions.
//!
//! The slugs are the words of the API, the CLI and the store; they never change once released. The diagram for people
//! is `docs/lifecycle.md`, generated from the table.

mod cut_off;
mod note;
mod transitions;

use windrow_words::{Message, task as say};

pub use cut_off::CutOff;
pub use note::{
    DORMANT, KEY_MISSING, Note, START_AT, TASK_RECOVERS, dormant_text, note_after, note_of_command,
};
pub use transitions::{Decision, Edge, ShardState, Shards, Standing, Verb, decide, edges, status_of};

crate::slugs! {
    /// Desired state of a task; owners read it at least once a second.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Desired {
        /// Not started yet, or stopped for good: nothing is wanted.
        Rest = "rest",
        /// Run, or resume after a stop.
        Run = "run",
        /// Drain the calls in flight, then stop.
        Stop = "stop",
        /// Stop without waiting for calls in flight.
        StopNow = "stop_now",
        /// End the task for good.
        Cancel = "cancel",
    }
}

crate::slugs! {
    /// Status of a task, as shown on every surface.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Status {
        /// Created, but not started yet.
        Created = "created",
        /// Started, no owner yet.
        Queued = "queued",
        /// The business is preparing this start.
        AwaitingBusiness = "awaiting_business",
        /// A live owner is dispatching.
        Running = "running",
        /// Waiting to be retried automatically.
        Recovering = "recovering",
        /// Draining before it stops.
        Stopping = "stopping",
        /// Stopped, and can be started again.
        Stopped = "stopped",
        /// Every item is settled; the end is being recorded and results published.
        Finalizing = "finalizing",
        /// Ended for good, with a result.
        Finished = "finished",
        /// Ended by a person, for good.
        Cancelled = "cancelled",
    }
}

impl Status {
    /// Returns the name of the status for people.
    pub fn title(self) -> windrow_words::Message {
        use windrow_words::status as name;
        match self {
            Status::Created => name::created(),
            Status::Queued => name::queued(),
            Status::AwaitingBusiness => name::awaiting_business(),
            Status::Running => name::running(),
            Status::Recovering => name::recovering(),
            Status::Stopping => name::stopping(),
            Status::Stopped => name::stopped(),
            Status::Finalizing => name::finalizing(),
            Status::Finished => name::finished(),
            Status::Cancelled => name::cancelled(),
        }
    }

    /// Returns true if nothing can happen to the task any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Status::Finished | Status::Cancelled)
    }
}

crate::slugs! {
    /// Result of a finished task.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum TaskResult {
        /// No item has failed.
        Succeeded = "succeeded",
        /// At least one item has failed.
        WithFailures = "with_failures",
        /// Some items were excluded because the business finished early.
        Early = "early",
    }
}

crate::slugs! {
    /// Reason why a task is stopping or stopped.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum StopReason {
        /// A person stopped it.
        Operator = "operator",
        /// The business stopped it by command.
        Business = "business",
        /// Too many items have failed.
        ErrorBudget = "error_budget",
        /// An item used all its attempts and the task has `on_exhausted = "stop"`.
        ItemExhausted = "item_exhausted",
        /// The handler answered 410.
        HandlerGone = "handler_gone",
        /// The handler refuses Windrow's calls in general, or its answers can't be parsed.
        HandlerRejected = "handler_rejected",
        /// The task recovered too often.
        RecoveriesExhausted = "recoveries_exhausted",
        /// The canary is done and waits for approval.
        CanaryDone = "canary_done",
        /// The deadline of the task passed.
        Deadline = "deadline",
        /// The source has changed since the task began.
        SourceChanged = "source_changed",
        /// The checkpoint can't be read.
        CheckpointCorrupt = "checkpoint_corrupt",
        /// The shard was claimed repeatedly without progress.
        CrashLoop = "crash_loop",
        /// The handler didn't answer for the whole `outage_patience` of the task, or was never reached.
        HandlerUnreachable = "handler_unreachable",
        /// The handler was reached repeatedly, but no item of the task ever succeeded.
        NoItemSucceeds = "no_item_succeeds",
        /// The results could not be reduced; a start tries again.
        ReduceFailed = "reduce_failed",
        /// A total in a unit is used up; with a higher one, a start goes on.
        LimitReached = "limit_reached",
        /// Answers don't say what calls cost in a unit that is limited.
        CostUnknown = "cost_unknown",
    }
}

/// Way in which a task has ended, for notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// No item has failed.
    Succeeded,
    /// Some items have failed.
    WithFailures,
    /// The task stopped by itself.
    Stopped(StopReason),
    /// People stopped it, or have to continue it.
    ByPeople,
    /// A person cancelled it.
    Cancelled,
}

impl Ending {
    /// Slugs of all endings.
    pub const SLUGS: [&str; 5] = ["succeeded", "with_failures", "stopped", "by_people", "cancelled"];

    /// Returns the slug, one of [`Ending::SLUGS`].
    pub fn slug(self) -> &'static str {
        let at = match self {
            Ending::Succeeded => 0,
            Ending::WithFailures => 1,
            Ending::Stopped(_) => 2,
            Ending::ByPeople => 3,
            Ending::Cancelled => 4,
        };
        Ending::SLUGS[at]
    }
}

impl StopReason {
    /// Returns the reason as text for people: the slug if that is clear enough.
    pub fn text(self) -> &'static str {
        match self {
            StopReason::HandlerUnreachable => say::handler_unreachable().english(),
            StopReason::HandlerRejected => say::handler_unusable().english(),
            StopReason::NoItemSucceeds => say::no_item_succeeds().english(),
            other => other.as_str(),
        }
    }
}

/// Refusal of a verb that is illegal in a status; names the allowed commands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub struct Refusal {
    /// Verb that was refused.
    pub verb: &'static str,
    /// Present status of the task.
    pub status: Status,
    /// Commands that would be allowed.
    pub allowed: Vec<&'static str>,
}

/// Refuses to delete a task that hasn't ended.
///
/// # Errors
/// Names the command that must come first.
pub fn decide_delete(status: Status) -> Result<(), Refusal> {
    match status.is_terminal() {
        true => Ok(()),
        false => Err(Refusal {
            verb: "delete",
            status,
            allowed: vec!["cancel"],
        }),
    }
}

impl Refusal {
    /// Returns the message for people.
    pub fn message(&self) -> Message {
        let (status, has_ended) = (self.status.as_str(), self.allowed.is_empty());
        match (done(self.verb), has_ended) {
            (Some(done), true) => say::cant_ended(done, status),
            (Some(done), false) => say::cant(done, status),
            (None, true) => say::impossible_ended(self.verb, status),
            (None, false) => say::impossible(self.verb, status),
        }
    }
}

/// Returns the participle of a verb.
fn done(verb: &str) -> Option<Message> {
    Some(match verb {
        "tune" | "describe" | "edit" => say::verb_changed(),
        "start" => say::verb_started(),
        "stop" | "stop_now" => say::verb_stopped(),
        "cancel" => say::verb_cancelled(),
        "finish" => say::verb_finished(),
        "append" => say::verb_appended(),
        "seal" => say::verb_sealed(),
        "recover" => say::verb_recovered(),
        "delete" => say::verb_deleted(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_read_back_and_nothing_else_does() {
        assert!(
            Desired::ALL
                .iter()
                .all(|value| Desired::parse(value.as_str()) == Some(*value))
        );
        assert!(
            Status::ALL
                .iter()
                .all(|value| Status::parse(value.as_str()) == Some(*value))
        );
        assert!(
            TaskResult::ALL
                .iter()
                .all(|value| TaskResult::parse(value.as_str()) == Some(*value))
        );
        assert!(
            StopReason::ALL
                .iter()
                .all(|value| StopReason::parse(value.as_str()) == Some(*value))
        );
        assert_eq!(Status::parse("Running"), None);
        assert_eq!(StopReason::parse(""), None);
    }

    #[test]
    fn a_refusal_says_what_would_be_allowed() {
        let standing = Standing {
            desired: Desired::Rest,
            status: Status::Created,
            owned: false,
        };
        let refusal = decide(Verb::Stop, standing).expect_err("a task that never started can't be stopped");
        assert_eq!(
            refusal.to_string(),
            "it can't be stopped while the task is created"
        );
        let tune = Refusal {
            verb: "tune",
            ..refusal
        };
        assert_eq!(tune.to_string(), "it can't be changed while the task is created");
        let ended = Standing {
            desired: Desired::Run,
            status: Status::Finished,
            owned: false,
        };
        let refusal = decide(Verb::Start, ended).expect_err("finished is final");
        assert!(refusal.to_string().ends_with("clone it"), "{refusal}");
    }
}
