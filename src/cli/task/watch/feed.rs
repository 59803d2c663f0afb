//! Connection of the watch to the node: the event stream, values polled once a second, and execution of the orders
//! from keys.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::keys::Order;
use super::state::News;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::table::times::written;
use crate::task::words;
use windrow_client::{Answer, ClientError, Event, Request, StreamNews};

/// Number of event batches per second.
const HZ: u32 = 4;
/// Interval between two requests for the window and the series.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time range of the series.
const SERIES: Duration = Duration::from_secs(60);
/// Reason recorded in the audit log for changes made from the watch.
const REASON: &str = "watch";

/// Clock that follows the node's time, set by its first answer.
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

    /// Returns the node's time. Unit: milliseconds since 1970.
    pub(super) fn now_ms(&self) -> i64 {
        let passed = i64::try_from(self.since.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.at_ms.saturating_add(passed)
    }
}

/// Data source of the watch for one task of a node.
#[derive(Clone, Copy)]
pub(super) struct Feed<'a> {
    pub(super) link: &'a Link<'a>,
    pub(super) id: &'a str,
    pub(super) time: NodeTime,
    pub(super) changes: &'a Changes,
    /// Columns of items to show; `None` means all that the task shows.
    pub(super) columns: Option<&'a str>,
}

/// Changes made from this watch. An order that wasn't answered yet may have been executed, so it counts.
#[derive(Debug, Default)]
pub(super) struct Changes {
    rates: Cell<u32>,
    stops: Cell<u32>,
    status: RefCell<String>,
}

impl Changes {
    fn of(&self, order: &Order) -> Option<&Cell<u32>> {
        match order {
            Order::Rate(_) => Some(&self.rates),
            Order::Stop => Some(&self.stops),
            Order::Quit | Order::Start | Order::Failures | Order::Explain | Order::Silence | Order::Look => {
                None
            }
        }
    }

    /// Records the latest status of the task.
    pub(super) fn on_task(&self, task: &api::Task) {
        self.status.replace(task.status.clone());
    }

    /// Returns the message for a user who leaves before the task is over.
    pub(super) fn parting(&self, id: &str) -> String {
        let again = format!("windrow task watch {id} shows it again");
        match self.status.borrow().as_str() {
            "stopped" => format!("{id} is stopped; windrow task start {id} resumes it"),
            "created" => words::not_started(id),
            _ if self.stops.get() > 0 => {
                format!("{id} stops as requested; windrow task start {id} resumes it")
            }
            _ if self.rates.get() > 0 => format!("{id} continues at the new rate; {again}"),
            _ => format!("{id} continues unchanged; {again}"),
        }
    }
}

impl Feed<'_> {
    /// Forwards every event while the node is there.
    ///
    /// # Errors
    /// Fails if the node refuses, or is away for longer than a request may take.
    pub(super) async fn follow(&self, news: &mpsc::Sender<News>) -> Result<Infallible, Fault> {
        let mut events = self.link.client.events(&format!("task:{}", self.id), HZ);
        loop {
            let item = match events.hear().await? {
                StreamNews::Event(event) => News::Event(match self.columns {
                    Some(columns) => narrowed(event, columns),
                    None => event,
                }),
                StreamNews::Lost => News::Lost,
                StreamNews::Back => News::Back,
            };
            tell(news, item).await;
        }
    }

    /// Polls the window and the series. Errors are ignored, since the stream reports that the node is away.
    pub(super) async fn look(&self, news: &mpsc::Sender<News>) -> Infallible {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Some(window) = self.seen(Request::get(&self.path("/window"))).await {
                tell(news, News::Window(window)).await;
            }
            let from = written(self.time.now_ms().saturating_sub(SERIES.as_millis() as i64));
            let series = Request::get(&self.path("/stats")).query_option("from", from);
            if let Some(stats) = self.seen(series).await {
                tell(news, News::Stats(stats)).await;
            }
        }
    }

    /// Executes orders one after the other.
    pub(super) async fn obey(
        &self,
        mut orders: mpsc::Receiver<Order>,
        news: &mpsc::Sender<News>,
    ) -> Infallible {
        while let Some(order) = orders.recv().await {
            let changes = self.changes.of(&order);
            changes.inspect(|count| count.set(count.get() + 1));
            match self.done(order).await {
                Ok(found) => {
                    for found in found {
                        tell(news, found).await;
                    }
                }
                Err(error) => {
                    // Only an explicit refusal by the node proves that nothing was done.
                    if let (Some(count), ClientError::Problem(_)) = (changes, &error) {
                        count.set(count.get() - 1);
                    }
                    tell(news, News::Refused(refusal(error))).await;
                }
            }
        }
        std::future::pending().await
    }

    pub(super) async fn done(&self, order: Order) -> Result<Vec<News>, ClientError> {
        let client = &self.link.client;
        let reason = json!({ "reason": REASON });
        Ok(match order {
            Order::Quit => Vec::new(),
            Order::Look => {
                let task = News::Task(client.get(&self.path("")).await?.read()?);
                let runs = Request::get(&self.path("/runs")).query("limit", 1);
                let runs: Option<api::Page<api::Run>> = self.seen(runs).await;
                let run = runs.map(|runs| News::Run(runs.items.into_iter().next()));
                std::iter::once(task).chain(run).collect()
            }
            Order::Stop => {
                let task = client.post(&self.path("/stop"), &reason).await?;
                said(&task, "stopping: no new calls; waiting for calls in flight")?
            }
            Order::Start => {
                let task = client.post(&self.path("/start"), &reason).await?;
                self.changes.stops.set(0);
                said(&task, "started")?
            }
            Order::Rate(rate) => {
                let change = json!({"rate": rate.to_string(), "reason": REASON});
                let task = client.send(Request::patch(&self.path("")).json(&change)).await?;
                said(&task, &format!("rate {rate}"))?
            }
            Order::Failures => {
                let groups =
                    Request::get(&self.path("/failures/groups")).query("data", self.columns.unwrap_or("*"));
                let groups: api::FailureGroups = client.send(groups).await?.read()?;
                vec![News::Failures(groups.items)]
            }
            Order::Explain => {
                let request = Request::get(&self.path("/explain")).accept("text/plain");
                vec![News::Explained(client.send(request).await?.text())]
            }
            Order::Silence => {
                let Some(task) = self.seen::<Box<api::Task>>(Request::get(&self.path(""))).await else {
                    return Ok(Vec::new());
                };
                let why: Option<api::Explanation> = match words::silent(&task).is_empty() {
                    true => None,
                    false => self.seen(Request::get(&self.path("/explain"))).await,
                };
                vec![News::Sign(task, why.map(|why| why.why).unwrap_or_default())]
            }
        })
    }

    async fn seen<T: DeserializeOwned>(&self, request: Request) -> Option<T> {
        let seen = self.link.client.send(request).await;
        seen.and_then(|answer| answer.read())
            .inspect_err(|error| tracing::debug!(%error, "request failed; the next one follows"))
            .ok()
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/tasks/{}{rest}", self.id)
    }
}

