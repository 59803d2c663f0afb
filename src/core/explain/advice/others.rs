//! Advice on causes that lie with the handler, the source, the store or the course of the task.

use std::time::Duration;

use super::{Advice, Case, cant, patch};
use crate::explain::LATE;
use crate::explain::causes::CauseKind;
use crate::explain::facts::Facts;
use crate::explain::text::{rate_text, round_up};
use crate::settings::{Rate, RateLimit};
use crate::stats::stall::StallReason;
use crate::task::lifecycle::{DORMANT, KEY_MISSING, Status, StopReason};

/// Advises on a handler that turns calls away: no setting makes it faster, but a lower rate makes it steady.
pub(super) fn back_pressure(case: &Case<'_>) -> Advice {
    let taken = case.facts.attempts();
    let hindrance = "no setting makes the business faster: ask it for more, then raise the rate again";
    match lower_rate(taken) {
        Some(rate) if rate.as_per_second() < case.rate => Advice {
            predicted: Some(rate.as_per_second()),
            hindrance: Some(hindrance.to_owned()),
            ..case.change(
                format!(
                    "lower the rate to what the handler takes, {rate}, so that it need not turn calls away"
                ),
                patch(|change| change.rate = Some(RateLimit::Limited(rate))),
            )
        },
        _ => case.cant("wait until the handler takes calls again", hindrance),
    }
}

/// Returns a rate of at most `per_second`, of two digits, in the shortest unit that has them.
fn lower_rate(per_second: f64) -> Option<Rate> {
    let units = [1_u64, 60, 3600];
    let of = |seconds: u64| (per_second * seconds as f64) as u64;
    let seconds = units
        .into_iter()
        .find(|seconds| of(*seconds) >= 10)
        .unwrap_or(3600);
    let mut step = 1;
    while of(seconds) / step >= 100 {
        step *= 10;
    }
    Rate::new(of(seconds) / step * step, Duration::from_secs(seconds))
}

/// Advises on attempts beyond the first, which use the rate too.
pub(super) fn retries(case: &Case<'_>) -> Advice {
    let each = case.facts.attempts_per_item();
    let code = case
        .facts
        .worst_code
        .as_ref()
        .map_or("", |(code, _)| code.as_str());
    let mend = match code {
        "" => "mend what fails".to_owned(),
        code => format!("mend what fails (most often {code})"),
    };
    let permits = &case.facts.permits;
    if permits.lost[StallReason::RetryWait as usize] > permits.repeats {
        return case.cant(&mend, "what is left waits for its next attempt, at any rate");
    }
    let RateLimit::Limited(rate) = case.facts.tuning.rate else {
        return case.cant(&mend, "attempts that fail take the place of others");
    };
    let more = round_up((rate.items() as f64 * each).ceil() as u64);
    let Some(raised) = Rate::new(more, Duration::from_nanos(rate.period_ns())) else {
        return case.cant(&mend, "the rate is as high as it can be");
    };
    let text = format!("{mend}; or raise the rate to {raised}, since an item takes {each:.2} attempts");
    let change = patch(|change| change.rate = Some(RateLimit::Limited(raised)));
    let extra = raised.as_per_second() - rate.as_per_second();
    let hindrance = case.facts.free_rate.filter(|free| *free < extra);
    let hindrance = hindrance.map(|free| format!("the node has only {} left", rate_text(free)));
    Advice {
        hindrance,
        ..case.change(text, change)
    }
}

/// Reason why no setting of the task helps under a limit.
const SHARED: &str = "all tasks under the limit share it, on all nodes";

fn named_limit(case: &Case<'_>) -> Option<Advice> {
    let name = case.facts.limit.as_ref()?.name.as_ref()?;
    let text =
        format!("raise the limit {name} (`windrow limit set {name}`), or stop another task that uses it");
    Some(case.cant(&text, SHARED))
}

/// Advises on a stall that no setting controls.
pub(super) fn stall(case: &Case<'_>, reason: StallReason) -> Advice {
    if let (StallReason::Limit, Some(advice)) = (reason, named_limit(case)) {
        return advice;
    }
    if reason == StallReason::RetryWait && case.facts.handler.state.judged_in.is_some() {
        return last_ones(case);
    }
    let (text, hindrance) = words(reason);
    case.cant(text, hindrance)
}

