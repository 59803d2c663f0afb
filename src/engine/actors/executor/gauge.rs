//! Use of calls before they are sent, from the rows of their items.

use std::num::NonZeroU64;
use std::time::Duration;

use windrow_words::engine as say;

use super::lane::{Lane, Round};
use crate::actors::executor::departure::rows_of;
use crate::ports::handling::handler::{Call, CallFailure, CallItems, Reply};
use windrow_core::execution::{Departure, Usage, usage};
use windrow_core::ids::Moment;
use windrow_core::items::verdict::Failure;
use windrow_core::meter::expr::{Expr, Source};
use windrow_core::meter::metering::Metering;
use windrow_core::meter::meterings::Meterings;
use windrow_core::meter::row::Row;
use windrow_core::meter::{COST_TOO_LARGE, COST_VALUE};

/// Expressions of a run's meters, in their order.
pub(crate) struct Gauge {
    estimates: Vec<Option<Expr>>,
    needs_rows: bool,
    needs_request: bool,
}

/// Decision about a call that was granted.
pub(super) enum Charged {
    /// Charged, and free to be sent.
    Go,
    /// Given back, with the rest of its grant.
    Back,
    /// No call is made of it: it costs too much, or what it costs can't be computed.
    Refused(Reply),
}

impl Gauge {
    /// Returns the gauge of a run; `None` if nothing is counted.
    pub(crate) fn of(meterings: &Meterings) -> Option<Gauge> {
        let estimate =
            |(metering, _, unit): (&Metering, _, _)| Metering::find(&metering.cost, &unit).cloned();
        let estimates: Vec<Option<Expr>> = meterings.meters().map(estimate).collect();
        let names_request = |expr: &Expr| expr.sources().any(|source| *source == Source::Request);
        (!estimates.is_empty()).then(|| Gauge {
            needs_rows: estimates.iter().any(Option::is_some),
            needs_request: estimates.iter().flatten().any(names_request),
            estimates,
        })
    }

    /// Computes the use of a call from its rows; without rows in memory nothing is known of it.
    fn usage(&self, lane: &Lane, round: &mut Round, items: &CallItems) -> Result<Usage, Failure> {
        if !self.needs_rows {
            return Ok(Usage::new());
        }
        let Some(rows) = rows_of(&lane.cell, items, &mut round.rows) else {
            return Ok(Usage::new());
        };
        let request = self.needs_request.then(|| {
            lane.cell.handler.request_bytes(&Call {
                items: items.clone(),
                rows: rows.clone(),
                gate_time: Moment::default(),
                timeout: Duration::ZERO,
            })
        });
        // Items of one call share its request.
        let part = request
            .flatten()
            .map(|bytes| bytes.div_ceil(items.len().max(1) as u64));
        let row = |(index, _)| Row::read(rows.data(index)).with_request(part);
        let rows: Vec<Row> = items.iter().map(row).collect();
        usage(&self.estimates, &rows).map_err(|fault| Failure::new(COST_VALUE, fault.to_string()))
    }
}

/// Charges a call of a run whose calls are counted.
#[inline]
pub(super) fn charge(
    lane: &Lane,
    round: &mut Round,
    items: &CallItems,
    ticket: Option<NonZeroU64>,
) -> Charged {
    let Some((gauge, ticket)) = lane.cell.gauge.as_ref().zip(ticket) else {
        return Charged::Go;
    };
    let unsendable = |failure| Charged::Refused(Reply::Failed(Box::new(CallFailure::Unsendable(failure))));
    let usage = match gauge.usage(lane, round, items) {
        Ok(usage) => usage,
        Err(failure) => return unsendable(failure),
    };
    match lane
        .cell
        .charge(lane.generation, ticket.get(), usage, items.len() as u32)
    {
        Ok(Departure::Go) => Charged::Go,
        Ok(Departure::Back) | Err(_) => Charged::Back,
        Ok(Departure::TooLarge(limit)) => unsendable(Failure::new(
            COST_TOO_LARGE,
            say::cost_too_large(limit).to_string(),
        )),
    }
}
