//! Conversion of call outcomes into reports for the core: one table for all handlers.

use std::time::Duration;
use windrow_words::{engine as say, meter as words};

use crate::actors::executor::run_cell::LogSink;
use crate::ports::handling::data_log::{DataLogLine, LogOrigin};
use crate::ports::handling::handler::{
    CallFailure, CallItems, ItemReplies, ItemVerdict, LogLevel, LogLine, Reply,
};
use crate::ports::tasks::results::ItemOutput;
use windrow_core::execution::Reports;
use windrow_core::ids::{Attempt, ItemCount, ItemIndex, Moment, ShardId, WallMs};
use windrow_core::items::output::{OUTPUT_KEPT_MAX, OUTPUT_TOO_LARGE, Output};
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::{
    Failed, FailedCall, Failure, FailureClass, HandlerCommand, Outcome, RetryAdvice, Settled, Signal,
};
use windrow_core::meter::unit::Unit;

/// Code of the line about the place from which the use of calls is read.
const USUAL_PLACE: &str = "COST_PLACE";

/// Send time, reply time and duration of a call. Plain success needs only the send time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReplyTime {
    pub(crate) departed: Moment,
    pub(crate) wall: WallMs,
    pub(crate) took: Duration,
}

/// Converter from handler replies to reports for the core.
pub(crate) struct Reporter {
    shard: ShardId,
    logs: LogSink,
    /// Log lines and outputs to pass on together with the reports.
    pub(crate) said: Said,
    keeps_results: bool,
}

/// Log lines and outputs that replies carry in addition to their verdicts.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) lines: Vec<DataLogLine>,
    /// Outputs of items, if the task keeps results.
    pub(crate) outputs: Vec<ItemOutput>,
}

impl Reporter {
    pub(crate) fn new(shard: ShardId, logs: LogSink, keeps_results: bool) -> Reporter {
        Reporter {
            shard,
            logs,
            said: Said::default(),
            keeps_results,
        }
    }

    /// Adds the outcome of a call to the reports.
    #[inline]
    pub(crate) fn report(&mut self, items: &CallItems, reply: Reply, at: ReplyTime, reports: &mut Reports) {
        match reply {
            Reply::AllOk => {
                reports.answered.add(at.departed);
                for dispatch in items.dispatches() {
                    reports.settle(Settled::well(*dispatch));
                }
            }
            Reply::Items(replies) => self.items(items, *replies, at, reports),
            Reply::Failed(failure) => self.failed(items, *failure, at, reports),
            Reply::Told(told) => {
                if let Some((unit, place)) = &told.place {
                    self.place(unit, place, at.wall);
                }
                self.report(items, told.reply, at, reports);
            }
        }
    }

    fn items(&mut self, items: &CallItems, replies: ItemReplies, at: ReplyTime, reports: &mut Reports) {
        reports.answered.add(at.departed);
        let ItemReplies {
            verdicts,
            commands,
            logs,
        } = replies;
        let number = items.len() as u32;
        debug_assert_eq!(verdicts.len(), items.len(), "a handler owes one verdict per item");
        for ((index, attempt), (answered, verdict)) in items.iter().zip(verdicts) {
            debug_assert_eq!(index, answered, "verdicts come in the call's order");
            let settled = |outcome| Settled {
                run: IndexRun::one(index),
                attempt,
                outcome,
            };
            let (class, failure, advice, shared_by) = match verdict {
                ItemVerdict::Settled(outcome) => {
                    reports.settle(settled(outcome));
                    continue;
                }
                ItemVerdict::SucceededWith(output) => {
                    reports.settle(settled(Outcome::Succeeded));
                    self.keep(index, output, at.wall);
                    continue;
                }
                // Nothing shows which item of the call caused it.
                ItemVerdict::Unclear(failure) => (FailureClass::Unclear, failure, AGAIN, number),
                ItemVerdict::Failed { failure, advice } => (FailureClass::Answered, failure, advice, 1),
            };
            fail((index, attempt, shared_by), (class, failure), advice, at, reports);
        }
        let highest = items.iter().map(|(index, _)| index).max();
        for command in commands {
            reports
                .signals
                .push(Signal::Command(with_total(command, highest)));
        }
        let (shard, at) = (self.shard, at.wall);
        let own = |line| DataLogLine {
            shard,
            at,
            origin: LogOrigin::Business,
            code: None,
            line,
        };
        self.said.lines.extend(logs.into_iter().map(own));
    }

