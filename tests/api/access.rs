//! Who may call what: every route of the document with every kind of caller.

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

use crate::business::Business;
use crate::support::{Client, Node, Recipe};

/// Each operation of the document with the roles that it names; none for the public ones.
async fn operations(node: &Node) -> Vec<(Method, String, Option<Vec<String>>)> {
    let document = Client::new(&node.url, None)
        .get("/openapi.json")
        .await
        .expect(200);
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("an item") {
            let Ok(method) = Method::from_bytes(method.to_uppercase().as_bytes()) else {
                continue;
            };
            let security = operation["security"]
                .as_array()
                .unwrap_or_else(|| panic!("{method} {path} states no policy"));
            let roles: Vec<String> = security
                .iter()
                .filter_map(|one| one["bearer"].as_array())
                .flatten()
                .map(|role| role.as_str().unwrap().to_owned())
                .collect();
            let public =
                security.is_empty() || security.iter().any(|one| one.as_object().unwrap().is_empty());
            assert!(public || !roles.is_empty(), "{method} {path} is for nobody");
            found.push((method, path.clone(), (!public).then_some(roles)));
        }
    }
    found
}

fn filled(path: &str) -> String {
    path.replace("{task}", "t999")
        .replace("{business}", "nobody")
        .replace("{node}", "nowhere")
        .replace("{slug}", "x")
        .split('/')
        .map(|part| if part.starts_with('{') { "1" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

#[tokio::test]
async fn each_route_is_open_to_the_roles_that_the_document_names_and_to_nobody_else() {
    let node = Node::start().await;
    let business = Business::willing().await;
    node.business("push", &business.url(), json!({})).await;
    let revoked = node.client("admin", None).await;
    let tokens = node.admin.get("/v1/tokens").await.expect(200);
    let last = tokens["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token["id"].as_i64().unwrap())
        .max();
    let gone = node.admin.delete(&format!("/v1/tokens/{}", last.unwrap())).await;
    assert!(matches!(gone.status, 200 | 204), "{}", gone.text());
    let strangers = [
        ("none", Client::new(&node.url, None)),
        ("garbage", Client::new(&node.url, Some("wrk_garbage"))),
        ("revoked", revoked),
    ];
    let callers = [
        ("viewer", node.client("viewer", None).await),
        ("operator", node.client("operator", None).await),
        ("business", node.client("business", Some("push")).await),
    ];
    let allows = |role: &str, needed: &[String]| {
        let parse = |word: &str| windrow_core::business::access::Role::parse(word).expect("a role");
        needed.iter().any(|needed| parse(role).allows(parse(needed)))
    };
    let all = operations(&node).await;
    assert!(all.len() > 30, "the document lists what there is: {}", all.len());
    for (method, path, roles) in all {
        let Some(roles) = roles else { continue };
        if path == "/v1/events" {
            continue; // A stream without end; its own tests look at it.
        }
        let said = format!("{method} {path}");
        let call = |client: Client| {
            let (method, path) = (method.clone(), filled(&path));
            let body = if method == Method::GET {
                Bytes::new()
            } else {
                Bytes::from_static(b"{}")
            };
            async move {
                client
                    .send(method, &path, &[("content-type", "application/json")], body)
                    .await
            }
        };
        for (who, client) in &strangers {
            let answer = call(client.clone()).await;
            // Metrics and the tree are open to who sits at the machine.
            if !matches!(path.as_str(), "/metrics" | "/actors") {
                assert_eq!(answer.status, 401, "{said} by {who}: {}", answer.text());
            }
        }
        for (role, client) in &callers {
            let answer = call(client.clone()).await;
            let forbidden = answer.status == 403;
            let open = matches!(path.as_str(), "/metrics" | "/actors");
            assert_eq!(
                forbidden,
                !allows(role, &roles) && !open,
                "{said} by {role}: {}",
                answer.text()
            );
            assert!(answer.status < 500, "{said} by {role}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn a_business_sees_its_own_tasks_and_not_those_of_another() {
    let node = Node::start().await;
    let business = Business::willing().await;
    node.business("mine", &business.url(), json!({})).await;
    node.business("theirs", &business.url(), json!({})).await;
    let mine = node.task("mine", 5, json!({})).await;
    let theirs = node.task("theirs", 5, json!({})).await;
    let client = node.client("business", Some("mine")).await;
    client.get(&format!("/v1/tasks/{mine}")).await.expect(200);
    for (method, path) in [
        (Method::GET, format!("/v1/tasks/{theirs}")),
        (Method::POST, format!("/v1/tasks/{theirs}/stop")),
        (Method::GET, format!("/v1/tasks/{theirs}/logs")),
        (Method::POST, format!("/v1/tasks/{theirs}/ready")),
    ] {
        let answer = client.json(method.clone(), &path, &[], json!({})).await;
        assert!(
            matches!(answer.status, 403 | 404),
            "{method} {path}: {}",
            answer.text()
        );
    }
    let listed = client.get("/v1/tasks").await;
    if listed.status == 200 {
        let ids: Vec<Value> = listed.json()["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["id"].clone())
            .collect();
        assert_eq!(ids, [json!(mine)]);
    }
}

#[tokio::test]
async fn the_actor_comes_from_the_token_and_never_from_the_request() {
    let node = Node::start().await;
    let business = Business::willing().await;
    node.business("push", &business.url(), json!({})).await;
    let operator = node.client("operator", None).await;
    let body = json!({"business": "push", "source": {"type": "range", "total": 5}, "reason": "try", "actor": "root"});
    let problem = operator
        .post("/v1/tasks", body.clone())
        .await
        .problem(400, "invalid-request");
    assert_eq!(problem["errors"][0]["pointer"], "/actor", "{problem:#}");
    let mut honest = body;
    honest.as_object_mut().unwrap().remove("actor");
    let made = operator.post("/v1/tasks", honest).await.expect(201);
    let path = format!("/v1/tasks/{}/revisions", made["id"].as_str().unwrap());
    let audit = node.admin.get(&path).await.expect(200);
    assert_eq!(
        (&audit["items"][0]["actor"], &audit["items"][0]["reason"]),
        (&json!("operator"), &json!("try"))
    );
}

#[tokio::test]
async fn without_sign_in_it_listens_on_loopback_only() {
    let recipe = Recipe::new().config("[auth]\nmode = \"off\"");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_windrow"))
        .arg("serve")
        .env("WINDROW_NODE__DATA_DIR", recipe.path("data"))
        .env("WINDROW_HTTP__LISTEN", "0.0.0.0:0")
        .env("WINDROW_AUTH__MODE", "off")
        .current_dir(recipe.path(""))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(
        said.contains("anyone who can reach the port would have full access"),
        "{said}"
    );
}
