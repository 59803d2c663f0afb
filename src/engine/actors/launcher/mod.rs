//! Owner of one shard on this node: claims it, starts its renewer and executor, numbers its checkpoints, ends its
//! run.
//!
//! It holds the newest checkpoint until it is stored, so that neither a crash of the executor nor one of the writer
//! loses a completion that was handed over. It is not restarted in place: when it fails, its parent gives the
//! reservation back and releases the shard, which is then offered again.

pub mod claim;
pub mod idle;
pub mod lease_renewer;
pub mod opening;
pub mod publication;
pub mod run;
pub mod share;
pub mod start;
pub mod takeover;
pub mod talk;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use windrow_words::engine as say;

use ractor::actor::messages::BoxedState;
use ractor::{ActorCell, ActorProcessingErr};
use tokio::sync::Semaphore;

use crate::actors::executor::reply_lines::Drafted;
use crate::actors::launcher::opening::{NotClaimed, Opened};
use crate::actors::launcher::publication::Publication;
use crate::actors::launcher::run::Run;
use crate::actors::launcher::share::{BookSink, Part};
use crate::actors::membership::seen_revision::SeenRevision;
use crate::actors::membership::session::Life;
use crate::actors::runtime::actor::{Handled, TreeActor};
use crate::actors::runtime::address::Address;
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::policy::Kind;
use crate::actors::runtime::routes::Routes;
use crate::actors::writers::checkpoint_writer;
use crate::actors::writers::data_log_writer;
use crate::ports::ownership::found_store::FoundRow;
use crate::ports::ownership::run_store::{CheckpointAck, Control, RunClose};
use crate::ports::ownership::session_store::OwnedShard;
use windrow_core::capacity::Refusal;
use windrow_core::execution::{Command, RunEnd};
use windrow_core::ids::{CheckpointSeq, Moment, ShardId};

/// Longest wait for the children to stop when the launcher ends.
const RESEND_AFTER: Duration = Duration::from_secs(2);
/// Time after which a read of the control without an answer is repeated.
const LOOK_PATIENCE: Duration = Duration::from_millis(500);

/// Reason why a node doesn't take a shard without a live owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unclaimable {
    /// The owner is silent but may live on a lease, and the lease store is unreachable.
    NoWitness,
    /// The checkpoint has this version, which only a newer program reads.
    Newer(u8),
}

/// End of a launcher, for its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LauncherEnd {
    /// The shard was never owned.
    NotOwned,
    /// The shard was never owned, since it can't be taken for now.
    Unclaimable(Unclaimable),
    /// The run is over and its shard was released in the store.
    Closed(RunClose),
    /// Someone else owns the shard.
    Fenced,
    /// The run is over, but the store still names this session as the shard's owner.
    StillOwned(String),
}

impl fmt::Display for LauncherEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            LauncherEnd::NotOwned => say::not_had(),
            LauncherEnd::Unclaimable(Unclaimable::NoWitness) => say::not_had_lease(),
            LauncherEnd::Unclaimable(Unclaimable::Newer(version)) => {
                say::not_had_version(version.to_string())
            }
            LauncherEnd::Closed(close) => return close.fmt(f),
            LauncherEnd::Fenced => say::dropped(),
            LauncherEnd::StillOwned(why) => say::still_owned(why),
        };
        text.fmt(f)
    }
}

pub(crate) enum Msg {
    Claim,
    Claimed(Box<Result<Opened, NotClaimed>>),
    Draft(Box<Drafted>),
    Written(checkpoint_writer::Written),
    /// Send the checkpoint of this number again unless it was acknowledged.
    Resend(CheckpointSeq),
    /// Row of the shard that a heartbeat sent at this moment found.
    Row(OwnedShard, Moment),
    /// A heartbeat sent at this moment did not find the shard among those of the session.
    NotListed(Moment),
    /// The desired state or the settings may have changed.
    Look,
    Controlled(Box<Control>),
    /// Result of a request to book this share.
    Booked(Part, Result<(), Refusal>),
    BookAgain,
    /// The other shards may have more failed items.
    LookAgain,
    /// News of the autopilots of the task's other runs.
    Neighbours(Vec<FoundRow>),
    /// Restart a child; the executor only after its lanes are gone.
    Restart(Kind),
    /// The lease is someone else's, or the session was fenced: stop at once, write nothing.
    Drop,
    /// The handler has seen a newer run: fail, so that the shard is dropped if that is true, and claimed again
    /// otherwise.
    Stale,
    /// Drain and give the shard to others.
    HandOver,
    /// Drain and give the shard to others, while this node keeps its other shards.
    Leave,
    /// The drain took too long: abort the calls in flight.
    Abort,
    /// The node is shutting down and the store doesn't answer: end without it.
    GiveUp,
    /// The handler is closed, so the launcher ends.
    Ended(LauncherEnd),
}

