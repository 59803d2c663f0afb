//! Sentences that explain the cause, with the numbers.

use std::time::Duration;

use windrow_words::{Message, explain as say, list};

use super::Explanation;
use super::autopilot;
use super::causes::{Cause, CauseKind};
use super::facts::Facts;
use super::hints::{self, held_by};
use crate::settings::RateLimit;
use crate::stats::stall::StallReason;
use crate::task::lifecycle::Status;

/// Minimum time about which anything can be said.
pub(super) const KNOWN_MIN: Duration = Duration::from_secs(2);

/// Explains in a few sentences. Problems of the handler are mentioned even if no permit is lost to them.
pub(super) fn of(facts: &Facts, explanation: &Explanation) -> Vec<Message> {
    let mut why = pace(facts, explanation);
    let taken_over = facts.taken_over.as_ref().map(|taken| taken.text.clone());
    let missing = facts.live.as_ref().and_then(|live| live.cost_missing.as_ref());
    let missing = missing.map(|unit| windrow_words::meter::cost_missing(unit.as_str()));
    let beside = [unheard(facts), taken_over, facts.handler.text(), missing];
    for message in beside.into_iter().flatten() {
        if !why.contains(&message) {
            why.push(message);
        }
    }
    why
}

fn pace(facts: &Facts, explanation: &Explanation) -> Vec<Message> {
    if facts.live.is_none() || facts.standing.status != Status::Running {
        return vec![standing(facts)];
    }
    if facts.covered < KNOWN_MIN {
        return vec![say::just_started()];
    }
    if explanation.target.is_none() {
        return unpaced(facts, explanation);
    }
    let main = explanation.main_causes().next();
    let mut why: Vec<Message> = (main.is_none() || explanation.keeps_rate())
        .then(|| kept(facts, main.is_none()))
        .into_iter()
        .collect();
    why.extend(main.into_iter().flat_map(|cause| cause_text(cause, facts)));
    why
}

/// Describes a task at its rate; for a slow one that nothing holds, the time between its items.
fn kept(facts: &Facts, is_free: bool) -> Message {
    match facts.tuning.rate {
        RateLimit::Limited(rate) if is_free && facts.covered < rate.time_of(1) => {
            say::due_every(rate.time_of(1))
        }
        _ => say::on_target(),
    }
}

/// Describes the shards of a running task on nodes that don't respond, and what happens to them.
fn unheard(facts: &Facts) -> Option<Message> {
    let is_running = facts.live.is_some() && facts.standing.status == Status::Running;
    let unheard = Some(facts.unheard).filter(|unheard| is_running && unheard.shards > 0)?;
    let nodes = facts.silent.nodes.iter();
    let nodes: Vec<String> = nodes.map(|(node, why)| format!("{node} ({why})")).collect();
    let which = say::unreachable(unheard.shards, unheard.of, nodes.join(", "));
    list::all([which].into_iter().chain(facts.silent.prospect.clone()))
}

fn standing(facts: &Facts) -> Message {
    let standing = &facts.standing;
    let now = match standing.status {
        Status::Running => windrow_words::status::not_here(),
        other => other.title(),
    };
    match (&standing.reason, &standing.text) {
        (None, None) => say::stands(now),
        (Some(reason), None) => say::stands_why(now, reason.replace('_', " ")),
        // The text of a command names the status already.
        (_, Some(text)) if *text == windrow_words::engine::stopped().english() => say::stands_as(text),
        (None, Some(text)) => say::stands_text(now, text),
        (Some(reason), Some(text)) => say::stands_why_text(now, reason.replace('_', " "), text),
    }
}

fn unpaced(facts: &Facts, explanation: &Explanation) -> Vec<Message> {
    let is_auto = facts.tuning.rate.is_auto();
    let mut why = if is_auto {
        autopilot::found(facts)
    } else {
        vec![say::no_rate()]
    };
    let Some((reason, share)) = explanation.waits.first() else {
        return if is_auto { why } else { vec![say::at_full_speed()] };
    };
    let title = CauseKind::Stall(*reason).title();
    why.push(say::waited(
        f64::from(*share) / 1e6,
        title,
        hints::stall(*reason, facts),
    ));
    if let (StallReason::Concurrency, Some(p50)) = (reason, facts.latency.p50) {
        let slots = facts.live.as_ref().map_or(0, |live| live.concurrency);
        let most = slots as f64 / p50.as_secs_f64().max(f64::MIN_POSITIVE);
        why.push(say::slots_carry(slots, p50, most));
    }
    why
}

fn cause_text(cause: &Cause, facts: &Facts) -> Vec<Message> {
    let live = facts.live.clone().unwrap_or_default();
    let rate = facts.rate().unwrap_or(0.0);
    vec![match cause.kind {
        CauseKind::Stall(StallReason::WindowFull) => window(facts, rate, live.window),
        CauseKind::Stall(StallReason::Concurrency) => match facts.usual_latency() {
            Some(latency) => little(rate, latency, say::in_flight_max(live.concurrency)),
            None => say::slots_taken(live.concurrency),
        },
        CauseKind::Stall(StallReason::HandlerSlots) => match (live.handler_slots, facts.usual_latency()) {
            (None, _) => say::handler_slots_few(),
            (Some(slots), Some(latency)) => little(rate, latency, say::handler_has(slots)),
            (Some(slots), None) => say::handler_slots_taken(slots),
        },
        CauseKind::Stall(StallReason::BackPressure) => say::back_pressure(facts.attempts(), rate),
        CauseKind::Stall(StallReason::SourceWait) => say::source_slow(facts.attempts(), rate),
        CauseKind::Retries => return retries(facts, rate),
        CauseKind::Stall(StallReason::HandlerDown) if facts.is_handler_back() => say::recovered(),
        CauseKind::Stall(StallReason::HandlerDown) => hints::stall(StallReason::HandlerDown, facts),
        CauseKind::Stall(_) | CauseKind::Returned | CauseKind::Late | CauseKind::Slowed => {
            let title = cause.kind.title();
            match &cause.text {
                Some(text) => list::titled(title, text.clone()),
                None => title,
            }
        }
        CauseKind::NoRoom => {
            let run = facts.held_back.first();
            say::no_room(run.map_or("", |run| run.why.as_str()))
        }
        CauseKind::NotRunning(_) => facts.stood_text(),
        CauseKind::Unknown => return unheard(facts).into_iter().collect(),
    }]
}

fn retries(facts: &Facts, rate: f64) -> Vec<Message> {
    let each = facts.attempts_per_item();
    let mut why = vec![say::attempts_each(format!("{each:.2}"), rate, rate / each)];
    let worst = facts.worst_code.as_ref();
    why.extend(worst.map(|(code, times)| say::most_often(code, *times)));
    why
}

fn little(rate: f64, latency: Duration, but: Message) -> Message {
    say::little(rate, latency, Facts::slots(rate, latency), but)
}

/// Describes a window that is too small for the usual call, or one that a slow item holds.
fn window(facts: &Facts, rate: f64, window: u64) -> Message {
    if let Some(p95) = facts.latency.p95
        && Facts::slots(rate, p95) >= window
    {
        return little(rate, p95, say::window_is(window));
    }
    let lasts = Duration::from_secs_f64(window as f64 / rate.max(1e-9));
    let head = facts.live.as_ref().and_then(|live| live.head);
    let holder = head.map_or_else(say::slow_item, |head| held_by(&head));
    say::window_lasts(window, lasts, rate, holder)
}
