//! Copying of published datasets to where readers have them nearer, with checks that the copies are still there.
//!
//! Every node that can does this, all alike: the store gives one the claim on a copy. A failure here blocks nothing:
//! the current generation stays current for readers of the API, and the copy follows once it can.

use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

use ractor::ActorProcessingErr;

use crate::actors::runtime::actor::{Handled, TreeActor};
use crate::actors::runtime::address::Address;
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::in_time;
use crate::actors::runtime::tree::Activity;
use crate::actors::upkeep::copying;
use crate::ports::StoreError;
use crate::ports::datasets::sink::{SinkAgenda, SinkCopier, SinkJob, SinkStore};
use windrow_core::explain::counted;
use windrow_core::ids::Moment;

/// Polling interval for datasets to copy.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Interval between checks that copies are still there.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// Maximum number of copies that this node makes at a time: each holds a page of results.
const COPYING_MAX: u32 = 4;
/// Time after which an unanswered query is repeated.
const PATIENCE: Duration = Duration::from_secs(20);

/// Dependencies for copying; a node without them copies nothing.
#[derive(Clone)]
pub struct SinkParts {
    /// Store of the wanted copies.
    pub store: Arc<dyn SinkStore>,
    /// Maker of the copies.
    pub copier: Arc<dyn SinkCopier>,
}

pub(crate) enum Msg {
    Tick,
    Looked(Result<SinkAgenda, StoreError>),
    Copied,
    Checked,
}

pub(crate) struct SinkFollower {
    node: Arc<NodeContext>,
    parts: Option<SinkParts>,
    me: Address<Msg>,
    looking: bool,
    checking: bool,
    checked_at: Moment,
    copying: u32,
    fails: bool,
}

impl TreeActor for SinkFollower {
    type Msg = Msg;
    type Arguments = Arc<NodeContext>;

    async fn begin(me: Address<Msg>, node: Self::Arguments) -> Result<Self, ActorProcessingErr> {
        let parts = node.sinks.clone();
        if parts.is_some() {
            me.tell(Msg::Tick);
        } else {
            me.leaf.say(Activity::Ok, say::no_sink());
        }
        Ok(SinkFollower {
            checked_at: node.clock.now(),
            node,
            parts,
            me,
            looking: false,
            checking: false,
            copying: 0,
            fails: false,
        })
    }

    async fn handle(&mut self, message: Msg) -> Handled {
        match message {
            Msg::Tick => {
                self.look();
                self.check();
                self.me.tell_after(LOOK_EVERY, Msg::Tick);
            }
            Msg::Looked(agenda) => self.on_looked(agenda),
            Msg::Copied => self.copying = self.copying.saturating_sub(1),
            Msg::Checked => self.checking = false,
        }
        if self.parts.is_some() {
            let copying = counted(u64::from(self.copying), "dataset");
            self.me.leaf.say(Activity::Ok, format!("{copying} being copied"));
        }
        Ok(())
    }
}

impl SinkFollower {
    fn look(&mut self) {
        let Some(parts) = self.parts.clone().filter(|_| !self.looking) else {
            return;
        };
        self.looking = true;
        let (me, room) = (self.me.clone(), COPYING_MAX.saturating_sub(self.copying));
        tokio::spawn(self.me.guard(async move {
            let taking = parts.store.take_sinks(room);
            me.tell(Msg::Looked(in_time(PATIENCE, say::the_store(), taking).await));
        }));
    }

    fn on_looked(&mut self, agenda: Result<SinkAgenda, StoreError>) {
        self.looking = false;
        match agenda {
            Ok(agenda) => {
                self.fails = false;
                self.node.meters.sinks_are(agenda.behind, agenda.lag);
                agenda.jobs.into_iter().for_each(|job| self.copy(job));
            }
            Err(error) => {
                if !std::mem::replace(&mut self.fails, true) {
                    tracing::warn!(actor = self.me.leaf.path(), %error, "copies not checked; trying again");
                }
            }
        }
    }

    fn copy(&mut self, job: SinkJob) {
        let Some(parts) = self.parts.clone() else { return };
        self.copying += 1;
        let (node, me, name) = (self.node.clone(), self.me.clone(), job.name.clone());
        // Results are read on the work runtime, not where actors run.
        let copying = self
            .node
            .work
            .spawn(async move { copying::copy(&node, &parts, job).await });
        tokio::spawn(self.me.guard(async move {
            if let Err(error) = copying.await {
                tracing::error!(dataset = name, %error, "dataset not copied; trying again after the lease");
            }
            me.tell(Msg::Copied);
        }));
    }

    fn check(&mut self) {
        let now = self.node.clock.now();
        let is_due = !self.checking && now.since(self.checked_at) >= CHECK_EVERY;
        let Some(parts) = self.parts.clone().filter(|_| is_due) else {
            return;
        };
        (self.checking, self.checked_at) = (true, now);
        let (node, me) = (self.node.clone(), self.me.clone());
        tokio::spawn(self.me.guard(async move {
            copying::check(&node, &parts).await;
            me.tell(Msg::Checked);
        }));
    }
}
