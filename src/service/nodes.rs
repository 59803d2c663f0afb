//! This node: how much of it is taken, what runs on it, and how people steer it.

use serde_json::json;

use super::{FieldFault, Service, ServiceError};
pub use crate::actors::context::RunView;
use crate::actors::context::ServingNow;
use crate::domain::capacity::Capacity;
use crate::domain::settings::RateLimit;
use crate::ports::node_audit::NodeChange;
use crate::ports::task_store::Actor;

impl Service {
    /// Changes how much may run here, until the next restart or reload that says otherwise. What runs goes on, also
    /// where it no longer fits.
    ///
    /// # Errors
    /// `Unprocessable` when the configuration would contradict itself; `StoreUnavailable` when it can't be kept in the
    /// audit: nothing is changed then.
    pub async fn set_capacity(&self, rate: RateLimit, actor: &Actor) -> Result<(), ServiceError> {
        let old = self.config();
        let mut config = (*old).clone();
        config.node.capacity_rate = rate;
        let faults = config.faults();
        if !faults.is_empty() {
            let field = |fault: crate::config::Fault| {
                FieldFault::new("/capacity_rate", format!("{}: {}", fault.key, fault.what)).advise(fault.try_)
            };
            return Err(ServiceError::Unprocessable(faults.into_iter().map(field).collect()));
        }
        let shown = |rate: RateLimit| json!({"capacity_rate": rate.to_string()}).to_string();
        self.note_node("node.change", shown(old.node.capacity_rate), shown(rate), actor).await?;
        if actor.rehearses {
            return Ok(());
        }
        self.reconfigure(config);
        self.supervisor().set_capacity(match rate {
            RateLimit::Unlimited => Capacity::Unlimited,
            RateLimit::Limited(rate) => Capacity::Limited(rate),
        });
        Ok(())
    }

    /// Keeps a change of the node in the audit.
    ///
    /// # Errors
    /// When the store can't be written: then the change must not be made.
    pub async fn note_node(
        &self,
        action: &'static str,
        before: String,
        after: String,
        actor: &Actor,
    ) -> Result<(), ServiceError> {
        let change = NodeChange { action, before, after };
        Ok(self.parts.node_audit.note(&change, actor, self.now()).await?)
    }

    /// Takes new tasks from now on, as configured; or none while the node is drained. What runs goes on.
    pub fn serve_tasks(&self, is_drained: bool) {
        let node = &self.config().node;
        let run_tasks = node.run_tasks && !is_drained;
        self.supervisor().set_serving(ServingNow { run_tasks, pools: Some(node.pools.clone()) });
    }
}
