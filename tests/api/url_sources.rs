//! Sources behind a URL: what a business's token may have fetched, what it learns, and through what.

use serde_json::json;
use tokio::net::TcpListener;

use crate::business::{Act, Business};
use crate::support::{Answer, Client, Node, Recipe};

/// A node with a business and its token, and a server of a file with one row beside it.
async fn place(config: &str) -> (Node, Client, Business) {
    let node = Recipe::new().config(config).start().await;
    let files = Business::start(|_| Act::json(200, json!({"user": "ann"}))).await;
    node.business("push", &files.url(), json!({})).await;
    let token = node.client("business", Some("push")).await;
    (node, token, files)
}

async fn make(client: &Client, url: &str) -> Answer {
    let source = json!({"type": "url", "url": url, "format": "ndjson"});
    client
        .post("/v1/tasks", json!({"business": "push", "source": source}))
        .await
}

/// What a refusal says, with the address taken out.
async fn refusal(client: &Client, url: &str) -> String {
    let problem = make(client, url).await.problem(422, "validation-failed");
    let said = problem["errors"][0]["detail"]
        .as_str()
        .expect("a sentence")
        .to_owned();
    let host = url
        .split_once("://")
        .map_or("", |(_, rest)| rest.split(['/']).next().unwrap_or_default());
    said.replace(host.rsplit_once(':').map_or(host, |(host, _)| host), "HOST")
}

#[tokio::test]
async fn a_business_has_nothing_fetched_from_private_networks_and_cant_look_which_ports_are_open() {
    let (node, token, files) = place("").await;
    let url = files.url();
    make(&node.admin, &url).await.expect(201);
    let wrong = refusal(&node.admin, &url.replace("http:", "https:")).await;
    assert!(
        wrong.contains("the server speaks plain http: use http in the url"),
        "{wrong}"
    );
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let seen = files.seen().len();
    let said = refusal(&token, &url).await;
    let port = files.address.port();
    for other in [
        format!("http://{closed}/u.csv"),
        format!("http://localhost:{port}/"),
        format!("http://0.0.0.0:{port}/"),
        format!("http://[::ffff:0.0.0.0]:{port}/"),
        format!("{}/metrics", node.url),
        "http://no-such-name.invalid/".to_owned(),
    ] {
        assert_eq!(refusal(&token, &other).await, said, "{other}");
    }
    assert_eq!(files.seen().len(), seen, "nothing was asked");
    let port = refusal(&token, "http://127.0.0.1:99999/u.csv").await;
    assert!(port.contains("not within 1 to 65535"), "{port}");
}

#[tokio::test]
async fn a_file_of_any_few_bytes_is_read_to_its_end() {
    let rows = "a\n1\n2\n3\n4\n5\n";
    let node = Recipe::new().start().await;
    let files = Business::willing().await;
    node.business("push", &files.url(), json!({})).await;
    for bytes in 0..=rows.len() {
        files.becomes(move |_| Act::bytes(rows.as_bytes()[..bytes].to_vec()));
        let source = json!({"type": "url", "url": files.url(), "format": "csv"});
        let made = node
            .admin
            .post("/v1/tasks", json!({"business": "push", "source": source}))
            .await;
        if bytes == 0 {
            made.problem(422, "validation-failed");
            continue;
        }
        // A header alone is a task of 0 items.
        let total = rows[..bytes].lines().skip(1).count();
        assert_eq!(made.expect(201)["total"], total, "{bytes} bytes");
    }
}

#[tokio::test]
async fn a_private_network_that_is_allowed_is_fetched_from_but_never_the_node_itself() {
    let networks = "[handler.http]\nsource_networks = [\"127.0.0.0/8\"]";
    let (node, token, files) = place(networks).await;
    make(&token, &files.url()).await.expect(201);
    // A port that is open without a web server behind it, and one that is closed.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = format!("http://{}/", silent.local_addr().unwrap());
    let hangs_up = tokio::spawn(async move { while silent.accept().await.is_ok() {} });
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let said = refusal(&token, &format!("http://{closed}/")).await;
    assert_eq!(refusal(&token, &open).await, said);
    assert_eq!(
        refusal(&token, &format!("{}/metrics", node.url)).await,
        said,
        "the node"
    );
    hangs_up.abort();
    let told = refusal(&node.admin, &format!("http://{closed}/")).await;
    assert!(
        told.contains("refused") && !told.contains("handler"),
        "an operator is told: {told}"
    );
}

#[tokio::test]
async fn a_source_is_fetched_through_the_proxy_of_the_configuration() {
    let proxy = Business::start(|_| Act::json(200, json!({"user": "bob"}))).await;
    let config = format!("[handler.http]\nproxy = \"http://{}\"", proxy.address);
    let (node, token, _files) = place(&config).await;
    // The name is the proxy's to resolve.
    let made = make(&token, "http://files.example.invalid/u.csv")
        .await
        .expect(201);
    assert_eq!(made["counts"]["pending"], 1, "{made:#}");
    make(&node.admin, "http://files.example.invalid/u.csv")
        .await
        .expect(201);
    refusal(&token, "http://10.0.0.5/u.csv").await;
    assert_eq!(proxy.seen().len(), 2, "an address is judged here");
}
