//! Redrives: a new task over failures of another. Nothing is copied, so a redrive of a million failures is made as
//! quickly as one of ten, and while the other task runs.

use std::collections::BTreeMap;

use super::{FieldFault, Service, ServiceError};
use crate::domain::ids::{ItemIndex, TaskId};
use crate::domain::lifecycle::Status;
use crate::domain::task::Canary;
use crate::domain::tuning_patch::TuningPatch;
use crate::ports::failure_list::AMONG_MAX;
use crate::ports::run_store::FAILURE_CODE_OTHER;
use crate::ports::source_desk::{RedrivePart, RedriveSpec, SourceRequest};
use crate::ports::task_store::{Actor, CommandError, FailureGroup, NewTask, TaskCommand, TaskView};

/// What a redrive shall be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RedriveRequest {
    /// Failures of these groups; empty is all.
    pub codes: Vec<String>,
    /// Only these items, written `5,9-20`.
    pub indexes: Option<String>,
    /// Whether the items get keys of the new task, so that the business takes them for new ones.
    pub new_keys: bool,
    /// The new task's name.
    pub name: Option<String>,
    /// The new task's labels; none takes over the other task's.
    pub labels: Option<BTreeMap<String, String>>,
    /// The new task's priority; none takes over the other task's.
    pub priority: Option<i32>,
    /// The settings that differ from the other task's.
    pub settings: TuningPatch,
    /// The first items, run before any other.
    pub canary: Option<Canary>,
    /// Whether it starts at once.
    pub start: bool,
    /// Repeats with this key return the first one's task.
    pub idempotency_key: Option<String>,
}

impl Service {
    /// Makes a task over failures of another one, and starts it if wanted.
    ///
    /// # Errors
    /// `Unprocessable` when nothing is selected, a code is unknown, or the settings contradict one another.
    pub async fn redrive(
        &self,
        origin: &TaskView,
        request: &RedriveRequest,
        actor: &Actor,
    ) -> Result<TaskView, ServiceError> {
        let parts = match &request.indexes {
            Some(text) => self.by_index(origin, text, &request.codes).await?,
            None => self.by_group(origin, &request.codes).await?,
        };
        let tuning = request.settings.apply(&origin.tuning);
        let business = self.open_business(&origin.business).await?;
        self.check_settings(&tuning, &business.spec.limits)?;
        let keys_of = if request.new_keys { None } else { Some(self.keys_of(origin)?) };
        let spec = RedriveSpec { origin: origin.id, keys_of, parts };
        let source = self.resolve_source(&SourceRequest::Redrive(spec), actor).await?;
        let new = NewTask {
            business: origin.business.clone(),
            name: request.name.clone(),
            total: source.total,
            skip_first: ItemIndex(0),
            tuning,
            params: origin.params.clone(),
            source: source.json,
            meaning: source.meaning,
            idempotency_key: request.idempotency_key.clone(),
            labels: request.labels.clone().unwrap_or_else(|| origin.labels.clone()),
            priority: request.priority.unwrap_or(origin.priority),
            send_params: origin.send_params,
            canary: request.canary,
            start_at: None,
            deadline: None,
            parent: Some(origin.id),
        };
        let made = self.parts.tasks.create(&new, actor, self.now()).await?;
        if request.start { self.start_made(made, actor).await } else { Ok(made) }
    }

    /// Starts a task that was just made; one that an earlier request with the same key started is left as it is.
    async fn start_made(&self, made: TaskView, actor: &Actor) -> Result<TaskView, ServiceError> {
        if made.status != Status::Created {
            return Ok(made);
        }
        let started = self.parts.tasks.command(made.id, &TaskCommand::Start, actor, self.now()).await;
        self.supervisor().wake();
        match started {
            Ok(task) => Ok(task),
            Err(CommandError::Refused(_)) => self.task(made.id).await,
            Err(error) => Err(error.into()),
        }
    }

    /// The task whose keys the failures of a task carry.
    fn keys_of(&self, origin: &TaskView) -> Result<TaskId, ServiceError> {
        let earlier = self.parts.desk.redrive_of(&origin.source);
        let earlier = earlier.map_err(|error| ServiceError::Internal(error.to_string()))?;
        Ok(earlier.and_then(|spec| spec.keys_of).unwrap_or(origin.id))
    }