pub(crate) struct Arguments {
    pub(crate) node: Arc<NodeContext>,
    pub(crate) candidate: crate::ports::ownership::run_store::Candidate,
    pub(crate) life: Life,
    pub(crate) routes: Routes,
    pub(crate) logs: data_log_writer::LogQueue,
    /// Bounds the number of concurrent claims.
    pub(crate) claims: Arc<Semaphore>,
    /// Control that the run has already applied, so that the parent sends no message about it.
    pub(crate) seen: Arc<SeenRevision>,
    /// Books another share of the rate.
    pub(crate) book: BookSink,
}

pub(crate) struct Launcher {
    pub(crate) arguments: Arc<Arguments>,
    pub(crate) me: Address<Msg>,
    pub(crate) run: Option<Run>,
    /// Publication in place of a run, for a shard without items.
    pub(crate) publication: Option<Publication>,
    /// Previous owner, and whether it was silent or handed the shard over.
    pub(crate) taken_from: Option<String>,
    /// Messages that arrived before the run began.
    pub(crate) early: Vec<Msg>,
    /// Set when the run is no longer wanted: a claim not made yet is skipped.
    pub(crate) called_off: Arc<AtomicBool>,
    pub(crate) end: Option<LauncherEnd>,
    looks: Looks,
}

/// Reads of the control: while one is in progress, another is only remembered. A thousand appends a second give a
/// thousand reasons to read, and one read covers them all.
#[derive(Debug, Default)]
struct Looks {
    /// Start of the read in progress, or `None`.
    since: Option<Moment>,
    again: bool,
}

impl TreeActor for Launcher {
    type Msg = Msg;
    type Arguments = Arguments;

    async fn begin(me: Address<Msg>, arguments: Arguments) -> Result<Self, ActorProcessingErr> {
        me.tell(Msg::Claim);
        let owner = arguments.candidate.session;
        let node = &arguments.node;
        let unwritten = node.clock.wall().since(arguments.candidate.written_at);
        let taken_from = owner.and_then(|owner| node.heartbeats.describe(owner, unwritten, node.clock.now()));
        let (run, early, called_off, end) = (None, Vec::new(), Arc::default(), None);
        Ok(Launcher {
            arguments: Arc::new(arguments),
            me,
            run,
            publication: None,
            taken_from,
            early,
            called_off,
            end,
            looks: Looks::default(),
        })
    }

    async fn handle(&mut self, message: Msg) -> Handled {
        match message {
            Msg::Claim => self.claim(),
            // Boxed: work done once per run must not take space in each of ten thousand actors.
            Msg::Claimed(outcome) => return Box::pin(self.on_claimed(*outcome)).await,
            Msg::Ended(end) => {
                self.end = Some(end);
                self.me.actor().stop(None);
            }
            Msg::GiveUp => {
                let why = say::store_gave_no_answer().to_string();
                self.finish(LauncherEnd::StillOwned(why));
            }
            message if self.publication.is_some() => self.on_publication(&message),
            Msg::Row(..) | Msg::NotListed(_) | Msg::Look | Msg::LookAgain | Msg::Neighbours(_)
                if self.run.is_none() => {}
            message if self.run.is_none() => self.keep_for_later(message),
            Msg::Draft(draft) => self.with_run(|run, state| run.on_draft(*draft, state)),
            Msg::Written(written) => return self.on_written(written),
            Msg::Resend(seq) => self.with_run(|run, state| run.resend(seq, state)),
            Msg::Row(row, sent) => self.on_row(row, sent),
            Msg::NotListed(sent) => self.on_not_listed(sent),
            Msg::Look => self.look(),
            Msg::Controlled(control) => {
                self.with_run(|run, state| {
                    run.on_control(*control, state);
                    state.arguments.seen.note(run.claim(), run.control());
                });
                self.looks.since = None;
                if std::mem::take(&mut self.looks.again) {
                    self.look();
                }
            }
            Msg::Booked(part, outcome) => self.with_run(|run, state| run.on_booked(part, outcome, state)),
            Msg::BookAgain => self.with_run(|run, state| run.book_again(state)),
            Msg::LookAgain => self.look_again(),
            Msg::Neighbours(others) => self.on_neighbours(&others),
            Msg::Restart(Kind::LeaseRenewer) => return Box::pin(self.start_renewer()).await,
            Msg::Restart(_) => return Box::pin(self.start_executor()).await,
            Msg::Drop => self.finish(LauncherEnd::Fenced),
            Msg::Stale => {
                return Err(ActorProcessingErr::from(say::newer_run().english()));
            }
            Msg::Leave => self.with_run(|run, state| run.leave(state)),
            Msg::HandOver => self.steer(Command::Stop(RunEnd::HandedOver)),
            Msg::Abort => self.with_run(|run, _| run.abort(RunEnd::HandedOver)),
        }
        Ok(())
    }

