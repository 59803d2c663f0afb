//! Nothing is lost: what a checkpoint calls settled was delivered in that very run, and answered for good before it.

use std::collections::{BTreeMap, HashMap};

use super::Judgement;
use super::fences::snapshot;
use crate::evidence::{Delivery, Evidence, ItemWrite, ShardWrite};

/// The deliveries of each item that were answered for good: epoch and time of the answer.
type Answers = HashMap<u64, Vec<(i64, i64)>>;

pub(super) fn judge(evidence: &Evidence, writes: &[&ShardWrite], judgement: &mut Judgement) {
    let Some(last) = writes.last() else { return };
    let mut books = Books {
        answers: answers(evidence, last.shard),
        covered: vec![false; usize::try_from(evidence.bounds.items).expect("few")],
        rows: BTreeMap::new(),
        low: last.first.cast_unsigned(),
    };
    let mut items = evidence
        .items
        .iter()
        .filter(|item| item.shard == last.shard)
        .peekable();
    for (at, write) in writes.iter().enumerate() {
        let next = writes.get(at + 1).map_or(i64::MAX, |next| next.id);
        let mut gone = Vec::new();
        while let Some(item) = items.next_if(|item| item.id < next) {
            books.note(item, &mut gone);
        }
        for fault in books.check(write, &gone) {
            judgement.find("nothing is lost", fault);
        }
    }
    for index in last.first.cast_unsigned()..last.end.cast_unsigned() {
        if !books.answers.contains_key(&index) {
            judgement.find(
                "nothing is lost",
                format!("item {index} was never answered for good"),
            );
        }
    }
}

fn answers(evidence: &Evidence, shard: u32) -> Answers {
    let mut answers = Answers::new();
    let is_final = |delivery: &&Delivery| delivery.shard == shard && delivery.verdict.is_final();
    for delivery in evidence.deliveries.iter().filter(is_final) {
        if let Some(answered) = delivery.answered {
            answers
                .entry(delivery.index)
                .or_default()
                .push((delivery.epoch, answered));
        }
    }
    answers
}

/// What is known of the items of a shard at a moment.
struct Books {
    answers: Answers,
    covered: Vec<bool>,
    /// The state of each item that has a row.
    rows: BTreeMap<u64, String>,
    low: u64,
}

impl Books {
    /// Takes a change of an item's row; a parked one whose row went is settled now.
    fn note(&mut self, item: &ItemWrite, gone: &mut Vec<u64>) {
        let before = match &item.state {
            Some(state) => self.rows.insert(item.index, state.clone()),
            None => self.rows.remove(&item.index),
        };
        if before.as_deref() == Some("parked") && item.state.is_none() {
            gone.push(item.index);
        }
    }

    fn check(&mut self, write: &ShardWrite, gone: &[u64]) -> Vec<String> {
        let mut faults = Vec::new();
        let low = write.low.cast_unsigned();
        let mut indexes: Vec<u64> = (self.low..low.max(self.low)).collect();
        self.low = low.max(self.low);
        if let Some(set) = snapshot(write) {
            for (at, word) in set.words.iter().enumerate() {
                let bits = (0..64).filter(|bit| word >> bit & 1 == 1);
                indexes.extend(bits.map(|bit| low + 1 + at as u64 * 64 + bit));
            }
        }
        for index in indexes {
            let at = usize::try_from(index).expect("few");
            if self.covered.get(at).copied().unwrap_or(true) {
                continue;
            }
            self.covered[at] = true;
            let state = self.rows.get(&index).map(String::as_str);
            if state != Some("parked") && !self.is_answered(index, write, Some(write.epoch)) {
                faults.push(format!(
                    "row {} (epoch {}, sequence {}) has item {index} settled ({state:?}), which had no final answer in that run",
                    write.id, write.epoch, write.seq
                ));
            }
        }
        for index in gone.iter().filter(|index| !self.rows.contains_key(index)) {
            if !self.is_answered(*index, write, None) {
                faults.push(format!(
                    "row {} settled the parked item {index} without an answer",
                    write.id
                ));
            }
        }
        faults
    }

    fn is_answered(&self, index: u64, write: &ShardWrite, epoch: Option<i64>) -> bool {
        let answers = self.answers.get(&index).map_or(&[][..], Vec::as_slice);
        answers
            .iter()
            .any(|(of, at)| *at <= write.at && epoch.is_none_or(|epoch| *of == epoch))
    }
}
