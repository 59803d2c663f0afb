//! Problems that can be foreseen: a deadline that can't be met, a start time of a task that isn't started, results
//! that exceed the free space. Reported as warnings when a task is created, changed, started or read; with `strict`,
//! they are errors.

use std::time::Duration;

use crate::service::results::SHORTAGE_ADVICE;
use crate::service::tasks::Tasks;
use crate::service::tasks::ceiling::Ceiling;
use crate::service::tasks::create::{TaskRequest, defaults};
use crate::service::{FieldFault, ServiceError};
use windrow_core::capacity::Load;
use windrow_core::ids::WallMs;
use windrow_core::settings::{Auto, RateLimit};
use windrow_core::task::Tuning;
use windrow_core::task::deadline::{Plan, Shortfall, shortfall};
use windrow_core::task::lifecycle::Status;
use windrow_core::task::spec::{Shards, TaskSpec};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::sources::resolver::SourceRequest;
use windrow_engine::ports::tasks::store::{NewTask, TaskEdit, TaskView};
use windrow_words::span;

/// Warning code for a deadline that can't be met.
pub const DEADLINE: &str = "deadline_too_early";
/// Warning code for a start time of a task that isn't started.
pub const NOT_STARTED: &str = "not_started";

/// Warning code for results that exceed the free space.
pub const RESULTS_ROOM: &str = "results_room";

/// Problem that can be foreseen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// One of [`DEADLINE`], [`NOT_STARTED`], [`RESULTS_ROOM`], [`IN_LINE`](super::line::IN_LINE) and
    /// [`RATE`](super::ceiling::RATE).
    pub code: &'static str,
    /// Affected member, with the problem and advice.
    pub fault: FieldFault,
}

/// Forecast of a task's run, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct Outlook {
    pub(super) items: u64,
    pub(super) rate: RateLimit,
    pub(super) shards: Option<u32>,
    /// Limits named by the task itself.
    pub(super) limits: Vec<String>,
    /// True if the task runs as soon as possible.
    is_wanted: bool,
    start_at: Option<WallMs>,
    pub(super) deadline: Option<WallMs>,
}

impl Outlook {
    /// Returns the forecast of a task to be created.
    pub(crate) fn of_new(task: &NewTask, starts: bool) -> Outlook {
        Outlook {
            items: task.total.0.saturating_sub(task.spec.skip_first.0),
            rate: task.tuning.rate,
            shards: fixed(task.spec.shards),
            limits: task.spec.limits.clone(),
            is_wanted: starts,
            start_at: task.spec.start_at,
            deadline: task.spec.deadline,
        }
    }

    /// Returns the forecast of tasks created by a request, before its source is read.
    fn of_request(request: &TaskRequest, tuning: &Tuning, defaults: &TaskSpec) -> Outlook {
        let spec = request.plan.spec.clone().apply(defaults);
        Outlook {
            // Other sources are only known to have at least one item.
            items: match request.source {
                SourceRequest::Range { total } => total.0.saturating_sub(spec.skip_first.0),
                _ => 1,
            },
            rate: tuning.rate,
            shards: fixed(spec.shards),
            limits: spec.limits,
            is_wanted: request.plan.start,
            start_at: spec.start_at,
            deadline: spec.deadline,
        }
    }

    /// Returns the forecast of a task, `None` if it won't continue on its own.
    fn of(task: &TaskView) -> Option<Outlook> {
        let is_open = match task.status {
            Status::Created
            | Status::Queued
            | Status::AwaitingBusiness
            | Status::Running
            | Status::Recovering => true,
            Status::Stopping
            | Status::Stopped
            | Status::Finalizing
            | Status::Finished
            | Status::Cancelled => false,
        };
        is_open.then(|| Outlook::going_on(task))
    }

    /// Returns the forecast of a task that continues from its current state.
    pub(crate) fn going_on(task: &TaskView) -> Outlook {
        let left = task
            .total
            .0
            .saturating_sub(task.counters.settled() + task.counters.excluded);
        let cut = u32::try_from(task.shards.len())
            .ok()
            .filter(|_| task.status != Status::Created);
        Outlook {
            items: left,
            rate: task.tuning.rate,
            shards: cut.or_else(|| fixed(task.spec.shards)),
            limits: task.spec.limits.clone(),
            is_wanted: task.status != Status::Created,
            start_at: task.spec.start_at,
            deadline: task.spec.deadline,
        }
    }

