//! Group commit of the checkpoints of all launchers: one transaction at a time; checkpoints that arrive meanwhile go
//! into the next.
//!
//! The writer keeps nothing for others: a launcher holds its checkpoint until it learns that it is stored, and sends
//! it again (same number) if it hears nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

use ractor::ActorProcessingErr;

use crate::actors::runtime::actor::{Handled, TreeActor};
use crate::actors::runtime::address::{Address, Route};
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::tree::Activity;
use crate::ports::ErrorClass;
use crate::ports::StoreError;
use crate::ports::ownership::run_store::{CheckpointAck, ShardCheckpoint};
use windrow_core::explain::counted;
use windrow_core::ids::{CheckpointSeq, ShardId};
use windrow_core::items::retry::doubled;

/// Maximum number of shards and side records per transaction; one shard may exceed the latter alone.
const SHARDS_MAX: usize = 100;
const SIDE_RECORDS_MAX: usize = 1_000;
/// Maximum number of log lines per transaction; one shard may exceed them alone.
const LINES_MAX: usize = 10_000;
/// First and longest delay after a failed transaction, doubled each time.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Ack(CheckpointSeq, CheckpointAck),
    /// The checkpoint can never be written: its data is wrong. A bug; the run must end.
    Refused(StoreError),
}

pub(crate) type WrittenSink = Arc<dyn Fn(Written) + Send + Sync>;

pub(crate) enum Msg {
    Write(Box<ShardCheckpoint>, WrittenSink),
    Done(Result<(), Duration>),
    Again,
}

type Job = (ShardCheckpoint, WrittenSink);

pub(crate) struct CheckpointWriter {
    node: Arc<NodeContext>,
    me: Address<Msg>,
    waiting: BTreeMap<ShardId, Job>,
    writing: bool,
    failures: u32,
}

impl TreeActor for CheckpointWriter {
    type Msg = Msg;
    type Arguments = (Arc<NodeContext>, Route<Msg>);

    async fn begin(me: Address<Msg>, (node, route): Self::Arguments) -> Result<Self, ActorProcessingErr> {
        route.lead_to(&me);
        Ok(CheckpointWriter {
            node,
            me,
            waiting: BTreeMap::new(),
            writing: false,
            failures: 0,
        })
    }

    async fn handle(&mut self, message: Msg) -> Handled {
        match message {
            Msg::Write(checkpoint, sink) => {
                self.waiting.insert(checkpoint.shard, (*checkpoint, sink));
                self.write();
            }
            Msg::Done(outcome) => self.on_done(outcome),
            Msg::Again => {
                self.writing = false;
                self.write();
            }
        }
        Ok(())
    }
}

impl CheckpointWriter {
    fn write(&mut self) {
        if self.writing || self.waiting.is_empty() {
            return;
        }
        self.writing = true;
        let jobs = self.take_jobs();
        self.me.leaf.say(
            Activity::Ok,
            format!("{} in a transaction", counted(jobs.len() as u64, "shard")),
        );
        let (node, me) = (self.node.clone(), self.me.clone());
        self.node.work.spawn(self.me.guard(async move {
            let started = node.clock.now();
            let outcome = commit(&node, jobs).await;
            let now = node.clock.now();
            let took = now.since(started);
            node.meters.checkpointed(outcome.is_ok(), started, now);
            me.tell(Msg::Done(outcome.map_err(|()| took)));
        }));
    }

    /// Takes jobs in order of shard number, so that two writers never lock shards crosswise.
    fn take_jobs(&mut self) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        let (mut side, mut lines) = (0, 0);
        while let Some((shard, (checkpoint, _))) = self.waiting.first_key_value() {
            side += checkpoint.side.len();
            lines += checkpoint.line_count();
            let full = jobs.len() >= SHARDS_MAX || side > SIDE_RECORDS_MAX || lines > LINES_MAX;
            if !jobs.is_empty() && full {
                break;
            }
            let shard = *shard;
            jobs.extend(self.waiting.remove(&shard));
        }
        jobs
    }

    fn on_done(&mut self, outcome: Result<(), Duration>) {
        if outcome.is_ok() {
            self.failures = 0;
            self.writing = false;
            return self.write();
        }
        let wait = doubled(RETRY, self.failures);
        self.failures += 1;
        self.me
            .leaf
            .say(Activity::Backoff, say::store_away(self.failures));
        self.me.tell_after(wait, Msg::Again);
    }
}

/// Writes one transaction. If the store is unavailable no launcher is notified: they send again.
async fn commit(node: &NodeContext, jobs: Vec<Job>) -> Result<(), ()> {
    let (checkpoints, sinks): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
    match node.runs.checkpoint(&checkpoints).await {
        Ok(acks) => {
            for ((checkpoint, ack), sink) in checkpoints.iter().zip(acks).zip(sinks) {
                sink(Written::Ack(checkpoint.seq, ack));
            }
            Ok(())
        }
        Err(error) if error.class() == ErrorClass::Transient => {
            node.meters.not_written(&error, node.clock.now());
            tracing::warn!(%error, shards = checkpoints.len(), "checkpoint not written; trying again");
            Err(())
        }
        Err(_) if checkpoints.len() > 1 => {
            // One of them is at fault, and only its run ends.
            for job in checkpoints.into_iter().zip(sinks) {
                Box::pin(commit(node, vec![job])).await?;
            }
            Ok(())
        }
        Err(error) => {
            tracing::error!(%error, shards = checkpoints.len(), "checkpoint rejected");
            sinks
                .into_iter()
                .for_each(|sink| sink(Written::Refused(error.clone())));
            Ok(())
        }
    }
}
