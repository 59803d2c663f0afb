//! Details of a cause, beside its amount.

use super::causes::CauseKind;
use super::facts::{Facts, Head, SharedLimit};
use super::text::{count, counted, time};
use crate::stats::stall::StallReason;
use crate::task::lifecycle::Status;

/// Returns a few words to show beside the numbers of a cause; empty if its title says everything.
pub(super) fn of(kind: CauseKind, facts: &Facts) -> String {
    match kind {
        CauseKind::Stall(reason) => stall(reason, facts),
        CauseKind::Retries => String::new(),
        CauseKind::Returned => "granted, but the node could not send them in time".to_owned(),
        CauseKind::Late => match &facts.stood_still {
            Some((node, spell)) => format!(
                "{node} stood still {}: it was frozen, or short of processor time",
                spell.text()
            ),
            None => {
                "the node did not come round to it: it stood still, or was short of processor time".to_owned()
            }
        },
        CauseKind::Slowed => "the handler asked for a lower rate for a while".to_owned(),
        CauseKind::NoRoom => facts.held_back.first().map_or_else(String::new, |run| {
            format!("{} instead of {}", run.rate, run.wanted)
        }),
        CauseKind::Unknown => unknown(facts),
        CauseKind::NotRunning(Status::Running) => facts.stood_text("it"),
        CauseKind::NotRunning(status) => match (facts.standing.reason.as_deref(), &facts.standing.text) {
            (Some("start_at"), Some(text)) => format!("{status}: {text}"),
            (Some(reason), _) => format!("{status} ({reason})"),
            (None, _) => status.to_string(),
        },
    }
}

/// Describes the nodes that have the shards of which nothing is known.
fn unknown(facts: &Facts) -> String {
    let nodes: Vec<&str> = facts.silent.nodes.iter().map(|(node, _)| node.as_str()).collect();
    let has = if nodes.len() == 1 { "has" } else { "have" };
    let gives = if nodes.len() == 1 { "gives" } else { "give" };
    let them = if facts.unheard.shards == 1 { "it" } else { "them" };
    format!(
        "{}: {}, which {has} {them}, {gives} no sign; what was done there isn't counted",
        facts.unheard_text().unwrap_or_default(),
        nodes.join(" and ")
    )
}

fn stall(reason: StallReason, facts: &Facts) -> String {
    if let Some(spell) = facts.unsaved_behind(reason) {
        return format!("the database took no writes {}", spell.text());
    }
    let live = facts.live.clone().unwrap_or_default();
    match reason {
        StallReason::WindowFull => match live.head {
            Some(head) => format!("held by {}", held_by(&head)),
            None => format!("all {} items of it had left", count(live.window)),
        },
        StallReason::Concurrency => format!("{} may be in flight", counted(live.concurrency, "item")),
        StallReason::HandlerSlots => match live.handler_slots {
            Some(slots) => format!("the handler works on {} at once", counted(slots, "item")),
            None => "the handler had no free slot".to_owned(),
        },
        StallReason::BackPressure => {
            "429, a 503 with a time, or a pause that the handler asked for".to_owned()
        }
        StallReason::RetryWait if live.retrying == 1 => "1 item waits for its next attempt".to_owned(),
        StallReason::RetryWait => format!("{} items wait for their next attempt", count(live.retrying)),
        StallReason::ParkedFull if live.parked == 1 => "1 item is parked".to_owned(),
        StallReason::ParkedFull => format!("{} items are parked", count(live.parked)),
        StallReason::SourceWait => "the rows were not there yet".to_owned(),
        StallReason::Unsaved => "completions could not be saved fast enough".to_owned(),
        StallReason::Checkpoint => {
            "more may leave once the database has taken what was done: it was away, or slow".to_owned()
        }
        StallReason::ResultsUnsaved => "results could not be written fast enough".to_owned(),
        StallReason::Trust => "the node could not prove to the database that the task is its own".to_owned(),
        StallReason::Canary => "everything but the canary is held back".to_owned(),
        StallReason::Tail => "everything has left".to_owned(),
        StallReason::Items => "every item that was appended has left; the task is open".to_owned(),
        StallReason::HandlerDown => facts
            .handler
            .text()
            .unwrap_or_else(|| "the handler didn't answer: one probe at a time left until it did".to_owned()),
        StallReason::SingleFile => "one item at a time, since the node ended again and again".to_owned(),
        StallReason::Limit => match &facts.limit {
            Some(limit) => shared(limit),
            None => "the limit is used up by all tasks that share it".to_owned(),
        },
    }
}

/// Describes the users of a limit, and their number.
fn shared(limit: &SharedLimit) -> String {
    let users = match limit.businesses.join(", ") {
        none if none.is_empty() => none,
        users => format!(", which {users} use,"),
    };
    let (runs, nodes) = (counted(limit.runs, "run"), counted(limit.nodes as u64, "node"));
    format!("{}{users} is shared by {runs} on {nodes}", limit.title)
}

/// Describes the item at the head of the window.
pub(super) fn held_by(head: &Head) -> String {
    let doing = if head.waits { ", which it waits for" } else { "" };
    format!(
        "#{} (attempt {}{doing}, {})",
        count(head.index.0),
        head.attempt,
        time(head.age)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        let shared = |runs, nodes| {
            let title = "the limit vendor-x".to_owned();
            shared(&SharedLimit {
                title,
                name: None,
                businesses: Vec::new(),
                runs,
                nodes,
            })
        };
        assert_eq!(shared(1, 1), "the limit vendor-x is shared by 1 run on 1 node");
        assert_eq!(
            shared(1200, 2),
            "the limit vendor-x is shared by 1,200 runs on 2 nodes"
        );
    }
}
