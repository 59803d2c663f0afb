//! Errors of requests: one variant per problem that callers can tell apart.
//!
//! `http/problem.rs` maps each to its slug, status and advice. No message contains SQL, paths of the node or secrets.

use crate::service::FieldFault;
use crate::service::schedules;
use crate::service::tasks::items::not_open;
use windrow_core::ids::TaskId;
use windrow_core::task::lifecycle::Refusal;
use windrow_core::text::{QUOTE_CHARS_MAX, cut, quoted};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::business_store::BusinessError;
use windrow_engine::ports::access::named_limit_store::{LimitUsers, NamedLimitError};
use windrow_engine::ports::handling::alerts::AlertError;
use windrow_engine::ports::ownership::peers::Unreachable;
use windrow_engine::ports::schedules::store::ScheduleError;
use windrow_engine::ports::tasks::store::{CommandError, CommandRefusal, CreateError, MoveRefusal};

/// Error of a request. Nothing was changed, unless the variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// The request can't be parsed or is invalid.
    #[error("{}", faults_text(_0))]
    Invalid(Vec<FieldFault>),
    /// The request is valid but asks for something that can't be done.
    #[error("{}", faults_text(_0))]
    Unprocessable(Vec<FieldFault>),
    /// Nothing is left to do for the request. Callers that treat this as an error report it like `Unprocessable`.
    #[error("{}", faults_text(_0))]
    NothingToDo(Vec<FieldFault>),
    /// The caller is not authenticated.
    #[error("{0}")]
    Unauthenticated(String),
    /// The caller lacks permission for this.
    #[error("{0}")]
    Forbidden(String),
    /// The proxy names a user, but neither the user's groups nor the default give a role.
    #[error("{0}")]
    NoRole(String),
    /// The requested object doesn't exist.
    #[error("no {what} {}", cut(.name, QUOTE_CHARS_MAX))]
    NotFound {
        /// Kind of object, such as `task` or `business`.
        what: &'static str,
        /// Name or id from the request.
        name: String,
    },
    /// No record exists for the item.
    #[error("{0}")]
    ItemNotRecorded(String),
    /// The action isn't allowed in the current state; names those that are.
    #[error(transparent)]
    WrongState(Refusal),
    /// The members can't be changed in the task's current state.
    #[error("{}", faults_text(_0))]
    FieldsRefused(Vec<FieldFault>),
    /// The request conflicts with another object of its kind.
    #[error("{detail}")]
    Conflict {
        /// Description of the conflict.
        detail: String,
        /// Suggestion for resolving it.
        advice: String,
    },
    /// A concurrent redrive of the same task, or of one of its redrives, was created first.
    #[error("concurrent redrives of {0} keep changing the remaining failures")]
    Overtaken(TaskId),
    /// The fire behind the task is settled: another node created the task, or the schedule is gone.
    #[error("the schedule's fire is already settled")]
    FireOver,
    /// The name is already in use.
    #[error("{0}")]
    NameTaken(String),
    /// The requested rate doesn't fit on the node.
    #[error("{detail}")]
    NoCapacity {
        /// Requested and free capacity.
        detail: String,
        /// Highest possible rate per node.
        max_rate: Vec<(String, String)>,
    },
    /// The token or number belongs to an earlier start.
    #[error("{0}")]
    StaleStart(String),
    /// The object was changed since the caller read it.
    #[error("{0}")]
    EtagMismatch(String),
    /// The business rejected the request, with its message.
    #[error("{0}")]
    BusinessRejected(String),
    /// The contract check of the handler failed.
    #[error("{detail}")]
    CheckFailed {
        /// Description of the failed checks.
        detail: String,
        /// Complete report of the check.
        report: Vec<api::Check>,
    },
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// A request with the same key is in progress.
    #[error("a request with this idempotency key is in progress")]
    KeyInProgress,
    /// Creating this requires an idempotency key.
    #[error("this node requires an Idempotency-Key for every create")]
    KeyRequired,
    /// The compressed data can't be decompressed.
    #[error("{detail}")]
    NotUnpacked {
        /// Reason as a single word.
        reason: &'static str,
        /// Description of the error, with advice.
        detail: String,
    },
    /// The data exceeds its size limit.
    #[error("{0}")]
    TooLarge(String),
    /// The open task is sealed and accepts no more items.
    #[error("{0}")]
    Sealed(String),
    /// Too many items of the open task are waiting.
    #[error("{0}")]
    BacklogFull(String),
    /// The business has used up its upload quota.
    #[error("{0}")]
    UploadQuota(String),
    /// The database can't be reached.
    #[error("the node can't reach its database; work continues when the database is back")]
    StoreUnavailable,
    /// The database's disk is full.
    #[error("the disk of the node's database is full; free some space, and work continues")]
    StoreFull,
    /// The task can't be archived, so it isn't deleted.
    #[error("the task can't be written to archive.location, so it is kept; see the node's log")]
    NotArchived,
    /// Another node, which alone can do this, didn't respond. It may have done what was requested.
    #[error(transparent)]
    PeerSilent(#[from] Unreachable),
    /// The node is shutting down.
    #[error("this node is shutting down")]
    Draining,
    /// An internal error, caused by a bug; the text is only for the node's log.
    #[error("internal error")]
    Internal(String),
}