/// Members of an object, each as written.
type Members = BTreeMap<String, Box<RawValue>>;

/// Reduces the item data in an event to these columns, in their order.
fn narrowed(event: Event, columns: &str) -> Event {
    match narrowed_text(&event.data, columns) {
        Some(data) => Event { data, ..event },
        None => event,
    }
}

fn narrowed_text(text: &str, columns: &str) -> Option<String> {
    #[derive(Deserialize, Serialize)]
    struct Whole {
        data: Members,
        topic: Box<RawValue>,
    }
    let mut whole: Whole = serde_json::from_str(text).ok()?;
    for member in ["data", "example_data"] {
        let row = whole
            .data
            .get(member)
            .and_then(|row| serde_json::from_str::<Members>(row.get()).ok());
        if let Some(row) = row {
            let values = columns.split(',').map(str::trim).map(|name| {
                let value = row.get(name).map_or("null", |value| value.get());
                format!("{}:{value}", json!(name))
            });
            let values: Vec<String> = values.collect();
            let narrow = RawValue::from_string(format!("{{{}}}", values.join(","))).ok()?;
            whole.data.insert(member.to_owned(), narrow);
        }
    }
    serde_json::to_string(&whole).ok()
}

/// Returns the changed task, and a message about it.
fn said(task: &Answer, text: &str) -> Result<Vec<News>, ClientError> {
    Ok(vec![News::Task(task.read()?), News::Said(text.to_owned())])
}

/// Formats a refusal as one line.
fn refusal(error: ClientError) -> String {
    let fault = Fault::from(error);
    let hint = fault.hint.map(|hint| format!("; try {hint}")).unwrap_or_default();
    format!("failed: {}: {}{hint}", fault.what, fault.because.join("; "))
}

/// Sends news. If the receiver is gone, waits for ever, because there is nothing left to report.
async fn tell(news: &mpsc::Sender<News>, found: News) {
    if news.send(found).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use windrow_core::settings::RateLimit;

    #[test]
    fn of_what_items_carry_an_event_shows_the_columns_that_are_wanted() {
        let event = |data: Value| Event {
            id: "1".to_owned(),
            event: "log".to_owned(),
            data: json!({"topic": "task:t1", "data": data}).to_string(),
        };
        let item = json!({"id": "u3", "name": "Ada"});
        for member in ["data", "example_data"] {
            let narrow = narrowed(event(json!({"index": 3, member: item})), "id, mail");
            let told: Value = serde_json::from_str(&narrow.data).expect("JSON");
            let wanted = json!({"index": 3, member: {"id": "u3", "mail": null}});
            assert_eq!(told, json!({"topic": "task:t1", "data": wanted}));
        }
        let narrow = narrowed(event(json!({"data": {"id": "u3", "name": "Ada"}})), "name,id");
        assert!(
            narrow.data.contains("{\"name\":\"Ada\",\"id\":\"u3\"}"),
            "{}",
            narrow.data
        );
        let plain = event(json!({"data": null, "rate": "5/s"}));
        let told: Value = serde_json::from_str(&narrowed(plain, "id").data).expect("JSON");
        let same = json!({"data": null, "rate": "5/s"});
        assert_eq!(told, json!({"topic": "task:t1", "data": same}));
    }

    #[test]
    fn whoever_leaves_is_told_what_was_changed() {
        let changes = Changes::default();
        let count = |order: &Order| changes.of(order).map(|count| count.replace(count.get() + 1));
        assert_eq!(count(&Order::Look), None);
        assert_eq!(
            changes.parting("t1"),
            "t1 continues unchanged; windrow task watch t1 shows it again"
        );
        count(&Order::Rate(RateLimit::Unlimited));
        assert_eq!(
            changes.parting("t1"),
            "t1 continues at the new rate; windrow task watch t1 shows it again"
        );
        let task = |status: &str| api::Task {
            status: status.to_owned(),
            ..Default::default()
        };
        changes.on_task(&task("created"));
        assert_eq!(
            changes.parting("t1"),
            "t1 isn't started; windrow task start t1 starts it"
        );
        changes.on_task(&task("running"));
        count(&Order::Stop);
        assert_eq!(
            changes.parting("t1"),
            "t1 stops as requested; windrow task start t1 resumes it"
        );
    }
}
