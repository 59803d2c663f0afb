//! Changes: whichever node is asked, they hold where the task runs.

use serde_json::json;

use crate::cluster::{Cluster, until};
use crate::program::Person;

#[tokio::test]
async fn a_raise_is_refused_by_the_node_that_has_no_room_whoever_is_asked() {
    let cluster = Cluster::new().await;
    let (task, [(owner, here), (_, there)]) = cluster.pair(json!({})).await;
    let (path, node) = (format!("/v1/tasks/{task}"), format!("/v1/nodes/{owner}"));
    let dry = there
        .admin
        .patch(&format!("{node}?dry_run=true"), json!({"capacity_rate": "9/s"}))
        .await
        .expect(200);
    assert_eq!(dry["would"]["capacity_rate"], "9/s", "{dry:#}");
    let body = json!({"capacity_rate": "100/s", "reason": "small"});
    let changed = there.admin.patch(&node, body).await.expect(200);
    assert_eq!(
        (&changed["capacity_rate"], &changed["id"]),
        (&json!("100/s"), &json!(owner)),
        "{changed:#}"
    );
    assert_eq!(here.admin.get(&node).await.expect(200)["capacity_rate"], "100/s");
    let audit = there.admin.get("/v1/audit?action=node.change").await.expect(200);
    assert_eq!(
        (&audit["items"][0]["reason"], &audit["items"][0]["after"]["node"]),
        (&json!("small"), &json!(owner))
    );
    let told = there
        .admin
        .patch(&node, json!({"log_filter": "="}))
        .await
        .problem(422, "validation-failed");
    assert_eq!(told["errors"][0]["pointer"], "/log_filter");
    for node in [&there, &here] {
        let told = node
            .admin
            .patch(&path, json!({"rate": "500/s"}))
            .await
            .problem(409, "no-capacity");
        assert_eq!(told["max_rate"], json!({ owner.as_str(): "100/s" }), "{told:#}");
    }
    assert_eq!(
        here.admin.get(&node).await.expect(200)["reserved_rate"],
        "50/s",
        "nothing stays booked"
    );
    there
        .admin
        .patch(&path, json!({"rate": "80/s"}))
        .await
        .expect(200);
    until(&here, &node, "booked", |node| node["reserved_rate"] == "80/s").await;
    until(&there, &path, "faster", |view| {
        view["actual_rate"].as_f64() > Some(65.0)
    })
    .await;
}

#[tokio::test]
async fn a_node_is_drained_and_a_task_moved_from_elsewhere() {
    let cluster = Cluster::new().await;
    let (task, [(owner, here), (other, there)]) = cluster.pair(json!({})).await;
    let person = Person::admin(&there);
    let told = person
        .windrow(&format!("node drain {owner} --reason kernel --wait"))
        .await
        .expect(0)
        .stdout;
    assert!(told.contains(&format!("{owner}: drained; no runs")), "{told}");
    let view = there
        .until(&task, "taken over", |view| {
            view["live"]["nodes"] == json!([other])
        })
        .await;
    assert_eq!(view["status"], "running");
    let ready = here.admin.get("/readyz").await;
    assert!(
        ready.status == 503 && ready.text().contains("drained"),
        "{}",
        ready.text()
    );
    let told = person
        .windrow(&format!("task move {task} --to {owner}"))
        .await
        .refused(4, &["drains"]);
    assert!(told.stderr.contains("undrain"), "{}", told.stderr);
    let told = person.windrow(&format!("node drain {other}")).await.expect(0);
    assert_eq!(
        told.stdout,
        format!("{other}: draining; 1 run stops and waits\n"),
        "its state is people's wish"
    );
    assert!(
        told.stderr.contains("no other node accepts tasks"),
        "{}",
        told.stderr
    );
    let told = person.windrow("cluster").await.expect(1).stdout;
    assert!(told.contains("no node accepts tasks: "), "{told}");
    let why = |view: &serde_json::Value| view["status_text"].as_str().unwrap_or_default().to_owned();
    there
        .until(&task, "explained", |view| {
            why(view).contains("is drained; undrain one, for example ")
        })
        .await;
    person.windrow(&format!("node undrain {other}")).await.expect(0);
    there
        .until(&task, "running again", |view| {
            view["live"]["nodes"] == json!([other])
        })
        .await;
    let told = person
        .windrow(&format!("node undrain {owner}"))
        .await
        .expect(0)
        .stdout;
    assert_eq!(
        told.trim(),
        format!("{owner}: serving"),
        "and so it takes what is moved to it"
    );
    let told = person
        .windrow(&format!("task move {task} --to {owner} --wait"))
        .await
        .expect(0)
        .stdout;
    assert!(told.contains(&format!("runs on {owner}")), "{told}");
    there
        .admin
        .post(&format!("/v1/tasks/{task}/move"), json!({"to": owner}))
        .await
        .problem(409, "conflict");
    there
        .admin
        .post(&format!("/v1/tasks/{task}/move"), json!({"to": "n9"}))
        .await
        .problem(422, "validation-failed");
    let runs = here
        .admin
        .get(&format!("/v1/tasks/{task}/runs"))
        .await
        .expect(200);
    let nodes: Vec<&str> = runs["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["node"].as_str().unwrap())
        .collect();
    assert_eq!(
        nodes,
        [owner.as_str(), other.as_str(), other.as_str(), owner.as_str()]
    );
    let items = cluster.business.seen();
    let mut indexes: Vec<u64> = items
        .iter()
        .flat_map(|seen| seen.items())
        .map(|(index, _)| index)
        .collect();
    let count = indexes.len();
    indexes.sort_unstable();
    indexes.dedup();
    assert_eq!(indexes.len(), count, "none is repeated");
}
