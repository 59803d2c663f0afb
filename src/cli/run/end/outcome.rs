//! Outcome of a run: one JSON object for scripts, a table for people, an exit code for both.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::stop_hint;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::judgement::of_them_unconfirmed;
use crate::output::table::human::{self, span, who};
use crate::output::used::used;
use crate::run::kept::only_failed::Net;
use crate::run::kept::resume::goes_on_at;
use windrow_core::execution::MeterPicture;
use windrow_core::explain::rate_text;
use windrow_core::ids::{ItemIndex, WallMs};
use windrow_core::task::lifecycle::{Status, StopReason, TaskResult};
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::tasks::failure_list::FailureList;
use windrow_engine::ports::tasks::report_store::ReportStore;
use windrow_engine::ports::tasks::store::{FailureGroup, TaskStore, TaskView};
use windrow_server::http::answer::costs::show_costs;
use windrow_server::http::answer::time::rfc3339;
use windrow_server::service::failures::item_data::{ItemData, Lookup, Members};
use windrow_server::service::tasks::show::costs::saved;

/// Beginning of the text of a task that stopped because no item fits its template.
const NO_REQUEST: &str = "no request could be built";

/// Observations of a run that its task doesn't contain.
#[derive(Clone, Debug, Default)]
pub(in crate::run) struct Seen {
    /// Last failed call, if the handler had problems when the run ended.
    pub(in crate::run) trouble: Option<String>,
    /// True if the disk with the progress was ever full.
    pub(in crate::run) disk_full: bool,
}

/// Outcome of a run, with its failures.
pub(in crate::run) struct Outcome {
    task: TaskView,
    /// Effect of later runs over its failures, if there were any.
    pub(in crate::run) net: Option<Net>,
    /// Remaining failures, grouped by code.
    groups: Vec<FailureGroup>,
    /// Index and data of the example of each group, as far as known.
    examples: Vec<ItemData>,
    /// Time that this process drove the task, and the number of items it settled; `None` if it only looked.
    driven: Option<(Duration, u64)>,
    /// Observations of this process during the run.
    seen: Seen,
    /// First item that a resumed run processes.
    goes_on_at: ItemIndex,
    /// Use of each meter.
    costs: Vec<MeterPicture>,
}

impl Outcome {
    /// Reads the outcome from the store.
    pub(in crate::run) async fn gather(
        store: &(impl TaskStore + FailureList + ReportStore),
        task: TaskView,
        driven: Option<(Duration, u64)>,
    ) -> Result<Outcome, Fault> {
        // Read it again: the last checkpoint of a run may come after the status that ended the watch.
        let task = store.get(task.id).await?.unwrap_or(task);
        let groups = store.groups(task.id).await?;
        let examples = vec![ItemData::default(); groups.len()];
        Ok(Outcome {
            goes_on_at: goes_on_at(store, &task).await?,
            costs: saved(store, &task, &[]).await,
            task,
            net: None,
            groups,
            examples,
            driven,
            seen: Seen::default(),
        })
    }

