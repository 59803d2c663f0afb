//! Responses to changes of a task.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::view::{Task, TaskWarning};

/// The task, with the effect of a request to skip items.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "Box<RawValue>")]
pub struct SkippingTask {
    #[serde(flatten)]
    pub task: Task,
    /// Effect of the request on the named items.
    pub skipping: Skipping,
}

// A flattened task can't keep its parameters as written, so it is read separately.
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

/// Items skipped at the request of an operator.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Skipping {
    /// Requested indexes, in order.
    pub indexes: String,
    /// Number of requested items.
    pub items: u64,
    /// Number of them already settled at the last save; they stay as they are. Items settled within the last second
    /// come in addition.
    pub already_settled: u64,
    /// Number of them excluded anyway, by `skip_first` or an early finish.
    pub excluded: u64,
    /// Number of items to be skipped, unless a call already in flight succeeds.
    pub skipped: u64,
    /// Code of the skipped items: `skipped_by_operator`.
    pub code: String,
}

/// Handler responses to the previewed items.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Preview {
    /// Result of each item, in the requested order.
    pub items: Vec<PreviewedItem>,
    /// Warnings about parts of the task that won't have the intended effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<TaskWarning>,
}

/// Handler response to one previewed item.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PreviewedItem {
    /// Index of the item.
    pub index: u64,
    /// `succeeded`, `skipped`, `failed`, `retry`, `broken` (the contract is) or `not_called`.
    pub result: String,
    /// Code of the failure; null if the call succeeded.
    pub code: Option<String>,
    /// Failure message for people.
    pub message: Option<String>,
    /// Duration of the call, in seconds.
    pub latency_seconds: f64,
}

/// Position of the appended items.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AppendedItems {
    /// Index of the first item; the others follow without gaps.
    pub first_index: u64,
    /// Number of appended items.
    pub items: u64,
    /// True if an earlier request with the same `Idempotency-Key` had already appended them.
    pub repeated: bool,
    /// Number of items that the task has now.
    pub total: u64,
}

/// Response to a redrive without any failures to repeat: no task was created.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NothingToDo {
    /// Number of redriven items, always 0.
    pub total: u64,
    /// Explanation of the empty result.
    pub detail: String,
    /// Alternatives that may be wanted instead.
    #[serde(rename = "try")]
    pub advice: Vec<String>,
}

/// The task, with the items that are marked as failed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "Box<RawValue>")]
pub struct MarkedTask {
    #[serde(flatten)]
    pub task: Task,
    /// Items that are marked as failed.
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

/// Items that are marked as failed without further attempts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct MarkedFailed {
    /// Code of their last failure.
    pub code: String,
    /// Number of such items saved when the request was made. Items that failed in the last few seconds come in
    /// addition.
    pub items: u64,
}

/// Number of tasks by status.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskNumbers {
    /// Number of tasks, keyed by status.
    pub counts: BTreeMap<String, u64>,
    /// Counting limit: a count that reaches it may be higher in fact.
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
