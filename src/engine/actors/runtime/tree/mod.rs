//! What people see of the supervision tree: one entry per actor, as text and as values.
//!
//! Actors write their own entry; nobody is asked, so the tree can be printed even when an actor hangs.

pub mod table;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use ractor::{ActorRef, Message};

use crate::actors::runtime::policy::Kind;
use crate::ports::clock::Clock;
use windrow_core::ids::Moment;

/// The target of every line that shows the tree, so that a log may have these lines and no others.
pub(crate) const LOG: &str = module_path!();

/// What an actor is up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Working as it should.
    Ok,
    /// Finishing what is in flight.
    Draining,
    /// Failed, waits to be started again.
    Backoff,
}

impl Activity {
    /// The word shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Activity::Ok => "ok",
            Activity::Draining => "DRAINING",
            Activity::Backoff => "BACKOFF",
        }
    }
}

#[derive(Debug)]
struct Entry {
    kind: Kind,
    since: Moment,
    restarts: u32,
    mailbox: AtomicI64,
    handled_at: AtomicU64,
    text: Mutex<(Activity, String)>,
}

/// One actor as shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorView {
    /// `n1/t42.0/executor`.
    pub path: String,
    /// Its kind.
    pub kind: Kind,
    /// What it is up to.
    pub activity: Activity,
    /// Since its last start.
    pub uptime: Duration,
    /// How often it was started again.
    pub restarts: u32,
    /// Messages that wait.
    pub mailbox: u64,
    /// Since it last handled a message.
    pub last_handled: Duration,
    /// Its own words.
    pub text: String,
}

/// All actors of a node, by path.
#[derive(Clone)]
pub struct Tree {
    clock: Arc<dyn Clock>,
    entries: Arc<Mutex<BTreeMap<String, Arc<Entry>>>>,
    restarts: Arc<Mutex<BTreeMap<String, u32>>>,
    /// Why actors failed that were not started again yet.
    failures: Arc<Mutex<BTreeMap<String, String>>>,
    observer: Option<Observer>,
    printed: Printed,
}

/// When the tree is printed to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed {
    /// When the node has started.
    pub start: bool,
    /// When an actor was started again: its part of the tree.
    pub restart: bool,
    /// When the node has ended: what is still alive.
    pub stop: bool,
}

impl Default for Printed {
    fn default() -> Printed {
        Printed {
            start: true,
            restart: true,
            stop: true,
        }
    }
}

/// Called in an actor, with its path, whenever it begins to handle a message: for metrics, and for tests that let
/// an actor panic at a chosen moment.
pub type Observer = Arc<dyn Fn(&str) + Send + Sync>;

/// An actor's own entry; it leaves the tree when the last clone is dropped by its owner through `leave`.
#[derive(Clone)]
pub(crate) struct Leaf {
    tree: Tree,
    path: Arc<str>,
    entry: Arc<Entry>,
}

impl Tree {
    /// An empty tree.
    pub fn new(clock: Arc<dyn Clock>) -> Tree {
        Tree {
            clock,
            entries: Arc::default(),
            restarts: Arc::default(),
            failures: Arc::default(),
            observer: None,
            printed: Printed::default(),
        }
    }

    /// The same tree with an observer of every message.
    #[must_use]
    pub fn observed(self, observer: Observer) -> Tree {
        Tree {
            observer: Some(observer),
            ..self
        }
    }

    /// The same tree, printed when these say so.
    #[must_use]
    pub fn printed(self, printed: Printed) -> Tree {
        Tree { printed, ..self }
    }

    /// The tree from a path on for a line of the log, below it; nothing where it is not wanted.
    pub(crate) fn for_log(&self, path: &str, wanted: impl Fn(Printed) -> bool) -> String {
        let text = if wanted(self.printed) {
            self.render(path)
        } else {
            String::new()
        };
        text.lines().map(|line| format!("\n  {line}")).collect()
    }

    /// Notes why an actor failed: its restart says it.
    pub(crate) fn failed(&self, path: &str, error: &str) {
        self.failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path.to_owned(), error.to_owned());
    }

    /// Enters an actor and logs its start; a path that was there before counts as a restart.
    pub(crate) fn enter(&self, path: &str, kind: Kind) -> Leaf {
        let now = self.clock.now();
        let mut seen = self.restarts.lock().unwrap_or_else(PoisonError::into_inner);
        let restarts = *seen
            .entry(path.to_owned())
            .and_modify(|count| *count += 1)
            .or_insert(0);
        drop(seen);
        let entry = Arc::new(Entry {
            kind,
            since: now,
            restarts,
            mailbox: AtomicI64::new(0),
            handled_at: AtomicU64::new(now.0),
            text: Mutex::new((Activity::Ok, String::new())),
        });
        self.entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path.to_owned(), entry.clone());
        match restarts {
            0 => tracing::debug!(actor = path, "actor started"),
            _ => {
                let reason = self
                    .failures
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(path);
                let tree = self.for_log(path, |printed| printed.restart);
                tracing::warn!(actor = path, restarts, reason, %tree, "actor restarted");
            }
        }
        Leaf {
            tree: self.clone(),
            path: path.into(),
            entry,
        }
    }

    /// Forgets a path's restarts: what comes next under it is another run.
    pub(crate) fn forget(&self, path: &str) {
        remove_from(
            &mut self.failures.lock().unwrap_or_else(PoisonError::into_inner),
            path,
        );
        remove_from(
            &mut self.restarts.lock().unwrap_or_else(PoisonError::into_inner),
            path,
        );
        remove_from(
            &mut self.entries.lock().unwrap_or_else(PoisonError::into_inner),
            path,
        );
    }

    /// Every actor, parents before children.
    pub fn view(&self) -> Vec<ActorView> {
        let now = self.clock.now();
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries
            .iter()
            .map(|(path, entry)| entry.view(path, now))
            .collect()
    }

    /// The tree as lines of text below a line with the names of the columns, children below their parents; `below` picks
    /// a subtree.
    pub fn render(&self, below: &str) -> String {
        let actors: Vec<ActorView> = self
            .view()
            .into_iter()
            .filter(|actor| actor.path.starts_with(below))
            .collect();
        table::render(&actors)
    }
}

