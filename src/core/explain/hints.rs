//! Details of a cause, beside its amount.

use windrow_words::{Message, cause as say};

use super::autopilot;
use super::causes::CauseKind;
use super::facts::{Facts, Head, SharedLimit};
use crate::meter::metering::HeldBy;
use crate::stats::stall::StallReason;
use crate::task::lifecycle::{START_AT, Status};

/// Returns a few words to show beside the numbers of a cause; `None` if its title says everything.
pub(super) fn of(kind: CauseKind, facts: &Facts) -> Option<Message> {
    Some(match kind {
        CauseKind::Stall(reason) => stall(reason, facts),
        CauseKind::Retries => return None,
        CauseKind::Returned => say::was_returned(),
        CauseKind::Late => match &facts.stood_still {
            Some((node, spell)) => say::stood_still(node, spell.text()),
            None => say::was_late(),
        },
        CauseKind::Slowed => say::asked_to_slow(),
        CauseKind::NoRoom => {
            let run = facts.held_back.first()?;
            say::instead_of(run.rate.to_string(), run.wanted.to_string())
        }
        CauseKind::Unknown => say::unreachable(facts.unheard.shards, facts.unheard.of, facts.silent_nodes()),
        CauseKind::NotRunning(Status::Running) => facts.stood_text(),
        CauseKind::NotRunning(now) => match (facts.standing.reason.as_deref(), &facts.standing.text) {
            (Some(START_AT), Some(text)) => say::said(now.title(), text),
            (Some(reason), _) => say::because(now.title(), reason),
            (None, _) => now.title(),
        },
    })
}

pub(super) fn stall(reason: StallReason, facts: &Facts) -> Message {
    if let Some(spell) = facts.unsaved_behind(reason) {
        return say::no_writes(spell.text());
    }
    let live = facts.live.clone().unwrap_or_default();
    match reason {
        StallReason::WindowFull => match live.head {
            Some(head) => say::held_by(held_by(&head)),
            None => say::window_sent(live.window),
        },
        StallReason::Concurrency => say::in_flight_max(live.concurrency),
        StallReason::HandlerSlots => live.handler_slots.map_or_else(say::no_slot, say::handler_takes),
        StallReason::BackPressure => say::pushed_back(),
        StallReason::RetryWait => say::retrying(live.retrying),
        StallReason::ParkedFull => say::parked(live.parked),
        StallReason::SourceWait => say::no_rows(),
        StallReason::Unsaved => say::saved_slowly(),
        StallReason::Checkpoint => say::progress_first(),
        StallReason::ResultsUnsaved => say::results_slowly(),
        StallReason::Lease => say::lease_unproven(),
        StallReason::Canary => say::canary_only(),
        StallReason::Tail => say::all_sent(),
        StallReason::Items => say::appended_sent(),
        StallReason::HandlerDown => facts.handler.text().unwrap_or_else(say::no_answer),
        StallReason::SingleFile => say::crashed_often(),
        StallReason::Autopilot => live
            .autopilot
            .as_ref()
            .map_or_else(say::autopilot_holds, autopilot::held),
        StallReason::Usage => live.held_by.as_ref().map_or_else(say::usage_holds, usage),
        StallReason::Limit => facts.limit.as_ref().map_or_else(say::limit_used, shared),
    }
}

/// Describes the limit in units that holds calls back.
pub fn usage(held: &HeldBy) -> Message {
    match held {
        HeldBy::Limit(limit) => say::usage_limit(limit),
        HeldBy::Allowance { limit, next } => say::usage_allowance(limit, next),
        HeldBy::Headers(unit) => say::usage_headers(unit.as_str()),
        HeldBy::Learning(unit) => say::usage_learns(unit.as_str()),
    }
}

/// Describes the users of a limit, and their number; of a used-up allowance, its next period.
fn shared(limit: &SharedLimit) -> Message {
    if let Some(spent) = &limit.spent {
        return say::limit_spent(limit.title.clone(), &spent.used, &spent.limit, &spent.next);
    }
    match limit.businesses.join(", ") {
        none if none.is_empty() => say::limit_shared(limit.title.clone(), limit.runs, limit.nodes),
        users => say::limit_shared_by(limit.title.clone(), users, limit.runs, limit.nodes),
    }
}

/// Describes the item at the head of the window.
pub(super) fn held_by(head: &Head) -> Message {
    let of = if head.waits { say::head_waiting } else { say::head };
    of(head.index.0, head.attempt, head.age)
}

#[cfg(test)]
mod tests {
    use super::super::facts::SpentAllowance;
    use super::*;

    #[test]
    fn a_used_up_allowance_says_when_its_next_period_begins() {
        let limit = SharedLimit {
            title: say::limit_named("vendor"),
            name: Some("vendor".to_owned()),
            businesses: vec!["push".to_owned()],
            runs: 1,
            nodes: 1,
            spent: Some(SpentAllowance {
                limit: "12/day Europe/Berlin".to_owned(),
                used: "12".to_owned(),
                next: "Tue 2026-12-01 00:00:00 CET".to_owned(),
            }),
        };
        assert_eq!(
            shared(&limit).to_string(),
            "the limit vendor is used (12 of 12/day Europe/Berlin); next period at Tue 2026-12-01 00:00:00 CET"
        );
    }

    #[test]
    fn one_is_no_plural() {
        let shared = |runs, nodes| {
            let title = say::limit_named("vendor-x");
            shared(&SharedLimit {
                title,
                name: None,
                businesses: Vec::new(),
                runs,
                nodes,
                spent: None,
            })
            .to_string()
        };
        assert_eq!(shared(1, 1), "the limit vendor-x is shared by 1 run on 1 node");
        assert_eq!(
            shared(1200, 2),
            "the limit vendor-x is shared by 1,200 runs on 2 nodes"
        );
    }
}
