//! Finishing early excludes only what nobody called: told by the range that is left, and by the numbers a node shows.

use std::collections::BTreeSet;

use super::Judgement;
use crate::evidence::{Evidence, ShardWrite};

const RULE: &str = "what was called is not excluded";

/// Nothing that reached the business lies behind the end of its shard.
pub(super) fn judge_shard(evidence: &Evidence, writes: &[&ShardWrite], judgement: &mut Judgement) {
    let Some(last) = writes.last() else { return };
    let end = last.end.cast_unsigned();
    let called: BTreeSet<u64> = evidence
        .deliveries
        .iter()
        .filter(|delivery| delivery.shard == last.shard && delivery.index >= end)
        .map(|delivery| delivery.index)
        .collect();
    for index in called {
        judgement.find(
            RULE,
            format!("item {index} was called, and its shard ends at {end}"),
        );
    }
}

/// No more items are shown as excluded than were never called.
pub(super) fn judge_numbers(evidence: &Evidence, judgement: &mut Judgement) {
    let called: BTreeSet<u64> = evidence
        .deliveries
        .iter()
        .map(|delivery| delivery.index)
        .collect();
    let never = evidence.bounds.items - called.len() as u64;
    let excluded = evidence.view["counts"]["excluded"].as_u64().unwrap_or_default();
    judgement.excluded = excluded;
    if excluded > never {
        judgement.find(
            RULE,
            format!("{excluded} are shown as excluded, {never} were never called"),
        );
    }
}