    /// Says once from where the use of calls is read, since nobody named the place.
    fn place(&self, unit: &Unit, place: &str, at: WallMs) {
        let line = LogLine {
            index: None,
            level: LogLevel::Info,
            message: words::usual_place(unit.as_str(), place).to_string(),
            extra: None,
        };
        self.log(USUAL_PLACE, line, at);
    }

    fn keep(&mut self, index: ItemIndex, output: Output, at: WallMs) {
        match output {
            _ if !self.keeps_results => {}
            Output::Json(json) => self.said.outputs.push(ItemOutput { index, json }),
            Output::TooLarge(bytes) => self.said.lines.push(DataLogLine {
                shard: self.shard,
                at,
                origin: LogOrigin::System,
                code: Some(OUTPUT_TOO_LARGE.to_owned()),
                line: LogLine {
                    index: Some(index),
                    level: LogLevel::Warn,
                    message: say::output_too_large(bytes, OUTPUT_KEPT_MAX).to_string(),
                    extra: None,
                },
            }),
        }
    }

    fn failed(&mut self, items: &CallItems, failure: CallFailure, at: ReplyTime, reports: &mut Reports) {
        let again = |after| RetryAdvice::Retry { after };
        match failure {
            CallFailure::Failed {
                class,
                failure,
                after,
            } => {
                charge(items, (class, failure), again(after), at, reports);
            }
            CallFailure::Final(failure) => {
                let failure = (FailureClass::Answered, failure);
                charge(items, failure, RetryAdvice::Fail, at, reports);
            }
            CallFailure::BadReply(failure) | CallFailure::Rejected(failure) => {
                charge(items, (FailureClass::Rejected, failure), again(None), at, reports);
            }
            CallFailure::Unstarted(failure) => {
                charge(
                    items,
                    (FailureClass::Unstarted, failure),
                    again(None),
                    at,
                    reports,
                );
            }
            CallFailure::Gone(failure) => {
                give_back(items, reports);
                reports.signals.push(Signal::Gone(failure));
            }
            CallFailure::BackPressure { after, failure } => {
                self.turned_away(items, after, failure, at, reports);
            }
            CallFailure::Fenced => {
                give_back(items, reports);
                reports.signals.push(Signal::Fenced);
            }
            CallFailure::Unsendable(failure) => {
                unsendable(items, failure, at, reports);
            }
            CallFailure::NotSent => give_back(items, reports),
        }
    }

    fn turned_away(
        &self,
        items: &CallItems,
        after: Option<Duration>,
        failure: Failure,
        at: ReplyTime,
        reports: &mut Reports,
    ) {
        let only = items.only();
        let line = LogLine {
            index: only.map(|(index, _)| index),
            level: LogLevel::Warn,
            message: format!("{}: {}", failure.code, failure.message),
            extra: None,
        };
        self.log("BACK_PRESSURE", line, at.wall);
        match only {
            Some((index, attempt)) => reports.turned_away.push(Failed {
                index,
                attempt,
                failure,
                advice: RetryAdvice::Retry { after },
                class: FailureClass::Answered,
                call_items: 1,
                departed: at.departed,
                took: at.took,
            }),
            None => {
                reports.refused.extend_from_slice(items.dispatches());
                reports.signals.push(Signal::BackPressure {
                    after,
                    departed: at.departed,
                    failure,
                });
            }
        }
    }

