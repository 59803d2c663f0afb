//! Sentences that explain the cause, with the numbers.

use std::time::Duration;

use super::Explanation;
use super::causes::{Cause, CauseKind};
use super::facts::Facts;
use super::hints::{self, held_by};
use super::text::{count, rate_text, time};
use crate::settings::RateLimit;
use crate::settings::text::span_text;
use crate::stats::stall::StallReason;
use crate::task::lifecycle::Status;

/// Minimum time about which anything can be said.
pub(super) const KNOWN_MIN: Duration = Duration::from_secs(2);

const KEEPS_RATE: &str = "the task keeps its rate";
/// Text for when most of what is missing was lost to an outage that is over.
const HANDLER_BACK: &str = "the handler was down, and answers again";

/// Explains in a few sentences. Problems of the handler are mentioned even if no permit is lost to them.
pub(super) fn of(facts: &Facts, explanation: &Explanation) -> String {
    let mut why = pace(facts, explanation);
    if let Some(unheard) = unheard(facts).filter(|unheard| !why.contains(unheard)) {
        why = format!("{why}; {unheard}");
    }
    if let Some(taken) = &facts.taken_over {
        why = format!("{why}; {}", taken.text);
    }
    match facts.handler.text() {
        Some(said) if !why.contains(&said) => format!("{why}; {said}"),
        _ => why,
    }
}

fn pace(facts: &Facts, explanation: &Explanation) -> String {
    if facts.live.is_none() || facts.standing.status != Status::Running {
        return standing(facts);
    }
    if facts.covered < KNOWN_MIN {
        return "the run has just begun: ask again in a few seconds".to_owned();
    }
    if explanation.target.is_none() {
        return unpaced(facts, explanation);
    }
    match explanation.main_causes().next() {
        Some(cause) if explanation.keeps_rate() => format!("{KEEPS_RATE}; {}", cause_text(cause, facts)),
        Some(cause) => cause_text(cause, facts),
        None => kept(facts),
    }
}

/// Describes a task at its rate; for a slow one, the time between its items.
fn kept(facts: &Facts) -> String {
    match facts.tuning.rate {
        RateLimit::Limited(rate) if facts.covered < rate.time_of(1) => {
            format!(
                "{KEEPS_RATE}: an item is due every {}",
                span_text(rate.time_of(1))
            )
        }
        _ => KEEPS_RATE.to_owned(),
    }
}

/// Describes the shards of a running task on nodes that don't respond, and what happens to them.
fn unheard(facts: &Facts) -> Option<String> {
    if facts.live.is_none() || facts.standing.status != Status::Running {
        return None;
    }
    let which = facts.unheard_text()?;
    let isnt = if facts.unheard.shards == 1 {
        "isn't"
    } else {
        "aren't"
    };
    let nodes = facts.silent.nodes.iter();
    let nodes: Vec<String> = nodes
        .map(|(node, why)| format!("{node} gives no sign ({why})"))
        .collect();
    let (nodes, prospect) = (nodes.join(", "), &facts.silent.prospect);
    Some(format!("{which} {isnt} known to run: {nodes}; {prospect}"))
}

fn standing(facts: &Facts) -> String {
    let standing = &facts.standing;
    let reason = standing
        .reason
        .as_ref()
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    let text = standing
        .text
        .as_ref()
        .map(|text| format!(": {text}"))
        .unwrap_or_default();
    match standing.status {
        Status::Running => format!("the task runs, but nothing of it on this node{reason}{text}"),
        status => format!("the task is {status}{reason}{text}"),
    }
}

fn unpaced(facts: &Facts, explanation: &Explanation) -> String {
    let begins = "no rate limits the task";
    let Some((reason, share)) = explanation.waits.first() else {
        return format!(
            "{begins}, and it waits for nothing: the handler and the node are as fast as they are"
        );
    };
    let percent = f64::from(*share) / 10_000.0;
    let hint = hints::of(CauseKind::Stall(*reason), facts);
    let law = match (reason, facts.latency.p50) {
        (StallReason::Concurrency, Some(p50)) => {
            let slots = facts.live.as_ref().map_or(0, |live| live.concurrency);
            format!(
                "; {} slots ÷ p50 {} is the most they carry",
                count(slots),
                time(p50)
            )
        }
        _ => String::new(),
    };
    let title = CauseKind::Stall(*reason).title();
    format!("{begins}; {percent:.0} % of its time since the run began it waited: {title} ({hint}){law}")
}

