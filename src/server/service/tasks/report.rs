//! Report of a task: its settings, its outcome, and the proof that every item is accounted for.

use std::sync::Arc;

use crate::service::ServiceError;
use crate::service::failures::Failures;
use crate::service::failures::net::NetResult;
use crate::service::node::ThisNode;
use crate::service::tasks::show::as_saved;
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::life::succession::Loss;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::tasks::list::RunRecord;
use windrow_engine::ports::tasks::report_store::ReportFacts;
use windrow_engine::ports::tasks::store::{AuditEntry, FailureGroup, ShardLife, TaskStore, TaskView};

/// Most runs in a report; the next limit is for audit entries.
const RUNS_MAX: u32 = 100;
const ENTRIES_MAX: usize = 200;
/// Most redrives in a report.
const REDRIVES_MAX: u32 = 100;

/// Limit of what any platform can prove, stated in every report.
pub const LIMIT_OF_PROOF: &str = "this doesn't prove that no item was handled twice: a call whose response \
                                  was lost is repeated with the same key, and only the handler can tell";

/// Complete report of a task.
#[derive(Clone, Debug)]
pub struct Report {
    /// Time of the report.
    pub at: WallMs,
    /// Rows from which the report is built.
    pub facts: ReportFacts,
    /// Actions of people and of the system, oldest first.
    pub entries: Vec<AuditEntry>,
    /// Tasks that redrove its failures.
    pub redrives: Vec<TaskView>,
    /// Failures that remain after the redrives.
    pub net: NetResult,
    /// Proof that every item is accounted for.
    pub proof: Vec<Check>,
}

/// Single step of the proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Statement that must hold.
    pub claim: &'static str,
    /// True if the statement holds.
    pub holds: bool,
    /// Numbers that support the result.
    pub evidence: String,
}

impl Report {
    /// Returns true if the task is finished and all steps of the proof hold.
    pub fn is_proved(&self) -> bool {
        self.facts.task.status == Status::Finished && self.proof.iter().all(|check| check.holds)
    }
}

/// Service for reports of tasks.
pub struct Reports {
    pub(in crate::service) node: Arc<ThisNode>,
    pub(in crate::service) tasks: Arc<dyn TaskStore>,
    pub(in crate::service) failures: Arc<Failures>,
}

impl Reports {
    pub(in crate::service) fn new(
        node: Arc<ThisNode>,
        tasks: Arc<dyn TaskStore>,
        failures: Arc<Failures>,
    ) -> Reports {
        Reports {
            node,
            tasks,
            failures,
        }
    }

    /// Returns the current report of a task.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn of_task(&self, id: TaskId) -> Result<Report, ServiceError> {
        let facts = self.failures.reports.report_facts(id, RUNS_MAX).await?;
        let mut facts = facts.ok_or_else(|| ServiceError::no_task(id))?;
        for run in &mut facts.runs {
            as_saved(run, &facts.task.shards);
        }
        let mut entries = self.tasks.audit(id).await?;
        entries.extend(successions(&facts.runs, &entries));
        entries.sort_by_key(|entry| entry.at);
        let surplus = entries.len().saturating_sub(ENTRIES_MAX);
        entries.drain(..surplus);
        let redrives = self.failures.reports.redrives_of(id, REDRIVES_MAX).await?;
        let net = self.failures.net(&facts.task).await?;
        let proof = proof(&facts);
        Ok(Report {
            at: self.node.now(),
            facts,
            entries,
            redrives,
            net,
            proof,
        })
    }
}

/// Derives handovers and takeovers of shards from the runs, as the audit log doesn't record all of them.
fn successions(runs: &[RunRecord], entries: &[AuditEntry]) -> Vec<AuditEntry> {
    let taken: Vec<Loss> = entries.iter().filter_map(taken_over).collect();
    let told = runs.iter().filter_map(|next| {
        let of = |run: &&RunRecord| run.shard == next.shard && run.run.0 + 1 == next.run.0;
        let before = runs.iter().find(of)?;
        let (from, to) = (before.node.as_ref()?, next.node.as_ref()?);
        let is_told = taken
            .iter()
            .any(|loss| (loss.shard, loss.run) == (before.shard.no, before.run));
        let (action, reason) = match before.end_reason.as_deref() {
            Some("released") if from != to => (
                "shard.handed_over",
                format!("{from} handed shard {} over to {to}", next.shard.no),
            ),
            Some("lost") if !is_told => (
                "shard.taken_over",
                format!("{to} took over shard {}, which {from} had lost", next.shard.no),
            ),
            _ => return None,
        };
        Some(AuditEntry {
            at: next.started_at,
            actor: "windrow".to_owned(),
            source: "system".to_owned(),
            action: action.to_owned(),
            reason: Some(reason),
            before: None,
            after: None,
        })
    });
    told.collect()
}

/// Returns the takeover that an audit entry describes.
fn taken_over(entry: &AuditEntry) -> Option<Loss> {
    let is_one = entry.action == "shard.taken_over";
    let (before, after) = (entry.before.as_deref()?, entry.after.as_deref()?);
    Loss::of(before, after).filter(|_| is_one)
}

/// Builds the completion proof from sums over shards and groups.
fn proof(facts: &ReportFacts) -> Vec<Check> {
    let task = &facts.task;
    vec![
        tiling(task),
        completion(task),
        waiting(task, facts.has_waiting_items),
        counters(task),
        failures(task, &facts.groups),
    ]
}

