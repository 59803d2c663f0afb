//! Failures that remain after redrives: computed from sums if no item can be in two redrives, otherwise item by item.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;

use crate::service::ServiceError;
use crate::service::failures::Failures;
use crate::service::failures::fates::Fate;
use windrow_core::ids::TaskId;
use windrow_engine::ports::sources::resolver::{RedrivePart, RedriveSpec};
use windrow_engine::ports::tasks::store::TaskView;

/// Most redrives examined per level; the next limit is for levels.
const REDRIVES_MAX: u32 = 100;
const LEVELS_MAX: u32 = 8;
/// Most failures examined one by one in a list of tasks, in total, so that a page stays fast.
const SINGLY_IN_LISTS_MAX: u64 = 1_000;

/// Failures of a task that remain after its redrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetResult {
    /// Number of failed items in the task itself.
    pub failed: u64,
    /// Number of items that redrives recovered.
    pub recovered: u64,
    /// Number of items still failed.
    pub still_failed: u64,
    /// True if no item is counted twice. False only if there are too many items to examine one by one.
    pub is_exact: bool,
}

impl Failures {
    /// Returns the failures that redrives, and redrives of those, recovered for a task.
    pub(in crate::service) async fn net(&self, task: &TaskView) -> Result<NetResult, ServiceError> {
        self.net_within(task, u64::MAX).await
    }

    /// Returns the remaining failures for those of the tasks that have redrives. If there are many failures, not all
    /// are examined one by one.
    pub(in crate::service) async fn nets(
        &self,
        tasks: &[&TaskView],
    ) -> Result<BTreeMap<TaskId, NetResult>, ServiceError> {
        let failed = tasks.iter().filter(|task| task.counters.failed > 0);
        let failed: BTreeMap<TaskId, &TaskView> = failed.map(|task| (task.id, *task)).collect();
        let ids: Vec<TaskId> = failed.keys().copied().collect();
        let (mut nets, mut singly) = (BTreeMap::new(), SINGLY_IN_LISTS_MAX);
        for id in self.reports.redriven_among(&ids).await? {
            let Some(task) = failed.get(&id) else { continue };
            nets.insert(id, self.net_within(task, singly).await?);
            singly = singly.saturating_sub(task.counters.failed);
        }
        Ok(nets)
    }

    /// Uses sums if no item can be in two redrives; otherwise examines each item, up to `singly_max`.
    async fn net_within(&self, task: &TaskView, singly_max: u64) -> Result<NetResult, ServiceError> {
        let sums = self.summed(task, LEVELS_MAX).await?;
        if sums.is_exact || sums.failed > singly_max {
            return Ok(sums);
        }
        let Some(fates) = self.fates_below(task, LEVELS_MAX).await? else {
            return Ok(sums);
        };
        let recovered = fates
            .iter()
            .filter(|(_, fate)| matches!(fate, Fate::Recovered(_)))
            .count() as u64;
        let still_failed = sums.failed.saturating_sub(recovered);
        Ok(NetResult {
            recovered,
            still_failed,
            is_exact: true,
            ..sums
        })
    }

    /// Computes the result from sums. Boxed because it is recursive.
    fn summed<'a>(
        &'a self,
        task: &'a TaskView,
        levels: u32,
    ) -> BoxFuture<'a, Result<NetResult, ServiceError>> {
        Box::pin(async move {
            let failed = task.counters.failed;
            let children = self.reports.redrives_of(task.id, REDRIVES_MAX).await?;
            let mut is_exact = children.len() < REDRIVES_MAX as usize && (levels > 0 || children.is_empty());
            let (mut recovered, mut selections) = (0, Vec::new());
            for child in &children {
                let own = child.counters.succeeded + child.counters.skipped;
                recovered += own;
                if levels > 0 && child.counters.failed > 0 {
                    let below = self.summed(child, levels - 1).await?;
                    recovered += below.recovered;
                    is_exact &= below.is_exact;
                }
                selections.extend(self.redrive_of(child)?);
            }
            // A replay may have succeeded with items that never failed, so its sum says nothing about failures.
            is_exact &= are_disjoint(&selections) && !selections.iter().any(|spec| spec.is_replay);
            let recovered = recovered.min(failed);
            Ok(NetResult {
                failed,
                recovered,
                still_failed: failed - recovered,
                is_exact,
            })
        })
    }
}

/// Returns true if no failure can be in two of these redrives. Positions can't be compared with indexes without
/// reading items.
fn are_disjoint(specs: &[RedriveSpec]) -> bool {
    let parts: Vec<(usize, &RedrivePart)> = specs
        .iter()
        .enumerate()
        .flat_map(|(at, spec)| spec.parts.iter().map(move |part| (at, part)))
        .collect();
    if specs.len() < 2 {
        return true;
    }
    let meets =
        |first: u64, count: u64, other: u64, others: u64| first < other + others && other < first + count;
    let may_share = |one: &RedrivePart, two: &RedrivePart| match (one, two) {
        (
            RedrivePart::Places { code, first, count },
            RedrivePart::Places {
                code: other_code,
                first: other,
                count: others,
            },
        ) => code == other_code && meets(*first, *count, *other, *others),
        (
            RedrivePart::Indexes { first, count },
            RedrivePart::Indexes {
                first: other,
                count: others,
            },
        ) => meets(*first, *count, *other, *others),
        _ => true,
    };
    // The comparison is quadratic, so redrives with thousands of single items aren't compared.
    const PARTS_COMPARED: usize = 2_000;
    parts.len() <= PARTS_COMPARED
        && parts.iter().enumerate().all(|(at, (spec, part))| {
            parts[at + 1..]
                .iter()
                .all(|(other, two)| spec == other || !may_share(part, two))
        })
}
