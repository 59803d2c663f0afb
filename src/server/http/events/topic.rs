//! What a stream can be about, and what happens to it.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde_json::Value;

use crate::service::ServiceError;
use windrow_core::ids::TaskId;

/// What a stream can be about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    /// How many tasks there are in each status, and the nodes.
    Cluster,
    /// The newest tasks and those under way.
    Tasks,
    /// One task.
    Task(TaskId),
    /// One node.
    Node(String),
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Topic::Cluster => f.write_str("cluster"),
            Topic::Tasks => f.write_str("tasks"),
            Topic::Task(id) => write!(f, "task:{id}"),
            Topic::Node(name) => write!(f, "node:{name}"),
        }
    }
}

impl FromStr for Topic {
    type Err = ();

    fn from_str(text: &str) -> Result<Topic, ()> {
        match text.split_once(':') {
            None if text == "cluster" => Ok(Topic::Cluster),
            None if text == "tasks" => Ok(Topic::Tasks),
            Some(("task", id)) => id.parse().map(Topic::Task).map_err(|_| ()),
            Some(("node", name)) if !name.is_empty() => Ok(Topic::Node(name.to_owned())),
            _ => Err(()),
        }
    }
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Everything about the topic.
    Snapshot,
    /// Numbers that move: only the newest matter.
    Stats,
    /// A task changed its status.
    Status,
    /// A task's handler stopped answering, or answers again, or its calls fail with a code that is new.
    Handler,
    /// Items were abandoned.
    Failure,
    /// Lines of the data log.
    Log,
    /// Somebody changed something.
    Audit,
    /// The node's own numbers: only the newest matter.
    Node,
    /// The node ends; connect again, there or elsewhere.
    Bye,
}

impl Kind {
    /// The name of the event.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Kind::Snapshot => "snapshot",
            Kind::Stats => "stats",
            Kind::Status => "status",
            Kind::Handler => "handler",
            Kind::Failure => "failure",
            Kind::Log => "log",
            Kind::Audit => "audit",
            Kind::Node => "node",
            Kind::Bye => "bye",
        }
    }

    /// Whether a newer one of the same topic makes it worthless.
    pub(super) fn is_state(self) -> bool {
        matches!(self, Kind::Stats | Kind::Node)
    }
}

/// Knows what there is to tell.
#[async_trait]
pub(super) trait Look: Send + Sync {
    /// Everything about a topic.
    async fn snapshot(&self, topic: &Topic) -> Result<Value, ServiceError>;

    /// Somebody who remembers what was told of a topic, and finds what is new.
    fn watcher(&self, topic: &Topic) -> Box<dyn Watcher>;
}

/// See [`Look::watcher`].
#[async_trait]
pub(super) trait Watcher: Send {
    /// What is new since the last look.
    async fn look(&mut self) -> Vec<(Kind, Value)>;
}
