//! Selection of failures for a redrive, by group or index, without those that earlier redrives recovered or are
//! working on.

use std::collections::{BTreeMap, BTreeSet};

use crate::service::failures::Failures;
use crate::service::failures::fates::{FATES_MAX, Fate, REDRIVES_MAX, fate_of};
use crate::service::tasks::settings::one_of;
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::{ItemIndex, TaskId};
use windrow_core::task::lifecycle::Status;
use windrow_core::text::quoted;
use windrow_engine::ports::ownership::run_store::FAILURE_CODE_OTHER;
use windrow_engine::ports::sources::resolver::{RedrivePart, RedriveSpec};
use windrow_engine::ports::tasks::failure_list::AMONG_MAX;
use windrow_engine::ports::tasks::store::{FailureGroup, Family, TaskView};

/// Most runs of consecutive items in a redrive's description: about 2 MB of text.
pub(super) const RUNS_MAX: usize = 100_000;
/// Most redrives named in a refusal.
const NAMED_MAX: usize = 5;

impl Failures {
    /// Returns the selection without failures that earlier redrives recovered or are working on.
    pub(in crate::service) async fn left_of(
        &self,
        origin: &TaskView,
        parts: Vec<RedrivePart>,
    ) -> Result<Vec<RedrivePart>, ServiceError> {
        if !self.has_other_redrives(origin).await? {
            return Ok(parts);
        }
        let spec = RedriveSpec {
            origin: origin.id,
            keys_of: None,
            parts,
            is_replay: false,
        };
        let (fates, items) = (self.fates(origin).await?, self.positions(&spec).await?);
        let (Some(fates), Some(items)) = (fates, items) else {
            return Err(cant_tell(origin));
        };
        let fate = |index: &ItemIndex| fate_of(&fates, *index).unwrap_or(Fate::Failed);
        let left: Vec<ItemIndex> = items
            .iter()
            .copied()
            .filter(|one| fate(one) == Fate::Failed)
            .collect();
        if left.len() == items.len() {
            return Ok(spec.parts);
        }
        if left.is_empty() {
            return Err(self
                .nothing_left(origin, &Redriven::of(items.iter().map(fate)))
                .await?);
        }
        let runs = runs_of(left);
        if runs.len() > RUNS_MAX {
            Err(cant_tell(origin))
        } else {
            Ok(runs)
        }
    }

    async fn nothing_left(
        &self,
        origin: &TaskView,
        redriven: &Redriven,
    ) -> Result<ServiceError, ServiceError> {
        let mut under_way = Vec::new();
        for id in redriven.under_way.keys().take(NAMED_MAX) {
            under_way.extend(self.tasks.get(*id).await?);
        }
        Ok(redriven.refusal(origin.id, &under_way))
    }

    /// Returns all redrives that may contain failures of a task. Beyond these limits,
    /// [`Failures::fates`](crate::service::failures::Failures) refuses.
    pub(in crate::service) async fn family(&self, origin: &TaskView) -> Result<Family, ServiceError> {
        let mut root = origin.clone();
        while let Some(parent) = root.parent {
            let Some(parent) = self.tasks.get(parent).await? else {
                break;
            };
            root = parent;
        }
        let (mut redrives, mut open) = (BTreeSet::new(), vec![root.id]);
        while let Some(id) = open.pop() {
            for redrive in self.reports.redrives_of(id, REDRIVES_MAX).await? {
                if redrives.insert(redrive.id) {
                    open.push(redrive.id);
                }
            }
        }
        Ok(Family {
            root: root.id,
            redrives,
        })
    }

    /// Returns true if another redrive may have had the failures of a task: one of its own, or a sibling. Its
    /// ancestors don't count.
    async fn has_other_redrives(&self, origin: &TaskView) -> Result<bool, ServiceError> {
        let (mut at, mut known) = (origin.id, 0);
        loop {
            if self.reports.redrives_of(at, known + 1).await?.len() > known as usize {
                return Ok(true);
            }
            let parent = self.tasks.get(at).await?.and_then(|task| task.parent);
            let Some(parent) = parent else { return Ok(false) };
            (at, known) = (parent, 1);
        }
    }

    /// Returns the task whose idempotency keys the failures carry.
    pub(in crate::service) fn keys_of(&self, origin: &TaskView) -> Result<TaskId, ServiceError> {
        let earlier = self.redrive_of(origin)?;
        Ok(earlier.and_then(|spec| spec.keys_of).unwrap_or(origin.id))
    }

