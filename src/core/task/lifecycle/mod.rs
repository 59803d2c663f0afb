//! The life of a task: its states and their slugs; `transitions` holds the one table of what leads where.
//!
//! The slugs are the words of the API, the CLI and the store; they never change once released. The diagram that
//! people read is `docs/lifecycle.md`, generated from the table.

mod cut_off;
mod note;
mod transitions;

pub use cut_off::CutOff;
pub use note::{
    DORMANT, KEY_MISSING, Note, START_AT, TASK_RECOVERS, dormant_text, note_after, note_of_command,
};
pub use transitions::{Decision, Edge, ShardState, Shards, Standing, Verb, decide, edges, status_of};

crate::slugs! {
    /// What a task wants; owners read it at least once a second.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Desired {
        /// Not started yet, or stopped for good: nothing.
        Rest = "rest",
        /// To run.
        Run = "run",
        /// To stop: drain, then stopped.
        Stop = "stop",
        /// To stop without waiting for calls in flight.
        StopNow = "stop_now",
        /// To end for good.
        Cancel = "cancel",
    }
}

crate::slugs! {
    /// Where a task stands, as shown on every surface.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Status {
        /// Made, not started.
        Created = "created",
        /// Wants to run, no owner yet.
        Queued = "queued",
        /// The business prepares itself.
        AwaitingBusiness = "awaiting_business",
        /// A live owner is dispatching.
        Running = "running",
        /// Will be tried again by itself.
        Recovering = "recovering",
        /// Draining.
        Stopping = "stopping",
        /// Stopped, resumable.
        Stopped = "stopped",
        /// Every item is settled; ends are being written, and what it publishes is.
        Finalizing = "finalizing",
        /// Done, for good.
        Finished = "finished",
        /// Ended by a person, for good.
        Cancelled = "cancelled",
    }
}

impl Status {
    /// Whether nothing can happen to the task any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Status::Finished | Status::Cancelled)
    }
}

crate::slugs! {
    /// How a finished task ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum TaskResult {
        /// Nothing was failed.
        Succeeded = "succeeded",
        /// Something was failed.
        WithFailures = "with_failures",
        /// Something was excluded because the business finished early.
        Early = "early",
    }
}

crate::slugs! {
    /// Why a task is stopping or stopped.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum StopReason {
        /// A person.
        Operator = "operator",
        /// The business, by command.
        Business = "business",
        /// Too many failed items.
        ErrorBudget = "error_budget",
        /// An item used all its attempts and the task says `on_exhausted = "stop"`.
        ItemExhausted = "item_exhausted",
        /// The handler answered 410.
        HandlerGone = "handler_gone",
        /// The handler refuses us as such, or its answers can't be understood.
        HandlerRejected = "handler_rejected",
        /// Recovered too often.
        RecoveriesExhausted = "recoveries_exhausted",
        /// The canary is done and waits for a yes.
        CanaryDone = "canary_done",
        /// The deadline passed.
        Deadline = "deadline",
        /// The source is not what it was when the task began.
        SourceChanged = "source_changed",
        /// The checkpoint can't be read.
        CheckpointCorrupt = "checkpoint_corrupt",
        /// The shard was claimed again and again without progress.
        CrashLoop = "crash_loop",
        /// The handler didn't answer for as long as the task's patience lasts, or was never reached.
        HandlerUnreachable = "handler_unreachable",
        /// The handler was reached again and again, and no item of the task ever succeeded.
        NoItemSucceeds = "no_item_succeeds",
        /// The results could not be reduced; a start tries it again.
        ReduceFailed = "reduce_failed",
    }
}

/// How a task has ended, for whoever is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing failed.
    Succeeded,
    /// Items failed.
    WithFailures,
    /// It stopped by itself.
    Stopped(StopReason),
    /// People stopped it, or have to go on with it.
    ByPeople,
    /// It was cancelled.
    Cancelled,
}

impl Ending {
    /// The slugs of all of them.
    pub const SLUGS: [&str; 5] = ["succeeded", "with_failures", "stopped", "by_people", "cancelled"];

    /// Its slug, one of [`Ending::SLUGS`].
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
    /// The reason as people read it: the slug where that says it.
    pub fn text(self) -> &'static str {
        match self {
            StopReason::HandlerUnreachable => "the handler can't be reached",
            StopReason::HandlerRejected => "the handler can't be used",
            StopReason::NoItemSucceeds => "no item succeeds",
            other => other.as_str(),
        }
    }
}

/// A verb is illegal in a state; names what is allowed instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} while the task is {status}{}", impossible(verb), for_good(allowed))]
pub struct Refusal {
    /// What was asked.
    pub verb: &'static str,
    /// Where the task stands.
    pub status: Status,
    /// The commands that would be allowed.
    pub allowed: Vec<&'static str>,
}

/// Refuses to delete a task that hasn't ended.
///
/// # Errors
/// What has to be done before.
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

fn impossible(verb: &str) -> String {
    let done = match verb {
        "tune" | "describe" | "edit" => "changed",
        "start" => "started",
        "stop" | "stop_now" => "stopped",
        "cancel" => "cancelled",
        "finish" => "finished",
        "append" => "appended to",
        "seal" => "sealed",
        "recover" => "recovered",
        "delete" => "deleted",
        other => return format!("{other} is not possible"),
    };
    format!("it can't be {done}")
}

fn for_good(allowed: &[&str]) -> &'static str {
    if allowed.is_empty() {
        "; it has ended for good; a clone of it can run"
    } else {
        ""
    }
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
        assert!(
            refusal
                .to_string()
                .ends_with("it has ended for good; a clone of it can run"),
            "{refusal}"
        );
    }
}
