//! Topics of event streams and the kinds of events.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::service::ServiceError;
use windrow_core::ids::TaskId;

/// Subject that a stream can subscribe to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    /// Number of tasks per status, and the nodes.
    Cluster,
    /// Newest and unfinished tasks.
    Tasks,
    /// Single task by id.
    Task(TaskId),
    /// Single node by name.
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

/// Value of `stale` in a task's numbers while its node can't reach the database.
pub(super) const STALE: &str = "store_unavailable";

/// Kind of an event, as sent to listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Full state of the topic.
    Snapshot,
    /// Live numbers; only the newest count.
    Stats,
    /// Status change of a task.
    Status,
    /// A task's handler went down or recovered, or its calls fail with a new code.
    Handler,
    /// New failed items of a task.
    Failure,
    /// New lines of the data log.
    Log,
    /// New entry in the audit log.
    Audit,
    /// Numbers of the node or cluster; only the newest count.
    Node,
    /// End of the stream; reconnect to this or another node.
    Bye,
}

impl Kind {
    /// Returns the event name as sent.
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

    /// Returns true if a newer event of the same topic replaces this one.
    pub(super) fn is_state(self) -> bool {
        matches!(self, Kind::Stats | Kind::Node)
    }
}

/// Data of an event. An item's data keeps its original text: a parsed value would sort the members by name, but
/// people know their rows in file order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    value: Value,
    row: Option<(&'static str, String)>,
}

impl Told {
    /// Adds a member with an item's data, `null` if there is none.
    pub(super) fn with_row(mut value: Value, name: &'static str, row: Option<Box<RawValue>>) -> Told {
        // An SSE event is one line. Line feeds never occur inside JSON strings, so they can become spaces.
        let row = row.map(|row| (name, row.get().replace(['\n', '\r'], " ")));
        if row.is_none() {
            value[name] = Value::Null;
        }
        Told { value, row }
    }
}

impl From<Value> for Told {
    fn from(value: Value) -> Told {
        Told { value, row: None }
    }
}

impl Serialize for Told {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (Some((name, row)), Some(members)) = (&self.row, self.value.as_object()) else {
            return self.value.serialize(serializer);
        };
        let row: &RawValue = serde_json::from_str(row).map_err(serde::ser::Error::custom)?;
        let mut all = serializer.serialize_map(Some(members.len() + 1))?;
        for (name, value) in members {
            all.serialize_entry(name, value)?;
        }
        all.serialize_entry(name, row)?;
        all.end()
    }
}

/// Source of snapshots and watchers.
#[async_trait]
pub(super) trait Look: Send + Sync {
    /// Returns the full state of a topic.
    async fn snapshot(&self, topic: &Topic) -> Result<Value, ServiceError>;

    /// Creates a watcher that remembers the last state sent and finds changes.
    fn watcher(&self, topic: &Topic) -> Box<dyn Watcher>;
}

/// Change detector for one topic, created by [`Look::watcher`].
#[async_trait]
pub(super) trait Watcher: Send {
    /// Returns the changes since the last look.
    async fn look(&mut self) -> Vec<(Kind, Told)>;
}
