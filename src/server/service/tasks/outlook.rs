//! What would not come about as it was wished: a deadline that can't be met, a start time of a task that nobody
//! started, results that don't fit where they are kept. It is told where a task is made, changed, started or looked at; with `strict` it is refused.

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

/// The code of a deadline that can't be met.
pub const DEADLINE: &str = "deadline_too_early";
/// The code of a start time without a start.
pub const NOT_STARTED: &str = "not_started";

/// The code of results that don't fit where they are kept.
pub const RESULTS_ROOM: &str = "results_room";

/// What would not come about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// [`DEADLINE`], [`NOT_STARTED`], [`RESULTS_ROOM`], [`IN_LINE`](super::line::IN_LINE), or [`RATE`](super::ceiling::RATE).
    pub code: &'static str,
    /// Of which member, what is wrong, and what would do.
    pub fault: FieldFault,
}

/// What a task is to come to, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct Outlook {
    pub(super) items: u64,
    pub(super) rate: RateLimit,
    pub(super) shards: Option<u32>,
    /// The limits that the task itself names.
    pub(super) limits: Vec<String>,
    /// Whether it runs as soon as it may.
    is_wanted: bool,
    start_at: Option<WallMs>,
    pub(super) deadline: Option<WallMs>,
}

impl Outlook {
    /// Of a task that is to be made.
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

    /// Of tasks that are made by a request, before its source is read.
    fn of_request(request: &TaskRequest, tuning: &Tuning, defaults: &TaskSpec) -> Outlook {
        let spec = request.plan.spec.clone().apply(defaults);
        Outlook {
            // Of other sources nobody knows more than that they have one.
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

    /// Of a task; none when nothing more comes of it by itself.
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

    /// Of a task, if it runs as soon as it may.
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

    /// The same, started now or not before this time.
    pub(crate) fn started(self, at: Option<WallMs>) -> Outlook {
        Outlook {
            is_wanted: true,
            start_at: at.or(self.start_at),
            ..self
        }
    }

    /// The same after a change.
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
    /// What of a task would not come about. What can't be looked up now isn't told: it is no reason to refuse an
    /// answer.
    pub async fn warnings(&self, task: &TaskView) -> Vec<Warning> {
        let Some(outlook) = Outlook::of(task) else {
            return Vec::new();
        };
        let mut found = self.warnings_of_time(task, &outlook).await;
        found.extend(self.warning_of_room(task).await);
        // One whose status says why it waits needs no second word.
        if outlook.is_wanted && outlook.start_at.is_none() && task.status_reason.is_none() {
            found.extend(self.warning_of_line(task, &outlook).await);
        }
        found
    }

    /// What of the tasks that are made by a request would not come about, as far as that is known before its source is read.
    ///
    /// # Errors
    /// When its business or its settings aren't sound, or the store can't be read.
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

    /// That the results don't fit where they are kept.
    pub(crate) async fn warning_of_room(&self, task: &TaskView) -> Option<Warning> {
        let room = self.results.room(task).await.unwrap_or_else(|error| {
            tracing::debug!(task = %task.id, %error, "whether its results fit isn't known now");
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
            tracing::warn!(task = %task.id, %error, "whether its deadline can be met isn't known now");
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

    /// Refuses what would only be warned of.
    ///
    /// # Errors
    /// `Unprocessable` names each.
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

    /// What one part of a task needs of a node; none where it is cut into as many as it takes.
    pub(super) fn part(&self, outlook: &Outlook) -> Option<Load> {
        let rate = match outlook.rate {
            RateLimit::Limited(rate) => rate,
            RateLimit::Unlimited => self.node.config().node.unlimited_reserves,
        };
        let shards = u128::from(outlook.shards?.max(1));
        Some(Load(Load::needed_by(rate).0.div_ceil(shards)))
    }

    /// The most that a node may run that takes tasks; none is without limit.
    pub(super) async fn largest_node(&self) -> Result<Option<Load>, StoreError> {
        if !self.cluster.parts.is_shared {
            return Ok(self.node.supervisor.room().capacity);
        }
        let known: Option<Vec<Load>> = self.capacities().await?.into_iter().collect();
        Ok(known.and_then(|known| known.into_iter().max()))
    }

    /// What each node may run that takes tasks; none is without limit.
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
        "it isn't started, so it doesn't begin by itself at {}",
        at.to_rfc3339()
    );
    let fault = FieldFault::new("/start_at", text).advise("start it, and it waits until then");
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
        format!("a part of the task needs {wants}, but the largest node may run {most}: it would wait"),
        format!("a rate of at most {most} for each shard, more shards, or a higher node.capacity_rate"),
    )
}

fn too_early(plan: &Plan, short: &Shortfall, limit: Option<&Ceiling>, now: WallMs) -> Warning {
    if plan.deadline <= now {
        let detail = "it is over: the task stops as soon as it is started".to_owned();
        return warn_of_deadline(detail, "a later deadline, or none".to_owned());
    }
    if short.has.is_zero() {
        let detail = format!(
            "it is over before the task begins, at {}",
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
            "{} items at {rate}{whose} take {}, but there are {} until then, enough for {done}",
            plan.items,
            span(*needs),
            span(*has)
        ),
        format!("{needed}a deadline after {}", short.until.to_rfc3339()),
    )
}

/// Whole seconds, at least one.
fn span(span: Duration) -> String {
    humantime::format_duration(Duration::from_secs(span.as_secs().max(1))).to_string()
}
