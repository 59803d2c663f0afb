//! Once everything is healed every task finishes, as its items say, is told once, and its numbers add up.

use std::collections::BTreeSet;

use super::Judgement;
use crate::evidence::{Evidence, HookCall};

pub(super) fn judge(evidence: &Evidence, judgement: &mut Judgement) {
    let view = &evidence.view;
    if view["status"] != "finished" {
        let text = format!("it is {} ({})", view["status"], view["status_text"]);
        judgement.find("tasks finish", text);
    }
    let counts = view["counts"].as_object();
    let sum: u64 = counts
        .into_iter()
        .flatten()
        .filter_map(|(_, term)| term.as_u64())
        .sum();
    if sum != evidence.bounds.items {
        judgement.find(
            "numbers add up",
            format!("the terms are {sum} of {}", evidence.bounds.items),
        );
    }
    for (name, expected) in &evidence.expected {
        if view["counts"][name].as_u64() != Some(*expected) {
            let text = format!("{name} is {}, the business said {expected}", view["counts"][name]);
            judgement.find("numbers add up", text);
        }
    }
    measure(evidence, judgement);
    let told: BTreeSet<&str> = evidence
        .hooks
        .iter()
        .filter(|hook| hook.task == evidence.task && hook.kind == "task.finished")
        .map(|hook| hook.id.as_str())
        .collect();
    if told.len() != 1 {
        judgement.find("told once", format!("the end was told under the ids {told:?}"));
    }
    let mut keys: Vec<(u64, &str)> = evidence
        .deliveries
        .iter()
        .map(|delivery| (delivery.index, delivery.key.as_str()))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    if let Some(pair) = keys
        .windows(2)
        .find(|pair| pair[0].0 == pair[1].0 || pair[0].1 == pair[1].1)
    {
        judgement.find("stable keys", format!("{pair:?}"));
    }
}

/// What was acknowledged is there.
pub(super) fn judge_effects(evidence: &Evidence, judgement: &mut Judgement) {
    judgement.effects = evidence.effects.len();
    for effect in evidence
        .effects
        .iter()
        .filter(|effect| effect.wanted != effect.found)
    {
        let text = format!(
            "{}: {} is wanted, {} was found",
            effect.what, effect.wanted, effect.found
        );
        judgement.find("what is acknowledged is kept", text);
    }
}

fn measure(evidence: &Evidence, judgement: &mut Judgement) {
    let last = evidence.deliveries.iter().map(|delivery| delivery.at).max();
    let ended = evidence
        .tasks
        .iter()
        .find(|write| write.status == "finished")
        .map(|write| write.at);
    let is_told = |hook: &&HookCall| hook.task == evidence.task && hook.kind == "task.finished";
    let told = evidence.hooks.iter().find(is_told).map(|hook| hook.at);
    if let (Some(last), Some(ended), Some(told)) = (last, ended, told) {
        judgement.ended_after = (ended - last) / 1000;
        judgement.told_after = (told - ended) / 1000;
    }
}
