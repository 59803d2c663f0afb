//! Lane: the loop that moves items between the core and the handler. The core makes all decisions.
//!
//! One exchange reports finished calls and asks for more, for many items at once. A call is polled once before it is
//! stored, so a handler that is ready at once costs no queue. A lane must run `unconstrained`: under tokio's
//! cooperative budget 100,000 sleeping calls poll each other to death. The lane yields on its own.

use std::future::Future;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use crate::actors::executor::call_end;
use crate::actors::executor::departure::start;
use crate::actors::executor::lane_reply::{ReplyTime, Reporter, give_back};
use crate::actors::executor::run_cell::{Ask, Exchanged, RunCell, Superseded};
use crate::ports::handling::handler::{CallItems, Reply};
use crate::ports::sources::source::{RowChunk, SourceError};
use windrow_core::execution::{Effects, Reports, Wait};
use windrow_core::ids::{Generation, Moment};
use windrow_core::items::verdict::{HandlerCommand, Signal};

/// Maximum number of items requested per exchange, so that the mutex is held only for microseconds.
const CHUNK_MAX: u32 = 1024;
/// Maximum number of completions taken in before the next exchange.
const DRAIN_MAX: usize = 512;
/// A round shorter than this may grow the next one; a round longer than `ROUND_LONG` must shrink it.
const ROUND_SHORT: Duration = Duration::from_micros(50);
const ROUND_LONG: Duration = Duration::from_micros(200);
/// Rounds between two yields to other tasks on the thread.
const ROUNDS_PER_YIELD: u32 = 16;
/// Delay before unreadable rows are requested again.
pub(crate) const REREAD_AFTER: Duration = Duration::from_secs(1);
/// Interval for checking the lease validity again while the dispatch gate is shut.
const GATE_RECHECK: Duration = Duration::from_millis(50);

/// Message from a running lane to its executor.
#[derive(Debug)]
pub(crate) enum LaneNote {
    Ask(Ask),
    /// The rows of a call can't be read; its items were given back to the core.
    RowFault(SourceError),
}

/// Reason why a lane ended normally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneEnd {
    Drained,
    /// Fewer lanes are wanted, and this one had nothing in flight.
    Retired,
}

pub(crate) struct Lane {
    pub(crate) cell: Arc<RunCell>,
    pub(crate) generation: Generation,
    /// Number of the lane, from 0.
    pub(crate) no: usize,
    pub(crate) note: Arc<dyn Fn(LaneNote) + Send + Sync>,
}

/// Call in flight, with its items and its send time.
pub(super) struct Flight<'a> {
    pub(super) items: Option<CallItems>,
    pub(super) sent: Sent,
    pub(super) call: Out<'a>,
}

/// Send time of a call, and its ticket if an autopilot steers the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) departed: Moment,
    pub(super) ticket: Option<NonZeroU64>,
}

/// Future of a call in flight: almost always the handler's own, without another box around it.
pub(super) enum Out<'a> {
    Handler(BoxFuture<'a, Reply>),
    Fetching(BoxFuture<'a, Fetched>),
}

pub(super) enum Fetched {
    Reply(Reply),
    NoRows(SourceError),
}

impl Future for Flight<'_> {
    type Output = (CallItems, Sent, Fetched);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = match &mut self.call {
            Out::Handler(call) => call.as_mut().poll(cx).map(Fetched::Reply),
            Out::Fetching(call) => call.as_mut().poll(cx),
        };
        let Poll::Ready(answer) = polled else {
            return Poll::Pending;
        };
        let items = self.items.take().unwrap_or_else(|| CallItems::Many(Vec::new()));
        Poll::Ready((items, self.sent, answer))
    }
}

/// Buffers reused from round to round.
pub(super) struct Round {
    pub(super) reports: Reports,
    pub(super) fx: Effects,
    reporter: Reporter,
    chunk: u32,
    last: Moment,
    pub(super) rows: Option<Arc<RowChunk>>,
    rounds: u32,
}

impl Round {
    /// Adds a reply to the reports. Plain success needs no wall-clock time; every other reply carries it.
    #[inline]
    pub(super) fn take_in(&mut self, cell: &RunCell, items: &CallItems, reply: Reply, sent: Sent) {
        let departed = sent.departed;
        if let Some(ticket) = sent.ticket {
            let end = call_end::of(&reply, items, ticket, cell.clock.now());
            self.reports.ends.push(end);
        }
        let plain = ReplyTime {
            departed,
            ..ReplyTime::default()
        };
        let time = if matches!(reply, Reply::AllOk) {
            plain
        } else {
            time(cell, departed)
        };
        self.reporter.report(items, reply, time, &mut self.reports);
    }
}

/// Returns the current time and the time since a call was sent.
#[cold]
fn time(cell: &RunCell, departed: Moment) -> ReplyTime {
    let now = cell.now();
    ReplyTime {
        departed,
        wall: now.wall,
        took: now.moment.since(departed),
    }
}

