//! The life of a task: its states, the commands that people give, and the one transition table.

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
}

/// A command is illegal in a state; names what is allowed instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{verb} is not possible while {status:?}; allowed: {}", allowed.join(", "))]
pub struct Refusal {
    /// What was asked.
    pub verb: &'static str,
    /// Where the task stands.
    pub status: Status,
    /// What would be allowed.
    pub allowed: Vec<&'static str>,
}
