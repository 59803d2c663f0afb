//! Whether a handler that is down for one node answers others: seen from the progress of runs elsewhere.

use std::collections::BTreeMap;

use crate::ids::{Epoch, ShardId};

/// A shard that another session runs, and for which the handler is not down, as its last checkpoint says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reaching {
    /// The shard.
    pub shard: ShardId,
    /// Of the run.
    pub epoch: Epoch,
    /// Items of the shard that succeeded.
    pub succeeded: u64,
}

/// What was seen of each business at the last look.
#[derive(Debug, Default)]
pub struct Elsewhere(BTreeMap<String, BTreeMap<ShardId, (Epoch, u64)>>);

impl Elsewhere {
    /// Whether a run had more success than at the last look: a first look only remembers, since a run that began just now may
    /// find its handler down too.
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

    /// Forgets the businesses that nobody asks about.
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
