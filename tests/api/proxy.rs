//! Roles of people whom a proxy signs in: by their groups, in a list or in a claim.

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

use crate::business::Business;
use crate::support::{Answer, Client, Node, Recipe};

const ROLES: &str = "[auth]\nmode = \"proxy\"\nproxy_groups_header = \"X-Forwarded-Groups\"\n\
    [auth.proxy_roles]\nadmins = \"admin\"\nops = \"operator\"\nstaff = \"viewer\"\npush-team = \"business:push\"\n";

/// Sends a request as the proxy does for ann with these groups.
async fn ann(node: &Node, groups: &str, method: Method, path: &str, body: Value) -> Answer {
    let headers = [
        ("x-forwarded-user", "ann"),
        ("x-forwarded-groups", groups),
        ("content-type", "application/json"),
    ];
    let body = match body {
        Value::Null => Bytes::new(),
        body => Bytes::from(body.to_string()),
    };
    Client::new(&node.url, None)
        .send(method, path, &headers, body)
        .await
}

async fn who(node: &Node, groups: &str) -> Answer {
    ann(node, groups, Method::GET, "/v1/whoami", Value::Null).await
}

/// Returns the audit entry of a task's creation.
async fn created(node: &Node, task: &Value) -> Value {
    let path = format!(
        "/v1/audit?action=task.create&object=task:{}",
        task["id"].as_str().unwrap()
    );
    node.admin.get(&path).await.expect(200)["items"][0].clone()
}

#[tokio::test]
async fn a_group_gives_its_role_and_the_audit_names_both() {
    let node = Recipe::new().config(ROLES).start().await;
    let business = Business::willing().await;
    node.business("push", &business.url(), json!({})).await;
    node.business("mail", &business.url(), json!({})).await;
    for (groups, role, from) in [
        ("staff", "viewer", "group staff"),
        ("staff, ops", "operator", "group ops"),
        ("ops,admins,other", "admin", "group admins"),
        ("push-team", "business", "group push-team"),
    ] {
        let found = who(&node, groups).await.expect(200);
        assert_eq!(
            (&found["name"], &found["role"], &found["role_from"]),
            (&json!("ann"), &json!(role), &json!(from))
        );
    }
    let task = |business: &str| json!({"business": business, "source": {"type": "range", "total": 3}});
    let create = |groups: &'static str, business: &'static str| {
        ann(&node, groups, Method::POST, "/v1/tasks", task(business))
    };
    create("staff", "push").await.problem(403, "forbidden");
    create("push-team", "mail")
        .await
        .problem(422, "validation-failed");
    for (groups, business, role) in [
        ("staff,ops", "mail", json!("operator by group ops")),
        ("push-team", "push", json!("business:push by group push-team")),
    ] {
        let made = create(groups, business).await.expect(201);
        let entry = created(&node, &made).await;
        assert_eq!((&entry["actor"], &entry["role"]), (&json!("ann"), &role));
    }
    let by_token = node.admin.post("/v1/tasks", task("push")).await.expect(201);
    let entry = created(&node, &by_token).await;
    assert_eq!(
        (&entry["actor"], &entry["role"]),
        (&json!("bootstrap"), &Value::Null)
    );
    assert_eq!(
        node.admin.get("/v1/whoami").await.expect(200)["role_from"],
        Value::Null
    );
}

#[tokio::test]
async fn people_without_a_role_are_refused_unless_there_is_a_default() {
    let node = Recipe::new().config(ROLES).start().await;
    let problem = who(&node, "guests").await.problem(403, "no-role");
    assert_eq!(
        problem["detail"],
        "ann has no role: none of the groups has one (guests)"
    );
    let nameless = [("x-forwarded-groups", "admins")];
    Client::new(&node.url, None)
        .send(Method::GET, "/v1/whoami", &nameless, Bytes::new())
        .await
        .problem(401, "unauthenticated");
    let twice = [
        ("x-forwarded-user", "ann"),
        ("x-forwarded-groups", "staff"),
        ("x-forwarded-groups", "admins"),
    ];
    Client::new(&node.url, None)
        .send(Method::GET, "/v1/whoami", &twice, Bytes::new())
        .await
        .problem(403, "no-role");
    let config = ROLES.replace("[auth]\n", "[auth]\nproxy_default_role = \"viewer\"\n");
    let node = Recipe::new().config(&config).start().await;
    let found = who(&node, "guests").await.expect(200);
    assert_eq!(
        (&found["role"], &found["role_from"]),
        (&json!("viewer"), &json!("default"))
    );
}

#[tokio::test]
async fn groups_of_an_untrusted_peer_give_no_role() {
    let config = ROLES.replace("[auth]\n", "[auth]\nproxy_trust = [\"192.0.2.1/32\"]\n");
    let node = Recipe::new().config(&config).start().await;
    who(&node, "admins").await.problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_claim_of_the_forwarded_jwt_gives_the_role() {
    let config = ROLES.replace(
        "[auth]\n",
        "[auth]\nproxy_groups_claim = \"realm_access.roles\"\n",
    );
    let node = Recipe::new().config(&config).start().await;
    // {"alg":"none"} and {"realm_access":{"roles":["staff","ops"]}}
    let jwt = "eyJhbGciOiJub25lIn0.eyJyZWFsbV9hY2Nlc3MiOnsicm9sZXMiOlsic3RhZmYiLCJvcHMiXX19.c2ln";
    let found = who(&node, jwt).await.expect(200);
    assert_eq!(
        (&found["role"], &found["role_from"]),
        (&json!("operator"), &json!("group ops"))
    );
    who(&node, "admins").await.problem(403, "no-role");
}
