//! Dispatch of granted items: each call is created and polled once, and joins the calls in flight if it isn't ready
//! at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;

use super::lane::{Fetched, Flight, Lane, Out, Round, Sent};
use crate::actors::executor::call_end::{self, Tickets};
use crate::actors::executor::calls::Calls;
use crate::actors::executor::gauge::{self, Charged};
use crate::actors::executor::lane_reply::give_back;
use crate::actors::executor::run_cell::RunCell;
use crate::ports::handling::handler::{Call, CallItems, CallRows, Reply};
use crate::ports::sources::source::RowChunk;
use windrow_core::ids::Moment;
use windrow_core::items::verdict::{Dispatch, Settled};
use windrow_core::pace::STALE_AFTER;

/// Starts the calls for a grant. Paced items read the clock one by one: an item delayed too long behind a slow call
/// goes back, so that the promised burst holds. One poll serves the whole grant, since a task context per call would
/// cost more than the call.
pub(super) async fn start<'a>(
    lane: &'a Lane,
    round: &mut Round,
    flight: &mut FuturesUnordered<Flight<'a>>,
    granted_at: Moment,
) {
    std::future::poll_fn(|cx| {
        let batch = round.fx.call_items;
        let dispatch = std::mem::take(&mut round.fx.dispatch);
        let paced = round.fx.paced;
        let mut tickets = Tickets::of(round.fx.ticket);
        let (mut departed, mut goes_back) = (granted_at, false);
        let mut calls = Calls::new(&dispatch, batch);
        if !paced && lane.cell.rows.is_none() {
            while let Some(neighbours) = calls.next_of_neighbours() {
                if let Some(out) = start_plain(lane, round, neighbours, departed, cx) {
                    flight.extend([out]);
                }
            }
        }
        for call in calls {
            let ticket = tickets.next();
            if paced {
                departed = lane.cell.clock.now();
            }
            let is_stale = paced && departed.since(granted_at) > STALE_AFTER;
            let sent = Sent { departed, ticket };
            let charged = match is_stale || goes_back {
                true => Charged::Back,
                false => gauge::charge(lane, round, &call, ticket),
            };
            match charged {
                // Not `push`: it shares the queue, which would keep the lane from changing threads.
                Charged::Go => flight.extend(start_one(lane, round, call, sent, cx)),
                Charged::Refused(reply) => round.take_in(&lane.cell, &call, reply, sent),
                Charged::Back => {
                    goes_back |= !is_stale;
                    give_back(&call, &mut round.reports);
                    call_end::unsent(ticket, departed, &mut round.reports);
                }
            }
        }
        // Returns the buffer, so that the next exchange doesn't allocate one.
        round.fx.dispatch = dispatch;
        Poll::Ready(())
    })
    .await;
}

/// Starts a call for contiguous items without rows, as [`start_one`] does. The dispatch stays in registers: writing
/// it to memory in parts and reading it back whole, as an enum is, cost as much as the call.
#[inline]
fn start_plain<'a>(
    lane: &'a Lane,
    round: &mut Round,
    neighbours: Dispatch,
    departed: Moment,
    cx: &mut Context<'_>,
) -> Option<Flight<'a>> {
    let cell = &lane.cell;
    let sent = Sent {
        departed,
        ticket: None,
    };
    let mut call = cell.handler.process(Call {
        items: CallItems::One(neighbours),
        rows: CallRows::default(),
        gate_time: departed,
        timeout: Duration::from_nanos(cell.timeout_ns.load(Ordering::Relaxed)),
    });
    match call.as_mut().poll(cx) {
        Poll::Ready(Reply::AllOk) => {
            round.reports.answered.add(departed);
            round.reports.settle(Settled::well(neighbours));
            None
        }
        Poll::Ready(reply) => {
            round.take_in(cell, &CallItems::One(neighbours), reply, sent);
            None
        }
        Poll::Pending => Some(Flight {
            items: Some(CallItems::One(neighbours)),
            sent,
            call: Out::Handler(call),
        }),
    }
}

/// Starts one call and returns it if it isn't ready at once.
#[inline]
fn start_one<'a>(
    lane: &'a Lane,
    round: &mut Round,
    items: CallItems,
    sent: Sent,
    cx: &mut Context<'_>,
) -> Option<Flight<'a>> {
    let (cell, departed) = (&lane.cell, sent.departed);
    let timeout = Duration::from_nanos(cell.timeout_ns.load(Ordering::Relaxed));
    let call = match rows_of(cell, &items, &mut round.rows) {
        Some(rows) => {
            let mut call = cell.handler.process(Call {
                items: items.clone(),
                rows,
                gate_time: departed,
                timeout,
            });
            // First poll here: a handler that is ready at once never enters the queue.
            match call.as_mut().poll(cx) {
                Poll::Ready(reply) => {
                    round.take_in(cell, &items, reply, sent);
                    return None;
                }
                Poll::Pending => Out::Handler(call),
            }
        }
        None => Out::Fetching(Box::pin(fetch_and_call(cell, items.clone(), departed, timeout))),
    };
    Some(Flight {
        items: Some(items),
        sent,
        call,
    })
}

/// Returns the rows of a call's items if every block is in memory.
#[inline]
pub(super) fn rows_of(
    cell: &RunCell,
    items: &CallItems,
    cached: &mut Option<Arc<RowChunk>>,
) -> Option<CallRows> {
    let Some(feed) = &cell.rows else {
        return Some(CallRows::default());
    };
    let mut chunks: Vec<Arc<RowChunk>> = Vec::with_capacity(1);
    for (index, _) in items.iter() {
        let holds = |chunk: &Arc<RowChunk>| chunk.first() <= index && index < chunk.end();
        if chunks.iter().any(holds) {
            continue;
        }
        if !cached.as_ref().is_some_and(holds) {
            *cached = feed.ready(index);
        }
        chunks.push(cached.clone().filter(|chunk| holds(chunk))?);
    }
    Some(CallRows {
        chunks,
        positions: None,
    })
}

/// Reads a call's rows again, then makes the call: for a retry far behind, or a resumed one.
async fn fetch_and_call(cell: &RunCell, items: CallItems, departed: Moment, timeout: Duration) -> Fetched {
    let mut chunks: Vec<Arc<RowChunk>> = Vec::new();
    if let Some(feed) = &cell.rows {
        for (index, _) in items.iter() {
            if chunks
                .iter()
                .any(|chunk| chunk.first() <= index && index < chunk.end())
            {
                continue;
            }
            match feed.fetch(index).await {
                Ok(chunk) => chunks.push(chunk),
                Err(error) => return Fetched::NoRows(error),
            }
        }
    }
    let rows = CallRows {
        chunks,
        positions: None,
    };
    Fetched::Reply(
        cell.handler
            .process(Call {
                items,
                rows,
                gate_time: departed,
                timeout,
            })
            .await,
    )
}