/// Runs a lane until its run ends or it retires.
///
/// # Errors
/// `Superseded` if its executor is gone.
pub(crate) async fn run_lane(lane: Lane) -> Result<LaneEnd, Superseded> {
    let cell: &RunCell = &lane.cell;
    let mut flight: FuturesUnordered<Flight<'_>> = FuturesUnordered::new();
    let mut round = Round {
        reports: Reports::default(),
        fx: Effects::default(),
        reporter: Reporter::new(cell.shard, cell.logs.clone(), cell.about.keeps_results),
        chunk: 64,
        last: cell.clock.now(),
        rows: None,
        rounds: 0,
    };
    loop {
        if lane.no >= cell.lanes_wanted() && flight.is_empty() && round.reports.is_empty() {
            return Ok(LaneEnd::Retired);
        }
        let exchanged = exchange(&lane, &mut round)?;
        if !round.fx.dispatch.is_empty() {
            start(&lane, &mut round, &mut flight, exchanged.moment).await;
        } else if round.fx.wait == Wait::Ended {
            return Ok(LaneEnd::Drained);
        } else if round.reports.is_empty() {
            park(&lane, &mut round, &mut flight).await?;
        }
        drain_ready(&lane, &mut round, &mut flight).await;
        round.rounds += 1;
        if round.rounds >= ROUNDS_PER_YIELD {
            round.rounds = 0;
            tokio::task::yield_now().await;
        }
    }
}

fn exchange(lane: &Lane, round: &mut Round) -> Result<Exchanged, Superseded> {
    // Fewer items than a batch would wait until the linger expires.
    let want = round.chunk.max(lane.cell.batch.load(Ordering::Relaxed) as u32);
    let said = (&mut round.reports, &mut round.reporter.said);
    let exchanged = lane.cell.exchange(lane.generation, said, want, &mut round.fx)?;
    exchanged
        .ask
        .into_iter()
        .for_each(|ask| (lane.note)(LaneNote::Ask(ask)));
    let took = exchanged.moment.since(round.last);
    round.last = exchanged.moment;
    if took < ROUND_SHORT {
        // At most this lane's share: a lane that takes everything leaves the others to park and wake.
        let lanes = u32::try_from(lane.cell.lanes_wanted()).unwrap_or(u32::MAX);
        let share = (round.fx.concurrency / lanes).clamp(1, CHUNK_MAX);
        round.chunk = (round.chunk * 2).min(share);
    } else if took > ROUND_LONG {
        round.chunk = (round.chunk / 2).max(1);
    }
    Ok(exchanged)
}

/// Waits for a completion, a wake-up or the time named by the core. The second exchange comes after the wait is
/// registered; otherwise a wake-up in between would be lost.
async fn park<'a>(
    lane: &'a Lane,
    round: &mut Round,
    flight: &mut FuturesUnordered<Flight<'a>>,
) -> Result<(), Superseded> {
    let notified = lane.cell.wake.notified();
    tokio::pin!(notified);
    notified.as_mut().enable();
    let exchanged = exchange(lane, round)?;
    if !round.fx.dispatch.is_empty() {
        start(lane, round, flight, exchanged.moment).await;
        return Ok(());
    }
    lane.cell.rows.iter().for_each(|rows| rows.look());
    let until = match &round.fx.wait {
        Wait::Now | Wait::Ended => return Ok(()),
        Wait::Until(moment) => Some(*moment),
        Wait::Completion => (!exchanged.gate_open).then(|| exchanged.moment.plus(GATE_RECHECK)),
    };
    let alarm = async {
        match until.into_iter().chain(exchanged.ask_at).min() {
            Some(moment) => lane.cell.clock.sleep_until(moment).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        Some(done) = flight.next(), if !flight.is_empty() => land(lane, round, done),
        () = &mut notified => {}
        () = alarm => {}
    }
    Ok(())
}

/// Takes in finished calls without waiting.
async fn drain_ready<'a>(lane: &'a Lane, round: &mut Round, flight: &mut FuturesUnordered<Flight<'a>>) {
    if flight.is_empty() {
        return;
    }
    std::future::poll_fn(|cx| {
        for _ in 0..DRAIN_MAX {
            match flight.poll_next_unpin(cx) {
                Poll::Ready(Some(done)) => land(lane, round, done),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        Poll::Ready(())
    })
    .await;
}

fn land(lane: &Lane, round: &mut Round, (items, sent, answer): (CallItems, Sent, Fetched)) {
    let cell = &lane.cell;
    let now = cell.clock.now();
    round.reports.latencies.record(now.since(sent.departed), 1);
    match answer {
        Fetched::Reply(reply) => round.take_in(cell, &items, reply, sent),
        Fetched::NoRows(error) => {
            give_back(&items, &mut round.reports);
            call_end::unsent(sent.ticket, now, &mut round.reports);
            // Otherwise the items would be granted and given back without pause while the source is unreadable.
            round
                .reports
                .signals
                .push(Signal::Command(HandlerCommand::PauseFor(REREAD_AFTER)));
            (lane.note)(LaneNote::RowFault(error));
        }
    }
}
