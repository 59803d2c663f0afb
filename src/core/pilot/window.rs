//! Window that a service describes in headers: so many calls left until a reset.

use super::numbers::WINDOW_MAX;

/// Last window that was described; it only holds back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    told: Option<Told>,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    /// Number of the call whose answer described it: calls sent later aren't counted in it.
    call: u64,
    left: u64,
    reset: f64,
}

impl Window {
    /// Sets the window that came with a call; one of a call that was sent earlier than the last changes nothing.
    pub(super) fn set(&mut self, call: u64, left: u64, now: f64, reset: f64) {
        let is_late = self.told.is_some_and(|told| call < told.call && now < told.reset);
        if !is_late && reset > now {
            self.told = Some(Told {
                call,
                left,
                reset: reset.min(now + WINDOW_MAX),
            });
        }
    }

    /// True if a window was ever described.
    pub(super) fn is_told(&self) -> bool {
        self.told.is_some()
    }

    /// Returns the reset if the window is used up at `now`; `next` is the number of the next call, and
    /// `part` the part that this run may take of the calls left.
    pub(super) fn used_until(&self, now: f64, next: u64, part: f64) -> Option<f64> {
        let told = self.told.filter(|told| now < told.reset)?;
        let sent_later = next.saturating_sub(told.call + 1);
        (sent_later as f64 >= told.left as f64 * part).then_some(told.reset)
    }
}