    /// Assumes a start now, or not before this time.
    pub(crate) fn started(self, at: Option<WallMs>) -> Outlook {
        Outlook {
            is_wanted: true,
            start_at: at.or(self.start_at),
            ..self
        }
    }

    /// Applies a change to the forecast.
    pub(crate) fn changed(self, task: &TaskView, edit: &TaskEdit) -> Outlook {
        let total = edit.total.unwrap_or(task.total).0;
        let spec = edit.spec.clone().apply(&task.spec);
        let items =
            (self.items + total + task.spec.skip_first.0).saturating_sub(task.total.0 + spec.skip_first.0);
        Outlook {
            items,
            rate: edit.tuning.as_ref().map_or(self.rate, |tuning| tuning.rate),
            shards: edit.spec.shards.map_or(self.shards, fixed),
            deadline: spec.deadline,
            ..self
        }
    }
}

fn fixed(shards: Shards) -> Option<u32> {
    match shards.0 {
        Auto::Fixed(shards) => Some(shards.get()),
        Auto::Auto => None,
    }
}

impl Tasks {
    /// Returns the warnings about a task. Whatever can't be checked right now is left out, because the response
    /// shouldn't fail for it.
    pub async fn warnings(&self, task: &TaskView) -> Vec<Warning> {
        let Some(outlook) = Outlook::of(task) else {
            return Vec::new();
        };
        let mut found = self.warnings_of_time(task, &outlook).await;
        found.extend(self.warning_of_room(task).await);
        // If the status already explains the wait, a warning would only repeat it.
        if outlook.is_wanted && outlook.start_at.is_none() && task.status_reason.is_none() {
            found.extend(self.warning_of_line(task, &outlook).await);
        }
        found
    }

    /// Returns the warnings about tasks created by a request, as far as possible without reading its source.
    ///
    /// # Errors
    /// If its business or settings are invalid, or if the store can't be read.
    pub(crate) async fn warnings_of_request(
        &self,
        request: &TaskRequest,
    ) -> Result<Vec<Warning>, ServiceError> {
        let business = self.businesses.open(&request.business).await?;
        let tuning = self.settings(&business, &request.plan.tuning)?;
        let defaults = defaults(&self.node.config().task_defaults, tuning.ordered);
        let outlook = Outlook::of_request(request, &tuning, &defaults);
        Ok(self.foreseen(&outlook, &business).await?)
    }

    /// Warns if the results exceed the free space.
    pub(crate) async fn warning_of_room(&self, task: &TaskView) -> Option<Warning> {
        let room = self.results.room(task).await.unwrap_or_else(|error| {
            tracing::debug!(task = %task.id, %error, "check of the space for results failed");
            None
        });
        let fault = FieldFault::new("/results", room?.shortage()?).advise(SHORTAGE_ADVICE);
        Some(Warning {
            code: RESULTS_ROOM,
            fault,
        })
    }

