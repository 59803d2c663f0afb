//! This node: capacity, drain state and serving state.

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
    /// Changes the node's capacity until the next restart or reload that sets another one. Running tasks continue
    /// even if they no longer fit.
    ///
    /// # Errors
    /// `Unprocessable` if the configuration would contradict itself; `StoreUnavailable` if the audit log can't be
    /// written, in which case nothing is changed.
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
        let capacity = rate.most().map_or(Capacity::Unlimited, Capacity::Limited);
        self.node.supervisor.set_capacity(capacity);
        Ok(())
    }

    /// Records a change of the node in the audit log.
    ///
    /// # Errors
    /// If the store can't be written; the change must not be made then.
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

    /// Formats settings of this node for the audit log, with its name if the store is shared.
    pub fn of_this_node(&self, mut settings: Value) -> String {
        if self.parts.is_shared {
            settings["node"] = json!(self.parts.node);
        }
        settings.to_string()
    }

    /// Requests that a node of a shared store drains (hands everything over and accepts nothing) or undrains. It
    /// reads the request with its next heartbeat.
    ///
    /// # Errors
    /// `NotFound` if no live node has that name; if the store can't be written.
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

    /// Returns the requested drain state of this node. `None` while it serves. `Some(false)` if a drain is requested
    /// but the node hasn't read it yet and may still claim shards. `Some(true)` while it is drained, including after
    /// an undrain that it hasn't read yet; nothing can be moved to it before.
    pub async fn stands_by(&self) -> Option<bool> {
        if !self.parts.is_shared {
            return None;
        }
        let sessions = self.sessions().await.unwrap_or_default();
        let own = live_session(&sessions, &self.parts.node)?;
        (own.drain || own.face.draining).then_some(own.face.draining)
    }

    /// Returns the time since this node's last heartbeat as it observed it; `None` if it doesn't watch heartbeats.
    pub async fn own_heartbeat_age(&self) -> Option<Duration> {
        if !self.parts.is_shared {
            return None;
        }
        let sessions = self.sessions().await.unwrap_or_default();
        let own = live_session(&sessions, &self.parts.node)?;
        self.node.supervisor.heartbeat_ages().get(&own.id).copied()
    }

    /// Starts accepting new tasks as configured, or stops if the node is drained. Running tasks continue.
    pub fn serve_tasks(&self, is_drained: bool) {
        let node = &self.node.config().node;
        let run_tasks = node.run_tasks && !is_drained;
        self.node.supervisor.set_serving(ServingNow {
            run_tasks,
            pools: Some(node.pools.clone()),
        });
    }
}