fn faults_text(faults: &[FieldFault]) -> String {
    let texts: Vec<String> = faults
        .iter()
        .map(|fault| match fault.pointer.as_str() {
            "" => fault.detail.clone(),
            pointer => format!("{pointer}: {}", fault.detail),
        })
        .collect();
    texts.join("; ")
}

impl ServiceError {
    /// Creates a `NotFound` error for a task.
    pub fn no_task(id: impl ToString) -> ServiceError {
        ServiceError::not_found("task", id)
    }

    /// Creates a `NotFound` error for an object of a kind.
    pub fn not_found(what: &'static str, name: impl ToString) -> ServiceError {
        let name = name.to_string();
        ServiceError::NotFound { what, name }
    }

    /// Creates a `Conflict` error with its description and advice.
    pub fn conflict(detail: impl Into<String>, advice: impl Into<String>) -> ServiceError {
        let (detail, advice) = (detail.into(), advice.into());
        ServiceError::Conflict { detail, advice }
    }

    /// Fails if there are any errors in the list.
    ///
    /// # Errors
    /// `Unprocessable` with all of them.
    pub fn refuse(faults: Vec<FieldFault>) -> Result<(), ServiceError> {
        match faults.is_empty() {
            true => Ok(()),
            false => Err(ServiceError::Unprocessable(faults)),
        }
    }

    /// Creates an `Invalid` error for one member.
    pub fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> ServiceError {
        ServiceError::Invalid(vec![FieldFault::new(pointer, detail)])
    }

    /// Creates an `Unprocessable` error for one member.
    pub fn unprocessable(pointer: impl Into<String>, detail: impl Into<String>) -> ServiceError {
        FieldFault::new(pointer, detail).into()
    }
}