fn cause_text(cause: &Cause, facts: &Facts) -> String {
    let live = facts.live.clone().unwrap_or_default();
    let rate = facts.rate().unwrap_or(0.0);
    match cause.kind {
        CauseKind::Stall(StallReason::WindowFull) => window(facts, rate, live.window),
        CauseKind::Stall(StallReason::Concurrency) => match facts.usual_latency() {
            Some(latency) => little(
                rate,
                latency,
                &format!("{} may be in flight", count(live.concurrency)),
            ),
            None => format!("all {} slots are taken", count(live.concurrency)),
        },
        CauseKind::Stall(StallReason::HandlerSlots) => {
            let slots = live.handler_slots.map_or_else(|| "too few".to_owned(), count);
            match facts.usual_latency() {
                Some(latency) => little(rate, latency, &format!("the handler has {slots}")),
                None => format!("the handler has {slots} slots, and all are taken"),
            }
        }
        CauseKind::Stall(StallReason::BackPressure) => format!(
            "the handler turns calls away: it took {} of the {} that the rate gives",
            rate_text(facts.attempts()),
            rate_text(rate)
        ),
        CauseKind::Stall(StallReason::SourceWait) => {
            format!(
                "the source delivers {}, the rate is {}",
                rate_text(facts.attempts()),
                rate_text(rate)
            )
        }
        CauseKind::Retries => retries(facts, rate),
        CauseKind::Stall(StallReason::HandlerDown) if facts.is_handler_back() => HANDLER_BACK.to_owned(),
        CauseKind::Stall(_) | CauseKind::Returned | CauseKind::Late | CauseKind::Slowed => {
            format!("{}: {}", cause.kind.title(), cause.text)
        }
        CauseKind::NoRoom => no_room(facts),
        CauseKind::NotRunning(_) => facts.stood_text("the task"),
        CauseKind::Unknown => unheard(facts).unwrap_or_default(),
    }
}

fn retries(facts: &Facts, rate: f64) -> String {
    let each = facts.attempts_per_item();
    let (given, most) = (rate_text(rate), rate_text(rate / each));
    let code = match &facts.worst_code {
        Some((code, times)) => format!("; most often {code} ×{}", count(*times)),
        None => String::new(),
    };
    format!("an item takes {each:.2} attempts, each needs a permit: {given} settles at most {most}{code}")
}

/// Describes a run that got a larger share, for which its node has no room.
fn no_room(facts: &Facts) -> String {
    let said = facts
        .held_back
        .first()
        .map(|run| run.why.as_str())
        .unwrap_or_default();
    format!("a run got a larger part of the rate, for which its node has no room: {said}")
}

fn little(rate: f64, latency: Duration, but: &str) -> String {
    let needed = count(Facts::slots(rate, latency));
    format!(
        "by Little's law {} × p95 {} needs ≈ {needed} slots, {but}",
        rate_text(rate),
        time(latency)
    )
}

/// Describes a window that is too small for the usual call, or one that a slow item holds.
fn window(facts: &Facts, rate: f64, window: u64) -> String {
    let is = format!("window is {}", count(window));
    if let Some(p95) = facts.latency.p95
        && Facts::slots(rate, p95) >= window
    {
        return little(rate, p95, &is);
    }
    let lasts = time(Duration::from_secs_f64(window as f64 / rate.max(1e-9)));
    let head = facts.live.as_ref().and_then(|live| live.head);
    let holder = head.map_or_else(|| "one slow item".to_owned(), |head| held_by(&head));
    format!(
        "{is}, which lasts {lasts} at {}; then everything waits for {holder}",
        rate_text(rate)
    )
}
