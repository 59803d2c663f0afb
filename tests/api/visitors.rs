//! Who asks: pages of others that a browser shows, strange names of the node, and callers of the same name.

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

use crate::business::Business;
use crate::support::{Answer, Client, Node, Recipe};

/// What only a page of somebody else has a browser send, and the problem that it meets.
const FOREIGN: [(&str, &str, &str); 5] = [
    ("host", "evil.example", "foreign-host"),
    ("origin", "http://evil.example", "foreign-page"),
    ("origin", "null", "foreign-page"),
    ("sec-fetch-site", "cross-site", "foreign-page"),
    ("sec-fetch-site", "same-site", "foreign-page"),
];

/// Somebody who may steer a node of this mode, without or with a token.
struct Person {
    node: Node,
    client: Client,
    signed_in: Option<(&'static str, &'static str)>,
}

impl Person {
    async fn of(mode: &str) -> Person {
        let recipe = Recipe::new().config(&format!("[auth]\nmode = \"{mode}\""));
        if mode == "off" {
            // No token is made there, and the recipe reads one.
            std::fs::write(recipe.path("admin.token"), "").unwrap();
        }
        let node = recipe.start().await;
        let nobody = Client::new(&node.url, None);
        let client = if mode == "token" {
            node.admin.clone()
        } else {
            nobody
        };
        let signed_in = (mode == "proxy").then_some(("x-forwarded-user", "ann"));
        Person {
            node,
            client,
            signed_in,
        }
    }

    async fn asks(&self, method: Method, path: &str, more: &[(&str, &str)], body: &'static str) -> Answer {
        let headers: Vec<(&str, &str)> = more.iter().copied().chain(self.signed_in).collect();
        self.client
            .send(method, path, &headers, Bytes::from_static(body.as_bytes()))
            .await
    }
}

#[tokio::test]
async fn a_page_of_somebody_else_steers_and_reads_nothing_whoever_is_signed_in() {
    for mode in ["token", "proxy", "off"] {
        let person = Person::of(mode).await;
        let own = ("origin", person.node.url.as_str());
        for (name, value, slug) in FOREIGN {
            let foreign = [(name, value)];
            for path in ["/v1/tasks/t1/start", "/v1/tasks/t1/cancel"] {
                person
                    .asks(Method::POST, path, &foreign, "")
                    .await
                    .problem(403, slug);
            }
            for path in ["/v1/tasks", "/metrics", "/actors"] {
                person
                    .asks(Method::GET, path, &foreign, "")
                    .await
                    .problem(403, slug);
            }
            assert_eq!(
                person.asks(Method::GET, "/healthz", &foreign, "").await.status,
                200,
                "{mode}"
            );
        }
        let same = [own, ("sec-fetch-site", "same-origin")];
        for headers in [&[][..], &same] {
            person
                .asks(Method::POST, "/v1/tasks/t1/start", headers, "")
                .await
                .problem(404, "not-found");
            for path in ["/v1/tasks", "/metrics", "/actors"] {
                assert_eq!(
                    person.asks(Method::GET, path, headers, "").await.status,
                    200,
                    "{mode} {path}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_body_says_what_it_is() {
    let person = Person::of("proxy").await;
    let unsaid = person.asks(Method::POST, "/v1/tasks", &[], "{}").await;
    unsaid.problem(415, "unsupported-media-type");
    let form = [("content-type", "text/plain")];
    let said = person.asks(Method::POST, "/v1/tasks", &form, "{}").await;
    said.problem(415, "unsupported-media-type");
}

#[tokio::test]
async fn a_node_is_called_by_the_names_that_it_was_given() {
    let text = "[http]\nallowed_hosts = [\"windrow.lan\"]\npublic_url = \"https://w.example.org/x\"";
    let node = Recipe::new().config(text).start().await;
    for host in [
        "windrow.lan",
        "Windrow.LAN:8080",
        "w.example.org",
        "localhost:1",
        "127.0.0.1",
    ] {
        let answer = node
            .admin
            .send(Method::GET, "/v1/whoami", &[("host", host)], Bytes::new())
            .await;
        assert_eq!(answer.status, 200, "{host}: {}", answer.text());
    }
    // A proxy that puts its own name of the node in place of the one that people use.
    let behind = [("host", "windrow.lan"), ("origin", "https://w.example.org")];
    assert_eq!(
        node.admin
            .send(Method::GET, "/v1/whoami", &behind, Bytes::new())
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_token_can_be_asked_for_of_this_machine_too() {
    let node = Recipe::new().config("[auth]\nalways_token = true").start().await;
    let nobody = Client::new(&node.url, None);
    let viewer = node.client("viewer", None).await;
    for path in ["/metrics", "/actors"] {
        nobody.get(path).await.problem(401, "unauthenticated");
        assert_eq!(viewer.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_key_is_its_tokens_own_also_where_another_token_has_the_same_name() {
    let node = Node::start().await;
    let business = Business::willing().await;
    node.business("push", &business.url(), json!({})).await;
    node.business("mail", &business.url(), json!({})).await;
    let token = async |business: &str| {
        let wish = json!({"name": "nightly", "role": "business", "business": business});
        let made = node.admin.post("/v1/tokens", wish).await.expect(201);
        Client::new(&node.url, made["token"].as_str())
    };
    let (one, twin, other) = (token("push").await, token("push").await, token("mail").await);
    let make = async |client: &Client, business: &str| -> Value {
        let body = json!({"business": business, "source": {"type": "range", "total": 5}});
        let made = client
            .json(Method::POST, "/v1/tasks", &[("idempotency-key", "k1")], body)
            .await;
        made.expect(201)["id"].clone()
    };
    let first = make(&one, "push").await;
    assert_eq!(make(&one, "push").await, first, "a repeat");
    assert_ne!(make(&twin, "push").await, first, "another token of the same name");
    let mail = make(&other, "mail").await;
    let shown = other
        .get(&format!("/v1/tasks/{}", mail.as_str().unwrap()))
        .await
        .expect(200);
    assert_eq!(shown["business"], "mail");
}
