//! Repeats are bounded by what was in flight or unsaved at each loss of an owner; a shard that was given back has none.

use std::collections::BTreeMap;

use super::{Judgement, Run, runs};
use crate::evidence::{Delivery, Evidence, Harm, ShardWrite};

pub(super) fn judge(evidence: &Evidence, writes: &[&ShardWrite], judgement: &mut Judgement) {
    let Some(first) = writes.first() else { return };
    let runs = runs(evidence, writes);
    let deliveries: Vec<&Delivery> = evidence
        .deliveries
        .iter()
        .filter(|delivery| delivery.shard == first.shard)
        .collect();
    let allowed = evidence.bounds.concurrency + evidence.bounds.unsaved;
    judgement.repeats_allowed = allowed;
    for (at, run) in runs.iter().enumerate() {
        // The last run of a shard ended with it.
        let Some(next) = runs.get(at + 1) else { continue };
        if run.is_released {
            judgement.handovers += 1
        } else {
            judgement.losses += 1
        }
        gap(&deliveries, run, next, judgement);
    }
    for (epoch, repeats) in repeats_of_runs(&deliveries) {
        let released = runs.iter().any(|run| run.epoch == epoch && run.is_released);
        let allowed = if released { 0 } else { allowed };
        judgement.repeats += repeats;
        judgement.repeats_worst = judgement.repeats_worst.max(repeats);
        if repeats > allowed {
            let what = if released {
                "which was given back in order"
            } else {
                "which was lost"
            };
            let text = format!("{repeats} items of epoch {epoch}, {what}, came again; at most {allowed} may");
            judgement.find("bounded repeats", text);
        }
    }
    for delivery in same_run(&deliveries) {
        if !evidence.had(Harm::Business, delivery.at - evidence.bounds.ttl * 4, delivery.at) {
            let text = format!("item {} went twice in epoch {}", delivery.index, delivery.epoch);
            judgement.find("bounded repeats", text);
        }
    }
}

/// For each run, its items that were answered for good and went out again in a later one.
fn repeats_of_runs(deliveries: &[&Delivery]) -> BTreeMap<i64, u64> {
    let mut done: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
    for delivery in deliveries.iter().filter(|delivery| is_done(delivery)) {
        done.entry(delivery.index).or_default().push(delivery.epoch);
    }
    let mut repeats = BTreeMap::new();
    for delivery in deliveries {
        let before = done
            .get(&delivery.index)
            .into_iter()
            .flatten()
            .filter(|epoch| **epoch < delivery.epoch);
        if let Some(epoch) = before.max() {
            *repeats.entry(*epoch).or_default() += 1;
        }
    }
    repeats
}

fn is_done(delivery: &Delivery) -> bool {
    delivery.verdict.is_final() && delivery.answered.is_some()
}

/// Deliveries of items that had been answered for good in the same run.
fn same_run<'a>(deliveries: &[&'a Delivery]) -> Vec<&'a Delivery> {
    let mut done: BTreeMap<(u64, i64), i64> = BTreeMap::new();
    for delivery in deliveries.iter().filter(|delivery| is_done(delivery)) {
        let answered = delivery.answered.unwrap_or(i64::MAX);
        let known = done.entry((delivery.index, delivery.epoch)).or_insert(answered);
        *known = answered.min(*known);
    }
    let is_repeat = |delivery: &&Delivery| {
        done.get(&(delivery.index, delivery.epoch))
            .is_some_and(|answered| delivery.gate > *answered)
    };
    deliveries.iter().copied().filter(is_repeat).collect()
}

fn gap(deliveries: &[&Delivery], run: &Run<'_>, next: &Run<'_>, judgement: &mut Judgement) {
    let of = |epoch: i64| deliveries.iter().filter(move |delivery| delivery.epoch == epoch);
    let last = of(run.epoch).map(|delivery| delivery.gate).max();
    let first = of(next.epoch).map(|delivery| delivery.gate).min();
    if let (Some(last), Some(first), false) = (last, first, run.is_released) {
        judgement.gaps.push((first - last) / 1000);
    }
}
