//! A business whose command is a program for each item, on a node that serves.

use serde_json::{Value, json};

use crate::support::Recipe;

const CONFIG: &str = r#"
[handler.command]
enabled = true
[handler.command.commands.greet]
each = ["sh", "-c", 'printf "%s by %s" "$1" "$WINDROW_INDEX"; exit "$2"', "sh", "{name}", "{code}"]
"#;

#[tokio::test]
async fn a_program_is_started_for_each_item_and_its_exit_and_output_are_the_items() {
    let node = Recipe::new().config(CONFIG).start().await;
    let business = json!({"name": "greet", "command": "greet"});
    node.admin.post("/v1/businesses", business).await.expect(201);
    let items = json!([
        {"name": "ann", "code": 0},
        {"name": "$(id) 'x' \"y\"", "code": 0},
        {"name": "bob", "code": 65},
        {"name": "cat"},
        {"name": "dan", "code": 3},
    ]);
    let task = json!({
        "business": "greet", "source": {"type": "inline", "items": items}, "start": true, "results": "keep",
        "max_attempts": 2, "backoff": "10ms", "error_budget": "none",
    });
    let task = node.admin.post("/v1/tasks", task).await.expect(201);
    let task = task["id"].as_str().expect("an id").to_owned();
    let ended = node.status(&task, "finished").await;
    assert_eq!(ended["counts"]["succeeded"], 2, "{ended:#}");
    let answer = node.admin.get(&format!("/v1/tasks/{task}/results")).await;
    let text = String::from_utf8(answer.body.to_vec()).expect("text");
    let outputs: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a row")["output"].clone())
        .collect();
    assert_eq!(
        outputs,
        ["ann by 0", "$(id) 'x' \"y\" by 1"],
        "values are never a part of a script"
    );
    let failures = node
        .admin
        .get(&format!("/v1/tasks/{task}/failures"))
        .await
        .expect(200);
    let code = |index: u64| {
        let failed = failures["items"].as_array().expect("a list");
        failed
            .iter()
            .find(|item| item["index"] == index)
            .map(|item| item["code"].clone())
    };
    assert_eq!(code(2), Some(json!("EXIT_65")), "{failures:#}");
    assert_eq!(code(3), Some(json!("TEMPLATE_VALUE")), "{failures:#}");
    assert_eq!(code(4), Some(json!("EXIT_3")), "{failures:#}");
}
