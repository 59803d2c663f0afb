//! The database stands still for seconds, again and again, under a stream of commands. Whatever a node gave up meanwhile,
//! what it acknowledges is kept: looked up at once, past all nodes and proxies.

use std::cell::Cell;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api;
use crate::cluster::Cluster;
use crate::evidence::{Effect, Harm, now, say};
use crate::round::Round;

/// In one round.
const FREEZES: u64 = 3;
/// People who give commands, each for a task of their own that nobody else changes.
const CLIENTS: usize = 12;
/// How long commands flow between two freezes.
const FLOWING: Duration = Duration::from_secs(5);
/// What was not acknowledged may still wait for a connection of its node, and be obeyed that much later.
const LATE: Duration = Duration::from_secs(11);

pub(super) async fn db_freezes_under_commands(round: &mut Round<'_>) {
    let mut spans = Vec::new();
    for _ in 0..FREEZES {
        spans.push(round.rng.millis(3_000, 14_000));
    }
    let mut tasks = Vec::new();
    for client in 0..CLIENTS {
        let body = json!({"business": "chaos", "source": {"type": "range", "total": 1}});
        tasks.push(
            round
                .cluster
                .create(&body, &format!("chaos-{}-{client}", now()))
                .await,
        );
    }
    let fault = round
        .cluster
        .faults
        .begin("database freezes under commands", Harm::Database);
    let cluster = &*round.cluster;
    let is_over = Cell::new(false);
    let freezing = async {
        for span in spans {
            tokio::time::sleep(FLOWING).await;
            cluster.database.signal("STOP");
            tokio::time::sleep(span).await;
            cluster.database.signal("CONT");
        }
        tokio::time::sleep(FLOWING).await;
        is_over.set(true);
    };
    let labelling = tasks
        .iter()
        .enumerate()
        .map(|(client, task)| label(cluster, client, *task, &is_over));
    let labelling = futures_util::future::join_all(labelling);
    let ((), labelled, drained) = tokio::join!(freezing, labelling, drain(cluster, &is_over));
    round.cluster.faults.end(fault);
    let effects: Vec<Effect> = labelled.into_iter().flatten().chain(drained).collect();
    let changes = effects
        .iter()
        .filter(|effect| effect.what.starts_with("PATCH"))
        .count();
    let wishes = effects.len() - changes;
    say(&format!(
        "looked up what {changes} changes of tasks and {wishes} of a node came to"
    ));
    assert!(
        changes > 0 && wishes > 0,
        "commands were obeyed between the freezes"
    );
    round.cluster.effects.extend(effects);
    let path = format!("/v1/nodes/{}/undrain", last(round.cluster));
    round.cluster.ask("POST", &path, None, &json!({})).await;
    round.flows(20).await;
}

fn last(cluster: &Cluster) -> &str {
    &cluster.nodes[cluster.nodes.len() - 1].name
}

/// Transactions: the labels of a task.
async fn label(cluster: &Cluster, client: usize, task: i64, is_over: &Cell<bool>) -> Vec<Effect> {
    let (mut effects, mut doubtful) = (Vec::new(), Vec::new());
    let sql = format!("SELECT labels FROM task WHERE id = {task}");
    let mut number = 0;
    while !is_over.get() {
        number += 1;
        let wanted = json!({"n": number.to_string()});
        let asked = ("PATCH", format!("/v1/tasks/t{task}"), json!({"labels": wanted}));
        let node = (client + number) % cluster.nodes.len();
        match give(cluster, node, asked, (&sql, &wanted.to_string())).await {
            // An earlier one that nobody acknowledged may be obeyed after this one.
            Some(effect) if doubtful.contains(&effect.found) => {}
            Some(effect) => effects.push(effect),
            None => doubtful.push(wanted.to_string()),
        }
    }
    effects
}

/// Single statements: the wish that a node hands its work over.
async fn drain(cluster: &Cluster, is_over: &Cell<bool>) -> Vec<Effect> {
    let mut effects = Vec::new();
    // A node between two sessions has no row that could say anything else.
    let sql = |drain: bool| {
        format!(
            "SELECT CAST(COUNT(*) AS CHAR(9)) FROM session WHERE node = '{}' AND drain <> {drain}",
            last(cluster)
        )
    };
    let mut number = 0;
    while !is_over.get() {
        number += 1;
        let drain = number % 2 == 1;
        let verb = if drain { "drain" } else { "undrain" };
        let asked = ("POST", format!("/v1/nodes/{}/{verb}", last(cluster)), json!({}));
        // Not by the node itself: others write it with one statement.
        let node = number % (cluster.nodes.len() - 1).max(1);
        match give(cluster, node, asked, (&sql(drain), "0")).await {
            Some(effect) => effects.push(effect),
            None => tokio::time::sleep(LATE).await,
        }
    }
    effects
}

/// Gives a command to a node, and looks up what is there if it says that it was obeyed.
async fn give(
    cluster: &Cluster,
    node: usize,
    (method, path, body): (&str, String, Value),
    (sql, wanted): (&str, &str),
) -> Option<Effect> {
    let node = &cluster.nodes[node];
    let answer = api::call(node.port, method, &path, None, &body).await;
    let found = cluster.audit.text(sql).await;
    if matches!(answer, Ok((200..=299, _))) {
        let what = format!("{method} {path} by {}", node.name);
        return Some(Effect {
            at: now(),
            what,
            wanted: wanted.to_owned(),
            found: found.trim().to_owned(),
        });
    }
    None
}