fn sum(task: &TaskView, of: impl Fn(&ShardLife) -> u64) -> u64 {
    task.shards.iter().map(of).sum()
}

fn head(task: &TaskView) -> u64 {
    task.spec.skip_first.0.min(task.total.0)
}

fn equals(holds: bool) -> char {
    if holds { '=' } else { '≠' }
}

/// Checks that the ranges are contiguous from the head to the end.
fn tiling(task: &TaskView) -> Check {
    let mut next = head(task);
    let mut holds = true;
    for shard in &task.shards {
        holds &= shard.first.0 == next;
        next = shard.range_end.0;
    }
    let ranges = match task.shards.len() {
        1 => "1 shard".to_owned(),
        count => format!("{count} shards"),
    };
    Check {
        claim: "the ranges of the shards cover the task",
        holds: holds && next == task.total.0,
        evidence: format!("{ranges} over [{}, {})", head(task), task.total.0),
    }
}

fn completion(task: &TaskView) -> Check {
    let open = task.shards.iter().filter(|shard| shard.watermark != shard.end);
    let open: Vec<String> = open
        .map(|shard| {
            let (low, end) = (shard.watermark.0, shard.end.0);
            format!("{}.{} is at {low} of {end}", task.id, shard.no)
        })
        .collect();
    Check {
        claim: "each shard's watermark has reached its end",
        holds: open.is_empty(),
        evidence: match (open.is_empty(), task.shards.len()) {
            (false, _) => open.join("; "),
            (true, 1) => "the only shard".to_owned(),
            (true, count) => format!("all {count} shards"),
        },
    }
}

/// Checks that no items are parked or waiting. Parked items are among those waiting.
fn waiting(task: &TaskView, has_waiting_items: bool) -> Check {
    let parked = sum(task, |shard| shard.counters.parked);
    Check {
        claim: "no item is parked or waits for a retry",
        holds: parked == 0 && !has_waiting_items,
        evidence: match (parked, has_waiting_items) {
            (0, true) => "0 parked, but some wait for a retry".to_owned(),
            (0, false) => "0 parked, 0 waiting".to_owned(),
            (parked, _) => format!("{parked} parked"),
        },
    }
}

fn counters(task: &TaskView) -> Check {
    let settled = sum(task, |shard| shard.counters.settled());
    let due = sum(task, |shard| shard.end.0 - shard.first.0);
    let excluded = head(task) + sum(task, |shard| shard.range_end.0 - shard.end.0);
    let holds = settled == due && settled + excluded == task.total.0;
    let sign = equals(holds);
    Check {
        claim: "the counters add up",
        holds,
        evidence: format!("{settled} settled + {excluded} excluded {sign} {}", task.total.0),
    }
}

fn failures(task: &TaskView, groups: &[FailureGroup]) -> Check {
    let failed = sum(task, |shard| shard.counters.failed);
    let recorded: u64 = groups.iter().map(|group| group.count).sum();
    let holds = recorded == failed;
    Check {
        claim: "the recorded failures match the failed items",
        holds,
        evidence: format!("{recorded} recorded {} {failed} failed", equals(holds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::ids::{Epoch, ItemIndex, RunNo, ShardId};

    fn run(no: u32, node: &str, end: &str) -> RunRecord {
        RunRecord {
            shard: ShardId {
                task: TaskId(1),
                no: 0,
            },
            run: RunNo(no),
            epoch: Epoch(1),
            node: Some(node.to_owned()),
            started_at: WallMs(i64::from(no)),
            ended_at: Some(WallMs(i64::from(no) + 1)),
            end_reason: Some(end.to_owned()),
            end_text: None,
            watermark: ItemIndex(0),
            settled: [0; 3],
            parked: 0,
        }
    }

    #[test]
    fn a_handover_is_told_and_a_stop_or_a_restart_is_none() {
        let runs = [
            run(4, "n1", "done"),
            run(3, "n1", "stopped"),
            run(2, "n1", "released"),
            run(1, "n2", "released"),
        ];
        let told = successions(&runs, &[]);
        let said: Vec<Option<&str>> = told.iter().map(|entry| entry.reason.as_deref()).collect();
        assert_eq!(said, [Some("n2 handed shard 0 over to n1")]);
        assert_eq!(
            (told[0].at, told[0].action.as_str()),
            (WallMs(2), "shard.handed_over")
        );
    }

    #[test]
    fn who_goes_on_with_what_was_lost_is_told_once() {
        let runs = [run(3, "n1", "done"), run(2, "n3", "lost"), run(1, "n2", "lost")];
        let entry = |before: &str, after: &str| AuditEntry {
            at: WallMs(2),
            actor: "windrow".to_owned(),
            source: "system".to_owned(),
            action: "shard.taken_over".to_owned(),
            reason: None,
            before: Some(before.to_owned()),
            after: Some(after.to_owned()),
        };
        let known = entry(
            r#"{"shard":0,"run":1,"node":"n2"}"#,
            r#"{"node":"n3","silent_seconds":9}"#,
        );
        let told = successions(&runs, &[known]);
        let said: Vec<Option<&str>> = told.iter().map(|entry| entry.reason.as_deref()).collect();
        assert_eq!(said, [Some("n1 took over shard 0, which n3 had lost")]);
    }
}
