//! What comes from the node: the stream of events, what is asked once a second, and what keys order.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::keys::Order;
use super::state::News;
use crate::fault::Fault;
use crate::link::Link;
use windrow_client::{ClientError, Heard, Request};
use windrow_core::settings::RateLimit;

/// Batches of events a second.
const HZ: u32 = 4;
/// Between two looks at the window and the series.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Of how long the series are.
const SERIES: Duration = Duration::from_secs(60);
/// The reason that the audit has of what is done here.
const REASON: &str = "watch";

/// The node's time, from what it said at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeTime {
    at_ms: i64,
    since: Instant,
}

impl NodeTime {
    pub(super) fn new(at_ms: i64) -> NodeTime {
        NodeTime {
            at_ms,
            since: Instant::now(),
        }
    }

    /// Unit: milliseconds since 1970.
    pub(super) fn now_ms(&self) -> i64 {
        let passed = i64::try_from(self.since.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.at_ms.saturating_add(passed)
    }
}

/// One task of a node.
#[derive(Clone, Copy)]
pub(super) struct Feed<'a> {
    pub(super) link: &'a Link<'a>,
    pub(super) id: &'a str,
    pub(super) time: NodeTime,
    pub(super) changes: &'a Changes,
}

/// What was changed from here. An order whose answer is still to come may have been obeyed, so it counts.
#[derive(Debug, Default)]
pub(super) struct Changes {
    rates: AtomicU32,
    stops: AtomicU32,
    rests: AtomicBool,
    is_new: AtomicBool,
}

impl Changes {
    fn of(&self, order: &Order) -> Option<&AtomicU32> {
        match order {
            Order::Rate(_) => Some(&self.rates),
            Order::Stop => Some(&self.stops),
            Order::Quit | Order::Start | Order::Failures | Order::Explain | Order::Look => None,
        }
    }

    /// How the task was seen last.
    pub(super) fn on_task(&self, task: &Value) {
        self.rests.store(task["status"] == "stopped", Ordering::Relaxed);
        self.is_new.store(task["status"] == "created", Ordering::Relaxed);
    }

    /// What is said to whoever leaves while the task isn't over.
    pub(super) fn parting(&self, id: &str) -> String {
        if self.rests.load(Ordering::Relaxed) {
            return format!("{id} is stopped; windrow task start {id} lets it go on");
        }
        if self.is_new.load(Ordering::Relaxed) {
            return format!("{id} isn't started; windrow task start {id} lets it begin");
        }
        if self.stops.load(Ordering::Relaxed) > 0 {
            return format!("{id} stops, as you told it to; windrow task start {id} lets it go on");
        }
        let is = if self.rates.load(Ordering::Relaxed) > 0 {
            "goes on at the rate that you gave it"
        } else {
            "is untouched, it goes on"
        };
        format!("{id} {is}; windrow task watch {id} shows it again")
    }
}