    /// Returns the groups with these codes; all groups if no code is given.
    pub(super) async fn groups_of(
        &self,
        origin: &TaskView,
        codes: &[String],
    ) -> Result<Vec<FailureGroup>, ServiceError> {
        let mut groups = self.list.groups(origin.id).await?;
        let faults: Vec<FieldFault> = codes
            .iter()
            .enumerate()
            .filter(|(_, code)| !groups.iter().any(|group| group.code == **code))
            .map(|(at, code)| unknown_code(origin, &groups, at, code))
            .collect();
        if !faults.is_empty() {
            return Err(ServiceError::Unprocessable(faults));
        }
        groups.retain(|group| group.count > 0 && (codes.is_empty() || codes.contains(&group.code)));
        match groups.is_empty() {
            true => Err(none_failed(origin)),
            false => Ok(groups),
        }
    }

    pub(in crate::service) async fn by_group(
        &self,
        origin: &TaskView,
        codes: &[String],
    ) -> Result<Vec<RedrivePart>, ServiceError> {
        let groups = self.groups_of(origin, codes).await?;
        let places = |group: &FailureGroup| RedrivePart::Places {
            code: group.code.clone(),
            first: 0,
            count: group.count,
        };
        let parts: Vec<RedrivePart> = groups.iter().map(places).collect();
        self.refuse_forgotten(origin, &parts).await?;
        Ok(parts)
    }

    /// Fails if the rows are gone: they are kept only for a time, while the groups remain.
    async fn refuse_forgotten(&self, origin: &TaskView, parts: &[RedrivePart]) -> Result<(), ServiceError> {
        for part in parts {
            let RedrivePart::Places { code, first, count } = part else {
                continue;
            };
            for place in [*first, first + count - 1] {
                if self.list.places(origin.id, code, place, 1).await?.is_empty() {
                    return Err(forgotten(origin, code));
                }
            }
        }
        Ok(())
    }

    pub(in crate::service) async fn by_index(
        &self,
        origin: &TaskView,
        text: &str,
        codes: &[String],
        is_unconfirmed: bool,
    ) -> Result<Vec<RedrivePart>, ServiceError> {
        let fault = |why: String| ServiceError::unprocessable("/filter/indexes", why);
        let indexes = parse_indexes(text).map_err(fault)?;
        let mut found = self.list.among(origin.id, &indexes).await?;
        let is_wanted =
            |group: Option<&String>| codes.is_empty() || group.is_some_and(|code| codes.contains(code));
        found.retain(|item| is_wanted(item.place.as_ref().map(|(code, _)| code)));
        found.retain(|item| item.is_unconfirmed || !is_unconfirmed);
        if found.is_empty() {
            let failed = match is_unconfirmed {
                true => "is an unconfirmed failure",
                false => "has failed",
            };
            let text = format!("none of these items of {} {failed} (with these codes)", origin.id);
            let advice = format!("`windrow task failures {} --items` lists them", origin.id);
            return Err(FieldFault::new("/filter/indexes", text).advise(advice).into());
        }
        Ok(runs_of(found.into_iter().map(|item| item.index).collect()))
    }
}

/// Converts items to runs of consecutive indexes.
pub(super) fn runs_of(mut items: Vec<ItemIndex>) -> Vec<RedrivePart> {
    items.sort_unstable();
    let mut parts: Vec<RedrivePart> = Vec::new();
    for item in items {
        match parts.last_mut() {
            Some(RedrivePart::Indexes { first, count }) if *first + *count == item.0 => *count += 1,
            _ => parts.push(RedrivePart::Indexes {
                first: item.0,
                count: 1,
            }),
        }
    }
    parts
}

/// Explains why there is nothing to redrive, and where there may be something.
fn none_failed(origin: &TaskView) -> ServiceError {
    let id = origin.id;
    let text = format!("{id} has no failures to redrive");
    let fault = FieldFault::new("/filter", text);
    let is_over = origin.status.is_terminal();
    let fault = match origin.parent {
        Some(parent) => fault.advise(format!(
            "`windrow task redrive {parent} --all` redrives the remaining failures of {parent}, the origin \
             of this redrive"
        )),
        None if !is_over => fault.advise(format!(
            "try later: it is {}, and items may still fail",
            origin.status
        )),
        None => fault.advise(format!(
            "`windrow task report {id}` shows the outcome of its items"
        )),
    };
    ServiceError::NothingToDo(vec![fault])
}

pub(super) fn forgotten(origin: &TaskView, which: &str) -> ServiceError {
    let text = format!(
        "failures {which} of {} are no longer kept (retention.failures)",
        origin.id
    );
    ServiceError::unprocessable("/filter", text)
}

fn cant_tell(origin: &TaskView) -> ServiceError {
    let text = format!(
        "can't tell what earlier redrives of {} recovered: more than {FATES_MAX} failures, too scattered, or \
         no longer kept; redrive the latest redrive, or all with `again`",
        origin.id
    );
    ServiceError::unprocessable("/again", text)
}

