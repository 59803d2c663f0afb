//! What a node says of itself in its own log.

use serde_json::Value;

use crate::support::Recipe;

/// The line that tells that the node is up.
async fn start_line(config: &str) -> String {
    let node = Recipe::new().config(config).start().await;
    let said = node.said();
    let line = said
        .lines()
        .find(|line| line.contains("node up"))
        .unwrap_or_else(|| panic!("{said}"));
    let line = line.to_owned();
    assert_eq!(node.stop().await, Some(0));
    line
}

#[tokio::test]
async fn the_tree_of_actors_is_logged_when_the_configuration_says_so() {
    let printed = start_line("").await;
    let line: Value = serde_json::from_str(&printed).expect("a line for machines");
    let session = line["tree"].as_array().expect("where nothing is said, it is");
    let session = session.iter().find(|actor| actor["kind"] == "session");
    assert_eq!(
        session.map(|actor| &actor["state"]),
        Some(&"ok".into()),
        "{printed}"
    );
    assert!(!printed.contains("  "), "nothing is padded: {printed}");
    let silent = start_line("[log]\nactor_tree = \"restart,stop\"").await;
    assert!(!silent.contains("supervisor"), "{silent}");
}
