//! Judges what a round left behind. Every rule is a function of the evidence alone, so that each can be shown to fail.

mod ends;
mod fences;
mod finish;
mod gates;
mod loss;
mod pace;
mod records;
mod repeats;
mod self_test;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::evidence::{Evidence, ShardWrite};

/// What is wrong, in words, and what was measured on the way.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Judgement {
    pub(crate) findings: Vec<String>,
    /// Breaches that the rules foresee for two faults at once.
    pub(crate) excused: Vec<String>,
    pub(crate) deliveries: usize,
    pub(crate) writes: usize,
    /// How often a shard went from one run to the next without having been released.
    pub(crate) losses: usize,
    pub(crate) handovers: usize,
    pub(crate) repeats: u64,
    /// The most repeats of one loss, of what was allowed.
    pub(crate) repeats_worst: u64,
    pub(crate) repeats_allowed: u64,
    /// From the acknowledgement of a stop to the last gate of that run. Unit: milliseconds.
    pub(crate) stop_lags: Vec<i64>,
    /// Items beyond the pace in the worst interval, of what the burst allows.
    pub(crate) pace_excess: f64,
    /// Items that a finish left out.
    pub(crate) excluded: u64,
    /// From the last delivery to the end of the task, and from there to the hook that tells it. Unit: milliseconds.
    pub(crate) ended_after: i64,
    pub(crate) told_after: i64,
    /// Acknowledged commands whose effects were looked up.
    pub(crate) effects: usize,
    /// From the last delivery of a lost run to the first of the next. Unit: milliseconds.
    pub(crate) gaps: Vec<i64>,
}

impl Judgement {
    fn find(&mut self, rule: &str, text: String) {
        // The first few of a kind tell enough.
        let known = self
            .findings
            .iter()
            .filter(|known| known.starts_with(rule))
            .count();
        if known < 5 {
            self.findings.push(format!("{rule}: {text}"));
        }
    }
}

/// Judges one task of a round.
pub(crate) fn judge(evidence: &Evidence) -> Judgement {
    let mut judgement = Judgement {
        deliveries: evidence.deliveries.len(),
        writes: evidence.writes.len(),
        ..Judgement::default()
    };
    for writes in shards(evidence).values() {
        fences::judge(writes, &mut judgement);
        loss::judge(evidence, writes, &mut judgement);
        repeats::judge(evidence, writes, &mut judgement);
        gates::judge_owners(evidence, writes, &mut judgement);
        finish::judge_shard(evidence, writes, &mut judgement);
    }
    finish::judge_numbers(evidence, &mut judgement);
    gates::judge_stops(evidence, &mut judgement);
    pace::judge(evidence, &mut judgement);
    ends::judge(evidence, &mut judgement);
    ends::judge_effects(evidence, &mut judgement);
    records::judge(evidence, &mut judgement);
    judgement
}

/// The accepted changes of each shard in their order.
fn shards(evidence: &Evidence) -> BTreeMap<u32, Vec<&ShardWrite>> {
    let mut shards: BTreeMap<u32, Vec<&ShardWrite>> = BTreeMap::new();
    for write in &evidence.writes {
        shards.entry(write.shard).or_default().push(write);
    }
    shards
}

/// One ownership of a shard.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) epoch: i64,
    /// The accepted claim.
    pub(crate) claim: &'a ShardWrite,
    /// Whether its owner itself gave the shard back.
    pub(crate) is_released: bool,
}

/// The runs of a shard in their order.
pub(crate) fn runs<'a>(evidence: &Evidence, writes: &[&'a ShardWrite]) -> Vec<Run<'a>> {
    let mut runs: Vec<Run<'a>> = Vec::new();
    let mut before: Option<&ShardWrite> = None;
    for write in writes {
        if before.is_some_and(|before| write.epoch > before.epoch) {
            runs.push(Run {
                epoch: write.epoch,
                claim: write,
                is_released: false,
            });
        }
        let had_owner = before.is_some_and(|before| before.session.is_some());
        if let Some(run) = runs.last_mut().filter(|_| had_owner && write.session.is_none()) {
            // A node's next life has its name too.
            let has_died = was_killed(evidence, &run.claim.who, run.claim.at, write.at);
            run.is_released = write.who == run.claim.who && !has_died;
        }
        before = Some(write);
    }
    runs
}

/// Whether this node was killed in between.
fn was_killed(evidence: &Evidence, node: &str, from: i64, until: i64) -> bool {
    let name = format!("kill -9 {node}");
    evidence
        .faults
        .iter()
        .any(|fault| fault.name == name && (from..=until).contains(&fault.from))
}