    async fn warnings_of_time(&self, task: &TaskView, outlook: &Outlook) -> Vec<Warning> {
        let found = match self.businesses.store.business(&task.business).await {
            Ok(Some(business)) => self.foreseen(outlook, &business).await,
            Ok(None) => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        found.unwrap_or_else(|error| {
            tracing::warn!(task = %task.id, %error, "check of the deadline failed");
            not_started(outlook).into_iter().collect()
        })
    }

    async fn foreseen(&self, outlook: &Outlook, business: &Business) -> Result<Vec<Warning>, StoreError> {
        let mut found: Vec<Warning> = not_started(outlook).into_iter().collect();
        let limits = self.limits_on(outlook, business).await?;
        if let Some(deadline) = outlook.deadline {
            let now = self.node.now();
            let begins = outlook.start_at.map_or(now, |at| at.max(now));
            let lowest = limits.iter().reduce(|low, other| {
                if low.rate.is_faster_than(other.rate) {
                    other
                } else {
                    low
                }
            });
            let plan = Plan {
                items: outlook.items,
                rate: outlook.rate,
                limit: lowest.map(|limit| limit.rate),
                begins,
                deadline,
            };
            found.extend(match self.too_large(outlook).await? {
                Some((wants, most)) => Some(no_room(wants, most)),
                None => shortfall(&plan).map(|short| too_early(&plan, &short, lowest, now)),
            });
        }
        found.extend(self.beyond_reach(outlook, &limits).await?);
        Ok(found)
    }

    /// Fails if there are any warnings.
    ///
    /// # Errors
    /// `Unprocessable` with all of them.
    pub(crate) async fn refuse_foreseen(
        &self,
        outlook: &Outlook,
        business: &Business,
    ) -> Result<(), ServiceError> {
        let found = self.foreseen(outlook, business).await?;
        let strictly = |warning: Warning| {
            let advice = warning
                .fault
                .advice
                .map(|advice| format!("{advice}; or leave out strict"));
            FieldFault {
                advice,
                ..warning.fault
            }
        };
        if found.is_empty() {
            return Ok(());
        }
        Err(ServiceError::Unprocessable(
            found.into_iter().map(strictly).collect(),
        ))
    }

    /// Returns the capacity that one shard needs; `None` if the number of shards is automatic.
    pub(super) fn part(&self, outlook: &Outlook) -> Option<Load> {
        let reserves = self.node.config().node.unlimited_reserves;
        let rate = outlook.rate.most().unwrap_or(reserves);
        let shards = u128::from(outlook.shards?.max(1));
        Some(Load(Load::needed_by(rate).0.div_ceil(shards)))
    }

    /// Returns the capacity of the largest node that accepts tasks; `None` if it is unlimited.
    pub(super) async fn largest_node(&self) -> Result<Option<Load>, StoreError> {
        if !self.cluster.parts.is_shared {
            return Ok(self.node.supervisor.room().capacity);
        }
        let known: Option<Vec<Load>> = self.capacities().await?.into_iter().collect();
        Ok(known.and_then(|known| known.into_iter().max()))
    }

    /// Returns the capacities of all nodes that accept tasks; `None` is unlimited.
    pub(super) async fn capacities(&self) -> Result<Vec<Option<Load>>, StoreError> {
        let sessions = self.cluster.sessions().await?;
        let takes = sessions.iter().filter(|session| {
            !session.fenced && session.face.pools.as_ref().is_none_or(|pools| !pools.is_empty())
        });
        Ok(takes.map(|session| session.face.capacity).collect())
    }
}

fn not_started(outlook: &Outlook) -> Option<Warning> {
    let at = outlook.start_at.filter(|_| !outlook.is_wanted)?;
    let text = format!(
        "it isn't started, so it won't begin on its own at {}",
        at.to_rfc3339()
    );
    let fault = FieldFault::new("/start_at", text).advise("start it; it then waits until that time");
    Some(Warning {
        code: NOT_STARTED,
        fault,
    })
}

fn warn_of_deadline(detail: String, advice: String) -> Warning {
    Warning {
        code: DEADLINE,
        fault: FieldFault::new("/deadline", detail).advise(advice),
    }
}

fn no_room(wants: Load, most: Load) -> Warning {
    warn_of_deadline(
        format!("no node can run {wants} for a shard (the largest has {most}), so the task will wait"),
        format!("a rate of at most {most} per shard, more shards, or a higher node.capacity_rate"),
    )
}

fn too_early(plan: &Plan, short: &Shortfall, limit: Option<&Ceiling>, now: WallMs) -> Warning {
    if plan.deadline <= now {
        let detail = "it has passed: the task stops as soon as it is started".to_owned();
        return warn_of_deadline(detail, "a later deadline, or none".to_owned());
    }
    if short.has.is_zero() {
        let detail = format!(
            "it passes before the task begins, at {}",
            plan.begins.to_rfc3339()
        );
        return warn_of_deadline(detail, "a later deadline, or an earlier start".to_owned());
    }
    let title = limit.map_or("limit", |limit| limit.title.as_str());
    let whose = match short.is_limit {
        true => format!(", the {title},"),
        false => String::new(),
    };
    let what = match short.are_lower {
        (true, true) => format!("a rate and a {title}"),
        (false, true) => format!("a {title}"),
        (_, false) => "a rate".to_owned(),
    };
    let Shortfall {
        rate,
        needs,
        has,
        done,
        ..
    } = short;
    let needed = short
        .needed
        .map(|needed| format!("{what} of at least {needed}, or "))
        .unwrap_or_default();
    warn_of_deadline(
        format!(
            "{} items at {rate}{whose} take {}, but only {} remain until then, enough for {done}",
            plan.items,
            span(whole(*needs)),
            span(whole(*has))
        ),
        format!("{needed}a deadline after {}", short.until.to_rfc3339()),
    )
}

/// Returns a span in whole seconds, at least 1.
fn whole(span: Duration) -> Duration {
    Duration::from_secs(span.as_secs().max(1))
}
