//! Commands: the transition table decides if they are legal, this module applies them.

use windrow_words::life as say;

use super::{
    Author, CommandRefusal, Deeds, Desired, Life, Listener, Record, StartToken, TaskCommand, status_json,
};
use crate::ids::{ItemIndex, TaskId, WallMs};
use crate::shards::{Nodes, PauseReason};
use crate::task::Tuning;
use crate::task::lifecycle::{
    Decision, Refusal, ShardState, Status, StopReason, TASK_RECOVERS, Verb, decide, note_of_command,
};
use crate::task::meaning::FieldRefusal;

/// Context of a command outside its task.
#[derive(Clone, Debug)]
pub struct Circumstances<'a> {
    /// Current wall clock time.
    pub now: WallMs,
    /// Business of the task, for a start.
    pub listener: &'a Listener,
    /// Live nodes that take tasks of this task's pool.
    pub nodes: Nodes,
    /// Fresh token, for a start.
    pub token: &'a StartToken,
    /// Task that holds the name which the command asks for ([`TaskCommand::wanted_name`]).
    pub name_holder: Option<TaskId>,
}

/// State before and after, as JSON text.
pub(super) type Change = (String, String);

impl Life {
    /// Applies a command. If [`Life::must_refresh`] returns true afterwards, the caller must update the status with
    /// [`Life::refresh`].
    ///
    /// # Errors
    /// Returns the refusal; the caller must then store nothing.
    pub fn obey(
        &mut self,
        command: &TaskCommand,
        around: &Circumstances<'_>,
    ) -> Result<Deeds, CommandRefusal> {
        let before = self.status;
        let mut deeds = Deeds::default();
        let change = self.act(command, around, &mut deeds)?;
        let (before_json, after) = change.unwrap_or_else(|| (status_json(before), status_json(self.status)));
        let action = command.action().to_owned();
        deeds.records.push(Record {
            by: Author::Caller,
            action,
            before: before_json,
            after,
        });
        deeds.ends_start = self.status == Status::Stopped && before != Status::Stopped;
        deeds.withholds = self.withheld_since(before);
        Ok(deeds)
    }

    /// Returns true if a command may have left nothing to do, or if the end may add up by now.
    pub fn must_refresh(&self, command: &TaskCommand) -> bool {
        matches!(command, TaskCommand::Finish { .. } | TaskCommand::Seal) || self.status == Status::Finalizing
    }

    /// Applies the command. Returns the states before and after if it changes something other than the status.
    fn act(
        &mut self,
        command: &TaskCommand,
        around: &Circumstances<'_>,
        deeds: &mut Deeds,
    ) -> Result<Option<Change>, CommandRefusal> {
        let (standing, now) = (self.standing(), around.now);
        if command.begins() && self.is_dormant() {
            self.wake(command.start_at(), around, deeds)?;
            return Ok(self.judge(command));
        }
        if let Some(at) = command.start_at().filter(|_| self.waits_for_start()) {
            self.reschedule(at, around)?;
            return Ok(self.judge(command));
        }
        match command {
            TaskCommand::Start | TaskCommand::StartAt(_) | TaskCommand::StartJudging(_) => {
                self.start(command.start_at(), around, deeds)?;
                return Ok(self.judge(command));
            }
            TaskCommand::Stop { reason } => self.end(Verb::Stop, *reason, now)?,
            TaskCommand::StopNow => self.end(Verb::StopNow, StopReason::Operator, now)?,
            TaskCommand::Cancel => self.end(Verb::Cancel, StopReason::Operator, now)?,
            TaskCommand::Tune(tuning) => {
                decide(Verb::Tune, standing)?;
                let is_over = self.pauses_for_another_budget(tuning);
                let change = self.tune(tuning);
                if is_over {
                    self.recover(now)?;
                }
                return Ok(Some(change));
            }
            TaskCommand::Edit(edit) => {
                edit.check(standing, self.has_run())?;
                return self.edit(edit, around.name_holder).map(Some);
            }
            TaskCommand::Finish { end } => self.finish(*end, now)?,
            TaskCommand::Seal => self.seal(now)?,
            TaskCommand::Fail { code } => return self.fail(code, now).map(Some),
            TaskCommand::Skip(items) => return self.skip(items).map(Some),
            TaskCommand::Recover => self.recover(now)?,
            TaskCommand::Ready { start_no, edit } => {
                self.ready((*start_no, edit), around.name_holder, around)?;
            }
            TaskCommand::NotReady { start_no, text } => self.not_ready(*start_no, text, now)?,
        }
        Ok(None)
    }

