//! Commands on a task, and the reasons to refuse them.

use windrow_words::life as say;

use crate::ids::{ItemCount, ItemIndex, TaskId, WallMs};
use crate::items::stretches::{StretchFault, Stretches};
use crate::task::Tuning;
use crate::task::failed_codes::TooManyCodes;
use crate::task::lifecycle::{Refusal, Standing, StopReason, Verb, decide};
use crate::task::meaning::{FieldRefusal, MeaningChange, fixed_for_good};
use crate::task::spec::SpecPatch;

/// Maximum age of a requested start time that still counts as now: clocks differ, and a call takes its time. Unit:
/// milliseconds.
const START_SLACK_MS: i64 = 60_000;

/// Returns true if a start at this time would be in the past, which can't be intended.
pub fn is_start_over(at: WallMs, now: WallMs) -> bool {
    at.0 < now.0.saturating_sub(START_SLACK_MS)
}

/// Command that people (and the system) give to a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskCommand {
    /// Run or resume, not before the task's own `start_at`. A business with a `prepare` hook is asked first.
    Start,
    /// Run or resume with this time as its `start_at`; also for a task that was started and waits for another time.
    StartAt(WallMs),
    /// Run or resume, optionally not before a time, and judge items by their attempts alone from now on
    /// ([`Tuning::judging_items`]). The caller has seen that the items are at fault and that the handler isn't down.
    StartJudging(Option<WallMs>),
    /// Drain the task, then stop it.
    Stop {
        /// Reason for the stop.
        reason: StopReason,
    },
    /// Stop without waiting for calls in flight.
    StopNow,
    /// End the task for good.
    Cancel,
    /// Replace the live settings.
    Tune(Box<Tuning>),
    /// End early: items at or above this index that were not dispatched are excluded. A later command only lowers the
    /// end.
    Finish {
        /// New end, one past the last index.
        end: ItemIndex,
    },
    /// Accept no more items: an open task finishes once the items added so far are settled.
    Seal,
    /// Fail the items that are retrying now and whose last failure has this code.
    Fail {
        /// Code of the last failure.
        code: String,
    },
    /// Settle these items as skipped without calling them, unless they are settled already.
    Skip(Stretches),
    /// Resume a recovering task now, or check again an end that didn't add up.
    Recover,
    /// Change attributes other than the pace: name, labels, priority, deadline; and, only while the task doesn't run,
    /// its meaning.
    Edit(Box<TaskEdit>),
    /// The business is ready for the current start.
    Ready {
        /// Number of the start that it answers.
        start_no: u32,
        /// Changes to apply before shards are cut.
        edit: Box<TaskEdit>,
    },
    /// The business refused the current start, or never answered.
    NotReady {
        /// Number of the start that it answers.
        start_no: u32,
        /// Sentence that is shown to people.
        text: String,
    },
}

impl TaskCommand {
    /// Returns true if the command restarts a dormant task.
    pub fn begins(&self) -> bool {
        matches!(self, TaskCommand::Recover) || self.is_start()
    }

    /// Returns true if the command starts a task.
    pub fn is_start(&self) -> bool {
        matches!(
            self,
            TaskCommand::Start | TaskCommand::StartAt(_) | TaskCommand::StartJudging(_)
        )
    }

    /// Returns the `start_at` that the command sets.
    pub fn start_at(&self) -> Option<WallMs> {
        match self {
            TaskCommand::StartAt(at) => Some(*at),
            TaskCommand::StartJudging(at) => *at,
            _ => None,
        }
    }

    /// Returns true if the command may make shards claimable, and so cut the task into shards.
    pub fn cuts(&self) -> bool {
        self.begins() || matches!(self, TaskCommand::Ready { .. })
    }

    /// Returns the name that the command asks for.
    pub fn wanted_name(&self) -> Option<&str> {
        let (TaskCommand::Edit(edit) | TaskCommand::Ready { edit, .. }) = self else {
            return None;
        };
        edit.spec.name.as_ref()?.as_deref()
    }

