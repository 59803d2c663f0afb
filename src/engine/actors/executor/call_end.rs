//! Ends of steered calls, as the autopilot sees them.

use std::num::NonZeroU64;

use crate::ports::handling::handler::{CallFailure, CallItems, Reply};
use windrow_core::execution::{CallEnd, Ended, Reports};
use windrow_core::ids::Moment;
use windrow_core::items::verdict::FailureClass;

/// Tickets of the calls of one grant, in their order.
pub(super) struct Tickets(Option<NonZeroU64>);

impl Tickets {
    pub(super) fn of(first: Option<u64>) -> Tickets {
        Tickets(first.and_then(NonZeroU64::new))
    }

    /// Returns the ticket of the next call, if the run is steered.
    #[inline]
    pub(super) fn next(&mut self) -> Option<NonZeroU64> {
        let ticket = self.0?;
        self.0 = ticket.checked_add(1);
        Some(ticket)
    }
}

/// Returns the end of a call that was answered with `reply`.
pub(super) fn of(reply: &Reply, items: &CallItems, ticket: NonZeroU64, at: Moment) -> CallEnd {
    let (reply, windows) = match reply {
        Reply::Told(told) => (&told.reply, told.limits.windows.clone()),
        reply => (reply, Vec::new()),
    };
    CallEnd {
        ticket: ticket.get(),
        at,
        ended: ended(reply, items),
        windows,
    }
}

fn ended(reply: &Reply, items: &CallItems) -> Ended {
    let Reply::Failed(failure) = reply else {
        return Ended::Accepted;
    };
    match &**failure {
        CallFailure::BackPressure { after, .. } => Ended::Refused {
            item: items.only().map(|(index, _)| index),
            after: *after,
        },
        CallFailure::Failed { class, .. } => match class {
            FailureClass::Unclear | FailureClass::Unavailable | FailureClass::Unreachable => Ended::Failed,
            FailureClass::Unsendable | FailureClass::Unstarted => Ended::Unsent,
            FailureClass::Answered | FailureClass::Exited | FailureClass::Faulty | FailureClass::Rejected => {
                Ended::Accepted
            }
        },
        CallFailure::Unsendable(_) | CallFailure::NotSent | CallFailure::Unstarted(_) => Ended::Unsent,
        CallFailure::Final(_)
        | CallFailure::BadReply(_)
        | CallFailure::Rejected(_)
        | CallFailure::Gone(_)
        | CallFailure::Fenced => Ended::Accepted,
    }
}

/// Reports a call that was granted and not sent.
pub(super) fn unsent(ticket: Option<NonZeroU64>, at: Moment, reports: &mut Reports) {
    reports.ends.extend(ticket.map(|ticket| CallEnd {
        ticket: ticket.get(),
        at,
        ended: Ended::Unsent,
        windows: Vec::new(),
    }));
}
