//! Turns what a call came to into reports for the core: one table for all handlers.

use std::time::Duration;

use super::run_cell::LogSink;
use crate::domain::execution::Reports;
use crate::domain::ids::{ItemCount, ItemIndex, ShardId, WallMs};
use crate::domain::run::IndexRun;
use crate::domain::verdict::{Failed, Failure, HandlerCommand, Outcome, Settled, Signal, Wish};
use crate::ports::data_log::{DataLogLine, LogOrigin};
use crate::ports::handler::{CallFailure, CallItems, ItemReplies, ItemVerdict, LogLevel, LogLine, Reply};

/// When a reply came, and how long its call took. Plain success needs neither.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReplyTime {
    pub(crate) wall: WallMs,
    pub(crate) took: Duration,
}

/// Puts replies into words for the core.
pub(crate) struct Reporter {
    shard: ShardId,
    logs: LogSink,
    /// A refusal was reported since the last answer: the next answer must be reported too.
    owes_answer: bool,
}

impl Reporter {
    pub(crate) fn new(shard: ShardId, logs: LogSink) -> Reporter {
        Reporter { shard, logs, owes_answer: false }
    }

    /// Adds what a call came to.
    #[inline]
    pub(crate) fn report(&mut self, items: &CallItems, reply: Reply, at: ReplyTime, reports: &mut Reports) {
        match reply {
            Reply::AllOk => {
                self.answered(reports);
                for dispatch in items.dispatches() {
                    reports.settle(Settled {
                        run: dispatch.run,
                        attempt: dispatch.attempt,
                        outcome: Outcome::Succeeded,
                    });
                }
            }
            Reply::Items(replies) => self.items(items, *replies, at, reports),
            Reply::Failed(failure) => self.failed(items, *failure, at, reports),
        }
    }

    #[inline]
    fn answered(&mut self, reports: &mut Reports) {
        if std::mem::take(&mut self.owes_answer) {
            reports.signals.push(Signal::Answered);
        }
    }

    fn items(&mut self, items: &CallItems, replies: ItemReplies, at: ReplyTime, reports: &mut Reports) {
        self.answered(reports);
        let ItemReplies { verdicts, commands, logs } = replies;
        debug_assert_eq!(verdicts.len(), items.len(), "a handler owes one verdict per item");
        for ((index, attempt), (answered, verdict)) in items.iter().zip(verdicts) {
            debug_assert_eq!(index, answered, "verdicts come in the call's order");
            match verdict {
                ItemVerdict::Settled(outcome) => {
                    reports.settle(Settled { run: IndexRun::one(index), attempt, outcome });
                }
                ItemVerdict::Failed { failure, wish } => {
                    reports.failed.push(Failed { index, attempt, failure, wish, took: at.took });
                }
            }
        }
        let highest = items.iter().map(|(index, _)| index).max();
        for command in commands {
            reports.signals.push(Signal::Command(with_total(command, highest)));
        }
        for line in logs {
            self.log(None, line, at.wall);
        }
    }

    fn failed(&mut self, items: &CallItems, failure: CallFailure, at: ReplyTime, reports: &mut Reports) {
        let took = at.took;
        match failure {
            CallFailure::Charged { failure, after } => {
                charge(items, &failure, Wish::Retry { after }, took, reports)
            }
            CallFailure::Abandoned(failure) => {
                self.answered(reports);
                charge(items, &failure, Wish::Abandon, took, reports);
            }
            CallFailure::BadReply(failure) => {
                charge(items, &failure, Wish::Retry { after: None }, took, reports);
                self.refused(Signal::BadReply(failure), reports);
            }
            CallFailure::Rejected(failure) => {
                charge(items, &failure, Wish::Retry { after: None }, took, reports);
                self.refused(Signal::Rejected(failure), reports);
            }
            CallFailure::Gone(failure) => {
                give_back(items, reports);
                self.refused(Signal::Gone(failure), reports);
            }
            CallFailure::BackPressure { after, failure } => {
                reports.refused.extend_from_slice(items.dispatches());
                self.refused(Signal::BackPressure { after }, reports);
                let message = format!("{}: {}", failure.code, failure.message);
                let line = LogLine { index: None, level: LogLevel::Warn, message, extra: None };
                self.log(Some("BACK_PRESSURE"), line, at.wall);
            }
            CallFailure::Fenced => {
                give_back(items, reports);
                reports.signals.push(Signal::Fenced);
            }
            CallFailure::NotSent => give_back(items, reports),
        }
    }

    fn refused(&mut self, signal: Signal, reports: &mut Reports) {
        self.owes_answer = true;
        reports.signals.push(signal);
    }

    fn log(&self, code: Option<&str>, line: LogLine, at: WallMs) {
        let origin = if code.is_some() { LogOrigin::System } else { LogOrigin::Business };
        (self.logs)(DataLogLine { shard: self.shard, at, origin, code: code.map(str::to_owned), line });
    }
}

/// `finish` without a total means: nothing beyond the highest index of this call.
fn with_total(command: HandlerCommand, highest: Option<ItemIndex>) -> HandlerCommand {
    match command {
        HandlerCommand::Finish { total: None } => {
            HandlerCommand::Finish { total: highest.map(|index| ItemCount(index.0 + 1)) }
        }
        command => command,
    }
}

fn charge(items: &CallItems, failure: &Failure, wish: Wish, took: Duration, reports: &mut Reports) {
    let failed =
        items.iter().map(|(index, attempt)| Failed { index, attempt, failure: failure.clone(), wish, took });
    reports.failed.extend(failed);
}

pub(crate) fn give_back(items: &CallItems, reports: &mut Reports) {
    reports.returned.extend_from_slice(items.dispatches());
}