impl Feed<'_> {
    /// Tells of every event, for as long as the node is there.
    ///
    /// # Errors
    /// When the node refuses, or is away for longer than a request may take.
    pub(super) async fn follow(&self, news: &mpsc::Sender<News>) -> Result<Infallible, Fault> {
        let mut events = self.link.client.events(&format!("task:{}", self.id), HZ);
        loop {
            let heard = match events.hear().await? {
                Heard::Event(event) => News::Event(event),
                Heard::Lost => News::Lost,
                Heard::Back => News::Back,
            };
            tell(news, heard).await;
        }
    }

    /// Looks at the window and the series again and again. That the node is away, the stream tells.
    pub(super) async fn look(&self, news: &mpsc::Sender<News>) -> Infallible {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Some(window) = self.seen(Request::get(&self.path("/window"))).await {
                tell(news, News::Window(window)).await;
            }
            let from = self.time.now_ms().saturating_sub(SERIES.as_millis() as i64);
            let from = DateTime::from_timestamp_millis(from)
                .map(|time| time.to_rfc3339_opts(SecondsFormat::Millis, true));
            let series = Request::get(&self.path("/stats")).query_option("from", from);
            if let Some(stats) = self.seen(series).await {
                tell(news, News::Stats(stats)).await;
            }
        }
    }

    /// Does what is ordered, one thing after the other.
    pub(super) async fn obey(
        &self,
        mut orders: mpsc::Receiver<Order>,
        news: &mpsc::Sender<News>,
    ) -> Infallible {
        while let Some(order) = orders.recv().await {
            let changes = self.changes.of(&order);
            changes.inspect(|count| {
                count.fetch_add(1, Ordering::Relaxed);
            });
            match self.done(order).await {
                Ok(found) => {
                    for found in found {
                        tell(news, found).await;
                    }
                }
                Err(error) => {
                    // Only what a node says that it refused was not done for sure.
                    if let (Some(count), ClientError::Problem(_)) = (changes, &error) {
                        count.fetch_sub(1, Ordering::Relaxed);
                    }
                    tell(news, News::Refused(refusal(error))).await;
                }
            }
        }
        std::future::pending().await
    }

    pub(super) async fn done(&self, order: Order) -> Result<Vec<News>, ClientError> {
        Ok(match order {
            Order::Quit => Vec::new(),
            Order::Look => {
                let task = self.link.client.get(&self.path("")).await?.json()?;
                let runs = Request::get(&self.path("/runs")).query("limit", 1);
                let runs = self.seen(runs).await.map(News::Run);
                std::iter::once(News::Task(task)).chain(runs).collect()
            }
            Order::Stop => {
                let task = self
                    .link
                    .client
                    .post(&self.path("/stop"), &json!({"reason": REASON}))
                    .await?;
                vec![
                    News::Task(task.json()?),
                    News::Said("stopping: what is in flight may finish".to_owned()),
                ]
            }
            Order::Start => {
                let task = self
                    .link
                    .client
                    .post(&self.path("/start"), &json!({"reason": REASON}))
                    .await?;
                self.changes.stops.store(0, Ordering::Relaxed);
                vec![News::Task(task.json()?), News::Said("started".to_owned())]
            }
            Order::Rate(rate) => self.rate(rate).await?,
            Order::Failures => {
                let groups = Request::get(&self.path("/failures/groups")).query("data", "*");
                vec![News::Failures(self.link.client.send(groups).await?.json()?)]
            }
            Order::Explain => {
                let request = Request::get(&self.path("/explain")).accept("text/plain");
                vec![News::Explained(self.link.client.send(request).await?.text())]
            }
        })
    }

    async fn rate(&self, rate: RateLimit) -> Result<Vec<News>, ClientError> {
        let change = json!({"rate": rate.to_string(), "reason": REASON});
        let task: Value = self.link.client.patch(&self.path(""), &change).await?.json()?;
        Ok(vec![News::Task(task), News::Said(format!("rate {rate}"))])
    }

    async fn seen(&self, request: Request) -> Option<Value> {
        let seen = match self.link.client.send(request).await {
            Ok(answer) => answer.json(),
            Err(error) => Err(error),
        };
        seen.inspect_err(|error| tracing::debug!(%error, "not seen; the next look shows it"))
            .ok()
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/tasks/{}{rest}", self.id)
    }
}

/// What was refused, in one line.
fn refusal(error: ClientError) -> String {
    let fault = Fault::from(error);
    let hint = fault.hint.map(|hint| format!("; try {hint}")).unwrap_or_default();
    format!("not done: {}: {}{hint}", fault.what, fault.because.join("; "))
}

/// Whoever listens has ended: nothing is to be told any more.
async fn tell(news: &mpsc::Sender<News>, found: News) {
    if news.send(found).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_leaves_is_told_what_was_changed() {
        let changes = Changes::default();
        let count = |order: &Order| {
            changes
                .of(order)
                .map(|count| count.fetch_add(1, Ordering::Relaxed))
        };
        assert_eq!(count(&Order::Look), None);
        assert_eq!(
            changes.parting("t1"),
            "t1 is untouched, it goes on; windrow task watch t1 shows it again"
        );
        count(&Order::Rate(RateLimit::Unlimited));
        assert_eq!(
            changes.parting("t1"),
            "t1 goes on at the rate that you gave it; windrow task watch t1 shows it again"
        );
        changes.on_task(&json!({"status": "created"}));
        assert_eq!(
            changes.parting("t1"),
            "t1 isn't started; windrow task start t1 lets it begin"
        );
        changes.on_task(&json!({"status": "running"}));
        count(&Order::Stop);
        assert_eq!(
            changes.parting("t1"),
            "t1 stops, as you told it to; windrow task start t1 lets it go on"
        );
    }
}
