//! What there is to tell: from the store and from the live runs, never by counting items.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::topic::{Kind, Look, Topic, Watcher};
use crate::domain::access::Role;
use crate::domain::counters::Counters;
use crate::domain::execution::Progress;
use crate::domain::ids::TaskId;
use crate::http::App;
use crate::http::access::Caller;
use crate::ports::task_store::TaskView;
use crate::service::ServiceError;

/// Between two reads of the store for one topic; live numbers come at the listeners' pace.
const STORE_EVERY: Duration = Duration::from_secs(1);
/// Over how long a rate is measured.
const RATE_OVER: Duration = Duration::from_secs(3);

/// Whether a caller may hear of a topic.
///
/// # Errors
/// `NotFound` for a task that isn't there, or isn't the caller's; `Forbidden` for what no business is told.
pub(super) async fn check(app: &App, caller: &Caller, topic: &Topic) -> Result<(), ServiceError> {
    match topic {
        Topic::Task(id) => {
            let task = app.service.parts.tasks.get(*id).await?;
            let task = task.ok_or_else(|| ServiceError::no_task(id))?;
            caller.may_see(&task.business, "task", &id.to_string())
        }
        _ if caller.role == Role::Business => {
            Err(ServiceError::Forbidden("a business hears of its own tasks: topics=task:t42".to_owned()))
        }
        Topic::Node(name) if *name != app.front.node => {
            Err(ServiceError::NotFound { what: "node", name: name.clone() })
        }
        Topic::Node(_) | Topic::Cluster | Topic::Tasks => Ok(()),
    }
}
