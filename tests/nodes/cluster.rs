//! Nodes that share a database, a key and an administrator.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::servers::Postgres;
use crate::support::{Node, PATIENCE, Recipe};

/// A database with a business; nodes are started as they are wanted.
pub(crate) struct Cluster {
    pub(crate) postgres: Postgres,
    pub(crate) place: tempfile::TempDir,
    pub(crate) business: Business,
}

impl Cluster {
    pub(crate) async fn new() -> Cluster {
        let place = tempfile::tempdir().expect("a directory");
        // On the test's own thread, since the server dies with the thread that starts it.
        let postgres = Postgres::start();
        let business = Business::start(|_| Act::ok().after(Duration::from_millis(5))).await;
        let cluster = Cluster {
            postgres,
            place,
            business,
        };
        cluster.write("password", "wind-row");
        // 32 bytes in base64.
        cluster.write("key", &format!("{}=\n", "A".repeat(43)));
        cluster
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(self.path(name), private).expect("set");
    }

    /// A node of this name, with these lines more in its configuration.
    pub(crate) async fn node(&self, name: &str, more: &str) -> Node {
        self.node_with(name, more, &[]).await
    }

    /// The same, with these variables in its environment.
    pub(crate) async fn node_with(&self, name: &str, more: &str, environment: &[(&str, &str)]) -> Node {
        self.node_at(self.postgres.port(), (name, more), environment)
            .await
    }

    /// The same, which reaches the database by this port.
    pub(crate) async fn node_at(
        &self,
        port: u16,
        (name, more): (&str, &str),
        environment: &[(&str, &str)],
    ) -> Node {
        let url = self.postgres.url("windrow");
        let url = url.replace(&format!(":{}/", self.postgres.port()), &format!(":{port}/"));
        let recipe = Recipe::new()
            .config(&format!(
                "[node]\nid = \"{name}\"\ncapacity_rate = \"1000/s\"\nunlimited_reserves = \"1/s\"\n"
            ))
            .config(&format!(
                "[store]\nurl = \"{}\"\npassword_file = \"{}\"\nmigrate_on_start = true\n",
                url,
                self.path("password").display()
            ))
            .config("[task_defaults]\nrate = \"1/s\"\n")
            .config(&format!(
                "[auth]\nkey_file = \"{}\"\n",
                self.path("key").display()
            ))
            .config(more);
        let recipe = environment
            .iter()
            .fold(recipe, |recipe, (name, value)| recipe.env(name, value));
        // All have the first one's administrator.
        if self.path("admin.token").exists() {
            std::fs::copy(self.path("admin.token"), recipe.path("admin.token")).expect("copied");
        }
        let node = recipe.start().await;
        if !self.path("admin.token").exists() {
            std::fs::copy(node.path("admin.token"), self.path("admin.token")).expect("copied");
        }
        node
    }

    /// Two nodes with the business, and a task that runs on one of them: the task, who runs it and who doesn't.
    pub(crate) async fn pair(&self, more: Value) -> (String, [(String, Node); 2]) {
        self.pair_with("", more).await
    }

    /// The same, with these lines more in the configuration of both.
    pub(crate) async fn pair_with(&self, settings: &str, more: Value) -> (String, [(String, Node); 2]) {
        let (n1, n2) = (self.node("n1", settings).await, self.node("n2", settings).await);
        n1.business("push", &self.business.url(), json!({})).await;
        let mut body = json!({"rate": "50/s", "start": true});
        crate::support::merge(&mut body, more);
        let task = n2.task("push", 1_000_000, body).await;
        let view = n1
            .until(&task, "running somewhere", |view| view["live"]["state"] == "live")
            .await;
        let is_first = view["live"]["nodes"] == json!(["n1"]);
        let (n1, n2) = (("n1".to_owned(), n1), ("n2".to_owned(), n2));
        (task, if is_first { [n1, n2] } else { [n2, n1] })
    }
}

/// Looks at a path until the answer fits.
pub(crate) async fn until(node: &Node, path: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let answer = node.admin.get(path).await;
        assert_eq!(answer.status, 200, "{}\n{}", answer.text(), node.said());
        let answer = answer.json();
        if fits(&answer) {
            return answer;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{path} never was {what}: {answer:#}\n{}",
            node.said()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
