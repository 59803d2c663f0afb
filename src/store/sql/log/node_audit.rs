//! Audit entries about nodes, which have no row of their own to change.

use async_trait::async_trait;

use crate::sql::business::businesses::find;
use crate::sql::task::record::{self, Change};
use crate::sql::{Store, keep};
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::node_audit::{NodeAudit, NodeChange};
use windrow_engine::ports::tasks::store::Write;

#[async_trait]
impl NodeAudit for Store {
    async fn note(&self, change: &NodeChange, write: &Write, now: WallMs) -> Result<(), StoreError> {
        let transaction = self.write().await?;
        let business = match &change.business {
            Some(slug) => find(&transaction, slug).await?.map(|row| row.id),
            None => None,
        };
        let entry = Change {
            object: change.object.clone(),
            task: None,
            business,
            action: change.action.to_owned(),
            before: change.before.clone(),
            after: Some(change.after.clone()),
        };
        record::audit(&transaction, &write.actor, entry, now).await?;
        keep(transaction, write).await
    }
}