/// Advises on a database that took no writes for a while.
pub(super) fn no_writes(case: &Case<'_>) -> Advice {
    case.cant(
        "look at the database, and the way to it: the nodes could write nothing there",
        "more may leave only once progress is written: nothing to set, and nothing is lost",
    )
}

/// Advises on a node that did nothing at all for a while: no burst makes up for that.
pub(super) fn stood_still(case: &Case<'_>, node: &str) -> Advice {
    let text = format!("see what stopped {node} then: its machine, or whoever suspended its process");
    case.cant(&text, "no setting brings back time in which a node stands still")
}

/// Advises on a task that has only items left that failed each time.
fn last_ones(case: &Case<'_>) -> Advice {
    let text = format!(
        "judge them sooner (`windrow task set {} --judge-after 1m`; `--judge-after 0s` at once)",
        case.facts.task
    );
    case.cant(&text, "only items are left that failed each time")
}

fn words(reason: StallReason) -> (&'static str, &'static str) {
    match reason {
        StallReason::Tail | StallReason::Items => words_of_the_end(reason),
        StallReason::HandlerSlots => (
            "give the business more workers or slots",
            "no setting of the task helps: its handler works on as many items as it can, or its share of the business allows",
        ),
        StallReason::RetryWait => (
            "a shorter back-off, if the handler recovers sooner",
            "nothing else is left to send until the waits are over",
        ),
        StallReason::SourceWait => (
            "a faster disk, smaller rows, or a lower rate",
            "the source delivers as fast as it can: nothing to set",
        ),
        StallReason::Checkpoint => (
            "look at the database: whether it was away, and how long its writes take; where most items fail, see why",
            "progress is written before more may leave: nothing to set, and nothing is lost",
        ),
        StallReason::Trust => (
            "look at the database: it doesn't answer in time",
            "nothing may leave while the node can't prove that the task is its own",
        ),
        StallReason::Canary => (
            "wait for the canary; when it stops the task, start it to go on with the rest",
            "everything else is held back until its items are settled",
        ),
        StallReason::HandlerDown => (
            "start the handler, or correct where it is reached (`windrow biz edit`); it is called again by itself",
            "no setting helps while it doesn't answer; nothing is charged for it",
        ),
        StallReason::SingleFile => (
            "look at what ended the node while these items were in flight",
            "single file ends by itself once every suspect has been tried",
        ),
        StallReason::Limit => (
            "raise the limit of its business, or stop another task that uses it",
            SHARED,
        ),
        StallReason::WindowFull
        | StallReason::Concurrency
        | StallReason::BackPressure
        | StallReason::ParkedFull
        | StallReason::Unsaved
        | StallReason::ResultsUnsaved => ("see the settings", "nothing is known of it"),
    }
}

/// Returns the words for a task that has nothing left to send.
fn words_of_the_end(reason: StallReason) -> (&'static str, &'static str) {
    match reason == StallReason::Items {
        true => (
            "append items, or seal the task when there are no more",
            "it waits for its producers: no setting helps",
        ),
        false => (
            "wait for the last answers",
            "everything has left: no setting makes the last calls faster",
        ),
    }
}

/// Advises on a node that doesn't respond, with the prospect of its share.
pub(super) fn unknown(case: &Case<'_>) -> Advice {
    let silent = &case.facts.silent;
    let nodes: Vec<&str> = silent.nodes.iter().map(|(node, _)| node.as_str()).collect();
    let nodes = nodes.join(" and ");
    let text = format!("see how {nodes} fares (`windrow cluster`)");
    case.cant(&text, &silent.prospect)
}

