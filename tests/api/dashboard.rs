//! The dashboard: its files and what a browser is told of them, and sessions: cookies that stand for tokens.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

use crate::business::Business;
use crate::support::{Answer, Client, Node, Recipe};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// What browsers send where they want to show what comes.
const SHOWN: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");

async fn seen(client: &Client, path: &str) -> Answer {
    client.send(Method::GET, path, &[SHOWN], Bytes::new()).await
}

#[tokio::test]
async fn every_address_that_no_route_has_is_the_page_and_the_paths_of_the_api_keep_their_problems() {
    let node = Node::start().await;
    let nobody = Client::new(&node.url, None);
    let page = seen(&nobody, "/").await;
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-cache"),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    for path in ["/tasks", "/tasks/t1/failures?code=TIMEOUT", "/nodes/n1", "/login"] {
        assert_eq!(seen(&nobody, path).await.body, page.body, "{path}");
        nobody.get(path).await.problem(404, "not-found");
        nobody.post(path, json!({})).await.problem(404, "not-found");
    }
    for path in [
        "/v1/nothing",
        "/docs/nothing",
        "/problems/no-such",
        "/internal/v1",
        "/metrics/x",
        "/ui/no.js",
    ] {
        seen(&nobody, path).await.problem(404, "not-found");
    }
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    let named: Vec<&str> = text
        .split("=\"/ui/")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(named.len() >= 2, "{text}");
    for name in named {
        let path = format!("/ui/{name}");
        let packed = nobody
            .send(Method::GET, &path, &[("accept-encoding", "gzip")], Bytes::new())
            .await;
        assert_eq!(
            packed.header("cache-control"),
            Some("public, max-age=31536000, immutable"),
            "{path}"
        );
        let tag = packed.header("etag").expect("a tag").to_owned();
        let again = [("accept-encoding", "gzip"), ("if-none-match", &*tag)];
        let again = nobody.send(Method::GET, &path, &again, Bytes::new()).await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        let head = nobody.send(Method::HEAD, &path, &[], Bytes::new()).await;
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
    }
}

#[tokio::test]
async fn without_a_dashboard_there_is_the_api_and_a_page_that_says_so() {
    let node = Recipe::new().config("[dashboard]\nenabled = false").start().await;
    let nobody = Client::new(&node.url, None);
    let front = seen(&nobody, "/").await;
    assert!(
        front.status == 200 && front.text().contains("A node of Windrow"),
        "{}",
        front.text()
    );
    for path in ["/tasks", "/ui/app.css"] {
        seen(&nobody, path).await.problem(404, "not-found");
    }
    let problem = seen(&nobody, "/problems/no-capacity").await;
    assert!(!problem.text().contains("Where to look"), "{}", problem.text());
}

/// A browser that is signed in.
struct Browser {
    client: Client,
    cookie: String,
}

impl Browser {
    async fn of(node: &Node, client: &Client) -> Browser {
        let body = json!({"token": client.token});
        let client = Client::new(&node.url, None);
        let own = [("origin", &*node.url)];
        let answer = client.json(Method::POST, "/v1/session", &own, body).await;
        assert_eq!(answer.status, 204, "{}", answer.text());
        let set = answer.header("set-cookie").expect("a cookie").to_owned();
        let (cookie, flags) = set.split_once("; ").expect("flags");
        assert!(cookie.starts_with("windrow_session=wss_"), "{set}");
        assert_eq!(flags, "Path=/; HttpOnly; SameSite=Strict; Max-Age=43200");
        Browser {
            client,
            cookie: cookie.to_owned(),
        }
    }

    async fn asks(&self, method: Method, path: &str, more: &[(&str, &str)], body: Value) -> Answer {
        let headers: Vec<(&str, &str)> = more.iter().copied().chain([("cookie", &*self.cookie)]).collect();
        match method {
            Method::GET | Method::DELETE => self.client.send(method, path, &headers, Bytes::new()).await,
            method => self.client.json(method, path, &headers, body).await,
        }
    }

    async fn sees(&self, path: &str) -> Answer {
        self.asks(Method::GET, path, &[], Value::Null).await
    }
}

#[tokio::test]
async fn a_cookie_is_its_token_and_writes_for_pages_of_the_node_alone() {
    let node = Node::start().await;
    let business = Business::willing().await;
    node.business("push", &business.url(), json!({})).await;
    let browser = Browser::of(&node, &node.client("operator", None).await).await;
    let me = browser.sees("/v1/whoami").await.expect(200);
    assert_eq!(
        (&me["name"], &me["role"], &me["auth"]),
        (&json!("operator"), &json!("operator"), &json!("token"))
    );
    assert!(
        me["session"]["expires_at"].is_string() && me["now"].is_string(),
        "{me:#}"
    );
    browser.sees("/v1/tokens").await.problem(403, "forbidden");
    let wish = json!({"business": "push", "source": {"type": "range", "total": 5}, "reason": "by hand"});
    let write = async |headers: &[(&str, &str)]| {
        browser
            .asks(Method::POST, "/v1/tasks", headers, wish.clone())
            .await
    };
    for foreign in [
        &[][..],
        &[("sec-fetch-site", "none")],
        &[("sec-fetch-site", "cross-site")],
        &[("origin", "http://evil.example")],
        &[("origin", "null"), ("sec-fetch-site", "same-origin")],
    ] {
        write(foreign).await.problem(403, "foreign-page");
    }
    for own in [("origin", &*node.url), ("sec-fetch-site", "same-origin")] {
        let made = write(&[own]).await.expect(201);
        let path = format!("/v1/tasks/{}/revisions", made["id"].as_str().unwrap());
        let entry = node.admin.get(&path).await.expect(200)["items"][0].take();
        assert_eq!(
            (&entry["actor"], &entry["source"], &entry["reason"]),
            (&json!("operator"), &json!("ui"), &json!("by hand")),
            "{entry:#}"
        );
    }
    // A token that is sent counts, whatever cookie comes with it.
    let both = [("cookie", &*browser.cookie)];
    let both = node
        .admin
        .send(Method::GET, "/v1/whoami", &both, Bytes::new())
        .await;
    assert!(both.expect(200)["session"].is_null());
}

