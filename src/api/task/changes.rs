//! Answers to changes of a task.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::view::{Task, TaskWarning};

/// The task, and what becomes of the items that were named.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "Box<RawValue>")]
pub struct SkippingTask {
    #[serde(flatten)]
    pub task: Task,
    /// What becomes of them.
    pub skipping: Skipping,
}

// A flattened task can't keep its parameters as they are written, so that it is read by itself.
impl TryFrom<Box<RawValue>> for SkippingTask {
    type Error = serde_json::Error;

    fn try_from(body: Box<RawValue>) -> serde_json::Result<SkippingTask> {
        #[derive(Deserialize)]
        struct Beside {
            skipping: Skipping,
        }
        let Beside { skipping } = serde_json::from_str(body.get())?;
        let task = serde_json::from_str(body.get())?;
        Ok(SkippingTask { task, skipping })
    }
}

/// Items that are skipped because people say so.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Skipping {
    /// What was named, in order.
    pub indexes: String,
    /// How many these are.
    pub items: u64,
    /// How many of them were settled, as last saved: they stay as they are. What was settled in the last second comes on top.
    pub already_settled: u64,
    /// How many of them are left out anyway, at the head or by an early finish.
    pub excluded: u64,
    /// How many are skipped, unless a call for them that is out succeeds.
    pub skipped: u64,
    /// Their code: `skipped_by_operator`.
    pub code: String,
}

/// What the handler said.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Preview {
    /// Item by item, in the order asked for.
    pub items: Vec<PreviewedItem>,
    /// What of the task would not come about as it was wished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<TaskWarning>,
}

/// What the handler said of an item.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PreviewedItem {
    /// The item.
    pub index: u64,
    /// `succeeded`, `skipped`, `failed`, `retry`, `broken` (the contract is) or `not_called`.
    pub result: String,
    /// Why, unless it went well.
    pub code: Option<String>,
    /// The same in words.
    pub message: Option<String>,
    /// How long the call took.
    pub latency_seconds: f64,
}

/// Where appended items are.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AppendedItems {
    /// The index of the first; the others follow without a gap.
    pub first_index: u64,
    /// How many.
    pub items: u64,
    /// Whether an earlier request of the same `Idempotency-Key` had appended them.
    pub repeated: bool,
    /// How many items the task has now.
    pub total: u64,
}

/// The answer where no failure is left to do again: no task was made.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NothingToDo {
    /// Items that are done again: 0.
    pub total: u64,
    /// Why, for people.
    pub detail: String,
    /// What may be wanted in its place.
    #[serde(rename = "try")]
    pub advice: Vec<String>,
}

/// The task, and what is given up.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "Box<RawValue>")]
pub struct MarkedTask {
    #[serde(flatten)]
    pub task: Task,
    /// What is given up.
    pub marked: MarkedFailed,
}

impl TryFrom<Box<RawValue>> for MarkedTask {
    type Error = serde_json::Error;

    fn try_from(body: Box<RawValue>) -> serde_json::Result<MarkedTask> {
        #[derive(Deserialize)]
        struct Beside {
            marked: MarkedFailed,
        }
        let Beside { marked } = serde_json::from_str(body.get())?;
        let task = serde_json::from_str(body.get())?;
        Ok(MarkedTask { task, marked })
    }
}

/// Items that are given up.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct MarkedFailed {
    /// The code of their last failure.
    pub code: String,
    /// How many of them were saved when it was asked for; those that failed in the last seconds come on top.
    pub items: u64,
}

/// How many tasks have each status.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskNumbers {
    /// By status.
    pub counts: BTreeMap<String, u64>,
    /// A number that is as high as this may be higher.
    pub counted_up_to: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::task::spec::{JsonText, TaskSpec};

    #[test]
    fn a_task_with_parameters_is_read_with_what_stands_beside_it() {
        let params = RawValue::from_string("{\"b\":1e400,\"a\":2}".to_owned()).expect("JSON");
        let told = SkippingTask {
            task: Task {
                spec: TaskSpec {
                    params: Some(JsonText(params)),
                    ..TaskSpec::default()
                },
                ..Task::default()
            },
            skipping: Skipping {
                skipped: 3,
                ..Skipping::default()
            },
        };
        let body = serde_json::to_string(&told).expect("JSON");
        let read: SkippingTask = serde_json::from_str(&body).expect("it is one");
        assert_eq!(read.skipping.skipped, 3);
        assert_eq!(serde_json::to_string(&read).expect("JSON"), body);
    }
}
