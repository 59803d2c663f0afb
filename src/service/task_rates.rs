//! How fast tasks really go: settled items between two looks at their live progress.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::domain::ids::{Moment, TaskId};

/// Looks that are closer together than this share one answer: over a shorter time a rate means little.
const APART: Duration = Duration::from_millis(500);
/// A look that lies further back says nothing of now.
const FRESH: Duration = Duration::from_secs(10);
/// Tasks that are remembered; past it, those that nobody looked at lately are forgotten.
const TASKS_MAX: usize = 4096;

/// The last looks at tasks that run here.
#[derive(Debug, Default)]
pub(super) struct Rates(Mutex<HashMap<TaskId, Look>>);

#[derive(Clone, Copy, Debug)]
struct Look {
    at: Moment,
    settled: u64,
    rate: Option<f64>,
}

impl Rates {
    /// Notes how many items of a task are settled; says how many were each second since the last look. None at the
    /// first one.
    pub(super) fn look(&self, task: TaskId, now: Moment, settled: u64) -> Option<f64> {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if looks.len() >= TASKS_MAX && !looks.contains_key(&task) {
            looks.retain(|_, look| now.since(look.at) < FRESH);
        }
        let last = looks.get(&task).filter(|look| now.since(look.at) < FRESH && look.settled <= settled);
        let next = match last {
            None => Look { at: now, settled, rate: None },
            Some(last) if now.since(last.at) < APART => return last.rate,
            Some(last) => {
                let rate = (settled - last.settled) as f64 / now.since(last.at).as_secs_f64();
                Look { at: now, settled, rate: Some(rate) }
            }
        };
        looks.insert(task, next);
        next.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_what_was_settled_between_two_looks() {
        let rates = Rates::default();
        let at = |millis: u64| Moment(millis * 1_000_000);
        let task = TaskId(1);
        assert_eq!(rates.look(task, at(0), 100), None);
        assert_eq!(rates.look(task, at(100), 150), None, "too soon to say");
        assert_eq!(rates.look(task, at(1_000), 600), Some(500.0));
        assert_eq!(rates.look(task, at(1_100), 900), Some(500.0), "the same answer");
        assert_eq!(rates.look(task, at(20_000), 900), None, "the last look is long ago");
        assert_eq!(rates.look(TaskId(2), at(20_000), 7), None);
    }
}
