//! Listeners on a paused clock: replay, a ring that is too short, a client that doesn't read.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use axum::response::IntoResponse as _;
use futures_util::{Stream, StreamExt as _};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::hub::{Hub, REPLAY};
use super::stream::{StreamRequest, stream};
use super::topic::{Kind, Look, Told, Topic, Watcher};
use super::*;
use windrow_core::ids::TaskId;

/// Says at each look what was put into it; a snapshot is the number of looks.
#[derive(Clone, Default)]
struct Fake {
    found: Arc<Mutex<Vec<(Kind, Told)>>>,
    looks: Arc<Mutex<u64>>,
    /// Whether there is no snapshot now.
    is_blind: Arc<Mutex<bool>>,
}

impl Fake {
    fn put(&self, kind: Kind, number: u64) {
        self.found
            .lock()
            .unwrap()
            .push((kind, json!({ "n": number }).into()));
    }

    fn looks(&self) -> u64 {
        *self.looks.lock().unwrap()
    }
}

#[async_trait]
impl Look for Fake {
    async fn snapshot(&self, topic: &Topic) -> Result<Value, ServiceError> {
        match *self.is_blind.lock().unwrap() {
            true => Err(ServiceError::StoreUnavailable),
            false => Ok(json!({"all": topic.to_string()})),
        }
    }

    fn watcher(&self, _: &Topic) -> Box<dyn Watcher> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Watcher for Fake {
    async fn look(&mut self) -> Vec<(Kind, Told)> {
        *self.looks.lock().unwrap() += 1;
        self.found.lock().unwrap().drain(..).collect()
    }
}

/// An event as a client reads it.
#[derive(Clone, Debug, PartialEq)]
struct Read {
    id: u64,
    kind: String,
    n: Option<u64>,
}

type Events = std::pin::Pin<Box<dyn Stream<Item = Read> + Send>>;

fn open(hub: &Hub, fake: &Fake, last: Option<u64>, ended: oneshot::Receiver<()>) -> Events {
    let request = StreamRequest {
        topics: vec![Topic::Task(TaskId(1))],
        hz: 4,
        last,
    };
    let ended = async move { ended.await.map_or("the test is over", |()| "the node ends") };
    let look: Arc<dyn Look> = Arc::new(fake.clone());
    let events = Sse::new(stream(hub, look, request, ended))
        .into_response()
        .into_body()
        .into_data_stream();
    Box::pin(events.map(|part| {
        let text = String::from_utf8(part.unwrap().to_vec()).unwrap();
        let member = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(&format!("{name}: ")))
                .unwrap_or_default()
                .to_owned()
        };
        let data: Value = serde_json::from_str(&member("data")).unwrap();
        Read {
            id: member("id").parse().unwrap(),
            kind: member("event"),
            n: data["data"]["n"].as_u64(),
        }
    }))
}

async fn next(events: &mut Events) -> Read {
    let soon = Duration::from_secs(5);
    tokio::time::timeout(soon, events.next())
        .await
        .expect("an event comes")
        .expect("the stream goes on")
}

async fn is_quiet(events: &mut Events) -> bool {
    tokio::time::timeout(Duration::from_secs(3), events.next())
        .await
        .is_err()
}

