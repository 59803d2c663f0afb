//! `windrow config`.

use serde_json::json;

use crate::program::Person;

#[tokio::test]
async fn every_key_tells_where_it_comes_from() {
    let person = Person::new().env("WINDROW_NODE__RUN_TASKS", "false");
    person.write(
        "w.toml",
        "[node]\ncapacity_rate = \"3000/s\"\n[handler.command]\nenabled = true\n[handler.command.commands.push]\n\
         cmd = [\"x\"]\nenv = { TOKEN = \"hush\" }\n",
    );
    let table = person.windrow("config show w.toml --origin").await.expect(0).stdout;
    let line = |key: &str| {
        let line = table.lines().find(|line| line.starts_with(&format!("{key} "))).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line("node.capacity_rate"), ["node.capacity_rate", "3000/s", "w.toml"]);
    assert_eq!(line("node.run_tasks"), ["node.run_tasks", "false", "WINDROW_NODE__RUN_TASKS"]);
    assert_eq!(line("task_defaults.rate"), ["task_defaults.rate", "100/s", "default"]);
    assert!(!table.contains("hush"), "{table}");
    let body = person.windrow("config show w.toml -o json").await.expect(0).json();
    let keys = body["items"].as_array().unwrap();
    let rate = json!({"key": "node.capacity_rate", "value": "3000/s", "origin": "w.toml"});
    assert!(keys.contains(&rate) && keys.len() > 80, "{body}");
    let names = person.windrow("config show w.toml -o name").await.expect(0).stdout;
    assert_eq!(names.lines().count(), keys.len());
}

#[tokio::test]
async fn the_file_that_a_node_would_read_is_checked_and_shown() {
    let person = Person::new();
    person.windrow("config check").await.expect(0);
    person.write("config.toml", "[node]\ncapacity_rate = \"3000/s\"\n");
    assert!(person.windrow("config check").await.expect(0).stdout.starts_with("config.toml is sound\n"));
    assert!(
        person.windrow("config show").await.expect(0).stdout.contains("node.capacity_rate = \"3000/s\"\n")
    );
    person.write("config.toml", "[node]\ncapacity = \"3000/s\"\nid = 7\n");
    for words in ["config check", "config show", "config show --origin"] {
        person.windrow(words).await.refused(78, &["node.capacity", "node.id"]);
    }
}