    /// Returns the name of the command in the audit.
    pub fn action(&self) -> &'static str {
        match self {
            TaskCommand::Start | TaskCommand::StartAt(_) | TaskCommand::StartJudging(_) => "task.start",
            TaskCommand::Stop { .. } => "task.stop",
            TaskCommand::StopNow => "task.stop_now",
            TaskCommand::Cancel => "task.cancel",
            TaskCommand::Tune(_) => "task.tune",
            TaskCommand::Finish { .. } => "task.finish",
            TaskCommand::Seal => "task.seal",
            TaskCommand::Fail { .. } => "task.fail",
            TaskCommand::Skip(_) => "task.skip",
            TaskCommand::Recover => "task.recover",
            TaskCommand::Edit(_) => "task.edit",
            TaskCommand::Ready { .. } => "task.ready",
            TaskCommand::NotReady { .. } => "task.not_ready",
        }
    }
}

/// Changes to a task; members that are `None` stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskEdit {
    /// Changes to the attributes.
    pub spec: SpecPatch,
    /// New number of items. Only while the task doesn't run; never smaller after the first dispatch.
    pub total: Option<ItemCount>,
    /// Description and meaning of a new source. Only before the first dispatch.
    pub source: Option<(String, u64)>,
    /// New live settings, or `None` to keep them.
    pub tuning: Option<Tuning>,
}

impl TaskEdit {
    /// Returns the changes to the task's meaning.
    pub fn meaning(&self) -> MeaningChange {
        let source = self.source.as_ref().map(|(text, _)| text.clone());
        MeaningChange {
            total: self.total,
            skip_first: self.spec.skip_first,
            source,
            shards: self.spec.shards.map(|shards| shards.0),
        }
    }

    /// Returns the named members that are fixed while the task runs.
    pub fn fixed_fields(&self) -> Vec<&'static str> {
        let beside = [("source", self.source.is_some()), ("total", self.total.is_some())];
        let beside = beside
            .into_iter()
            .filter_map(|(field, is_named)| is_named.then_some(field));
        let fixed = self.spec.named().filter(|attribute| attribute.rule.fixed);
        fixed.map(|attribute| attribute.name).chain(beside).collect()
    }

    /// Returns the verb for the transition table: changes that only describe the task are legal at any time before
    /// its end.
    pub fn verb(&self) -> Verb {
        if self.fixed_fields().is_empty() {
            Verb::Describe
        } else {
            Verb::Edit
        }
    }

    /// Checks that the edit is legal in the task's present state. `has_run` is true if a run ever owned a shard of
    /// it.
    ///
    /// # Errors
    /// Names each member that is fixed now and the way to change it. If nothing may be changed any more, returns the
    /// refusal of the transition table.
    pub fn check(&self, standing: Standing, has_run: bool) -> Result<(), CommandRefusal> {
        decide(Verb::Describe, standing)?;
        if decide(self.verb(), standing).is_ok() {
            return Ok(());
        }
        let why = |field| match fixed_for_good(field).filter(|_| has_run) {
            Some(why) => why.to_string(),
            None => say::fixed_while(standing.status.title()).to_string(),
        };
        let fields = self.fixed_fields().into_iter();
        Err(CommandRefusal::Fields(
            fields.map(|field| FieldRefusal::new(field, why(field))).collect(),
        ))
    }
}

/// Reason why a task refuses a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandRefusal {
    /// Not legal in the present status; the refusal lists the allowed commands.
    #[error(transparent)]
    Status(#[from] Refusal),
    /// Some members of a change are refused; each is named.
    #[error("{}", refusals_text(_0))]
    Fields(Vec<FieldRefusal>),
    /// The items were fixed when the task was created.
    #[error("{}", say::not_open(_0.to_string()))]
    NotOpen(TaskId),
    /// The task can't record another failure code.
    #[error(transparent)]
    Codes(#[from] TooManyCodes),
    /// Together with the items to skip already these would be too many stretches.
    #[error(transparent)]
    Stretches(#[from] StretchFault),
    /// The command refers to a start that is over.
    #[error("{}", say::stale_start(*given, *present))]
    StaleStart {
        /// Number of the start in the command.
        given: u32,
        /// Number of the present start.
        present: u32,
    },
    /// The business already has a task of this name.
    #[error("{}", say::name_taken(_0, _1.to_string()))]
    NameTaken(String, TaskId),
}

fn refusals_text(refusals: &[FieldRefusal]) -> String {
    refusals
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
