//! Handlers as seen from other nodes: one that is down for this node may answer others, as the progress of their runs
//! shows.

use std::collections::BTreeMap;

use crate::ids::{Epoch, ShardId};

/// Shard that another session runs, and for which the handler is not down according to its last checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reaching {
    /// Shard of the run.
    pub shard: ShardId,
    /// Epoch of the run.
    pub epoch: Epoch,
    /// Items of the shard that succeeded.
    pub succeeded: u64,
}

/// Runs of each business as seen at the last check.
#[derive(Debug, Default)]
pub struct Elsewhere(BTreeMap<String, BTreeMap<ShardId, (Epoch, u64)>>);

impl Elsewhere {
    /// True if a run had more success than at the last check. The first check only remembers, because a run that just
    /// began may find its handler down too.
    pub fn answers(&mut self, business: &str, runs: &[Reaching]) -> bool {
        let now = runs
            .iter()
            .map(|run| (run.shard, (run.epoch, run.succeeded)))
            .collect();
        let before = self.0.insert(business.to_owned(), now).unwrap_or_default();
        let has_grown = |run: &Reaching| {
            before
                .get(&run.shard)
                .is_some_and(|(epoch, succeeded)| *epoch == run.epoch && run.succeeded > *succeeded)
        };
        runs.iter().any(has_grown)
    }

    /// Forgets the businesses for which `is_down` is false.
    pub fn retain(&mut self, is_down: impl Fn(&str) -> bool) {
        self.0.retain(|business, _| is_down(business));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TaskId;

    fn run(no: u32, epoch: u64, succeeded: u64) -> Reaching {
        Reaching {
            shard: ShardId { task: TaskId(1), no },
            epoch: Epoch(epoch),
            succeeded,
        }
    }

    #[test]
    fn only_success_between_two_looks_at_one_run_says_that_the_handler_answers() {
        let mut elsewhere = Elsewhere::default();
        assert!(!elsewhere.answers("push", &[run(0, 3, 500)]), "a first look");
        assert!(!elsewhere.answers("push", &[run(0, 3, 500)]), "nothing moved");
        assert!(
            !elsewhere.answers("push", &[run(0, 4, 700), run(1, 1, 90)]),
            "another run, and a new one"
        );
        assert!(!elsewhere.answers("mail", &[run(1, 1, 95)]), "another business");
        assert!(elsewhere.answers("push", &[run(0, 4, 700), run(1, 1, 91)]));
        elsewhere.retain(|business| business == "mail");
        assert!(!elsewhere.answers("push", &[run(1, 1, 99)]), "forgotten");
    }
}
