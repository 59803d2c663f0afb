//! What may be done to a task, and why it may not be.

use crate::ids::{ItemCount, ItemIndex, TaskId, WallMs};
use crate::items::stretches::{StretchFault, Stretches};
use crate::task::Tuning;
use crate::task::failed_codes::TooManyCodes;
use crate::task::lifecycle::{Refusal, Standing, StopReason, Verb, decide};
use crate::task::meaning::{FieldRefusal, MeaningChange, fixed_for_good};
use crate::task::spec::SpecPatch;

/// How long ago a start may have been asked for and still mean now: clocks differ, and a call takes its time. Unit:
/// milliseconds.
const START_SLACK_MS: i64 = 60_000;

/// Whether a start at this time would be one in the past, which nobody can mean.
pub fn is_start_over(at: WallMs, now: WallMs) -> bool {
    at.0 < now.0.saturating_sub(START_SLACK_MS)
}

/// What people (and the system) may do to a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskCommand {
    /// Run, or run on; not before the task's own `start_at`. A business that has a `prepare` hook is asked first.
    Start,
    /// The same, with this time as its `start_at`; also of a task that was started and waits for another.
    StartAt(WallMs),
    /// Run, or run on, perhaps not before a time, and judge items by their attempts alone from now on
    /// ([`Tuning::judging_items`]): whoever says so has seen that it is the items and no outage.
    StartJudging(Option<WallMs>),
    /// Drain and stop.
    Stop {
        /// Why.
        reason: StopReason,
    },
    /// Stop without waiting for calls in flight.
    StopNow,
    /// End for good.
    Cancel,
    /// Change the live settings.
    Tune(Box<Tuning>),
    /// End early: what was not dispatched at or above this index is excluded. A later one only lowers it.
    Finish {
        /// The new end.
        end: ItemIndex,
    },
    /// Take no more items: an open task finishes once those that were added are settled.
    Seal,
    /// Give up the items that wait now, and whose last failure has this code.
    Fail {
        /// The failure's code.
        code: String,
    },
    /// Settle these items as skipped, as far as they aren't settled, without calling them.
    Skip(Stretches),
    /// Try a recovering task now; look again at an end that didn't add up.
    Recover,
    /// Change what is not given to the handler as pace: name, labels, priority, deadline; and, while it doesn't
    /// run, what it means.
    Edit(Box<TaskEdit>),
    /// The business is ready for the present start.
    Ready {
        /// Which start it answers.
        start_no: u32,
        /// What it changes before shards are cut.
        edit: Box<TaskEdit>,
    },
    /// The business refused the present start, or never answered.
    NotReady {
        /// Which start it answers.
        start_no: u32,
        /// The sentence shown to people.
        text: String,
    },
}

impl TaskCommand {
    /// Whether it lets a dormant task begin anew.
    pub fn begins(&self) -> bool {
        matches!(self, TaskCommand::Recover) || self.is_start()
    }

    /// Whether it starts a task.
    pub fn is_start(&self) -> bool {
        matches!(
            self,
            TaskCommand::Start | TaskCommand::StartAt(_) | TaskCommand::StartJudging(_)
        )
    }

    /// The time that it gives a task as its `start_at`.
    pub fn start_at(&self) -> Option<WallMs> {
        match self {
            TaskCommand::StartAt(at) => Some(*at),
            TaskCommand::StartJudging(at) => *at,
            _ => None,
        }
    }

    /// Whether it may make shards claimable, and so cut the task.
    pub fn cuts(&self) -> bool {
        self.begins() || matches!(self, TaskCommand::Ready { .. })
    }

    /// The name that it wants for the task.
    pub fn wanted_name(&self) -> Option<&str> {
        let (TaskCommand::Edit(edit) | TaskCommand::Ready { edit, .. }) = self else {
            return None;
        };
        edit.spec.name.as_ref()?.as_deref()
    }

    /// The command as the audit names it.
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

/// What a change of a task names; what is none stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskEdit {
    /// Its attributes.
    pub spec: SpecPatch,
    /// Only while it doesn't run; never smaller after the first dispatch.
    pub total: Option<ItemCount>,
    /// The source's description and meaning; only before the first dispatch.
    pub source: Option<(String, u64)>,
    /// The live settings.
    pub tuning: Option<Tuning>,
}

impl TaskEdit {
    /// What it changes of the task's meaning.
    pub fn meaning(&self) -> MeaningChange {
        let source = self.source.as_ref().map(|(text, _)| text.clone());
        MeaningChange {
            total: self.total,
            skip_first: self.spec.skip_first,
            source,
            shards: self.spec.shards.map(|shards| shards.0),
        }
    }

    /// The members that it names and that are fixed while the task runs.
    pub fn fixed_fields(&self) -> Vec<&'static str> {
        let beside = [("source", self.source.is_some()), ("total", self.total.is_some())];
        let beside = beside
            .into_iter()
            .filter_map(|(field, is_named)| is_named.then_some(field));
        let fixed = self.spec.named().filter(|attribute| attribute.rule.fixed);
        fixed.map(|attribute| attribute.name).chain(beside).collect()
    }

    /// The verb of the transition table: what only describes the task is legal at any time before its end.
    pub fn verb(&self) -> Verb {
        if self.fixed_fields().is_empty() {
            Verb::Describe
        } else {
            Verb::Edit
        }
    }

    /// Whether it is legal as the task stands; `has_run` is whether a run ever owned a shard of it.
    ///
    /// # Errors
    /// Names each member that is fixed now, and what would help; where nothing may be changed any more, the table's refusal.
    pub fn check(&self, standing: Standing, has_run: bool) -> Result<(), CommandRefusal> {
        decide(Verb::Describe, standing)?;
        if decide(self.verb(), standing).is_ok() {
            return Ok(());
        }
        let why = |field| match fixed_for_good(field).filter(|_| has_run) {
            Some(why) => why.to_owned(),
            None => format!("it is fixed while the task is {}; stop it first", standing.status),
        };
        let fields = self.fixed_fields().into_iter();
        Err(CommandRefusal::Fields(
            fields.map(|field| FieldRefusal::new(field, why(field))).collect(),
        ))
    }
}

/// A task can't obey a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandRefusal {
    /// Not now; names what is allowed.
    #[error(transparent)]
    Status(#[from] Refusal),
    /// Some members of a change can't be had; each is named.
    #[error("{}", refusals_text(_0))]
    Fields(Vec<FieldRefusal>),
    /// Its items were fixed when it was made.
    #[error("{0} can't be sealed: it was not made open")]
    NotOpen(TaskId),
    /// The task remembers no further code.
    #[error(transparent)]
    Codes(#[from] TooManyCodes),
    /// With those that are to be skipped already these would be too many stretches.
    #[error(transparent)]
    Stretches(#[from] StretchFault),
    /// It speaks of a start that is over.
    #[error("start {given} is over; the present start is {present}")]
    StaleStart {
        /// Which one it speaks of.
        given: u32,
        /// Which one is present.
        present: u32,
    },
    /// The business has a task of this name already.
    #[error("the name {0:?} is taken by {1}")]
    NameTaken(String, TaskId),
}

fn refusals_text(refusals: &[FieldRefusal]) -> String {
    refusals
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
