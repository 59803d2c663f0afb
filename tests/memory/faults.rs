//! Fault hooks: calls that fail before or after their effect, wait until they are let go, or belong to a frozen
//! session.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use windrow_core::ids::SessionId;
use windrow_engine::ports::StoreError;

/// A method of a store port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Anything that only reads.
    Read,
    /// `TaskStore::create`, `ensure_business`.
    Create,
    /// `TaskStore::command`, `release_name`, `explain_waits`, `delete`.
    Command,
    /// `AppendStore::append_items`.
    Append,
    /// Any method of `OutboxStore`.
    Outbox,
    /// `RunStore::candidates`.
    Candidates,
    /// `RunStore::claim`.
    Claim,
    /// `RunStore::checkpoint`, `release`.
    Checkpoint,
    /// `RunStore::parked_due`.
    Parked,
    /// `RunStore::control`.
    Control,
    /// `SessionStore::begin`, `end`.
    Session,
    /// `SessionStore::beat`.
    Beat,
    /// `SessionStore::fence`, `fence_all_but`.
    Fence,
    /// `LimitStore::play`.
    Limit,
    /// `SourceStore::save`.
    Source,
    /// `DataLog::append`.
    DataLog,
    /// Any method of `LeaseStore`.
    Lease,
}

/// Whether a failing call takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// It fails and nothing happened.
    Before,
    /// It happened and the answer was lost.
    After,
}

#[derive(Debug, Default)]
struct Plan {
    failures: HashMap<(Call, bool), u32>,
    held: HashSet<Call>,
    frozen: HashSet<SessionId>,
    /// Calls that wait now, by name: what a test awaits instead of sleeping.
    waiting: HashMap<Call, u32>,
}

/// What goes wrong, on demand. Every change takes effect for calls that wait already.
#[derive(Debug)]
pub struct Faults {
    plan: Mutex<Plan>,
    changed: watch::Sender<u64>,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults {
            plan: Mutex::default(),
            changed: watch::Sender::new(0),
        }
    }
}

impl Faults {
    /// The next `times` calls fail with `Unavailable`.
    pub fn fail_next(&self, call: Call, when: When, times: u32) {
        self.change(|plan| {
            plan.failures.insert((call, when == When::After), times);
        });
    }

    /// Calls wait until [`Faults::let_go`].
    pub fn hold(&self, call: Call) {
        self.change(|plan| {
            plan.held.insert(call);
        });
    }

    /// Calls that were held go on.
    pub fn let_go(&self, call: Call) {
        self.change(|plan| {
            plan.held.remove(&call);
        });
    }

    /// The heartbeats of a session wait until [`Faults::thaw`], as those of a suspended node.
    pub fn freeze(&self, session: SessionId) {
        self.change(|plan| {
            plan.frozen.insert(session);
        });
    }

    /// The heartbeats of a session go on.
    pub fn thaw(&self, session: SessionId) {
        self.change(|plan| {
            plan.frozen.remove(&session);
        });
    }

    /// Ends when at least one call of this kind is held. Cancel safe.
    pub async fn until_waiting(&self, call: Call) {
        self.until(|plan| plan.waiting.get(&call).is_some_and(|waiting| *waiting > 0))
            .await;
    }

    pub(super) async fn before(&self, call: Call) -> Result<(), StoreError> {
        if self.plan().held.contains(&call) {
            self.wait(call, |plan| !plan.held.contains(&call)).await;
        }
        self.fail(call, When::Before)
    }

    pub(super) fn after(&self, call: Call) -> Result<(), StoreError> {
        self.fail(call, When::After)
    }

    pub(super) async fn while_frozen(&self, session: SessionId) {
        if self.plan().frozen.contains(&session) {
            self.wait(Call::Beat, |plan| !plan.frozen.contains(&session))
                .await;
        }
    }

    async fn wait(&self, call: Call, is_over: impl Fn(&Plan) -> bool) {
        let _counted = Waiting::begin(self, call);
        self.until(is_over).await;
    }

    async fn until(&self, is_over: impl Fn(&Plan) -> bool) {
        let mut changes = self.changed.subscribe();
        // The sender lives in self, so waiting can only end by the condition.
        while !is_over(&self.plan()) && changes.changed().await.is_ok() {}
    }

    fn fail(&self, call: Call, when: When) -> Result<(), StoreError> {
        let mut plan = self.plan();
        match plan.failures.get_mut(&(call, when == When::After)) {
            Some(times) if *times > 0 => {
                *times -= 1;
                Err(StoreError::Unavailable(format!(
                    "a fault was asked for: {call:?} {when:?}"
                )))
            }
            _ => Ok(()),
        }
    }

    fn change(&self, change: impl FnOnce(&mut Plan)) {
        change(&mut self.plan());
        self.changed.send_modify(|count| *count += 1);
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a waiting call for as long as it lives, also when the call is cancelled.
struct Waiting<'a> {
    faults: &'a Faults,
    call: Call,
}

impl<'a> Waiting<'a> {
    fn begin(faults: &'a Faults, call: Call) -> Waiting<'a> {
        faults.change(|plan| *plan.waiting.entry(call).or_default() += 1);
        Waiting { faults, call }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.faults.change(|plan| {
            if let Some(waiting) = plan.waiting.get_mut(&self.call) {
                *waiting -= 1;
            }
        });
    }
}
