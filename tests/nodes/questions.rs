//! The route between nodes: who can't prove to be one hears that there is no such path, and changes nothing.

use hyper::Method;
use serde_json::json;
use uuid::Uuid;
use windrow_core::ids::{SessionId, WallMs};
use windrow_engine::ports::ownership::peers::{NodeChangeRequest, PATH, PeerReply, PeerSeal, Question, Seal};
use windrow_host::vault::KeyVault;
use windrow_net::peers::PeerKey;

use crate::cluster::Cluster;
use crate::support::{Answer as Heard, Node};

fn now() -> WallMs {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    WallMs(i64::try_from(since.as_millis()).unwrap())
}

async fn send(node: &Node, method: Method, seal: &Seal, body: &[u8]) -> Heard {
    let (to, at) = (seal.to.0.to_string(), seal.at.0.to_string());
    let headers = [
        ("windrow-peer-to", to.as_str()),
        ("windrow-peer-from", &seal.from),
        ("windrow-peer-time", &at),
        ("windrow-peer-nonce", &seal.nonce),
        ("windrow-peer-proof", &seal.proof),
    ];
    node.admin
        .send(method, PATH, &headers, bytes::Bytes::copy_from_slice(body))
        .await
}

fn capacity(rate: &str) -> Vec<u8> {
    let wish = NodeChangeRequest {
        capacity_rate: Some(rate.parse().unwrap()),
        log_filter: None,
        actor: "eve".to_owned(),
        source: "api".to_owned(),
        reason: None,
        request_id: None,
        role: None,
        is_trial: false,
    };
    serde_json::to_vec(&Question::Change(Box::new(wish))).unwrap()
}

#[tokio::test]
async fn only_a_node_of_this_store_is_answered_and_only_once() {
    let cluster = Cluster::new().await;
    let node = cluster.node("n1", "").await;
    let session = cluster
        .postgres
        .sql("windrow", "SELECT id FROM session WHERE NOT fenced");
    let me = SessionId(session.parse::<Uuid>().expect("one session"));
    let vault = KeyVault::open(Some(&cluster.path("key")), cluster.place.path()).expect("the key");
    let (key, other) = (PeerKey::new(vault.peers_key()), PeerKey::new(&[7; 32]));
    let body = capacity("77/s");
    let seal = |at| key.seal(me, "n2", &body, at);
    let good = seal(now());
    let forged = [
        ("another key", other.seal(me, "n2", &body, now()), body.clone()),
        ("another body", good.clone(), capacity("78/s")),
        (
            "another sender",
            Seal {
                from: "n3".to_owned(),
                ..good.clone()
            },
            body.clone(),
        ),
        (
            "another session",
            key.seal(SessionId(Uuid::new_v4()), "n2", &body, now()),
            body.clone(),
        ),
        ("too old", seal(WallMs(now().0 - 61_000)), body.clone()),
        ("of the future", seal(WallMs(now().0 + 62_000)), body.clone()),
        (
            "no proof",
            Seal {
                proof: String::new(),
                ..good.clone()
            },
            body.clone(),
        ),
    ];
    let nowhere = node
        .admin
        .get("/internal/v1/nothing")
        .await
        .problem(404, "not-found");
    for (what, seal, body) in forged {
        let told = send(&node, Method::POST, &seal, &body)
            .await
            .problem(404, "not-found");
        assert_eq!(told["title"], nowhere["title"], "{what}");
    }
    node.admin.post(PATH, json!({})).await.problem(404, "not-found");
    node.admin.get(PATH).await.problem(404, "not-found");
    send(&node, Method::PUT, &good, &body)
        .await
        .problem(404, "not-found");
    let unchanged = node.admin.get("/v1/nodes/n1").await.expect(200);
    assert_eq!(unchanged["capacity_rate"], "1000/s");
    // The same question, as it was sealed: once.
    let heard = send(&node, Method::POST, &good, &body).await;
    assert_eq!(heard.status, 200, "{}", heard.text());
    assert!(key.is_proved(
        &good.nonce,
        &heard.body,
        heard.header("windrow-peer-proof").unwrap()
    ));
    let PeerReply::Node(face) = serde_json::from_slice(&heard.body).unwrap() else {
        panic!("{}", heard.text())
    };
    assert_eq!(face.capacity_rate, "77/s");
    node.admin
        .patch("/v1/nodes/n1", json!({"capacity_rate": "500/s"}))
        .await
        .expect(200);
    send(&node, Method::POST, &good, &body)
        .await
        .problem(404, "not-found");
    assert_eq!(
        node.admin.get("/v1/nodes/n1").await.expect(200)["capacity_rate"],
        "500/s"
    );
    let audit = node.admin.get("/v1/audit?action=node.change").await.expect(200);
    let actors: Vec<&str> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["actor"].as_str().unwrap())
        .collect();
    assert_eq!(
        actors,
        ["bootstrap", "eve"],
        "the audit names the person, once: {audit:#}"
    );
    let document = node.admin.get("/openapi.json").await.expect(200);
    assert!(
        !document.to_string().contains("/internal/"),
        "it is no part of the API"
    );
}

#[tokio::test]
async fn nodes_with_different_keys_say_so() {
    let cluster = Cluster::new().await;
    let n1 = cluster.node("n1", "").await;
    std::fs::write(cluster.path("key"), format!("B{}=\n", "A".repeat(42))).unwrap();
    let _n2 = cluster.node("n2", "").await;
    let node = n1.admin.get("/v1/nodes/n2").await.expect(200);
    let why = node["live"]["why"].as_str().expect("it can't be asked");
    assert!(
        why.contains("auth.key_file") && node["state"] == "serving",
        "{node:#}"
    );
    let person = crate::program::Person::admin(&n1);
    let told = person.windrow("doctor --no-handlers").await.expect(1).stdout;
    assert!(told.contains("auth.key_file is the same on all"), "{told}");
}