/// Redrives that recovered or are working on items of the selection, with the number of items each.
#[derive(Debug, Default)]
struct Redriven {
    good: BTreeMap<TaskId, u64>,
    under_way: BTreeMap<TaskId, u64>,
}

impl Redriven {
    fn of(fates: impl Iterator<Item = Fate>) -> Redriven {
        let mut redriven = Redriven::default();
        for fate in fates {
            match fate {
                Fate::Failed => {}
                Fate::Recovered(by) => *redriven.good.entry(by).or_insert(0_u64) += 1,
                Fate::UnderWay(by) => *redriven.under_way.entry(by).or_insert(0_u64) += 1,
            }
        }
        redriven
    }

    /// Returns the refusal, which names the first few redrives and the next step: items under way are awaited, not
    /// redriven twice.
    fn refusal(&self, origin: TaskId, under_way: &[TaskView]) -> ServiceError {
        let by = |tasks: &BTreeMap<TaskId, u64>, word: &str| {
            let named: Vec<String> = tasks.keys().take(NAMED_MAX).map(TaskId::to_string).collect();
            let more = if tasks.len() > NAMED_MAX {
                " and others"
            } else {
                ""
            };
            format!(
                "{} {word} {}{more}",
                tasks.values().sum::<u64>(),
                named.join(", ")
            )
        };
        let mut said = Vec::new();
        if !self.good.is_empty() {
            said.push(by(&self.good, "recovered by"));
        }
        if !self.under_way.is_empty() {
            said.push(match under_way {
                [one] if waits_for_a_start(one) => {
                    format!("{}, which is {}", by(&self.under_way, "assigned to"), one.status)
                }
                [_] => format!(
                    "{}, which already handles them",
                    by(&self.under_way, "in progress in")
                ),
                _ => format!(
                    "{}, which already handle them",
                    by(&self.under_way, "in progress in")
                ),
            });
        }
        let text = format!("nothing left to redrive of {origin}: {}", said.join("; "));
        let fault = FieldFault::new("/filter", text);
        let leads_on: Vec<String> = under_way.iter().map(leading_on).collect();
        let advice = match leads_on.is_empty() {
            true => "use `again` to redrive them anyway".to_owned(),
            false => leads_on.join(", "),
        };
        ServiceError::NothingToDo(vec![fault.advise(advice)])
    }
}

fn waits_for_a_start(redrive: &TaskView) -> bool {
    matches!(redrive.status, Status::Created | Status::Stopped)
}

/// Returns the command that brings an unfinished redrive forward.
fn leading_on(redrive: &TaskView) -> String {
    let verb = if waits_for_a_start(redrive) {
        "start"
    } else {
        "watch"
    };
    format!("`windrow task {verb} {}`", redrive.id)
}

fn unknown_code(origin: &TaskView, groups: &[FailureGroup], at: usize, code: &str) -> FieldFault {
    let fault = FieldFault::new(
        format!("/filter/codes/{at}"),
        format!("{} has no failures with the code {}", origin.id, quoted(code)),
    );
    match groups.iter().find(|group| group.code == FAILURE_CODE_OTHER) {
        Some(other) => {
            let n = other.count;
            fault.advise(format!(
                "it may be among the {n} failures of rarer codes: redrive all of them with \
                 {FAILURE_CODE_OTHER:?}, or list the indexes"
            ))
        }
        None if groups.is_empty() => fault,
        None => {
            let codes: Vec<String> = groups.iter().map(|group| group.code.clone()).collect();
            fault.advise(one_of(code, &codes))
        }
    }
}

/// Parses indexes such as `5,9-20`; sorted, without duplicates.
///
/// # Errors
/// If the text is invalid or names more than [`AMONG_MAX`] items.
pub fn parse_indexes(text: &str) -> Result<Vec<ItemIndex>, String> {
    let mut indexes = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |digits: &str| {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse::<u64>().ok()).flatten()
        };
        let bounds = number(first)
            .zip(number(last))
            .filter(|(first, last)| first <= last);
        let (first, last) =
            bounds.ok_or_else(|| format!("{} is neither an index nor a range such as 9-20", quoted(part)))?;
        if last - first >= AMONG_MAX as u64 || indexes.len() as u64 + (last - first) >= AMONG_MAX as u64 {
            return Err(format!(
                "at most {AMONG_MAX} indexes are allowed; leave them out to redrive all failures"
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
        for wrong in [
            "",
            "5,",
            "-3",
            "3-",
            "9-5",
            "a",
            "1 ,2",
            "+1",
            "99999999999999999999",
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(read("0-9999").map(|found| found.len()), Ok(10_000));
        assert!(read("0-10000").is_err() && read("0-9999,20000").is_err());
    }
}
