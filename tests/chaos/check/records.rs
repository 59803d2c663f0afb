//! Once a task is finished every run of it is on record: each accepted claim, with its node, its end and why it ended.

use std::collections::BTreeSet;

use super::{Judgement, runs, shards};
use crate::evidence::Evidence;

const RULE: &str = "runs are recorded";

pub(super) fn judge(evidence: &Evidence, judgement: &mut Judgement) {
    if evidence.view["status"] != "finished" {
        return;
    }
    let mut recorded = BTreeSet::new();
    for run in &evidence.runs {
        recorded.insert((run["shard"].as_u64(), run["epoch"].as_i64()));
        for member in ["node", "ended_at", "end_reason"] {
            if !run[member].is_string() {
                judgement.find(RULE, format!("{member} is missing in {run}"));
            }
        }
    }
    for (shard, writes) in shards(evidence) {
        for run in runs(evidence, &writes) {
            if !recorded.contains(&(Some(u64::from(shard)), Some(run.epoch))) {
                judgement.find(
                    RULE,
                    format!("the run of epoch {} of shard {shard} is missing", run.epoch),
                );
            }
        }
    }
}
