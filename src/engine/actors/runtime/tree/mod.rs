//! Supervision tree as shown to people: one entry per actor, as text and as values.
//!
//! Actors write their own entry, so the tree can be printed even when an actor hangs.

mod logged;
pub mod table;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use self::logged::Logged;
use crate::actors::runtime::lock;
use crate::actors::runtime::policy::Kind;
use crate::ports::clock::Clock;
use windrow_core::ids::Moment;
use windrow_core::slugs;

/// Target of every log line that shows the tree, so that a log may have these lines and no others.
pub(crate) const LOG: &str = module_path!();

slugs! {
    /// Current activity of an actor.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Activity {
        /// Working normally, with no failure.
        Ok = "ok",
        /// Finishing the calls in flight.
        Draining = "DRAINING",
        /// Failed, waiting to be restarted.
        Backoff = "BACKOFF",
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

/// One actor as shown to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorView {
    /// Path of the actor, such as `n1/t42.0/executor`.
    pub path: String,
    /// Kind of the actor.
    pub kind: Kind,
    /// Current activity of the actor.
    pub activity: Activity,
    /// Time since its last start.
    pub uptime: Duration,
    /// Number of restarts under this path.
    pub restarts: u32,
    /// Messages waiting in its mailbox.
    pub mailbox: u64,
    /// Time since it last handled a message.
    pub last_handled: Duration,
    /// Status text written by the actor.
    pub text: String,
}

/// All actors of a node, by path.
#[derive(Clone)]
pub struct Tree {
    clock: Arc<dyn Clock>,
    entries: Arc<Mutex<BTreeMap<String, Arc<Entry>>>>,
    restarts: Arc<Mutex<BTreeMap<String, u32>>>,
    /// Errors of actors that failed and were not restarted yet.
    failures: Arc<Mutex<BTreeMap<String, String>>>,
    observer: Option<Observer>,
    printed: Printed,
}

/// Events at which the tree is printed to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed {
    /// Print the tree when the node has started.
    pub start: bool,
    /// Print an actor's part of the tree when it was restarted.
    pub restart: bool,
    /// Print the tree when the node drains, and the actors still alive when it has ended.
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

/// Callback with the path of an actor that begins to handle a message: for metrics, and for tests that let an actor
/// panic at a chosen moment.
pub type Observer = Arc<dyn Fn(&str) + Send + Sync>;

/// Entry of one actor; removed from the tree when its owner drops the last clone through `leave`.
#[derive(Clone)]
pub(crate) struct Leaf {
    tree: Tree,
    path: Arc<str>,
    entry: Arc<Entry>,
}

impl Tree {
    /// Creates an empty tree.
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

    /// Returns the tree with an observer of every message.
    #[must_use]
    pub fn observed(self, observer: Observer) -> Tree {
        Tree {
            observer: Some(observer),
            ..self
        }
    }

    /// Returns the tree, printed at these events.
    #[must_use]
    pub fn printed(self, printed: Printed) -> Tree {
        Tree { printed, ..self }
    }

    /// Returns the actors from a path on, for a log line; nothing if they are not wanted.
    pub(crate) fn for_log(&self, path: &str, wanted: impl Fn(Printed) -> bool) -> Logged {
        Logged(wanted(self.printed).then(|| self.below(path)))
    }

    /// Records why an actor failed; the log line of its restart shows it.
    pub(crate) fn failed(&self, path: &str, error: &str) {
        lock(&self.failures).insert(path.to_owned(), error.to_owned());
    }

    /// Adds an actor and logs its start; a path that was there before counts as a restart.
    pub(crate) fn enter(&self, path: &str, kind: Kind) -> Leaf {
        let now = self.clock.now();
        let mut seen = lock(&self.restarts);
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
        lock(&self.entries).insert(path.to_owned(), entry.clone());
        match restarts {
            0 => tracing::debug!(actor = path, "actor started"),
            _ => {
                let reason = lock(&self.failures).remove(path);
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

    /// Forgets a path's restarts: the next actor under it belongs to another run.
    pub(crate) fn forget(&self, path: &str) {
        remove_from(&mut lock(&self.failures), path);
        remove_from(&mut lock(&self.restarts), path);
        remove_from(&mut lock(&self.entries), path);
    }

    /// Returns every actor, parents before children.
    pub fn view(&self) -> Vec<ActorView> {
        self.below("")
    }

    /// Renders the tree as lines of text below a header line, children below their parents; `below` picks a subtree.
    pub fn render(&self, below: &str) -> String {
        table::render(&self.below(below))
    }

    /// Returns the actors whose paths begin with `path`. Costs only what it finds: thousands of runs may begin
    /// together, and each is logged.
    fn below(&self, path: &str) -> Vec<ActorView> {
        let now = self.clock.now();
        let entries = lock(&self.entries);
        let from = entries.range::<str, _>((Bound::Included(path), Bound::Unbounded));
        from.take_while(|(name, _)| name.starts_with(path))
            .map(|(name, entry)| entry.view(name, now))
            .collect()
    }
}

/// Removes a path and everything below it. Costs only what it removes: thousands of runs may end together.
fn remove_from<V>(known: &mut BTreeMap<String, V>, path: &str) {
    known.remove(path);
    // The character after the slash: every path below sorts before it.
    let below = format!("{path}/")..format!("{path}0");
    let gone: Vec<String> = known.range(below).map(|(name, _)| name.clone()).collect();
    for name in gone {
        known.remove(&name);
    }
}

impl Entry {
    fn view(&self, path: &str, now: Moment) -> ActorView {
        let (activity, text) = lock(&self.text).clone();
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
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn child(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Adds a child that is the only one of its kind.
    pub(crate) fn enter_child(&self, kind: Kind) -> Leaf {
        self.tree.enter(&self.child(kind.as_str()), kind)
    }

    /// Adds to the number of messages in the mailbox, since ractor doesn't count them.
    pub(crate) fn count_waiting(&self, messages: i64) {
        self.entry.mailbox.fetch_add(messages, Ordering::Relaxed);
    }

    /// Records that a message is being handled.
    pub(crate) fn handled(&self) {
        self.count_waiting(-1);
        self.entry
            .handled_at
            .store(self.tree.clock.now().0, Ordering::Relaxed);
        if let Some(observer) = &self.tree.observer {
            observer(&self.path);
        }
    }

    /// Sets the actor's activity and its status text.
    pub(crate) fn say(&self, activity: Activity, text: impl std::fmt::Display) {
        *lock(&self.entry.text) = (activity, text.to_string());
    }

    /// Removes the actor from the tree and logs its end, unless a newer one has its path.
    pub(crate) fn leave(&self) {
        let mut entries = lock(&self.tree.entries);
        if entries
            .get(&*self.path)
            .is_some_and(|entry| Arc::ptr_eq(entry, &self.entry))
        {
            entries.remove(&*self.path);
            tracing::debug!(actor = &*self.path, "actor ended");
        }
    }
}
