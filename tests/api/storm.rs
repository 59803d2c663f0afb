//! Many people command one task at once: what they are told is one history.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::{Answer, Client, Node};

const CLIENTS: u64 = 8;
const COMMANDS: u64 = 1_000;

/// One command and its answer.
struct Told {
    begun: Instant,
    ended: Instant,
    word: &'static str,
    answer: Answer,
}

/// xorshift64*: enough for a choice of commands.
fn next(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_F491_4F6C_DD1D)
}

async fn send(client: &Client, task: &str, choice: u64) -> (&'static str, Answer) {
    let path = |word: &str| format!("/v1/tasks/{task}/{word}");
    match choice % 10 {
        0..=3 => ("task.start", client.post(&path("start"), json!({})).await),
        4..=5 => ("task.stop", client.post(&path("stop"), json!({})).await),
        6 => (
            "task.stop_now",
            client.post(&path("stop"), json!({"now": true})).await,
        ),
        7 => ("task.recover", client.post(&path("recover"), json!({})).await),
        _ => {
            let rate = format!("{}/s", 50 + choice / 10 % 400);
            (
                "task.tune",
                client
                    .patch(&format!("/v1/tasks/{task}"), json!({"rate": rate}))
                    .await,
            )
        }
    }
}

async fn hammer(client: Client, task: String, mut seed: u64) -> Vec<Told> {
    let mut told = Vec::new();
    for _ in 0..COMMANDS / CLIENTS {
        let choice = next(&mut seed) >> 20;
        let begun = Instant::now();
        let (word, answer) = send(&client, &task, choice).await;
        told.push(Told {
            begun,
            ended: Instant::now(),
            word,
            answer,
        });
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_commands_of_eight_clients_are_one_history() {
    let seed = std::env::var("WINDROW_TEST_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| u64::from(std::process::id()) << 20 | 0x5eed);
    println!("WINDROW_TEST_SEED={seed}");
    let business = Business::start(|_| Act::ok().after(Duration::from_millis(2))).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node
        .task("push", 10_000_000, json!({"rate": "100/s", "start": true}))
        .await;
    let clients = (0..CLIENTS).map(|nth| {
        let client = Client::new(&node.url, node.admin.token.as_deref());
        tokio::spawn(hammer(
            client,
            task.clone(),
            seed.wrapping_add(nth.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        ))
    });
    let mut told = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        told.extend(client.await.expect("a client ends"));
    }
    assert_eq!(told.len() as u64, COMMANDS);
    for one in &told {
        let known = matches!(one.answer.status, 200 | 202 | 409);
        assert!(known, "{}: {}", one.word, one.answer.text());
    }
    let entries = audit(&node.admin, &task).await;
    one_to_one(&told, &entries);
    in_real_time_order(&told, &entries);
    ends_as_last_commanded(&node, &task, &entries).await;
}

/// The whole audit of a task, oldest first.
async fn audit(client: &Client, task: &str) -> Vec<Value> {
    let mut entries = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = client
            .get(&format!("/v1/tasks/{task}/revisions?limit=500{cursor}"))
            .await
            .expect(200);
        entries.extend(page["items"].as_array().expect("items").iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    entries.sort_by_key(|entry| entry["id"].as_i64().expect("an id"));
    entries
}

/// Every acknowledged change has one entry, and every entry of a person one acknowledged change.
fn one_to_one(told: &[Told], entries: &[Value]) {
    let mut by_request: HashMap<&str, Vec<&Value>> = HashMap::new();
    for entry in entries.iter().filter(|entry| entry["source"] != "system") {
        by_request
            .entry(entry["request_id"].as_str().unwrap_or_default())
            .or_default()
            .push(entry);
    }
    for one in told {
        let id = one.answer.header("request-id").expect("each answer has a number");
        let found = by_request.remove(id).unwrap_or_default();
        match one.answer.status {
            202 => {
                assert_eq!(found.len(), 1, "{}: {}", one.word, one.answer.text());
                assert_eq!(found[0]["action"], one.word);
            }
            // A change of settings that says what was said before is still one; a repeat of a verb is none.
            200 if one.word == "task.tune" => assert_eq!(found.len(), 1, "{}", one.answer.text()),
            _ => assert!(found.is_empty(), "{}: {found:?}", one.answer.text()),
        }
    }
    let left: Vec<&str> = by_request
        .values()
        .flatten()
        .filter_map(|entry| entry["action"].as_str())
        .collect();
    assert!(
        left.iter()
            .all(|action| matches!(*action, "task.create" | "task.start")),
        "{left:?}"
    );
}

/// What had ended before another began comes before it in the history.
fn in_real_time_order(told: &[Told], entries: &[Value]) {
    let places: BTreeMap<&str, usize> = entries
        .iter()
        .enumerate()
        .filter_map(|(place, entry)| Some((entry["request_id"].as_str()?, place)))
        .collect();
    let mut placed: Vec<(usize, &Told)> = told
        .iter()
        .filter_map(|one| Some((*places.get(one.answer.header("request-id")?)?, one)))
        .collect();
    placed.sort_by_key(|(place, _)| *place);
    // Going backwards in the history, no earlier entry may have begun after a later one had ended.
    let mut earliest_end: Option<(Instant, &Told)> = None;
    for (_, one) in placed.into_iter().rev() {
        if let Some((end, later)) = earliest_end {
            assert!(
                one.begun <= end,
                "{} began after {} had ended, but comes before it",
                one.word,
                later.word
            );
        }
        if earliest_end.is_none_or(|(end, _)| one.ended < end) {
            earliest_end = Some((one.ended, one));
        }
    }
}

/// The last commands decide: the wish of the last verb, the rate of the last change.
async fn ends_as_last_commanded(node: &Node, task: &str, entries: &[Value]) {
    let last = |actions: &[&str]| {
        let mut entries = entries.iter().rev();
        entries
            .find(|entry| actions.iter().any(|action| entry["action"] == *action))
            .cloned()
    };
    let verb = last(&["task.start", "task.stop", "task.stop_now"]).expect("it was started");
    let settled = match verb["action"].as_str() {
        Some("task.start") => node.status(task, "running").await,
        _ => node.status(task, "stopped").await,
    };
    if let Some(tuned) = last(&["task.tune"]) {
        assert_eq!(settled["rate"], tuned["after"]["rate"], "{tuned:#}");
    }
}
