//! Snapshots and watchers by topic, and access checks.

use async_trait::async_trait;
use serde_json::Value;

use super::list;
use super::node::node_picture;
use super::task::{TaskWatcher, task_picture};
use super::topic::{Look, Topic, Watcher};
use crate::http::front::App;
use crate::http::guard::Caller;
use crate::service::ServiceError;
use windrow_core::business::access::Role;

/// Checks that a caller may subscribe to a topic.
///
/// # Errors
/// `NotFound` if it doesn't exist or belongs to another business; `Forbidden` for topics closed to businesses.
pub(super) async fn check(app: &App, caller: &Caller, topic: &Topic) -> Result<(), ServiceError> {
    match topic {
        Topic::Task(id) => {
            let task = app.service.tasks.store.get(*id).await?;
            let task = task.ok_or_else(|| ServiceError::no_task(id))?;
            caller.may_see(&task.business, "task", &id.to_string())
        }
        _ if caller.role == Role::Business => Err(ServiceError::Forbidden(
            "a business may only watch its own tasks: topics=task:t42".to_owned(),
        )),
        Topic::Node(name) if *name != app.front.node => {
            app.service.cluster.other_node(name).await.map(|_| ())
        }
        Topic::Node(_) | Topic::Cluster | Topic::Tasks => Ok(()),
    }
}

#[async_trait]
impl Look for App {
    async fn snapshot(&self, topic: &Topic) -> Result<Value, ServiceError> {
        match topic {
            Topic::Task(id) => task_picture(self, *id).await,
            Topic::Node(name) => node_picture(self, name).await,
            Topic::Cluster => list::cluster_picture(self).await,
            Topic::Tasks => list::tasks_picture(self).await,
        }
    }

    fn watcher(&self, topic: &Topic) -> Box<dyn Watcher> {
        match topic {
            Topic::Task(id) => Box::new(TaskWatcher::new(self.clone(), *id)),
            Topic::Node(_) | Topic::Cluster => {
                Box::new(list::NumbersWatcher::new(self.clone(), topic.clone()))
            }
            Topic::Tasks => Box::new(list::TasksWatcher::new(self.clone())),
        }
    }
}
