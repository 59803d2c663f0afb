//! What a node says of itself in its own log.

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
    assert!(
        printed.contains("supervisor"),
        "it is, where nothing is said: {printed}"
    );
    let silent = start_line("[log]\nactor_tree = \"restart,stop\"").await;
    assert!(!silent.contains("supervisor"), "{silent}");
}
