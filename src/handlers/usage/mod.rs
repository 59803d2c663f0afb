//! Use of calls, read from their responses: by the expressions of the task, from the member `costs` of Windrow's own
//! protocol, and for tokens that nobody described from the usual places.
//!
//! A value that is missing leaves its meter unknown and is never an error of the item. A run whose task counts nothing
//! that a response says has no reader, so nothing is read or allocated for it.

mod costs;
mod place;
mod values;

use hyper::http::StatusCode;

use self::costs::Costs;
use self::place::UsualPlace;
use self::values::CallValues;
use crate::classify::{Answer, Pointer};
use windrow_core::execution::{Usage, usage};
use windrow_core::meter::amount::Amount;
use windrow_core::meter::class::End;
use windrow_core::meter::expr::{Expr, Source};
use windrow_core::meter::metering::Metering;
use windrow_core::meter::meterings::Meterings;
use windrow_core::meter::row::Row;
use windrow_engine::ports::handling::handler::{Call, Reply};

pub(crate) use costs::{LineCosts, sum};

/// Reader of the use of one run's calls.
pub(crate) struct UseReader {
    /// Expressions by meter, in the order of the run's meters.
    exprs: Vec<Option<Expr>>,
    /// Member `costs` of results; `None` for a service that doesn't know Windrow.
    costs: Option<Costs>,
    /// Meters that are looked for in the usual places, with the place.
    usual: Vec<(usize, UsualPlace)>,
    reads_body: bool,
}

/// Call and response that its use is read from.
#[derive(Clone, Copy)]
pub(crate) struct Used<'a> {
    /// Call with the rows of its items.
    pub(crate) call: &'a Call,
    /// Length of the request's body.
    pub(crate) request_bytes: u64,
    /// Response of the service.
    pub(crate) answer: &'a Answer,
    /// Location of the result in its body.
    pub(crate) result: Option<&'a Pointer>,
}

impl UseReader {
    /// Returns the reader of a service that doesn't know Windrow; `None` if its responses say nothing that is counted.
    pub(crate) fn of_service(meterings: &Meterings) -> Option<UseReader> {
        UseReader::new(meterings, None)
    }

    /// Returns the reader of a handler that speaks Windrow's protocol.
    pub(crate) fn of_handler(meterings: &Meterings) -> Option<UseReader> {
        UseReader::new(meterings, Costs::of(meterings))
    }

    fn new(meterings: &Meterings, costs: Option<Costs>) -> Option<UseReader> {
        let actual =
            |(metering, _, unit): (&Metering, _, _)| Metering::find(&metering.cost_from, &unit).cloned();
        let exprs: Vec<Option<Expr>> = meterings.meters().map(actual).collect();
        let usual = meterings.meters().enumerate();
        let usual = usual.filter(|(_, (metering, _, unit))| metering.is_usual(unit));
        let usual: Vec<(usize, UsualPlace)> = usual
            .map(|(at, (_, _, unit))| (at, UsualPlace::of(unit)))
            .collect();
        let names_body = |expr: &Expr| expr.sources().any(|source| matches!(source, Source::Answer(_)));
        let reads_body = !usual.is_empty() || exprs.iter().flatten().any(names_body);
        let is_any = reads_body || costs.is_some() || exprs.iter().any(Option::is_some);
        is_any.then_some(UseReader {
            exprs,
            costs,
            usual,
            reads_body,
        })
    }

    /// Returns true if the body of a response with this status says what its call used.
    pub(crate) fn reads_body(&self, status: StatusCode) -> bool {
        self.reads_body && has_use(status)
    }

    /// Adds to a reply what its response says of the call's use.
    pub(crate) fn tell(&self, reply: Reply, used: Used<'_>) -> Reply {
        if !has_use(used.answer.status) {
            return reply;
        }
        let values = CallValues {
            request_bytes: used.request_bytes,
            headers: &used.answer.headers,
            body: &used.answer.body,
            row: None,
        };
        let costs = self.costs.as_ref().zip(used.result);
        let mut usage = costs.map_or_else(Usage::new, |(costs, result)| costs.read(values.body, result));
        usage.resize(self.exprs.len(), None);
        for (at, expr) in self.exprs.iter().enumerate() {
            if let Some(expr) = expr {
                usage[at] = of_call(expr, values, used.call);
            }
        }
        let mut found = None;
        for (at, usual) in &self.usual {
            if usage[*at].is_none() {
                let (used, place) = usual.read(&values);
                (usage[*at], found) = (used, found.or(place));
            }
        }
        reply.with_use(usage).with_place(found)
    }
}

/// Returns true if a response with this status says what its call used: a success, or a fault of the request.
fn has_use(status: StatusCode) -> bool {
    matches!(
        End::of_status(status.as_u16()),
        End::Succeeded | End::RequestFault
    )
}

/// Computes what a call used. An expression of columns alone is added up over its items. One that names the response
/// or the request is about the call; if it names columns too, it has a value only for a call with one item.
fn of_call(expr: &Expr, values: CallValues<'_>, call: &Call) -> Option<Amount> {
    let is_column = |source: &Source| matches!(source, Source::Column(..));
    if !expr.sources().any(is_column) {
        return expr.cost(&values).ok();
    }
    if call.items.len() > 1 && !expr.sources().all(is_column) {
        return None;
    }
    let rows: Vec<Row> = call
        .items
        .iter()
        .map(|(index, _)| Row::read(call.rows.data(index)))
        .collect();
    let items: Vec<CallValues<'_>> = rows
        .iter()
        .map(|row| CallValues {
            row: Some(row),
            ..values
        })
        .collect();
    let sum = usage(&[Some(expr.clone())], &items).ok()?;
    sum.into_iter().next().flatten()
}

#[cfg(test)]
mod tests;
