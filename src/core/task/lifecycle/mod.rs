//! The life of a task: its states and their slugs; `transitions` holds the one table of what leads where.
//!
//! The slugs are the words of the API, the CLI and the store; they never change once released. The diagram that
//! people read is `docs/lifecycle.md`, generated from the table.

mod cut_off;
mod note;
mod transitions;

use std::fmt;

pub use cut_off::CutOff;
pub use note::{DORMANT, Note, TASK_RECOVERS, dormant_text, note_after, note_of_command};
pub use transitions::{Decision, Edge, ShardState, Shards, Standing, Verb, decide, edges, status_of};

/// Gives a closed enum its slugs: `ALL`, `as_str`, `parse` and `Display`, from one list.
macro_rules! slugs {
    ($name:ident { $($variant:ident => $slug:literal),+ $(,)? }) => {
        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// The slug under which it is stored and shown.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $slug),+
                }
            }

            /// The value of a slug; none when there is no such slug.
            pub fn parse(slug: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|value| value.as_str() == slug)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
use slugs;

/// What a task wants; owners read it at least once a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wish {
    /// Not started yet, or stopped for good: nothing.
    Rest,
    /// To run.
    Run,
    /// To stop: drain, then stopped.
    Stop,
    /// To stop without waiting for calls in flight.
    StopNow,
    /// To end for good.
    Cancel,
}

slugs!(Wish { Rest => "rest", Run => "run", Stop => "stop", StopNow => "stop_now", Cancel => "cancel" });

/// Where a task stands, as shown on every surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Made, not started.
    Created,
    /// Wants to run, no owner yet.
    Queued,
    /// The business prepares itself.
    AwaitingBusiness,
    /// A live owner is dispatching.
    Running,
    /// Will be tried again by itself.
    Recovering,
    /// Draining.
    Stopping,
    /// Stopped, resumable.
    Stopped,
    /// Every item is settled; ends are being written.
    Finalizing,
    /// Done, for good.
    Finished,
    /// Ended by a person, for good.
    Cancelled,
}

slugs!(Status {
    Created => "created",
    Queued => "queued",
    AwaitingBusiness => "awaiting_business",
    Running => "running",
    Recovering => "recovering",
    Stopping => "stopping",
    Stopped => "stopped",
    Finalizing => "finalizing",
    Finished => "finished",
    Cancelled => "cancelled",
});

impl Status {
    /// Whether nothing can happen to the task any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Status::Finished | Status::Cancelled)
    }
}

/// How a finished task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskResult {
    /// Nothing was abandoned.
    Succeeded,
    /// Something was abandoned.
    WithFailures,
    /// Something was excluded because the business finished early.
    Early,
}

slugs!(TaskResult { Succeeded => "succeeded", WithFailures => "with_failures", Early => "early" });

/// Why a task is stopping or stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// A person.
    Operator,
    /// The business, by command.
    Business,
    /// Too many abandoned items.
    ErrorBudget,
    /// An item used all its attempts and the task says `on_exhausted = "stop"`.
    ItemExhausted,
    /// The handler answered 410.
    HandlerGone,
    /// The handler refuses us as such, or its answers can't be understood.
    HandlerRejected,
    /// Recovered too often.
    RecoveriesExhausted,
    /// The canary is done and waits for a yes.
    CanaryDone,
    /// The deadline passed.
    Deadline,
    /// The source is not what it was when the task began.
    SourceChanged,
    /// The checkpoint can't be read.
    CheckpointCorrupt,
    /// The shard was claimed again and again without progress.
    CrashLoop,
    /// The handler didn't answer for as long as the task's patience lasts, or was never reached.
    HandlerUnreachable,
    /// The handler was reached again and again, and no item of the task ever succeeded.
    NoItemSucceeds,
}

slugs!(StopReason {
    Operator => "operator",
    Business => "business",
    ErrorBudget => "error_budget",
    ItemExhausted => "item_exhausted",
    HandlerGone => "handler_gone",
    HandlerRejected => "handler_rejected",
    RecoveriesExhausted => "recoveries_exhausted",
    CanaryDone => "canary_done",
    Deadline => "deadline",
    SourceChanged => "source_changed",
    CheckpointCorrupt => "checkpoint_corrupt",
    CrashLoop => "crash_loop",
    HandlerUnreachable => "handler_unreachable",
    NoItemSucceeds => "no_item_succeeds",
});

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
            Wish::ALL
                .iter()
                .all(|value| Wish::parse(value.as_str()) == Some(*value))
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
            wish: Wish::Rest,
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
            wish: Wish::Run,
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
