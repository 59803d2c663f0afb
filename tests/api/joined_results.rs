//! Results of a task together with those of its redrives: one row for each item, in the task's own order.

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::Node;

/// Fails the items that it is told to, of two kinds in turn; else says which task it did the item for.
fn script(failing: fn(u64) -> bool) -> impl Fn(&crate::business::Seen) -> Act {
    move |seen| match seen.items().as_slice() {
        [(index, _)] if failing(*index) => {
            let code = if index % 20 < 10 { "BOOM" } else { "BUSY" };
            Act::json(200, json!({"result": "fail", "code": code}))
        }
        [(index, _)] => Act::json(
            200,
            json!({"result": "ok", "output": format!("{index} by {}", seen.task())}),
        ),
        _ => Act::status(500),
    }
}

async fn rows(node: &Node, path: &str) -> Vec<Value> {
    let answer = node.admin.get(path).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = String::from_utf8(answer.body.to_vec()).expect("text");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect()
}

/// Redrives to the end.
async fn redriven(node: &Node, task: &str, more: Value) -> String {
    let mut body = json!({"start": true, "rate": "2000/s", "error_budget": "none"});
    crate::support::merge(&mut body, more);
    let made = node
        .admin
        .post(&format!("/v1/tasks/{task}/redrives"), body)
        .await
        .expect(201);
    let id = made["id"].as_str().expect("an id").to_owned();
    node.status(&id, "finished").await;
    id
}

#[tokio::test]
async fn each_item_has_one_row_with_its_newest_output_in_the_order_of_the_task() {
    let business = Business::start(script(|index| index % 5 == 3)).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let settings = json!({"start": true, "rate": "2000/s", "results": "keep", "error_budget": "none"});
    let task = node.task("push", 3000, settings).await;
    node.status(&task, "finished").await;
    let path = format!("/v1/tasks/{task}/results?with_redrives=true");
    assert_eq!(rows(&node, &path).await.len(), 2400, "nothing is redriven yet");

    business.becomes(script(|index| index % 50 == 3));
    let busy = redriven(&node, &task, json!({"filter": {"codes": ["BUSY"]}})).await;
    let boom = redriven(&node, &task, json!({"filter": {"codes": ["BOOM"]}})).await;
    business.becomes(script(|index| index == 1003));
    let below = redriven(&node, &boom, json!({})).await;
    let again = redriven(
        &node,
        &task,
        json!({"filter": {"indexes": "13,2503"}, "again": true}),
    )
    .await;

    let by = |index: u64| match index {
        1003 => None,
        13 | 2503 => Some(&again),
        _ if index % 5 != 3 => Some(&task),
        _ if index % 50 == 3 && index % 20 < 10 => Some(&below),
        // Failed in its redrive too, and was not done again.
        _ if index % 50 == 3 => None,
        _ if index % 20 < 10 => Some(&boom),
        _ => Some(&busy),
    };
    let expected = |from: u64| -> Vec<(u64, String)> {
        (from..3000)
            .filter_map(|index| Some((index, format!("{index} by {}", by(index)?))))
            .collect()
    };
    let told = |rows: &[Value]| -> Vec<(u64, String)> {
        let text = |row: &Value| row["output"].as_str().expect("a text").to_owned();
        rows.iter()
            .map(|row| (row["index"].as_u64().expect("an index"), text(row)))
            .collect()
    };
    assert_eq!(told(&rows(&node, &path).await), expected(0));
    assert_eq!(
        told(&rows(&node, &format!("{path}&after=1998")).await),
        expected(1999)
    );
    let own = rows(&node, &format!("/v1/tasks/{task}/results")).await;
    assert_eq!(own.len(), 2400, "without them it is as it was");
}

#[tokio::test]
async fn a_running_task_ends_where_its_own_results_do_and_a_redrive_is_read_by_its_positions() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(60, _)] => Act::json(200, json!({"result": "retry", "retry_after": "1h"})),
        _ => script(|index| index % 10 == 3)(seen),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let settings = json!({"start": true, "rate": "500/s", "results": "keep", "error_budget": "none"});
    let task = node.task("push", 100, settings).await;
    node.until(&task, "the others to be settled", |view| {
        view["counts"]["parked"] == 1
    })
    .await;
    // A redrive is made of the failures that are saved.
    let mut saved = 0;
    while saved < 10 {
        let path = format!("/v1/tasks/{task}/failures?limit=100");
        saved = node.admin.get(&path).await.expect(200)["items"]
            .as_array()
            .map_or(0, Vec::len);
    }
    business.becomes(script(|_| false));
    let redrive = redriven(&node, &task, json!({"rate": "500/s"})).await;
    let path = format!("/v1/tasks/{task}/results?with_redrives=true");
    let mut found = Vec::new();
    // What is settled is saved within a checkpoint or two.
    while found.len() < 60 {
        found = rows(&node, &path).await;
    }
    let found: Vec<u64> = found
        .iter()
        .map(|row| row["index"].as_u64().expect("an index"))
        .collect();
    assert_eq!(found, (0..60).collect::<Vec<_>>());

    let path = format!("/v1/tasks/{redrive}/results");
    let all = rows(&node, &path).await;
    let positions: Vec<u64> = all
        .iter()
        .map(|row| row["position"].as_u64().expect("a position"))
        .collect();
    assert_eq!(positions, (0..10).collect::<Vec<_>>());
    assert_eq!(rows(&node, &format!("{path}?after=6")).await, all[7..]);
}