    /// Passes the end of a child to the run, which no longer knows a child that was stopped on purpose.
    fn on_child_ended(&mut self, child: &ActorCell, _: Option<BoxedState>, reason: &str) -> Handled {
        let mut outcome = Ok(());
        self.with_run(|run, state| outcome = run.on_child_lost(child.get_id(), reason, state));
        outcome
    }

    async fn end(&mut self) {
        let children = self.me.cell();
        children.stop_children_and_wait(None, Some(RESEND_AFTER)).await;
    }
}

impl Launcher {
    pub(crate) fn shard(&self) -> ShardId {
        self.arguments.candidate.rank.shard
    }

    fn keep_for_later(&mut self, message: Msg) {
        if matches!(message, Msg::HandOver | Msg::Abort | Msg::Drop) {
            self.called_off.store(true, Ordering::Relaxed);
        }
        self.early.push(message);
    }

    pub(crate) fn steer(&mut self, command: Command) {
        self.with_run(|run, _| run.steer(command));
    }

    /// Calls `act` with the run taken out, so that both the run and the rest of the state can be changed.
    pub(crate) fn with_run(&mut self, act: impl FnOnce(&mut Run, &mut Launcher)) {
        if let Some(mut run) = self.run.take() {
            act(&mut run, self);
            self.run = Some(run);
        }
    }

    fn on_written(&mut self, written: checkpoint_writer::Written) -> Handled {
        let mut end = None;
        let mut refused = None;
        self.with_run(|run, state| match written {
            checkpoint_writer::Written::Ack(seq, CheckpointAck::Stored) => end = run.on_stored(seq, state),
            checkpoint_writer::Written::Ack(_, CheckpointAck::Fenced) => end = Some(LauncherEnd::Fenced),
            checkpoint_writer::Written::Refused(error) => refused = Some(error),
        });
        if let Some(error) = refused {
            return Err(ActorProcessingErr::from(error));
        }
        if let Some(end) = end {
            self.finish(end);
        }
        Ok(())
    }

    /// Handles the shard's row from a heartbeat; reads the control only if something changed.
    fn on_row(&mut self, row: OwnedShard, sent: Moment) {
        let Some(run) = &self.run else { return };
        if row.claim != run.claim() {
            // An answer from before the claim names the previous claim.
            if run.is_missing_at(sent) {
                self.finish(LauncherEnd::Fenced);
            }
            return;
        }
        if row.leaves {
            self.with_run(|run, state| run.leave(state));
            return;
        }
        if row.desired == run.control().desired && row.control_rev == run.control().rev {
            return;
        }
        self.look();
    }

    /// Reads the control, which is applied when it arrives.
    pub(crate) fn look(&mut self) {
        let now = self.arguments.node.clock.now();
        if self
            .looks
            .since
            .is_some_and(|since| now.since(since) < LOOK_PATIENCE)
        {
            self.looks.again = true;
            return;
        }
        self.looks.since = Some(now);
        let (node, me, shard) = (self.arguments.node.clone(), self.me.clone(), self.shard());
        self.arguments.node.work.spawn(self.me.guard(async move {
            match node.runs.control(shard).await {
                Ok(control) => {
                    me.tell(Msg::Controlled(Box::new(control)));
                }
                // The next heartbeat shows the difference again.
                Err(error) => tracing::warn!(%shard, %error, "control not read"),
            }
        }));
    }

    /// Ends the run if the row names another session, unless the run itself gave the shard back or had not claimed it
    /// yet.
    fn on_not_listed(&mut self, sent: Moment) {
        if self.run.as_ref().is_some_and(|run| run.is_missing_at(sent)) {
            self.finish(LauncherEnd::Fenced);
        }
    }

    /// Ends the run: no more dispatch, no more writes. Closes the handler, then ends the launcher.
    pub(crate) fn finish(&mut self, end: LauncherEnd) {
        let closing = self.run.take().map(|run| run.close(self));
        let me = self.me.clone();
        tokio::spawn(async move {
            if let Some(closing) = closing {
                closing.await;
            }
            me.tell(Msg::Ended(end));
        });
    }
}

impl Drop for Launcher {
    /// Runs also when the launcher fails or is killed: its run dispatches nothing more and is no longer shown.
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            run.fail(&self.arguments.node, &self.arguments.routes.lease_keeper);
        }
    }
}
