//! Owns one shard on this node: claims it, starts its renewer and executor, numbers its checkpoints, ends its run.
//!
//! It holds the newest checkpoint until it is stored, so that neither a crash of the executor nor one of the writer
//! loses a completion that was handed over. It is not restarted in place: when it fails, its parent gives the
//! reservation back and releases the shard, which is then offered anew.

pub mod claim;
pub mod idle;
pub mod lease_renewer;
pub mod opening;
pub mod publication;
pub mod run;
pub mod share;
pub mod start;
pub mod takeover;

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
use crate::ports::ownership::run_store::{CheckpointAck, Control, RunClose};
use crate::ports::ownership::session_store::OwnedShard;
use windrow_core::capacity::Refusal;
use windrow_core::execution::{Command, RunEnd};
use windrow_core::ids::{CheckpointSeq, Moment, ShardId};

/// Nothing was heard of a checkpoint for this long: it is sent again, with the same number.
const RESEND_AFTER: Duration = Duration::from_secs(2);
/// Nothing came of a look for so long: it is made again.
const LOOK_PATIENCE: Duration = Duration::from_millis(500);

/// Why a node leaves a shard alone that has no live owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unclaimable {
    /// Its owner is silent, but may live on a lease, and the lease store can't be reached.
    NoWitness,
    /// Its checkpoint has this version, which only a newer program reads.
    Newer(u8),
}

/// How a launcher ended, for its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LauncherEnd {
    /// The shard was never owned.
    NotOwned,
    /// The same, since it may not be had for now.
    Unclaimable(Unclaimable),
    /// The run is over and its shard was given back in the store.
    Closed(RunClose),
    /// Someone else owns the shard.
    Fenced,
    /// The run is over but the store still says that this session owns the shard.
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
    /// Nothing may have been heard of the checkpoint of this number.
    Resend(CheckpointSeq),
    /// A heartbeat sent at this moment found this row of the shard.
    Row(OwnedShard, Moment),
    /// A heartbeat sent at this moment did not find the shard among the session's.
    NotListed(Moment),
    /// The wish or the settings may have changed.
    Look,
    Controlled(Box<Control>),
    /// What came of a request to book this part.
    Booked(Part, Result<(), Refusal>),
    BookAgain,
    /// The other shards may have failed more.
    LookAgain,
    /// Start a child again: the executor after its lanes are gone.
    Restart(Kind),
    /// The lease is someone else's, or the session was fenced: stop at once, write nothing.
    Drop,
    /// The handler has seen a newer run: fail, so that the shard is dropped if that is so, and else claimed anew.
    Stale,
    /// Drain and give the shard to others.
    HandOver,
    /// The same, while this node goes on with the rest.
    Leave,
    /// The drain took too long: abort what is in flight.
    Abort,
    /// The node ends, and the store doesn't answer: end without it.
    GiveUp,
    /// The handler is closed: the end.
    Ended(LauncherEnd),
}

pub(crate) struct Arguments {
    pub(crate) node: Arc<NodeContext>,
    pub(crate) candidate: crate::ports::ownership::run_store::Candidate,
    pub(crate) life: Life,
    pub(crate) routes: Routes,
    pub(crate) logs: data_log_writer::LogQueue,
    /// Bounds the claims on their way.
    pub(crate) claims: Arc<Semaphore>,
    /// What its parent need not tell it.
    pub(crate) seen: Arc<SeenRevision>,
    /// Books another part of the rate.
    pub(crate) book: BookSink,
}

pub(crate) struct Launcher {
    pub(crate) arguments: Arc<Arguments>,
    pub(crate) me: Address<Msg>,
    pub(crate) run: Option<Run>,
    /// In place of a run, of a shard without items.
    pub(crate) publication: Option<Publication>,
    /// Whose it was, and whether it was silent or handed it over.
    pub(crate) taken_from: Option<String>,
    /// Wishes that arrived before the run did.
    pub(crate) early: Vec<Msg>,
    /// Nobody wants the run any more: a claim that has not been made yet need not be.
    pub(crate) called_off: Arc<AtomicBool>,
    pub(crate) end: Option<LauncherEnd>,
    looks: Looks,
}

/// Reads of the control: while one is under way another is only remembered. A thousand appends a second are a thousand
/// reasons to look, and one look sees them all.
#[derive(Debug, Default)]
struct Looks {
    /// Since when one is under way.
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
            // In boxes: what is done once a run needn't have its room in each of ten thousand actors.
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
            Msg::Row(..) | Msg::NotListed(_) | Msg::Look | Msg::LookAgain if self.run.is_none() => {}
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

    /// A child that was stopped on purpose is no longer known to the run.
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

    /// Runs with the run taken out, so that it and the rest of the state can both be changed.
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

    /// What the task wants, as the heartbeat found it; the settings are read only when they changed.
    fn on_row(&mut self, row: OwnedShard, sent: Moment) {
        let Some(run) = &self.run else { return };
        if row.claim != run.claim() {
            // An answer from before the claim names the claim before.
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

    /// Reads the control, which is obeyed when it comes.
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

    /// The row names another session by now, unless the run itself gave it back or had not claimed it yet.
    fn on_not_listed(&mut self, sent: Moment) {
        if self.run.as_ref().is_some_and(|run| run.is_missing_at(sent)) {
            self.finish(LauncherEnd::Fenced);
        }
    }

    /// The run is over: no more dispatch, no more writes; the handler is closed, then the launcher ends.
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
    /// Also when the launcher fails or is killed: nothing of its run dispatches or is shown any more.
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            run.fail(&self.arguments.node, &self.arguments.routes.lease_keeper);
        }
    }
}