#[tokio::test(start_paused = true)]
async fn a_stream_begins_with_everything_and_goes_on_with_growing_ids() {
    let (hub, fake, (end, ended)) = (Hub::new(1), Fake::default(), oneshot::channel());
    let mut events = open(&hub, &fake, None, ended);
    let first = next(&mut events).await;
    assert_eq!((first.kind.as_str(), first.n), ("snapshot", None));
    fake.put(Kind::Status, 1);
    fake.put(Kind::Status, 2);
    let (one, two) = (next(&mut events).await, next(&mut events).await);
    assert_eq!((one.n, two.n), (Some(1), Some(2)));
    assert!(first.id < one.id && one.id < two.id, "{first:?} {one:?} {two:?}");
    assert!(is_quiet(&mut events).await, "nothing happens, nothing is told");
    end.send(()).unwrap();
    assert_eq!(next(&mut events).await.kind, "bye");
    assert_eq!(events.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn who_comes_while_the_store_is_away_is_told_so_once_and_then_everything() {
    let (hub, fake, (_end, ended)) = (Hub::new(1), Fake::default(), oneshot::channel());
    *fake.is_blind.lock().unwrap() = true;
    let mut events = open(&hub, &fake, None, ended);
    assert_eq!(next(&mut events).await.kind, "stats");
    assert!(is_quiet(&mut events).await, "once");
    *fake.is_blind.lock().unwrap() = false;
    assert_eq!(next(&mut events).await.kind, "snapshot");
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_is_told_what_happened_since_and_nothing_twice() {
    let (hub, fake, (_end, ended)) = (Hub::new(1), Fake::default(), oneshot::channel());
    let mut events = open(&hub, &fake, None, ended);
    next(&mut events).await;
    fake.put(Kind::Status, 1);
    let seen = next(&mut events).await;
    drop(events);
    fake.put(Kind::Failure, 2);
    fake.put(Kind::Log, 3);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let (_end, ended) = oneshot::channel();
    let mut events = open(&hub, &fake, Some(seen.id), ended);
    assert_eq!(
        (next(&mut events).await.n, next(&mut events).await.n),
        (Some(2), Some(3))
    );
    assert!(is_quiet(&mut events).await);
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_too_late_or_with_a_strange_id_is_told_everything() {
    let (hub, fake, (_end, ended)) = (Hub::new(1000), Fake::default(), oneshot::channel());
    let mut events = open(&hub, &fake, None, ended);
    next(&mut events).await;
    fake.put(Kind::Status, 1);
    let seen = next(&mut events).await;
    for strange in [3, u64::MAX] {
        let (_end, ended) = oneshot::channel();
        assert_eq!(
            next(&mut open(&hub, &fake, Some(strange), ended)).await.kind,
            "snapshot",
            "{strange}"
        );
    }
    // The ring keeps what is younger than a minute.
    tokio::time::sleep(REPLAY).await;
    fake.put(Kind::Status, 2);
    tokio::time::sleep(REPLAY + Duration::from_secs(2)).await;
    fake.put(Kind::Status, 3);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (_end, ended) = oneshot::channel();
    assert_eq!(
        next(&mut open(&hub, &fake, Some(seen.id), ended)).await.kind,
        "snapshot"
    );
}

#[tokio::test(start_paused = true)]
async fn of_numbers_that_move_only_the_newest_is_told() {
    let (hub, fake, (_end, ended)) = (Hub::new(1), Fake::default(), oneshot::channel());
    let mut events = open(&hub, &fake, None, ended);
    next(&mut events).await;
    for n in 0..10 {
        fake.put(Kind::Stats, n);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(next(&mut events).await.n, Some(9));
    assert!(is_quiet(&mut events).await);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_given_the_newest_state_and_holds_nothing() {
    let (hub, fake, (_end, ended)) = (Hub::new(1), Fake::default(), oneshot::channel());
    let mut slow = open(&hub, &fake, None, ended);
    next(&mut slow).await;
    for n in 0..5000 {
        fake.put(Kind::Log, n);
        if n % 100 == 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
    assert!(fake.looks() > 50, "the topic was watched all the time");
    let told = next(&mut slow).await;
    assert_eq!(told.kind, "snapshot", "it missed more than is kept");
    let (_end, ended) = oneshot::channel();
    assert_eq!(
        next(&mut open(&hub, &fake, None, ended)).await.kind,
        "snapshot",
        "others come and go"
    );
}

#[tokio::test(start_paused = true)]
async fn a_topic_is_watched_once_and_only_while_somebody_cares() {
    let (hub, fake) = (Hub::new(1), Fake::default());
    let mut all: Vec<Events> = (0..20)
        .map(|_| open(&hub, &fake, None, oneshot::channel().1))
        .collect();
    // An end that is over at once: each says goodbye; what counts is that they listen.
    for events in &mut all {
        next(events).await;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let looks = fake.looks();
    assert!(
        (35..=45).contains(&looks),
        "one ticker at four looks a second: {looks}"
    );
    drop(all);
    assert_eq!(hub.listeners(), 0);
    tokio::time::sleep(REPLAY * 2).await;
    let after = fake.looks();
    tokio::time::sleep(REPLAY).await;
    assert_eq!(fake.looks(), after, "nobody listens, nobody looks");
}

#[test]
fn topics_are_read_back_and_others_refused() {
    let text = "cluster,tasks,task:t42,node:n1";
    let read = topics(text).unwrap();
    assert_eq!(
        read.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        text
    );
    assert_eq!(topics("cluster, cluster").unwrap().len(), 1);
    for wrong in ["", " , ", "task:42", "task:", "node:", "weather", "tasks:"] {
        assert!(topics(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn what_an_item_carries_keeps_the_order_of_its_file() {
    let row = RawValue::from_string("{\"id\":\"u11\",\n \"amount\":\"77\"}".to_owned()).ok();
    let told = |row| serde_json::to_string(&Told::with_row(json!({"index": 11}), "data", row)).expect("JSON");
    assert_eq!(
        told(row),
        "{\"index\":11,\"data\":{\"id\":\"u11\",  \"amount\":\"77\"}}"
    );
    assert_eq!(told(None), "{\"data\":null,\"index\":11}");
}