/// Removes a path and all below it. Costs what it removes: thousands of runs may end together.
fn remove_from<V>(known: &mut BTreeMap<String, V>, path: &str) {
    known.remove(path);
    // The character after the slash: every path below is before it.
    let below = format!("{path}/")..format!("{path}0");
    let gone: Vec<String> = known.range(below).map(|(name, _)| name.clone()).collect();
    for name in gone {
        known.remove(&name);
    }
}

impl Entry {
    fn view(&self, path: &str, now: Moment) -> ActorView {
        let (activity, text) = self.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ActorView {
            path: path.to_owned(),
            kind: self.kind,
            activity,
            uptime: now.since(self.since),
            restarts: self.restarts,
            mailbox: u64::try_from(self.mailbox.load(Ordering::Relaxed)).unwrap_or(0),
            last_handled: now.since(Moment(self.handled_at.load(Ordering::Relaxed))),
            text,
        }
    }
}

impl Leaf {
    /// The actor's path.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The path of a child.
    pub(crate) fn child(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Notes that a message is being handled.
    pub(crate) fn handled(&self) {
        self.entry.mailbox.fetch_sub(1, Ordering::Relaxed);
        self.entry
            .handled_at
            .store(self.tree.clock.now().0, Ordering::Relaxed);
        if let Some(observer) = &self.tree.observer {
            observer(&self.path);
        }
    }

    /// Says in the actor's own words what it is up to.
    pub(crate) fn say(&self, activity: Activity, text: impl Into<String>) {
        *self.entry.text.lock().unwrap_or_else(PoisonError::into_inner) = (activity, text.into());
    }

    /// Takes the actor out of the tree and logs its end, unless a newer one stands under its path.
    pub(crate) fn leave(&self) {
        let mut entries = self.tree.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries
            .get(&*self.path)
            .is_some_and(|entry| Arc::ptr_eq(entry, &self.entry))
        {
            entries.remove(&*self.path);
            tracing::debug!(actor = &*self.path, "actor ended");
        }
    }
}

/// Where to send an actor messages; counts what waits in its mailbox, since ractor does not tell.
pub(crate) struct Address<M: Message> {
    actor: ActorRef<M>,
    leaf: Leaf,
}

impl<M: Message> Clone for Address<M> {
    fn clone(&self) -> Address<M> {
        Address {
            actor: self.actor.clone(),
            leaf: self.leaf.clone(),
        }
    }
}

impl<M: Message> Address<M> {
    pub(crate) fn new(actor: ActorRef<M>, leaf: Leaf) -> Address<M> {
        Address { actor, leaf }
    }

    /// Sends a message; says whether the actor still takes any.
    pub(crate) fn tell(&self, message: M) -> bool {
        self.leaf.entry.mailbox.fetch_add(1, Ordering::Relaxed);
        let sent = self.actor.cast(message).is_ok();
        if !sent {
            self.leaf.entry.mailbox.fetch_sub(1, Ordering::Relaxed);
        }
        sent
    }

    /// Sends a message after a while, unless the actor is gone by then.
    pub(crate) fn tell_after(&self, wait: Duration, message: M) {
        let address = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            address.tell(message);
        });
    }

    /// The same work, for a task of its own. A panic in it ends the actor as one of its own would: whoever waits for
    /// the work's answer would wait for ever, its parent starts it again.
    pub(crate) fn guard<W>(&self, work: W) -> impl Future<Output = ()> + Send + use<M, W>
    where
        W: Future<Output = ()> + Send,
    {
        let (actor, path) = (self.actor.clone(), self.leaf.path.clone());
        async move {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                tracing::error!(
                    actor = &*path,
                    "work of the actor panicked; the actor ends with it"
                );
                actor.kill();
            }
        }
    }

    /// The actor itself, to stop or kill it.
    pub(crate) fn actor(&self) -> &ActorRef<M> {
        &self.actor
    }
}

/// A stable way to an actor that may be restarted: senders hold the line, its parent plugs in the new address.
pub(crate) struct Line<M: Message>(Arc<Mutex<Option<Address<M>>>>);

impl<M: Message> Clone for Line<M> {
    fn clone(&self) -> Line<M> {
        Line(self.0.clone())
    }
}

impl<M: Message> Default for Line<M> {
    fn default() -> Line<M> {
        Line(Arc::new(Mutex::new(None)))
    }
}

impl<M: Message> Line<M> {
    pub(crate) fn plug(&self, address: Address<M>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
    }

    /// Sends a message; says whether someone took it. Senders of what must not be lost send again by themselves.
    pub(crate) fn tell(&self, message: M) -> bool {
        let address = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        address.is_some_and(|address| address.tell(message))
    }
}
