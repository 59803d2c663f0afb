//! Who may send: only the owner of the newest claim, and nobody after a stop.

use super::{Judgement, runs};
use crate::evidence::{Command, Delivery, Evidence, Harm, Order, SECOND, ShardWrite};

/// Clocks are read one after the other. Unit: microseconds.
const SLACK: i64 = 5_000;
/// How long after its acknowledgement a stop may take to be obeyed: a heartbeat, and what a loaded machine adds.
const STOP: i64 = 3 * SECOND;

/// No delivery of an epoch that was never granted, none of another node's, none after a newer claim.
pub(super) fn judge_owners(evidence: &Evidence, writes: &[&ShardWrite], judgement: &mut Judgement) {
    let Some(first) = writes.first() else { return };
    let runs = runs(evidence, writes);
    for delivery in evidence
        .deliveries
        .iter()
        .filter(|delivery| delivery.shard == first.shard)
    {
        let Some(at) = runs.iter().position(|run| run.epoch == delivery.epoch) else {
            judgement.find(
                "one owner",
                format!("epoch {} was granted to nobody", delivery.epoch),
            );
            continue;
        };
        let owner = &runs[at].claim.who;
        if *owner != delivery.node {
            let text = format!(
                "{} sent item {} under {owner}'s epoch",
                delivery.node, delivery.index
            );
            judgement.find("one owner", text);
        }
        let Some(next) = runs
            .get(at + 1)
            .filter(|next| delivery.gate > next.claim.at + SLACK)
        else {
            continue;
        };
        let late = (delivery.gate - next.claim.at) / 1000;
        let text = format!(
            "{} let item {} go {late} ms after {} had claimed epoch {}",
            delivery.node, delivery.index, next.claim.who, next.epoch
        );
        if is_foreseen(evidence, next.claim.at) {
            judgement.excused.push(text);
        } else {
            judgement.find("one owner", text);
        }
    }
}

/// Rule 20: Redis lost its data while the owner could not write heartbeats.
fn is_foreseen(evidence: &Evidence, claimed: i64) -> bool {
    let from = claimed - 3 * evidence.bounds.ttl;
    let is_silent = evidence.had(Harm::Database, from, claimed) || evidence.had(Harm::Node, from, claimed);
    is_silent && evidence.had(Harm::RedisLoss, from, claimed)
}

/// Nothing goes while the task is stopped or finished, and nothing long after a stop was acknowledged.
pub(super) fn judge_stops(evidence: &Evidence, judgement: &mut Judgement) {
    for (at, write) in evidence.tasks.iter().enumerate() {
        if !["stopped", "finished", "cancelled"].contains(&write.status.as_str()) {
            continue;
        }
        let until = evidence.tasks[at + 1..]
            .iter()
            .find(|next| next.status != write.status);
        let until = until.map_or(i64::MAX, |next| next.at);
        for delivery in between(evidence, write.at + SLACK, until) {
            let late = (delivery.gate - write.at) / 1000;
            let text = format!(
                "{} let item {} go {late} ms after it was {}",
                delivery.node, delivery.index, write.status
            );
            judgement.find("stopped is stopped", text);
        }
    }
    for stop in evidence
        .commands
        .iter()
        .filter(|command| command.order == Order::Stop)
    {
        judge_stop(evidence, stop, judgement);
    }
}

fn judge_stop(evidence: &Evidence, stop: &Command, judgement: &mut Judgement) {
    let starts = evidence
        .commands
        .iter()
        .filter(|command| command.order == Order::Start);
    let until = starts
        .map(|start| start.sent)
        .filter(|sent| *sent > stop.sent)
        .min()
        .unwrap_or(i64::MAX);
    let last = between(evidence, stop.acked, until)
        .map(|delivery| delivery.gate)
        .max();
    let lag = last.map_or(0, |last| last - stop.acked);
    judgement.stop_lags.push(lag / 1000);
    let is_troubled = evidence.had_any(stop.sent - evidence.bounds.ttl, stop.acked + STOP);
    let bound = if is_troubled {
        evidence.bounds.ttl + STOP
    } else {
        STOP
    };
    if lag > bound {
        let text = format!(
            "the last item left {} ms after it was acknowledged; at most {} ms",
            lag / 1000,
            bound / 1000
        );
        judgement.find("stops are obeyed", text);
    }
}

fn between(evidence: &Evidence, from: i64, until: i64) -> impl Iterator<Item = &Delivery> {
    evidence
        .deliveries
        .iter()
        .filter(move |delivery| delivery.gate > from && delivery.gate < until)
}
