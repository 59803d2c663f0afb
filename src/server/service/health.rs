//! Readiness and degradation of this node.

use std::sync::Arc;
use std::time::Duration;

use crate::service::node::ThisNode;
use windrow_core::ids::TaskId;
use windrow_engine::actors::runtime::policy::Kind;
use windrow_engine::actors::runtime::tree::Activity;
use windrow_engine::ports::handling::meters::{Meters, store_full_text};
use windrow_engine::ports::tasks::store::TaskStore;

/// Time within which the store must respond to an empty query.
const STORE_PATIENCE: Duration = Duration::from_secs(2);

/// Reason why the node isn't ready or is degraded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReady {
    /// `store`, `session` or `actors`; if degraded, `redis` or `store`.
    pub slug: &'static str,
    /// Description in one sentence.
    pub text: String,
}

/// Health checks of this node.
pub struct Health {
    pub(super) node: Arc<ThisNode>,
    pub(super) tasks: Arc<dyn TaskStore>,
    pub(crate) meters: Arc<Meters>,
}

impl Health {
    pub(in crate::service) fn new(
        node: Arc<ThisNode>,
        tasks: Arc<dyn TaskStore>,
        meters: Arc<Meters>,
    ) -> Health {
        Health { node, tasks, meters }
    }

    /// Returns all reasons why the node can't work; empty if it is ready.
    pub async fn not_ready(&self) -> Vec<NotReady> {
        let found = [self.store_fault().await, self.tree_fault()];
        found.into_iter().flatten().collect()
    }

    /// Returns the problems that make the node slower or less safe but don't stop it.
    pub fn degraded(&self) -> Vec<NotReady> {
        let full = self.meters.is_store_full(self.node.clock.now());
        let full = full.then(|| NotReady {
            slug: "store",
            text: store_full_text(0),
        });
        let lost = self.node.redis_lost();
        let lost = lost.map(|text| NotReady { slug: "redis", text });
        lost.into_iter().chain(full).collect()
    }

    async fn store_fault(&self) -> Option<NotReady> {
        // No task has this id, so the query is cheap and still reaches the database.
        let asked = self.tasks.get(TaskId(0));
        let text = match tokio::time::timeout(STORE_PATIENCE, asked).await {
            Ok(Ok(_)) => return None,
            Ok(Err(error)) => {
                tracing::warn!(%error, "database doesn't respond");
                match error.is_gone() {
                    true => error.text(),
                    false => "the database can't be read".to_owned(),
                }
            }
            Err(_) => format!(
                "the database did not respond within {} s",
                STORE_PATIENCE.as_secs()
            ),
        };
        Some(NotReady { slug: "store", text })
    }

    /// Returns the likely reason why the session isn't confirmed.
    fn why_silent(&self) -> String {
        if self.meters.is_store_full(self.node.clock.now()) {
            return store_full_text(0);
        }
        "the database has not confirmed the node's session, so the node accepts no tasks".to_owned()
    }

    fn tree_fault(&self) -> Option<NotReady> {
        if self.node.supervisor.is_over() {
            return Some(NotReady {
                slug: "actors",
                text: "the node's actors have ended".to_owned(),
            });
        }
        let actors = self.node.supervisor.tree().view();
        let session = actors.iter().find(|actor| actor.kind == Kind::Session);
        let ttl = self.node.config().cluster.lease_ttl;
        // A live session sets its text at each heartbeat; a new one has none yet.
        let beats = session.is_some_and(|session| {
            session.activity == Activity::Ok && !session.text.is_empty() && session.last_handled < ttl
        });
        (!beats).then(|| NotReady {
            slug: "session",
            text: self.why_silent(),
        })
    }
}