    /// Replaces the failures by those that remain after later runs over them.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub(in crate::run) async fn netted(
        mut self,
        failures: &dyn FailureList,
        net: Option<Net>,
    ) -> Result<Outcome, Fault> {
        if let Some(net) = net {
            self.groups = failures.groups(net.last.id).await?;
            self.examples = vec![ItemData::default(); self.groups.len()];
            self.net = Some(net);
        }
        Ok(self)
    }

    /// Adds the observations of the run.
    pub(in crate::run) fn seeing(self, seen: Seen) -> Outcome {
        Outcome { seen, ..self }
    }

    /// Returns the note on a full disk, or `None` if it was never full.
    pub(in crate::run) fn disk_note(&self) -> Option<String> {
        let resume = match self.task.status.is_terminal() {
            true => String::new(),
            false => format!(
                "; free disk space, then {}",
                crate::run::kept::resume::how(&self.task)
            ),
        };
        let note = "the progress disk was full for a while: saving was delayed, but nothing was lost";
        self.seen.disk_full.then(|| format!("{note}{resume}"))
    }

    /// Adds the data of the example items.
    pub(in crate::run) async fn naming(mut self, source: &dyn Source, members: &Members) -> Outcome {
        let mut lookup = Lookup::new(source, members);
        for (example, group) in self.examples.iter_mut().zip(&self.groups) {
            *example = lookup.item(group.example_index).await;
        }
        self
    }

    pub(in crate::run) fn has_failures(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Returns the task that has the remaining failures.
    pub(in crate::run) fn failed_in(&self) -> &TaskView {
        self.net.as_ref().map_or(&self.task, |net| &net.last)
    }

    fn recovered(&self) -> u64 {
        self.net.as_ref().map_or(0, |net| net.recovered)
    }

    /// Returns the number of remaining failures that nothing was compared with.
    fn unconfirmed(&self) -> u64 {
        self.groups.iter().map(|group| group.unconfirmed).sum()
    }

    fn still_failed(&self) -> u64 {
        self.task.counters.failed.saturating_sub(self.recovered())
    }

    /// True if later runs recovered all failed items.
    fn is_recovered(&self) -> bool {
        self.recovered() > 0 && self.still_failed() == 0
    }

    /// Returns exit code 0, 7, 8 or 9.
    pub(in crate::run) fn exit(&self) -> Exit {
        match (self.task.status, self.task.result) {
            (Status::Finished, _) if self.is_recovered() => Exit::Ok,
            (Status::Finished, Some(TaskResult::WithFailures)) => Exit::WithFailures,
            (Status::Finished, _) if self.task.counters.failed > 0 => Exit::WithFailures,
            (Status::Finished, _) => Exit::Ok,
            _ if self.never_worked() => Exit::Rejected,
            _ => Exit::Stopped,
        }
    }

    /// True if the handler was never reached, or rejected everything: the command needs to be corrected.
    fn never_worked(&self) -> bool {
        use StopReason::{HandlerRejected, HandlerUnreachable};
        let is_handler = matches!(self.task.stop_reason, Some(HandlerRejected | HandlerUnreachable));
        self.task.status == Status::Stopped && is_handler && self.task.counters.settled() == 0
    }

    /// Returns the items settled per second while this process drove the task.
    fn mean_rate(&self) -> f64 {
        match self.driven {
            Some((took, settled)) if !took.is_zero() => thousandths(settled as f64 / took.as_secs_f64()),
            _ => 0.0,
        }
    }

    fn seconds(&self) -> f64 {
        self.driven
            .map_or(0.0, |(took, _)| thousandths(took.as_secs_f64()))
    }

    pub(in crate::run) fn task(&self) -> &TaskView {
        &self.task
    }

    /// Returns the body of the task with the facts of the run and its failures. `handler_changed` is true if the job
    /// was started with another handler than this command's.
    pub(in crate::run) fn json(&self, handler_changed: bool) -> Value {
        let task = &self.task;
        json!({
            "id": task.id.to_string(),
            "business": task.business,
            "name": task.spec.name,
            "status": task.status.as_str(),
            "result": task.result.map(TaskResult::as_str),
            "stop_reason": task.stop_reason.filter(|_| task.status == Status::Stopped).map(StopReason::as_str),
            "status_reason": task.status_reason,
            "status_text": task.status_text,
            "since": rfc3339(task.since),
            "next": task.next_at.map(|at| json!({ "action": "recover", "at": rfc3339(at) })),
            "total": task.total.0,
            "counts": api::TaskCounts::new(&task.counters, task.counters.pending(task.total)),
            "net": { "recovered": self.recovered(), "still_failed": self.still_failed() },
            "watermark": task.watermark.0,
            "rate": task.tuning.rate.to_string(),
            "actual_rate": self.mean_rate(),
            "duration_seconds": self.seconds(),
            "ran": self.driven.is_some(),
            "handler_changed": handler_changed,
            "disk_was_full": self.seen.disk_full,
            "unconfirmed": self.unconfirmed(),
            "costs": show_costs(&self.costs),
            "failures": self.examples().map(group_json).collect::<Vec<_>>(),
        })
    }

    /// Returns the table for people. `again` has the flags that redo the failures, for a hint that also says where to
    /// find them all.
    pub(in crate::run) fn table(&self, again: Option<&str>) -> String {
        let mut text = format!("{}  {}", self.task.id, self.task.status);
        if self.is_recovered() {
            text += " (all recovered)";
        } else if let Some(result) = self.task.result {
            text += &format!(" ({})", result.as_str().replace('_', " "));
        }
        for (term, count) in self.terms() {
            let of_them = match term {
                "failed" if self.net.is_none() => of_them_unconfirmed(self.unconfirmed()),
                _ => String::new(),
            };
            text += &format!("\n  {term:<10} {:>15}{of_them}", human::count(count));
        }
        if let Some((took, _)) = self.driven {
            text += &format!(
                "\n  {:<10} {}, {}",
                "took",
                span(took),
                rate_text(self.mean_rate())
            );
        }
        if let Some(used) = used(&self.costs) {
            text += &format!("\n  {:<10} {used}", "used");
        }
        if !self.groups.is_empty() {
            self.add_groups(&mut text, again);
        }
        text
    }

    fn terms(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = &self.task.counters;
        let terms = [
            ("total", self.task.total.0),
            ("succeeded", counts.succeeded),
            ("skipped", counts.skipped),
            ("failed", counts.failed),
            ("recovered", self.recovered()),
            ("parked", counts.parked),
            ("in flight", counts.in_flight),
            ("pending", counts.pending(self.task.total)),
            ("excluded", counts.excluded),
        ];
        let always = ["total", "succeeded", "skipped", "failed"];
        terms
            .into_iter()
            .filter(move |(term, count)| *count > 0 || always.contains(term))
    }

    fn add_groups(&self, text: &mut String, again: Option<&str>) {
        let wide = self
            .groups
            .iter()
            .map(|group| group.code.chars().count())
            .max()
            .unwrap_or(0)
            .max(4);
        let count =
            |group: &FailureGroup| human::count(group.count) + &of_them_unconfirmed(group.unconfirmed);
        let many = self.groups.iter().map(|group| count(group).len()).max();
        let many = many.unwrap_or(0).max(9);
        let mut add = |line: std::fmt::Arguments<'_>| {
            text.push('\n');
            text.write_fmt(line).expect("a string takes any text");
        };
        add(format_args!(
            "\n{:<wide$}  {:>many$}  {:<20}  {:<20}  EXAMPLE",
            "CODE", "COUNT", "FIRST", "LAST"
        ));
        for (group, example) in self.examples() {
            add(format_args!(
                "{:<wide$}  {:>many$}  {:<20}  {:<20}  #{} {}{}",
                group.code,
                count(group),
                second_text(group.first_at),
                second_text(group.last_at),
                index(group, example).0,
                group.example,
                example
                    .data
                    .as_ref()
                    .map(|data| who(data.get()))
                    .unwrap_or_default()
            ));
        }
        if let Some(again) = again {
            let first = ["once the job has finished, ", ""][usize::from(self.task.status.is_terminal())];
            add(format_args!(
                "hint: {first}the same command{again} retries them, --failures-out FILE writes them all"
            ));
        }
    }

    fn examples(&self) -> impl Iterator<Item = (&FailureGroup, &ItemData)> {
        self.groups.iter().zip(&self.examples)
    }

    /// Returns the message for a task that didn't finish.
    pub(in crate::run) fn stop_note(&self) -> Option<String> {
        let task = &self.task;
        match (task.status, task.stop_reason) {
            (Status::Cancelled, _) => Some(format!("{} is cancelled; --restart starts over", task.id)),
            (Status::Stopped, None | Some(StopReason::Operator)) => {
                let repeats = match (&self.seen.trouble, task.counters.parked) {
                    (None, 0) => "no call is repeated",
                    _ => "completed items are not repeated, failed ones are retried",
                };
                let at = self.goes_on_at.0;
                let stopped = format!(
                    "stopped at index {at} ({repeats}); {}",
                    crate::run::kept::resume::how(task)
                );
                Some(
                    self.seen
                        .trouble
                        .iter()
                        .fold(stopped, |text, trouble| format!("{text}\n  {trouble}")),
                )
            }
            (Status::Stopped, Some(reason)) => {
                let of_template = task
                    .status_text
                    .as_deref()
                    .is_some_and(|text| text.starts_with(NO_REQUEST));
                let told = if of_template {
                    "the request can't be built"
                } else {
                    reason.text()
                };
                let because = task.status_text.as_deref().unwrap_or(told).to_owned();
                let what = format!("the job stopped at index {}: {told}", self.goes_on_at.0);
                let resume = crate::run::kept::resume::how(task);
                let hint = match of_template {
                    true => format!("fix the template; {resume}"),
                    false => stop_hint::hint(reason, &because, &resume),
                };
                Some(Fault::new(self.exit(), what, because).hint(hint).to_string())
            }
            _ => None,
        }
    }
}

/// Returns the row that users know: for a run over failures of another job, that job's row.
fn index(group: &FailureGroup, example: &ItemData) -> ItemIndex {
    example.origin.unwrap_or(group.example_index)
}

fn group_json((group, example): (&FailureGroup, &ItemData)) -> Value {
    json!({
        "code": group.code,
        "count": group.count,
        "unconfirmed": group.unconfirmed,
        "first_at": rfc3339(group.first_at),
        "last_at": rfc3339(group.last_at),
        "example_index": index(group, example).0,
        "example_data": example.data,
        "example": group.example,
    })
}

/// Formats a time for people, to the second.
pub(in crate::run) fn second_text(at: WallMs) -> String {
    rfc3339(WallMs(at.0 / 1000 * 1000)).replace(".000Z", "Z")
}

/// Rounds to three decimals: more would be noise.
pub(in crate::run) fn thousandths(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        assert_eq!(second_text(WallMs(1_500)), "1970-01-01T00:00:01Z");
    }
}
