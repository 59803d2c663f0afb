//! Cost of a call by its end: what it used, what it may have used, or nothing.

use super::amount::Amount;

/// End of a call, as far as its cost depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Success, also of an item that the handler skips.
    Succeeded,
    /// 429: the service refused the call as too many.
    TooMany,
    /// 502 or 503: nobody behind the address took the call.
    Unavailable,
    /// Rejection in Windrow's own protocol, before any work was done.
    Rejected,
    /// Connection that could not be made.
    Unreachable,
    /// Call that left its grant but never the node.
    NeverSent,
    /// Another 4xx: the service answered, and found fault with the request.
    RequestFault,
    /// 500, and any other 5xx but 502, 503 and 504.
    ServerError,
    /// 504, or no answer in time.
    TimedOut,
    /// Worker that died, or connection that broke, while the call was out.
    Lost,
}

impl End {
    /// Returns the end that a status says; a status below 200 or of a redirect is a fault of the request.
    pub fn of_status(status: u16) -> End {
        match status {
            200..300 => End::Succeeded,
            429 => End::TooMany,
            502 | 503 => End::Unavailable,
            504 => End::TimedOut,
            500.. => End::ServerError,
            _ => End::RequestFault,
        }
    }

    /// Returns true if the service certainly did no work for the call.
    fn is_free(self) -> bool {
        match self {
            End::TooMany | End::Unavailable | End::Rejected | End::Unreachable | End::NeverSent => true,
            End::Succeeded | End::RequestFault | End::ServerError | End::TimedOut | End::Lost => false,
        }
    }
}

/// Meter that a cost is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counts {
    /// Built-in meter of calls.
    Calls,
    /// Meter of what calls use.
    Use,
}

/// Cost of a call that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Amount that is certain.
    Known(Amount),
    /// Estimate of a call that may have cost it; shown apart.
    Unsure(Amount),
}

impl Cost {
    /// Certain cost of nothing.
    pub const FREE: Cost = Cost::Known(Amount::ZERO);

    /// Returns the amount, certain or not.
    pub fn amount(self) -> Amount {
        match self {
            Cost::Known(amount) | Cost::Unsure(amount) => amount,
        }
    }
}

/// Returns the cost of a call that ended so. `actual` is what its answer says, `estimate` what was reserved for it.
/// While the circuit isn't closed, an end without an answer costs nothing: the handler is down.
pub fn cost(
    counts: Counts,
    end: End,
    actual: Option<Amount>,
    estimate: Amount,
    is_circuit_closed: bool,
) -> Cost {
    if counts == Counts::Calls {
        return Cost::Known(Amount::ONE);
    }
    if end.is_free() {
        return Cost::FREE;
    }
    match (end, actual) {
        (End::Succeeded | End::RequestFault, Some(actual)) => Cost::Known(actual),
        (End::RequestFault, None) => Cost::FREE,
        _ if is_circuit_closed => Cost::Unsure(estimate),
        _ => Cost::FREE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTUAL: Amount = Amount::units(7);
    const ESTIMATE: Amount = Amount::units(10);

    fn used(end: End, actual: Option<Amount>) -> Cost {
        cost(Counts::Use, end, actual, ESTIMATE, true)
    }

    #[test]
    fn a_call_that_nobody_worked_on_is_free() {
        for end in [
            End::TooMany,
            End::Unavailable,
            End::Rejected,
            End::Unreachable,
            End::NeverSent,
        ] {
            assert_eq!(used(end, Some(ACTUAL)), Cost::FREE, "{end:?}");
            assert_eq!(
                cost(Counts::Calls, end, None, ESTIMATE, false),
                Cost::Known(Amount::ONE)
            );
        }
    }

    #[test]
    fn a_fault_of_the_request_costs_what_its_answer_says() {
        assert_eq!(used(End::RequestFault, Some(ACTUAL)), Cost::Known(ACTUAL));
        assert_eq!(used(End::RequestFault, None), Cost::FREE);
    }

    #[test]
    fn an_end_that_says_nothing_costs_the_estimate_unless_the_handler_is_down() {
        for end in [End::ServerError, End::TimedOut, End::Lost] {
            assert_eq!(used(end, Some(ACTUAL)), Cost::Unsure(ESTIMATE), "{end:?}");
            assert_eq!(cost(Counts::Use, end, None, ESTIMATE, false), Cost::FREE);
        }
        assert_eq!(used(End::Succeeded, Some(ACTUAL)), Cost::Known(ACTUAL));
        assert_eq!(used(End::Succeeded, None), Cost::Unsure(ESTIMATE));
        assert_eq!(
            cost(Counts::Use, End::Succeeded, Some(ACTUAL), ESTIMATE, false),
            Cost::Known(ACTUAL)
        );
    }

    #[test]
    fn statuses_are_the_ends_of_the_table() {
        for (statuses, end) in [
            (&[200, 204][..], End::Succeeded),
            (&[400, 404, 301], End::RequestFault),
            (&[429], End::TooMany),
            (&[502, 503], End::Unavailable),
            (&[504], End::TimedOut),
            (&[500, 501, 529, 599], End::ServerError),
        ] {
            assert!(
                statuses.iter().all(|status| End::of_status(*status) == end),
                "{end:?}"
            );
        }
    }
}
