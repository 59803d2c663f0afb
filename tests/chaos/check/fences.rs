//! One writer at a time: epochs and sequence numbers grow, progress doesn't fall, and what is counted adds up.

use std::collections::BTreeSet;

use windrow_core::checkpoint::{Snapshot, decode};
use windrow_core::ids::ItemIndex;

use super::Judgement;
use crate::evidence::ShardWrite;

pub(super) fn judge(writes: &[&ShardWrite], judgement: &mut Judgement) {
    let mut claims: BTreeSet<&str> = BTreeSet::new();
    for pair in writes.windows(2) {
        let [old, new] = pair else { continue };
        let mut find = |text: String| {
            let at = format!("shard {} row {} by {}", new.shard, new.id, new.who);
            judgement.find("one writer", format!("{at}: {text}"));
        };
        match new.epoch.cmp(&old.epoch) {
            std::cmp::Ordering::Less => find(format!("epoch {} after {}", new.epoch, old.epoch)),
            std::cmp::Ordering::Greater => {
                let claim = new.claim.as_deref().unwrap_or_default();
                if claim.is_empty() || !claims.insert(claim) {
                    find(format!("claim {claim:?} of epoch {} isn't new", new.epoch));
                }
                if new.seq != 0 || progress(new) != progress(old) {
                    find(format!("the claim of epoch {} changed progress", new.epoch));
                }
            }
            std::cmp::Ordering::Equal => {
                for fault in within_run(old, new, writes) {
                    find(fault);
                }
            }
        }
        if new.epoch > 0
            && let Some(fault) = sum(new)
        {
            find(fault);
        }
    }
}

fn progress(write: &ShardWrite) -> (i64, [i64; 4], &str) {
    let counts = [write.succeeded, write.skipped, write.failed, write.parked];
    (write.low, counts, &write.blob)
}

/// A change that isn't a claim.
fn within_run(old: &ShardWrite, new: &ShardWrite, writes: &[&ShardWrite]) -> Vec<String> {
    let mut faults = Vec::new();
    if new.claim != old.claim {
        faults.push(format!(
            "claim {:?} became {:?} in epoch {}",
            old.claim, new.claim, new.epoch
        ));
    }
    if new.low < old.low || new.settled() < old.settled() {
        faults.push(format!(
            "watermark {} and {} settled fell to {} and {}",
            old.low,
            old.settled(),
            new.low,
            new.settled()
        ));
    }
    if new.seq < old.seq {
        faults.push(format!("sequence {} after {}", new.seq, old.seq));
    }
    if new.seq == old.seq && progress(new) != progress(old) {
        faults.push(format!(
            "progress changed without a new sequence number ({})",
            new.seq
        ));
    }
    if new.seq > old.seq {
        if old.session.is_none() {
            faults.push(format!("a checkpoint ({}) after the release", new.seq));
        }
        let owner = writes
            .iter()
            .find(|write| write.epoch == new.epoch)
            .map(|write| &write.who);
        if owner.is_some_and(|owner| *owner != new.who) {
            faults.push(format!(
                "a checkpoint of epoch {}, which belongs to {owner:?}",
                new.epoch
            ));
        }
    }
    faults
}

/// What is settled and parked is what is below watermark and in the set.
fn sum(write: &ShardWrite) -> Option<String> {
    let Some(snapshot) = snapshot(write) else {
        return (!write.blob.is_empty()).then(|| "the checkpoint can't be read".to_owned());
    };
    let counted = write.settled() + write.parked;
    let covered = write.low - write.first + i64::from(snapshot.len());
    (counted != covered).then(|| format!("{counted} settled or parked, but {covered} covered"))
}

/// The set of a row; none where there is none.
pub(super) fn snapshot(write: &ShardWrite) -> Option<Snapshot> {
    let digits = write.blob.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("hex");
    let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
    decode(&bytes, ItemIndex(write.low.cast_unsigned())).ok()
}
