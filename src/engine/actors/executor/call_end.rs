//! Ends of calls with tickets: the answer of the service, and what it says of its limits and of the call's use.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::ports::handling::handler::{CallFailure, CallItems, Reply};
use windrow_core::execution::{CallEnd, Reports, Usage};
use windrow_core::ids::Moment;
use windrow_core::items::verdict::FailureClass;
use windrow_core::meter::class::End;

/// Tickets of the calls of one grant, in their order.
pub(super) struct Tickets(Option<NonZeroU64>);

impl Tickets {
    pub(super) fn of(first: Option<u64>) -> Tickets {
        Tickets(first.and_then(NonZeroU64::new))
    }

    /// Returns the ticket of the next call, if its end is accounted for.
    #[inline]
    pub(super) fn next(&mut self) -> Option<NonZeroU64> {
        let ticket = self.0?;
        self.0 = ticket.checked_add(1);
        Some(ticket)
    }
}

/// Returns the end of a call that was answered with `reply`.
pub(super) fn of(reply: &Reply, items: &CallItems, ticket: NonZeroU64, at: Moment) -> CallEnd {
    let (reply, windows, used, told_end) = match reply {
        Reply::Told(told) => (
            &told.reply,
            told.limits.windows.clone(),
            told.used.clone(),
            told.end,
        ),
        reply => (reply, Vec::new(), Usage::new(), None),
    };
    let (end, after) = end(reply);
    CallEnd {
        ticket: ticket.get(),
        at,
        end: told_end.unwrap_or(end),
        item: items.only().map(|(index, _)| index),
        after,
        windows,
        used,
    }
}

/// Returns the way in which a call ended, and the wait that a refusal named.
fn end(reply: &Reply) -> (End, Option<Duration>) {
    let Reply::Failed(failure) = reply else {
        return (End::Succeeded, None);
    };
    let end = match &**failure {
        CallFailure::BackPressure { after, .. } => return (End::TooMany, *after),
        CallFailure::Failed { class, .. } => of_class(*class),
        CallFailure::Unsendable(_) | CallFailure::NotSent | CallFailure::Unstarted(_) => End::NeverSent,
        CallFailure::Rejected(_) | CallFailure::Gone(_) | CallFailure::Fenced => End::Rejected,
        CallFailure::Final(_) => End::RequestFault,
        // The service did its work, whatever was made of its answer.
        CallFailure::BadReply(_) => End::Succeeded,
    };
    (end, None)
}

fn of_class(class: FailureClass) -> End {
    match class {
        FailureClass::Unavailable => End::Unavailable,
        FailureClass::Unreachable => End::Unreachable,
        FailureClass::Unclear => End::TimedOut,
        FailureClass::Unsendable | FailureClass::Unstarted => End::NeverSent,
        FailureClass::Rejected => End::Rejected,
        FailureClass::Faulty => End::RequestFault,
        FailureClass::Answered | FailureClass::Exited => End::Succeeded,
    }
}

/// Reports a call that was granted and not sent.
pub(super) fn unsent(ticket: Option<NonZeroU64>, at: Moment, reports: &mut Reports) {
    reports.ends.extend(ticket.map(|ticket| CallEnd {
        ticket: ticket.get(),
        at,
        end: End::NeverSent,
        item: None,
        after: None,
        windows: Vec::new(),
        used: Usage::new(),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::ids::{Attempt, ItemIndex};
    use windrow_core::items::run::IndexRun;
    use windrow_core::items::verdict::{Dispatch, Failure};
    use windrow_core::meter::amount::Amount;

    fn ended(reply: Reply) -> CallEnd {
        let items = CallItems::One(Dispatch {
            run: IndexRun::one(ItemIndex(7)),
            attempt: Attempt::FIRST,
        });
        of(&reply, &items, NonZeroU64::MIN, Moment::default())
    }

    #[test]
    fn what_a_call_used_comes_with_its_end() {
        let used = vec![Some(Amount::units(3)), None];
        let found = ended(Reply::AllOk.with_use(used.clone()));
        assert_eq!((found.end, found.used), (End::Succeeded, used.clone()));
        let failure = Failure::new("HTTP_422", "no");
        let reply = Reply::failed(FailureClass::Faulty, failure).with_use(used.clone());
        let found = ended(reply);
        assert_eq!((found.end, found.used), (End::RequestFault, used));
        assert!(ended(Reply::AllOk).used.is_empty());
    }

    #[test]
    fn an_end_that_is_told_replaces_that_of_the_result() {
        assert_eq!(
            ended(Reply::AllOk.with_end(End::RequestFault)).end,
            End::RequestFault
        );
        let changed = Reply::AllOk
            .with_end(End::NeverSent)
            .map(|_| Reply::Items(Box::default()));
        assert_eq!(ended(changed).end, End::NeverSent);
    }
}
