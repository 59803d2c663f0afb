//! This node: how much of it is taken, what runs on it, and how people steer it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::service::cluster::{Cluster, live_session};
use crate::service::{FieldFault, ServiceError};
use windrow_core::capacity::Capacity;
use windrow_core::settings::RateLimit;
use windrow_engine::actors::runtime::context::ServingNow;
use windrow_engine::ports::access::audit_object::{AuditObject, ObjectKind};
use windrow_engine::ports::access::node_audit::NodeChange;
use windrow_engine::ports::ownership::hints::Hint;
use windrow_engine::ports::tasks::store::Write;

impl Cluster {
    /// Changes how much may run here, until the next restart or reload that says otherwise. What runs goes on, also
    /// where it no longer fits.
    ///
    /// # Errors
    /// `Unprocessable` when the configuration would contradict itself; `StoreUnavailable` when it can't be kept in the
    /// audit: nothing is changed then.
    pub async fn set_capacity(&self, rate: RateLimit, write: &Write) -> Result<(), ServiceError> {
        let old = self.node.config();
        let mut config = (*old).clone();
        config.node.capacity_rate = rate;
        let faults = config.faults();
        if !faults.is_empty() {
            let field = |fault: windrow_config::Fault| {
                FieldFault::new("/capacity_rate", format!("{}: {}", fault.key, fault.what)).advise(fault.try_)
            };
            return Err(ServiceError::Unprocessable(
                faults.into_iter().map(field).collect(),
            ));
        }
        let shown = |rate: RateLimit| self.of_this_node(json!({"capacity_rate": rate.to_string()}));
        let node = &self.parts.node;
        self.note(
            ("node.change", node),
            shown(old.node.capacity_rate),
            shown(rate),
            write,
        )
        .await?;
        if write.dry_run {
            return Ok(());
        }
        self.node.reconfigure(config);
        self.node.supervisor.set_capacity(match rate {
            RateLimit::Unlimited => Capacity::Unlimited,
            RateLimit::Limited(rate) => Capacity::Limited(rate),
        });
        Ok(())
    }

    /// Keeps a change of the node in the audit.
    ///
    /// # Errors
    /// When the store can't be written: then the change must not be made.
    pub async fn note(
        &self,
        (action, node): (&'static str, &str),
        before: String,
        after: String,
        write: &Write,
    ) -> Result<(), ServiceError> {
        let change = NodeChange {
            action,
            object: AuditObject::new(ObjectKind::Node, node),
            business: None,
            before: Some(before),
            after,
        };
        Ok(self.audit.note(&change, write, self.node.now()).await?)
    }

    /// Settings of this node for the audit: with its name, where there are others.
    pub fn of_this_node(&self, mut settings: Value) -> String {
        if self.parts.is_shared {
            settings["node"] = json!(self.parts.node);
        }
        settings.to_string()
    }

    /// Says what people want of a node of a shared store: hand everything over and take nothing, or take work again. It
    /// looks at that with its next heartbeat.
    ///
    /// # Errors
    /// `NotFound` where no node of that name lives; when the store can't be written.
    pub async fn request_drain(&self, node: &str, drain: bool, write: &Write) -> Result<(), ServiceError> {
        let missing = || ServiceError::not_found("node", node);
        let sessions = self.sessions().await?;
        let session = live_session(&sessions, node).ok_or_else(missing)?;
        let present = session.drain;
        let shown = |drained: bool| json!({"node": node, "drained": drained}).to_string();
        let action = if drain { "node.drain" } else { "node.undrain" };
        if present != drain {
            self.note((action, node), shown(present), shown(drain), write)
                .await?;
        }
        if write.dry_run {
            return Ok(());
        }
        let is_live = self.parts.sessions.request_drain(node, drain).await?;
        self.forget_sessions().await;
        self.node.supervisor.hint(Hint::Session(session.id));
        self.node.supervisor.wake();
        if is_live { Ok(()) } else { Err(missing()) }
    }

    /// Whether people want this node drained, by a wish in the store, or it has yet to hear that they no longer do: others
    /// may not move anything here before. None while it serves; false until it has heard of the wish, and may still claim.
    pub async fn stands_by(&self) -> Option<bool> {
        if !self.parts.is_shared {
            return None;
        }
        let sessions = self.sessions().await.unwrap_or_default();
        let own = live_session(&sessions, &self.parts.node)?;
        (own.drain || own.face.draining).then_some(own.face.draining)
    }

    /// How long this node's heart has not beaten, as it saw itself; none where it doesn't look.
    pub async fn own_heartbeat_age(&self) -> Option<Duration> {
        if !self.parts.is_shared {
            return None;
        }
        let sessions = self.sessions().await.unwrap_or_default();
        let own = live_session(&sessions, &self.parts.node)?;
        self.node.supervisor.heartbeat_ages().get(&own.id).copied()
    }

    /// Takes new tasks from now on, as configured; or none while the node is drained. What runs goes on.
    pub fn serve_tasks(&self, is_drained: bool) {
        let node = &self.node.config().node;
        let run_tasks = node.run_tasks && !is_drained;
        self.node.supervisor.set_serving(ServingNow {
            run_tasks,
            pools: Some(node.pools.clone()),
        });
    }
}
