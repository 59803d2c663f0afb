//! Rotation of a limit that can't be divided among all sessions that want it.

use std::time::Duration;

use super::Part;
use crate::ids::Moment;

/// Minimum length of a rotation, which also lasts for at least a batch: every rotation costs about a second in which
/// nobody sends.
pub const ROTATION_MIN: Duration = Duration::from_secs(10);

/// Start of a session's rotation, and the number of items it had sent by then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rotation {
    since: Option<(Moment, u64)>,
}

impl Rotation {
    /// Sets the share that the session may use from `now` on, when it had sent `sent` items in all.
    pub fn on_part(&mut self, part: Part, sent: u64, now: Moment) {
        self.since = if part.is_barred() {
            None
        } else {
            self.since.or(Some((now, sent)))
        };
    }

    /// Returns true if its rotation is over: the minimum time has passed and a batch was sent.
    pub fn is_over(&self, sent: u64, batch: u32, now: Moment) -> bool {
        self.since.is_some_and(|(since, sent_then)| {
            now.since(since) >= ROTATION_MIN && sent.saturating_sub(sent_then) >= u64::from(batch.max(1))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_takes_its_time_and_a_batch() {
        let at = |seconds: u64| Moment(seconds * 1_000_000_000);
        let mut rotation = Rotation::default();
        assert!(!rotation.is_over(9, 1, at(99)), "it has nothing");
        rotation.on_part(Part::UNBOUNDED, 5, at(1));
        rotation.on_part(Part::UNBOUNDED, 7, at(5));
        assert!(
            !rotation.is_over(9, 4, at(10))
                && rotation.is_over(9, 4, at(11))
                && !rotation.is_over(8, 4, at(60))
        );
        rotation.on_part(Part::NONE, 9, at(12));
        assert!(!rotation.is_over(20, 1, at(60)));
    }
}