#[tokio::test]
async fn nobody_is_signed_in_by_another_page_or_with_what_is_no_token() {
    let node = Node::start().await;
    let nobody = Client::new(&node.url, None);
    let token = json!({"token": node.admin.token});
    for (foreign, slug) in [
        (("origin", "http://evil.example"), "foreign-page"),
        (("sec-fetch-site", "cross-site"), "foreign-page"),
        (("host", "evil.example"), "foreign-host"),
    ] {
        let answer = nobody
            .json(Method::POST, "/v1/session", &[foreign], token.clone())
            .await;
        answer.problem(403, slug);
        let out = nobody
            .send(Method::DELETE, "/v1/session", &[foreign], Bytes::new())
            .await;
        out.problem(403, slug);
    }
    for wrong in ["wrk_garbage", "wst_garbage", "x"] {
        let answer = nobody.post("/v1/session", json!({"token": wrong})).await;
        assert_eq!(answer.header("set-cookie"), None);
        answer.problem(401, "unauthenticated");
    }
    for wrong in ["windrow_session=wss_x", "windrow_session=", "windrow_session"] {
        let answer = nobody
            .send(Method::GET, "/v1/tasks", &[("cookie", wrong)], Bytes::new())
            .await;
        answer.problem(401, "unauthenticated");
    }
    // The token itself is no cookie.
    let cookie = format!("windrow_session={}", node.admin.token.as_deref().unwrap());
    let answer = nobody
        .send(Method::GET, "/v1/tasks", &[("cookie", &cookie)], Bytes::new())
        .await;
    answer.problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_session_ends_by_its_owner_by_an_administrator_and_with_its_token() {
    let node = Node::start().await;
    let ann = node.client("viewer", None).await;
    let [own, ended, left] = [
        Browser::of(&node, &ann).await,
        Browser::of(&node, &ann).await,
        Browser::of(&node, &ann).await,
    ];
    for browser in [&own, &ended, &left] {
        assert_eq!(browser.sees("/v1/tasks").await.status, 200);
    }
    let out = own
        .asks(
            Method::DELETE,
            "/v1/session",
            &[("origin", &*node.url)],
            Value::Null,
        )
        .await;
    assert_eq!(out.status, 204);
    assert!(
        out.header("set-cookie")
            .is_some_and(|set| set.starts_with("windrow_session=; ") && set.contains("Max-Age=0"))
    );
    own.sees("/v1/tasks").await.problem(401, "unauthenticated");
    let again = own.asks(Method::DELETE, "/v1/session", &[], Value::Null).await;
    assert_eq!(again.status, 204, "it is over already");
    left.sees("/v1/sessions").await.problem(403, "forbidden");
    let sessions = node.admin.get("/v1/sessions").await.expect(200);
    let ids: Vec<i64> = sessions["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_i64().unwrap())
        .collect();
    assert_eq!(ids.len(), 2, "{sessions:#}");
    assert_eq!(sessions["items"][0]["address"], "127.0.0.1");
    let path = format!("/v1/sessions/{}", ids[0]);
    assert_eq!(
        node.admin.delete(&format!("{path}?dry_run=true")).await.status,
        200
    );
    assert_eq!(ended.sees("/v1/tasks").await.status, 200, "it was only tried");
    assert_eq!(
        node.admin.delete(&format!("{path}?reason=lost")).await.status,
        204
    );
    node.admin.delete(&path).await.problem(404, "not-found");
    ended.sees("/v1/tasks").await.problem(401, "unauthenticated");
    assert_eq!(left.sees("/v1/tasks").await.status, 200);
    let token = sessions["items"][0]["token"].as_i64().unwrap();
    assert_eq!(
        node.admin.delete(&format!("/v1/tokens/{token}")).await.status,
        204
    );
    left.sees("/v1/tasks").await.problem(401, "unauthenticated");
    assert_eq!(
        node.admin.get("/v1/sessions").await.expect(200)["items"],
        json!([])
    );
    let audit = node.admin.get("/v1/audit?action=session.end").await.expect(200);
    let who: Vec<&Value> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["reason"])
        .collect();
    assert_eq!(who, [&json!("lost"), &Value::Null], "{audit:#}");
}

#[tokio::test]
async fn a_session_ends_by_itself_and_its_stream_with_it() {
    let node = Recipe::new()
        .config("[auth]\nsession_life = \"4s\"")
        .start()
        .await;
    let body = json!({"token": node.admin.token});
    let answer = node.admin.post("/v1/session", body).await;
    let cookie = answer
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let nobody = Client::new(&node.url, None);
    let headers = [("cookie", &*cookie), ("accept", "text/event-stream")];
    let stream = nobody.send(Method::GET, "/v1/events?topics=tasks", &headers, Bytes::new());
    // Its body is read to its end: that comes, since nobody is known by the cookie any more.
    let stream = tokio::time::timeout(Duration::from_secs(20), stream)
        .await
        .expect("it ends");
    assert_eq!(
        (stream.status, stream.header("content-type")),
        (200, Some("text/event-stream"))
    );
    let late = nobody
        .send(Method::GET, "/v1/whoami", &headers, Bytes::new())
        .await;
    late.problem(401, "unauthenticated");
}
