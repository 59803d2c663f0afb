//! Query parameters for reading tasks, and status counts.

use std::time::Duration;

use serde::Deserialize;
use utoipa::IntoParams;

use crate::http::guard::time_option;
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::TaskId;
use windrow_core::settings::text::parse_span;
use windrow_core::task::lifecycle::Status;
use windrow_core::text::likeness::nearest;
use windrow_core::text::quoted;
use windrow_engine::ports::tasks::list::TaskFilter;

/// Longest wait for a change. Proxies close slower requests.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Filters and order of the task list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only tasks of this business.
    #[param(pattern = "^[a-z0-9-]{1,40}$")]
    business: Option<String>,
    /// Only tasks with this name.
    #[param(max_length = 128)]
    name: Option<String>,
    /// Only tasks with one of these statuses, separated by commas.
    #[param(max_length = 200)]
    status: Option<String>,
    /// Only tasks with this label, `key:value`.
    #[param(max_length = 400, pattern = "^[^:]+:")]
    label: Option<String>,
    /// Only tasks whose name or business contains this text.
    #[param(max_length = 128)]
    q: Option<String>,
    /// Only tasks created at or after this time.
    #[param(format = "date-time")]
    created_after: Option<String>,
    /// Only tasks created before this time.
    #[param(format = "date-time")]
    created_before: Option<String>,
    /// Only redrives of this task.
    #[param(pattern = "^t[1-9][0-9]{0,17}$")]
    parent: Option<String>,
    /// `-id` for newest first (default), `id` for oldest first.
    #[param(pattern = "^-?(id|created)$")]
    sort: Option<String>,
}

impl ListQuery {
    /// Converts the parameters to a task filter.
    pub(super) fn filter(&self) -> Result<TaskFilter, ServiceError> {
        let status = |word: &str| {
            Status::parse(word.trim()).ok_or_else(|| {
                let known: Vec<&str> = Status::ALL.iter().map(|status| status.as_str()).collect();
                let fault = FieldFault::new("status", format!("{} is not a status", quoted(word)));
                let like = nearest(word.trim(), known.iter().map(|word| (*word).to_owned()));
                let meant = like
                    .map(|like| format!("did you mean {like}? one of "))
                    .unwrap_or_default();
                ServiceError::Invalid(vec![fault.advise(format!("{meant}{}", known.join(", ")))])
            })
        };
        let statuses = self
            .status
            .as_deref()
            .map(|text| text.split(',').map(status).collect());
        let label = self.label.as_deref().map(|text| {
            let pair = text
                .split_once(':')
                .map(|(key, value)| (key.to_owned(), value.to_owned()));
            pair.ok_or_else(|| ServiceError::invalid("label", "must have the form key:value"))
        });
        let parent = self.parent.as_deref().map(|text| {
            let id: Result<TaskId, _> = text.parse();
            id.map_err(|error| ServiceError::invalid("parent", error.to_string()))
        });
        let oldest_first = match self.sort.as_deref() {
            None | Some("-id" | "-created") => false,
            Some("id" | "created") => true,
            Some(other) => {
                return Err(ServiceError::invalid(
                    "sort",
                    format!("{} is neither id nor -id", quoted(other)),
                ));
            }
        };
        Ok(TaskFilter {
            business: self.business.clone(),
            name: self.name.clone(),
            statuses: statuses.unwrap_or_else(|| Ok(Vec::new()))?,
            label: label.transpose()?,
            text: self.q.clone().filter(|text| !text.is_empty()),
            created_after: time_option("created_after", self.created_after.as_ref())?,
            created_before: time_option("created_before", self.created_before.as_ref())?,
            parent: parent.transpose()?,
            oldest_first,
        })
    }
}

/// Returns a filter for tasks in progress: queued, running, or waiting for something.
pub(in crate::http) fn under_way() -> TaskFilter {
    let waits =
        |status: &Status| !status.is_terminal() && !matches!(status, Status::Created | Status::Stopped);
    TaskFilter {
        statuses: Status::ALL.iter().copied().filter(waits).collect(),
        ..TaskFilter::default()
    }
}

/// Parameters for waiting until a task changes.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ShowQuery {
    /// Time to wait for an ETag other than `unless`, at most `60s`.
    #[param(pattern = "^[0-9]{1,5}(ms|s)$")]
    wait: Option<String>,
    /// ETag that the caller already has.
    #[param(max_length = 40)]
    unless: Option<String>,
}

impl ShowQuery {
    /// Returns the time to wait and the version the caller already has.
    pub(super) fn read(&self) -> Result<(Duration, Option<u64>), ServiceError> {
        let wait = match self.wait.as_deref().map(parse_span) {
            None => Duration::ZERO,
            Some(Ok(span)) => span.min(WAIT_MAX),
            Some(Err(error)) => return Err(ServiceError::invalid("wait", error.to_string())),
        };
        // A foreign ETag never matches, so the response is immediate.
        let version = self
            .unless
            .as_deref()
            .and_then(|text| text.trim().trim_matches('"').parse().ok());
        Ok((wait, version))
    }
}

/// Converts status counts to their API form.
pub(crate) fn show_numbers(counted_up_to: u32, counts: &[(Status, u64)]) -> api::TaskNumbers {
    let counts = counts
        .iter()
        .map(|(status, number)| (status.as_str().to_owned(), *number))
        .collect();
    api::TaskNumbers {
        counts,
        counted_up_to,
    }
}