    /// Applies the settings that a start changes.
    fn judge(&mut self, command: &TaskCommand) -> Option<Change> {
        let TaskCommand::StartJudging(_) = command else {
            return None;
        };
        let tuning = self.tuning.clone().judging_items();
        Some(self.tune(&tuning))
    }

    /// Applies a stop or a cancel.
    fn end(&mut self, verb: Verb, reason: StopReason, now: WallMs) -> Result<(), CommandRefusal> {
        let Decision { desired, status } = decide(verb, self.standing())?;
        if self.status == Status::Finalizing && !self.awaits_publication() {
            // Nothing is left that could be stopped.
            let allowed = vec![Verb::Recover.as_str()];
            let (verb, status) = (verb.as_str(), self.status);
            return Err(Refusal {
                verb,
                status,
                allowed,
            }
            .into());
        }
        if desired != self.desired {
            self.set_desired(desired, now);
        }
        // The first reason to stop is the one shown.
        self.stop_reason.get_or_insert(reason);
        if status != self.status {
            self.enter(status, (note_of_command(verb, reason), None), now);
        }
        Ok(())
    }

    /// Returns true if the task recovers because of an error budget that is about to change: the new one hasn't been
    /// exceeded yet.
    fn pauses_for_another_budget(&self, tuning: &Tuning) -> bool {
        let reason = self.note.as_ref().and_then(|note| note.reason.as_deref());
        let budget = |tuning: &Tuning| (tuning.error_budget, tuning.error_window);
        self.status == Status::Recovering
            && reason == Some(TASK_RECOVERS)
            && budget(&self.tuning) != budget(tuning)
    }

    /// Replaces the live settings; owners read them within a second.
    pub(super) fn tune(&mut self, tuning: &Tuning) -> Change {
        let before = json(&self.tuning);
        self.tuning = tuning.clone();
        self.bump_control();
        (before, json(tuning))
    }

    /// Records that retrying items with this code are failed; owners read it within a second.
    fn fail(&mut self, code: &str, now: WallMs) -> Result<Change, CommandRefusal> {
        decide(Verb::Fail, self.standing())?;
        let before = json(&self.failed_codes);
        self.failed_codes.decide(code, now)?;
        self.bump_control();
        Ok((before, json(&self.failed_codes)))
    }

    /// Lowers the end of the task.
    fn finish(&mut self, end: ItemIndex, now: WallMs) -> Result<(), CommandRefusal> {
        decide(Verb::Finish, self.standing())?;
        if end.0 >= self.total.0 {
            let why = say::early_finish(self.total.0).to_string();
            return Err(CommandRefusal::Fields(vec![FieldRefusal::new("total", why)]));
        }
        // Dispatched items are never cut off, so an end below them has no effect. With several shards, each applies
        // its own bound.
        let end = match self.shards.as_slice() {
            [only] => end.max(only.dispatched()),
            _ => end,
        };
        self.bump_control();
        self.end_early(end, now);
        Ok(())
    }

    /// Makes waiting shards claimable now. A task whose end didn't add up has none; it is proved again when its
    /// status is refreshed.
    fn recover(&mut self, now: WallMs) -> Result<(), CommandRefusal> {
        let decision = decide(Verb::Recover, self.standing())?;
        for shard in self
            .shards
            .iter_mut()
            .filter(|shard| shard.state == ShardState::Recovering)
        {
            (shard.state, shard.not_before, shard.updated_at) = (ShardState::Idle, WallMs(0), now);
        }
        if decision.status == Status::Finalizing {
            return Ok(());
        }
        if self
            .pause
            .is_some_and(|pause| pause.reason == PauseReason::ErrorBudget)
        {
            self.pause = None;
            self.bump_control();
        }
        self.enter(decision.status, (None, None), now);
        Ok(())
    }
}

/// Returns the JSON text of a domain value, which always has one.
pub(super) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns true if the desired state ends the task.
pub(super) fn is_ending(desired: Desired) -> bool {
    matches!(desired, Desired::Stop | Desired::StopNow | Desired::Cancel)
}