impl From<FieldFault> for ServiceError {
    fn from(fault: FieldFault) -> ServiceError {
        ServiceError::Unprocessable(vec![fault])
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> ServiceError {
        match error {
            error if error.is_full() => {
                tracing::warn!(error = error.text(), "no space left in the database");
                ServiceError::StoreFull
            }
            StoreError::Unavailable(text) => {
                tracing::warn!(error = text, "database can't be reached");
                ServiceError::StoreUnavailable
            }
            StoreError::Refused(_) | StoreError::NewerSchema(_) | StoreError::OlderSchema => {
                ServiceError::Internal(error.to_string())
            }
        }
    }
}

impl From<CommandError> for ServiceError {
    fn from(error: CommandError) -> ServiceError {
        match error {
            CommandError::NotFound(id) => ServiceError::no_task(id),
            CommandError::Refused(refusal) => refusal.into(),
            CommandError::Changed { .. } => ServiceError::EtagMismatch(error.to_string()),
            CommandError::Move(refusal) => moved(&refusal),
            CommandError::HasRedrive(child) => ServiceError::conflict(
                error.to_string(),
                format!("wait until {child} has ended, or cancel it"),
            ),
            CommandError::NotArchived(error) => {
                tracing::warn!(%error, "task can't be archived; kept");
                ServiceError::NotArchived
            }
            CommandError::Store(error) => error.into(),
        }
    }
}

impl From<CommandRefusal> for ServiceError {
    fn from(refusal: CommandRefusal) -> ServiceError {
        match refusal {
            CommandRefusal::Status(refusal) => ServiceError::WrongState(refusal),
            CommandRefusal::Fields(refusals) => ServiceError::FieldsRefused(fields(refusals)),
            CommandRefusal::NotOpen(_) => not_open(refusal.to_string()),
            CommandRefusal::Codes(_) => ServiceError::unprocessable("/code", refusal.to_string()),
            CommandRefusal::Stretches(_) => ServiceError::unprocessable("/indexes", refusal.to_string()),
            CommandRefusal::StaleStart { .. } => ServiceError::StaleStart(refusal.to_string()),
            CommandRefusal::NameTaken(name, id) => ServiceError::NameTaken(name_taken(&name, id)),
        }
    }
}

/// Converts the refusal to move shards.
fn moved(refusal: &MoveRefusal) -> ServiceError {
    let detail = refusal.to_string();
    let advice = match refusal {
        MoveRefusal::NoNode(node) => {
            return FieldFault::new("/to", detail)
                .missing(format!("/v1/nodes/{node}"))
                .into();
        }
        MoveRefusal::NoShard(shard) => {
            return ServiceError::not_found("shard", shard);
        }
        MoveRefusal::Draining(_) => "undrain it first, or choose another node",
        MoveRefusal::NotRunning(_) => "start the task; a node with free capacity takes it",
        MoveRefusal::AlreadyThere(..) => "nothing needs to be done",
    };
    ServiceError::conflict(detail, advice)
}

fn fields(refusals: Vec<windrow_core::task::meaning::FieldRefusal>) -> Vec<FieldFault> {
    refusals
        .into_iter()
        .map(|one| FieldFault::new(format!("/{}", one.field), one.why))
        .collect()
}

impl From<CreateError> for ServiceError {
    fn from(error: CreateError) -> ServiceError {
        match error {
            CreateError::NoBusiness(slug) => FieldFault::new(
                "/business",
                format!("no business {}", cut(&slug, QUOTE_CHARS_MAX)),
            )
            .missing(format!("/v1/businesses/{slug}"))
            .into(),
            CreateError::NameTaken(name, id) => ServiceError::NameTaken(name_taken(&name, id)),
            CreateError::KeyReused(_) => ServiceError::KeyReused,
            CreateError::NoLimit(_) => ServiceError::unprocessable("/limits", error.to_string()),
            CreateError::NoParent(_) => ServiceError::unprocessable("/source", error.to_string()),
            CreateError::DatasetTaken(_) | CreateError::TooManyDatasets(_) => {
                ServiceError::unprocessable("/publish", error.to_string())
            }
            CreateError::Overtaken(root) => ServiceError::Overtaken(root),
            CreateError::FireOver(..) => ServiceError::FireOver,
            CreateError::Store(error) => error.into(),
        }
    }
}

fn name_taken(name: &str, id: TaskId) -> String {
    format!("the name {} is already used by {id}", quoted(name))
}

impl From<BusinessError> for ServiceError {
    fn from(error: BusinessError) -> ServiceError {
        let text = error.to_string();
        match error {
            BusinessError::NotFound(slug) => ServiceError::not_found("business", slug),
            BusinessError::Taken(_) => ServiceError::NameTaken(text),
            BusinessError::Changed { .. } => ServiceError::EtagMismatch(text),
            BusinessError::NoLimit(_) => ServiceError::unprocessable("/limits/named", text),
            BusinessError::Store(error) => error.into(),
        }
    }
}

impl From<AlertError> for ServiceError {
    fn from(error: AlertError) -> ServiceError {
        let text = error.to_string();
        match error {
            AlertError::NotFound(name) => ServiceError::not_found("alert", name),
            AlertError::Taken(_) => ServiceError::NameTaken(text),
            AlertError::TooMany(_) => ServiceError::conflict(text, "delete one that is no longer needed"),
            AlertError::Changed { .. } => ServiceError::EtagMismatch(text),
            AlertError::Store(error) => error.into(),
        }
    }
}

impl From<NamedLimitError> for ServiceError {
    fn from(error: NamedLimitError) -> ServiceError {
        let text = error.to_string();
        match error {
            NamedLimitError::NotFound(name) => ServiceError::not_found("limit", name),
            NamedLimitError::Taken(_) => ServiceError::NameTaken(text),
            NamedLimitError::Changed { .. } => ServiceError::EtagMismatch(text),
            NamedLimitError::InUse(name, users) => in_use(&name, &users),
            NamedLimitError::Store(error) => error.into(),
        }
    }
}

impl From<ScheduleError> for ServiceError {
    fn from(error: ScheduleError) -> ServiceError {
        let text = error.to_string();
        match error {
            ScheduleError::NotFound(id) => ServiceError::not_found("schedule", id),
            ScheduleError::NoBusiness(_) => ServiceError::unprocessable("/business", text),
            ScheduleError::Taken(_) => ServiceError::NameTaken(text),
            ScheduleError::Changed { .. } => ServiceError::EtagMismatch(text),
            ScheduleError::Full(_) => ServiceError::conflict(
                text,
                "delete one that is no longer needed: `windrow schedule list`",
            ),
            ScheduleError::Busy(way) => ServiceError::conflict(text, schedules::past(&way)),
            ScheduleError::Crowded { .. } => {
                ServiceError::conflict(text, "request fewer at a time, or wait until those are done")
            }
            ScheduleError::NotOpen(_) => ServiceError::conflict(
                text,
                "`windrow schedule fires NAME` shows the outcome of each fire",
            ),
            ScheduleError::Store(error) => error.into(),
        }
    }
}

/// Returns the error for deleting a limit in use; lists its users.
fn in_use(name: &str, users: &LimitUsers) -> ServiceError {
    let businesses = users.businesses.iter().map(|slug| format!("business {slug}"));
    let tasks = users.tasks.iter().map(|task| task.id.to_string());
    let mut all: Vec<String> = businesses.chain(tasks).collect();
    let more = users.tasks_total.saturating_sub(users.tasks.len() as u64);
    if more > 0 {
        all.push(format!("{more} more tasks"));
    }
    let advice = "remove it from the businesses (`windrow biz edit NAME --unset limits.named`) and wait for \
                  the tasks to end, or cancel them; or raise the limit";
    ServiceError::conflict(
        format!("the limit {name} is in use by {}", all.join(", ")),
        advice,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_the_whole_body_begins_with_no_colon() {
        assert_eq!(
            ServiceError::invalid("", "it is not JSON").to_string(),
            "it is not JSON"
        );
        assert_eq!(
            ServiceError::invalid("/rate", "no rate").to_string(),
            "/rate: no rate"
        );
    }
}
