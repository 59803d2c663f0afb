//! Advice on causes that lie with the handler, the source, the store or the course of the task.

use std::time::Duration;

use windrow_words::{Message, advice as say};

use super::{Advice, Case, cant, patch};
use crate::explain::LATE;
use crate::explain::causes::CauseKind;
use crate::explain::facts::Facts;
use crate::explain::text::round_up;
use crate::meter::metering::HeldBy;
use crate::settings::{Rate, RateLimit};
use crate::stats::autopilot::Why;
use crate::stats::stall::StallReason;
use crate::task::lifecycle::{DORMANT, KEY_MISSING, Status, StopReason};

/// Advises on a handler that turns calls away: no setting makes it faster, but a lower rate makes it steady.
pub(super) fn back_pressure(case: &Case<'_>) -> Advice {
    match lower_rate(case.facts.attempts()) {
        Some(rate) if rate.as_per_second() < case.rate => Advice {
            predicted: Some(rate.as_per_second()),
            hindrance: Some(say::ask_for_more()),
            ..case.change(
                say::lower_to_taken(rate.to_string()),
                patch(|change| change.rate = Some(RateLimit::Limited(rate))),
            )
        },
        _ => case.cant(say::wait_for_handler(), say::ask_for_more()),
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
    let worst = case.facts.worst_code.as_ref();
    let fix = worst.map_or_else(say::fix_failures, |(code, _)| say::fix_code(code));
    let permits = &case.facts.permits;
    if permits.lost[StallReason::RetryWait as usize] > permits.repeats {
        return case.cant(fix, say::retries_at_any_rate());
    }
    if permits.lost.iter().sum::<u64>() > permits.repeats {
        return case.cant(fix, say::rate_is_not_used());
    }
    let RateLimit::Limited(rate) = case.facts.tuning.rate else {
        return case.cant(fix, say::retries_take_slots());
    };
    let more = round_up((rate.items() as f64 * each).ceil() as u64);
    let Some(raised) = Rate::new(more, Duration::from_nanos(rate.period_ns())) else {
        return case.cant(fix, say::rate_at_most());
    };
    let text = say::or_raise(fix, raised.to_string(), format!("{each:.2}"));
    let change = patch(|change| change.rate = Some(RateLimit::Limited(raised)));
    let extra = raised.as_per_second() - rate.as_per_second();
    let free = case.facts.free_rate.filter(|free| *free < extra);
    Advice {
        hindrance: free.map(say::node_has_only),
        ..case.change(text, change)
    }
}

/// Advises on a stall that no setting controls.
pub(super) fn stall(case: &Case<'_>, reason: StallReason) -> Advice {
    if reason == StallReason::RetryWait && case.facts.handler.state.judged_in.is_some() {
        return case.cant(say::decide_sooner(), say::only_failing_left());
    }
    let is_starting = || {
        case.facts
            .live
            .as_ref()?
            .autopilot?
            .bound()
            .map(|why| why == Why::Starting)
    };
    if reason == StallReason::Autopilot && is_starting() == Some(true) {
        return case.cant(say::wait_for_autopilot(), say::autopilot_raises());
    }
    let held = case.facts.live.as_ref().and_then(|live| live.held_by.as_ref());
    if let (StallReason::Usage, Some(held)) = (reason, held) {
        return usage(case, held);
    }
    let limit = case.facts.limit.as_ref();
    let named = limit.and_then(|limit| Some((limit.name.as_ref()?, limit.spent.as_ref())));
    let (text, hindrance) = match (reason, named) {
        (StallReason::Limit, Some((name, Some(spent)))) => {
            (say::raise_or_wait(name), say::period_begins(&spent.next))
        }
        (StallReason::Limit, Some((name, None))) => (say::raise_limit(name), say::limit_is_shared()),
        _ => words(reason),
    };
    case.cant(text, hindrance)
}

/// Advises on a limit in units that holds calls back.
fn usage(case: &Case<'_>, held: &HeldBy) -> Advice {
    match held {
        HeldBy::Limit(limit) | HeldBy::Allowance { limit, .. } => {
            case.cant(say::raise_usage_limit(limit), say::usage_is_set())
        }
        HeldBy::Headers(_) => case.cant(say::ask_service(), say::usage_is_told()),
        HeldBy::Learning(_) => case.cant(say::wait_for_costs(), say::costs_are_learned()),
    }
}

/// Advises on a database that took no writes for a while.
pub(super) fn no_writes(case: &Case<'_>) -> Advice {
    case.cant(say::check_database(), say::nothing_lost_once_saved())
}

/// Advises on a node that did nothing at all for a while: no burst makes up for that.
pub(super) fn stood_still(case: &Case<'_>, node: &str) -> Advice {
    case.cant(say::check_pause(node), say::time_is_gone())
}

fn words(reason: StallReason) -> (Message, Message) {
    match reason {
        StallReason::Items => (say::append_or_seal(), say::producers_first()),
        StallReason::Tail => (say::wait_for_last(), say::all_sent()),
        StallReason::HandlerSlots => (say::more_workers(), say::slots_are_handlers()),
        StallReason::RetryWait => (say::shorter_backoff(), say::only_waits_left()),
        StallReason::SourceWait => (say::faster_source(), say::source_at_most()),
        StallReason::Checkpoint => (say::check_writes(), say::nothing_lost_once_saved()),
        StallReason::Lease => (say::check_slow_database(), say::no_lease_no_calls()),
        StallReason::Canary => (say::wait_for_canary(), say::canary_first()),
        StallReason::HandlerDown => (say::start_handler(), say::down_is_free()),
        StallReason::SingleFile => (say::find_crash(), say::single_file_ends()),
        StallReason::Limit => (say::raise_own_limit(), say::limit_is_shared()),
        StallReason::Usage => (say::raise_usage(), say::usage_is_set()),
        StallReason::Autopilot => (say::ask_service(), say::service_takes_no_more()),
        StallReason::WindowFull
        | StallReason::Concurrency
        | StallReason::BackPressure
        | StallReason::ParkedFull
        | StallReason::Unsaved
        | StallReason::ResultsUnsaved => (say::see_settings(), say::nothing_known()),
    }
}

/// Advises on a node that doesn't respond, with the prospect of its share.
pub(super) fn unknown(case: &Case<'_>) -> Advice {
    Advice {
        hindrance: case.facts.silent.prospect.clone(),
        ..case.cant(say::check_nodes(case.facts.silent_nodes()), say::nothing_known())
    }
}

/// Advises on a cause that passes without any change.
pub(super) fn passing(case: &Case<'_>) -> Advice {
    let (text, hindrance) = match case.kind {
        CauseKind::Returned => (say::cpu_or_batches(), say::two_millis()),
        CauseKind::Slowed => (say::ask_business(), say::slowed_for_now()),
        CauseKind::NoRoom => (say::move_shard(), say::asked_every_5s()),
        CauseKind::Stall(StallReason::HandlerDown) => (say::wait_for_rate(), say::outage_is_lost()),
        _ => (say::see_report(), say::no_run_no_time()),
    };
    case.cant(text, hindrance)
}

/// Advises on a task that doesn't run, by what it waits for.
pub(super) fn standing(facts: &Facts) -> Advice {
    let status = facts.standing.status;
    let kind = CauseKind::NotRunning(status);
    let (text, hindrance) = match (status, facts.standing.reason.as_deref()) {
        (Status::Queued, Some("capacity" | "too_big")) => return no_room(facts, kind),
        (Status::Queued, Some("no_node")) => (say::undrain(), say::none_takes()),
        (Status::Queued | Status::Recovering, Some(DORMANT)) => (say::start_task(), say::dormant()),
        (Status::Queued, _) => (say::wait_for_node(), say::not_yet()),
        (Status::Recovering, Some(KEY_MISSING)) => (say::same_key(), say::retried_elsewhere()),
        (Status::Recovering, _) => (say::recover_now(), say::retried()),
        (Status::AwaitingBusiness, _) => (say::ask_business(), say::not_ready()),
        (Status::Created | Status::Stopped, Some(LATE)) => (say::move_deadline(), say::deadline_passed()),
        (Status::Stopped, Some(reason)) if is_of_handler(reason) => {
            (say::fix_handler(&facts.business), say::would_stop_again())
        }
        (Status::Created | Status::Stopped, _) => (say::start_task(), say::only_if_started()),
        (Status::Stopping, _) => (say::wait_draining(), say::no_new_calls()),
        _ => (say::nothing_to_do(), say::items_done()),
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
        true => say::raise_capacity(),
        false => say::add_node(),
    };
    let free = facts.free_rate.and_then(lower_rate);
    let Some(free) = free.filter(|free| Some(free.as_per_second()) < facts.rate()) else {
        return cant(about, say::or_stop_other(more), say::no_node_has_room());
    };
    let change = patch(|change| change.rate = Some(RateLimit::Limited(free)));
    Advice {
        about,
        text: say::lower_to_free(free.to_string(), more),
        change: Some(Box::new(change)),
        predicted: Some(free.as_per_second()),
        hindrance: None,
    }
}
