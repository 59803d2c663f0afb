//! Starts of a task: the start token, the business's `prepare` hook, and the step that makes shards claimable.

use windrow_words::life as say;

use super::obey::Circumstances;
use super::{CommandRefusal, Deeds, Desired, Life, TaskEdit, hooks};
use crate::ids::{TaskId, WallMs};
use crate::shards::Nodes;
use crate::task::lifecycle::{
    DORMANT, Note, START_AT, ShardState, Standing, Status, StopReason, Verb, decide, note_of_command,
};

/// Token by which a business identifies itself for one start. Only the hash is stored; the plain token is sent with
/// the `prepare` hook, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartToken {
    /// Plain token for the call; a store may seal it until the call is sent.
    pub plain: String,
    /// Hash that is stored.
    pub hash: String,
}

impl Life {
    /// Returns true if its note says that it was idle too long to resume by itself.
    pub fn is_dormant(&self) -> bool {
        self.says(DORMANT)
    }

    /// Returns true if the task was started and waits for its `start_at`.
    pub(super) fn waits_for_start(&self) -> bool {
        self.status == Status::Queued && self.says(START_AT)
    }

    fn says(&self, slug: &str) -> bool {
        self.note
            .as_ref()
            .is_some_and(|note| note.reason.as_deref() == Some(slug))
    }

    /// Changes the time of a task that waits for its start. The start itself stays the one that its business may have
    /// prepared.
    pub(super) fn reschedule(
        &mut self,
        at: WallMs,
        around: &Circumstances<'_>,
    ) -> Result<(), CommandRefusal> {
        decide(Verb::Rescheduled, self.standing())?;
        self.spec.start_at = Some(at).filter(|at| at.0 > 0);
        let idle = self
            .shards
            .iter_mut()
            .filter(|shard| shard.state == ShardState::Idle);
        idle.for_each(|shard| shard.not_before = WallMs(0));
        self.go(around.nodes, around.now);
        Ok(())
    }

    /// Starts a task that was idle too long to resume by itself, as after a stop.
    pub(super) fn wake(
        &mut self,
        at: Option<WallMs>,
        around: &Circumstances<'_>,
        deeds: &mut Deeds,
    ) -> Result<(), CommandRefusal> {
        decide(Verb::Woken, self.standing())?;
        self.set_desired(Desired::Stop, around.now);
        self.status = Status::Stopped;
        self.start(at, around, deeds)
    }

    /// Starts the task: queues it, or waits for its business first.
    pub(super) fn start(
        &mut self,
        at: Option<WallMs>,
        around: &Circumstances<'_>,
        deeds: &mut Deeds,
    ) -> Result<(), CommandRefusal> {
        let now = around.now;
        let queued = decide(Verb::Start, self.standing())?;
        if self.awaits_publication() {
            return self.publish_again(now);
        }
        if let Some(at) = at {
            self.spec.start_at = Some(at).filter(|at| at.0 > 0);
        }
        if self.stop_reason == Some(StopReason::CanaryDone) {
            // A start now means that somebody has reviewed the canary and wants the rest.
            self.spec.canary = None;
            self.bump_control();
        }
        self.start_no += 1;
        self.stop_reason = None;
        if self.is_past_deadline(now) {
            self.go(around.nodes, now);
            return Ok(());
        }
        self.start_token = Some(around.token.hash.clone());
        deeds.takes_token = true;
        let Some(until) = hooks::ready_until(&around.listener.hooks, now) else {
            self.go(around.nodes, now);
            return Ok(());
        };
        let asked = decide(
            Verb::HookAsked,
            Standing {
                owned: false,
                desired: queued.desired,
                status: queued.status,
            },
        )?;
        self.desired = queued.desired;
        self.hold(now);
        let note = Note::because("prepare", say::preparing().to_string());
        self.enter(asked.status, (Some(note), Some(until)), now);
        self.awaiting_until = Some(until);
        deeds.call = Some(self.ask(around.listener, &around.token.plain, until));
        Ok(())
    }

    /// Starts a task that has only its publication left: there is nothing to prepare, and no time to wait for.
    fn publish_again(&mut self, now: WallMs) -> Result<(), CommandRefusal> {
        let decision = decide(Verb::PublishAgain, self.standing())?;
        self.start_no += 1;
        self.stop_reason = None;
        self.set_desired(decision.desired, now);
        self.enter(decision.status, (None, None), now);
        Ok(())
    }

    /// Keeps shards from being claimed while the business prepares itself: stopped, with the desired state `rest`.
    fn hold(&mut self, now: WallMs) {
        for shard in self.shards.iter_mut().filter(|shard| !shard.is_done()) {
            (shard.desired, shard.state, shard.updated_at) = (Desired::Rest, ShardState::Stopped, now);
        }
    }

    /// Returns true if the deadline is over, so that nothing may be dispatched.
    fn is_past_deadline(&self, now: WallMs) -> bool {
        self.spec.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Cuts the task, assigns shares and makes its shards claimable from its own `start_at` on. Past the deadline it
    /// stops the task instead.
    fn go(&mut self, nodes: Nodes, now: WallMs) {
        if self.is_past_deadline(now) {
            self.stop_reason = Some(StopReason::Deadline);
            self.set_desired(Desired::Stop, now);
            self.enter(
                Status::Stopped,
                (note_of_command(Verb::Stop, StopReason::Deadline), None),
                now,
            );
            return;
        }
        self.make_shards(nodes, now);
        // A start clears what made the task wait before.
        (self.pause, self.slow) = (None, None);
        self.set_desired(Desired::Run, now);
        let later = self.spec.start_at.filter(|at| *at > now);
        self.queued_at = later.unwrap_or(now);
        if let Some(at) = later {
            let idle = self
                .shards
                .iter_mut()
                .filter(|shard| shard.state == ShardState::Idle);
            idle.for_each(|shard| shard.not_before = at);
        }
        self.deal();
        let text = |at: WallMs| say::starts_at(at.to_rfc3339()).to_string();
        let note = later.map(|at| Note::because(START_AT, text(at)));
        self.enter(Status::Queued, (note, later), now);
    }

    /// Accepts that the business is ready: applies its changes, cuts shards and makes them claimable.
    pub(super) fn ready(
        &mut self,
        (start_no, edit): (u32, &TaskEdit),
        name_holder: Option<TaskId>,
        around: &Circumstances<'_>,
    ) -> Result<(), CommandRefusal> {
        self.check_start(start_no)?;
        decide(Verb::HookReady, self.standing())?;
        self.edit(edit, name_holder)?;
        self.go(around.nodes, around.now);
        Ok(())
    }

    /// Stops the task because the business is not ready, with its reason.
    pub(super) fn not_ready(&mut self, start_no: u32, text: &str, now: WallMs) -> Result<(), CommandRefusal> {
        self.check_start(start_no)?;
        let decision = decide(Verb::HookRefused, self.standing())?;
        self.stop_reason = Some(StopReason::Business);
        self.set_desired(decision.desired, now);
        let note = Note::text(text);
        self.enter(decision.status, (Some(note), None), now);
        Ok(())
    }

    fn check_start(&self, given: u32) -> Result<(), CommandRefusal> {
        let present = self.start_no;
        if given == present {
            Ok(())
        } else {
            Err(CommandRefusal::StaleStart { given, present })
        }
    }
}