    async fn by_group(&self, origin: &TaskView, codes: &[String]) -> Result<Vec<RedrivePart>, ServiceError> {
        let groups = self.parts.failures.groups(origin.id).await?;
        let faults: Vec<FieldFault> = codes
            .iter()
            .enumerate()
            .filter(|(_, code)| !groups.iter().any(|group| group.code == **code))
            .map(|(at, code)| unknown_code(origin, &groups, at, code))
            .collect();
        if !faults.is_empty() {
            return Err(ServiceError::Unprocessable(faults));
        }
        let wanted = groups.iter().filter(|group| codes.is_empty() || codes.contains(&group.code));
        let places = |group: &FailureGroup| RedrivePart::Places {
            code: group.code.clone(),
            first: 0,
            count: group.count,
        };
        let parts: Vec<RedrivePart> = wanted.filter(|group| group.count > 0).map(places).collect();
        if parts.is_empty() {
            let text = format!("{} has no failures, so there is nothing to do again", origin.id);
            return Err(ServiceError::unprocessable("/filter", text));
        }
        self.refuse_forgotten(origin, &parts).await?;
        Ok(parts)
    }

    /// The rows of failures are kept for a time only; the groups stay.
    async fn refuse_forgotten(&self, origin: &TaskView, parts: &[RedrivePart]) -> Result<(), ServiceError> {
        for part in parts {
            let RedrivePart::Places { code, first, count } = part else { continue };
            for place in [*first, first + count - 1] {
                if self.parts.failures.places(origin.id, code, place, 1).await?.is_empty() {
                    let text =
                        format!("failures {code} of {} are no longer kept (retention.failures)", origin.id);
                    return Err(ServiceError::unprocessable("/filter", text));
                }
            }
        }
        Ok(())
    }

    async fn by_index(
        &self,
        origin: &TaskView,
        text: &str,
        codes: &[String],
    ) -> Result<Vec<RedrivePart>, ServiceError> {
        let fault = |why: String| ServiceError::unprocessable("/filter/indexes", why);
        let indexes = parse_indexes(text).map_err(fault)?;
        let mut found = self.parts.failures.among(origin.id, &indexes).await?;
        let is_wanted =
            |group: Option<&String>| codes.is_empty() || group.is_some_and(|code| codes.contains(code));
        found.retain(|item| is_wanted(item.place.as_ref().map(|(code, _)| code)));
        if found.is_empty() {
            return Err(fault(format!(
                "none of these items of {} failed for good (with these codes)",
                origin.id
            )));
        }
        let mut parts: Vec<RedrivePart> = Vec::new();
        for item in found {
            match parts.last_mut() {
                Some(RedrivePart::Indexes { first, count }) if *first + *count == item.index.0 => *count += 1,
                _ => parts.push(RedrivePart::Indexes { first: item.index.0, count: 1 }),
            }
        }
        Ok(parts)
    }
}

fn unknown_code(origin: &TaskView, groups: &[FailureGroup], at: usize, code: &str) -> FieldFault {
    let fault = FieldFault::new(
        format!("/filter/codes/{at}"),
        format!("{} has no group of failures {code:?}", origin.id),
    );
    match groups.iter().find(|group| group.code == FAILURE_CODE_OTHER) {
        Some(other) => {
            let n = other.count;
            fault.advise(format!("if it is among the {n} failures of rarer codes, {FAILURE_CODE_OTHER:?} does them all; or name their indexes"))
        }
        None => fault.advise(format!("GET /v1/tasks/{}/failures/groups lists them", origin.id)),
    }
}

/// The indexes of `5,9-20`, ordered, each once.
///
/// # Errors
/// When it is no such text, or names more than [`AMONG_MAX`].
pub fn parse_indexes(text: &str) -> Result<Vec<ItemIndex>, String> {
    let mut indexes = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |digits: &str| {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse::<u64>().ok()).flatten()
        };
        let bounds = number(first).zip(number(last)).filter(|(first, last)| first <= last);
        let (first, last) =
            bounds.ok_or_else(|| format!("{part:?} is neither an index nor a range such as 9-20"))?;
        if last - first >= AMONG_MAX as u64 || indexes.len() as u64 + (last - first) >= AMONG_MAX as u64 {
            return Err(format!(
                "at most {AMONG_MAX} indexes can be named; without them all failures are taken"
            ));
        }
        indexes.extend((first..=last).map(ItemIndex));
    }
    indexes.sort_unstable();
    indexes.dedup();
    Ok(indexes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_numbers_and_ranges_each_once() {
        let read =
            |text: &str| parse_indexes(text).map(|found| found.iter().map(|i| i.0).collect::<Vec<_>>());
        assert_eq!(read("5,9-12,10,0"), Ok(vec![0, 5, 9, 10, 11, 12]));
        for wrong in ["", "5,", "-3", "3-", "9-5", "a", "1 ,2", "+1", "99999999999999999999"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(read("0-9999").map(|found| found.len()), Ok(10_000));
        assert!(read("0-10000").is_err() && read("0-9999,20000").is_err());
    }
}
