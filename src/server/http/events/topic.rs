//! What a stream can be about, and what happens to it.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

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

/// `stale` of a task's numbers, while its node can't reach its database.
pub(super) const STALE: &str = "store_unavailable";

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
    /// Items were failed.
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

/// What an event tells. What an item carries stays as it was written: a value would order its members by their names, and
/// people know their rows by the order of their file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    value: Value,
    row: Option<(&'static str, String)>,
}

impl Told {
    /// An object with a member more, which is null where there is nothing.
    pub(super) fn with_row(mut value: Value, name: &'static str, row: Option<Box<RawValue>>) -> Told {
        // An event is a line: line feeds, which no string of JSON has in it, are mere space.
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
    async fn look(&mut self) -> Vec<(Kind, Told)>;
}