    fn log(&self, code: &str, line: LogLine, at: WallMs) {
        let code = Some(code.to_owned());
        (self.logs)(DataLogLine {
            shard: self.shard,
            at,
            origin: LogOrigin::System,
            code,
            line,
        });
    }
}

/// Fills in the total of a `finish` without one: no items beyond the highest index of this call.
fn with_total(command: HandlerCommand, highest: Option<ItemIndex>) -> HandlerCommand {
    match command {
        HandlerCommand::Finish { total: None } => HandlerCommand::Finish {
            total: highest.map(|index| ItemCount(index.0 + 1)),
        },
        command => command,
    }
}

const AGAIN: RetryAdvice = RetryAdvice::Retry { after: None };

/// Records a failed attempt of one item; `call_items` items shared the call.
fn fail(
    (index, attempt, call_items): (ItemIndex, Attempt, u32),
    (class, failure): (FailureClass, Failure),
    advice: RetryAdvice,
    at: ReplyTime,
    reports: &mut Reports,
) {
    reports.failed.push(Failed {
        index,
        attempt,
        failure,
        advice,
        class,
        call_items,
        departed: at.departed,
        took: at.took,
    });
}

/// Records a call that failed as a whole: evidence once, a failed attempt for each item.
fn charge(
    items: &CallItems,
    (class, failure): (FailureClass, Failure),
    advice: RetryAdvice,
    at: ReplyTime,
    reports: &mut Reports,
) {
    let number = items.len() as u32;
    for (index, attempt) in items.iter() {
        fail(
            (index, attempt, number),
            (class, failure.clone()),
            advice,
            at,
            reports,
        );
    }
    let Some((index, _)) = items.iter().next() else {
        return;
    };
    let before = std::mem::take(&mut reports.answered);
    let after = match advice {
        RetryAdvice::Retry { after } => after,
        RetryAdvice::Fail => None,
    };
    reports.calls.push(FailedCall {
        before,
        class,
        index,
        items: number,
        departed: at.departed,
        failure,
        after,
    });
}

/// Fails items for which no call can be made.
fn unsendable(items: &CallItems, failure: Failure, at: ReplyTime, reports: &mut Reports) {
    reports.unsent += 1;
    charge(
        items,
        (FailureClass::Unsendable, failure),
        RetryAdvice::Fail,
        at,
        reports,
    );
}

pub(crate) fn give_back(items: &CallItems, reports: &mut Reports) {
    reports.returned.extend_from_slice(items.dispatches());
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use windrow_core::ids::TaskId;
    use windrow_core::items::verdict::Dispatch;

    #[test]
    fn the_place_of_tokens_is_logged_by_the_system() {
        let lines: Arc<Mutex<Vec<DataLogLine>>> = Arc::default();
        let sink = lines.clone();
        let shard = ShardId {
            task: TaskId(1),
            no: 0,
        };
        let logs: LogSink = Arc::new(move |line| sink.lock().expect("unpoisoned").push(line));
        let mut reporter = Reporter::new(shard, logs, false);
        let items = CallItems::One(Dispatch {
            run: IndexRun::one(ItemIndex(7)),
            attempt: Attempt::FIRST,
        });
        let unit = Unit::parse("tokens").expect("a unit");
        let place = Some((unit, "{answer./usage/total_tokens}".to_owned()));
        let mut reports = Reports::default();
        for reply in [Reply::AllOk.with_place(place), Reply::AllOk] {
            reporter.report(&items, reply, ReplyTime::default(), &mut reports);
        }
        let lines = lines.lock().expect("unpoisoned");
        assert_eq!(lines.len(), 1);
        let line = &lines[0];
        assert_eq!(
            (line.code.as_deref(), line.origin),
            (Some("COST_PLACE"), LogOrigin::System)
        );
        assert_eq!(
            line.line.message,
            "the tokens of a call are read from its response: {answer./usage/total_tokens}"
        );
    }
}