/// Advises on a cause that passes without any change.
pub(super) fn passing(case: &Case<'_>) -> Advice {
    let report = format!("see what happened: `windrow task report {}`", case.facts.task);
    let (text, hindrance) = match case.kind {
        CauseKind::Returned => (
            "give the node more processor time, or the task larger batches",
            "what can't leave within 2 ms of its time goes back, so that the promised burst holds",
        ),
        CauseKind::Slowed => (
            "ask the business",
            "its handler asked for the lower rate; that ends by itself",
        ),
        CauseKind::NoRoom => (
            "move the shard to a node with more room, raise the node's capacity, or stop another task there",
            "what doesn't fit is asked for again every 5 s; no setting of the task makes room",
        ),
        CauseKind::Stall(StallReason::HandlerDown) => (
            "wait: the rate is reached again by itself",
            "what was lost to the outage stays lost; nothing was charged for it",
        ),
        _ => (report.as_str(), "no setting brings back time without a run"),
    };
    case.cant(text, hindrance)
}

/// Advises on a task that doesn't run, by what it waits for.
pub(super) fn standing(facts: &Facts) -> Advice {
    let status = facts.standing.status;
    let reason = facts.standing.reason.as_deref();
    let kind = CauseKind::NotRunning(status);
    let start = format!("start it (`windrow task start {}`)", facts.task);
    let moved = format!(
        "move the deadline first (`windrow task set {0} --deadline TIME`, or `--no-deadline`), then `windrow task start {0}`",
        facts.task
    );
    let mend = format!(
        "mend the handler, or correct how it is called (`windrow biz edit {}`); then {start}",
        facts.business
    );
    let recover = format!(
        "recover it now (`windrow task recover {0}`), or see its log for what failed (`windrow task log {0}`)",
        facts.task
    );
    let (text, hindrance) = match (status, reason) {
        (Status::Queued, Some("capacity" | "too_big")) => return no_room(facts, kind),
        (Status::Queued, Some("no_node")) => (
            "undrain a node that serves its pool, or start one",
            "none takes tasks now",
        ),
        (Status::Queued | Status::Recovering, Some(DORMANT)) => (
            start.as_str(),
            "it rested too long for a node to take it by itself",
        ),
        (Status::Queued, _) => (
            "wait: a node takes it as soon as it may",
            "nothing of it runs yet",
        ),
        (Status::Recovering, Some(KEY_MISSING)) => (
            "give the node that is named above the same key (auth.key_file) and start it anew, or start one that has it",
            "it is tried again by itself; the other nodes go first",
        ),
        (Status::Recovering, _) => (recover.as_str(), "it is tried again by itself"),
        (Status::AwaitingBusiness, _) => ("ask the business", "it has not said yet that it is ready"),
        (Status::Created | Status::Stopped, Some(LATE)) => {
            (moved.as_str(), "it is over: the task would stop at once")
        }
        (Status::Stopped, Some(reason)) if is_of_handler(reason) => {
            (mend.as_str(), "started as it is, it would stop again")
        }
        (Status::Created | Status::Stopped, _) => (start.as_str(), "it runs only once it is started"),
        (Status::Stopping, _) => ("wait: it drains", "no new calls"),
        _ => ("nothing to do", "its items are done"),
    };
    cant(kind, text, hindrance)
}

/// True if the task stopped because of its handler.
fn is_of_handler(reason: &str) -> bool {
    [
        StopReason::HandlerRejected,
        StopReason::HandlerGone,
        StopReason::HandlerUnreachable,
        StopReason::NoItemSucceeds,
    ]
    .iter()
    .any(|of_handler| of_handler.as_str() == reason)
}

/// Advises on a rate that no node has room for: the rate that this one has left, or more room.
fn no_room(facts: &Facts, about: CauseKind) -> Advice {
    // With a database file, this is the only node.
    let more = match facts.is_alone {
        true => "raise the node's capacity (`windrow node set NAME --capacity RATE`)",
        false => "add a node, raise a node's capacity (`windrow node set NAME --capacity RATE`)",
    };
    let free = facts.free_rate.and_then(lower_rate);
    let Some(free) = free.filter(|free| Some(free.as_per_second()) < facts.rate()) else {
        let text = format!("{more}, or stop another task");
        return cant(about, &text, "no node has room for the rate");
    };
    let change = patch(|change| change.rate = Some(RateLimit::Limited(free)));
    Advice {
        about,
        text: format!("lower the rate to {free}, which this node has left; or {more}"),
        change: Some(Box::new(change)),
        predicted: Some(free.as_per_second()),
        hindrance: None,
    }
}
