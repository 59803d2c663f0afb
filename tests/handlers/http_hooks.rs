//! Hooks against a real server: what is sent, and what each answer means.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use windrow_config::{CommandHandler, HttpHandler};
use windrow_core::business::secrets::BusinessSecrets;
use windrow_core::business::{BusinessSpec, HookKind};
use windrow_core::ids::WallMs;
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::access::vault::Vault;
use windrow_engine::ports::handling::handler::Reply;
use windrow_engine::ports::handling::hook::{HandlerChecker, HookCall, HookCaller, HookReply};
use windrow_handlers::http::{HookClient, HttpOptions, Transports};
use windrow_handlers::sign::Signer;
use windrow_host::vault::KeyVault;

use crate::support_server::{Act, Server, answer, clock, open, single};

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub(crate) const CANARY: &str = "c4n4ry-5ecr3t";

pub(crate) fn client() -> HookClient {
    HookClient {
        http: HttpHandler::default(),
        commands: CommandHandler::default(),
        in_process: BTreeMap::new(),
        environment: Vec::new(),
        node: "n7".to_owned(),
        vault: vault(),
        clock: clock(),
        transports: Arc::new(Transports::default()),
    }
}

fn vault() -> Arc<dyn Vault> {
    Arc::new(KeyVault::with_key([7; 32]))
}

/// A business with this handler and these hooks, and one secret header.
pub(crate) fn business(url: &str, more: serde_json::Value, hooks: serde_json::Value) -> Business {
    let mut http = json!({"url": url, "headers": {"x-team": "growth"}, "secret_headers": ["authorization"]});
    http.as_object_mut()
        .expect("an object")
        .extend(more.as_object().expect("an object").clone());
    let spec: BusinessSpec =
        serde_json::from_value(json!({"pool": "default", "handler": {"http": http}, "hooks": hooks}))
            .expect("a business");
    let headers = BTreeMap::from([("authorization".to_owned(), format!("Bearer {CANARY}"))]);
    let secrets = BusinessSecrets::new(SECRET.to_owned(), headers);
    Business {
        id: 1,
        slug: "push".to_owned(),
        spec,
        sealed: Some(vault().seal(&BusinessSecrets::place("push"), &secrets.to_bytes())),
        revision: 1,
        archived_at: None,
        created_at: WallMs(0),
        updated_at: WallMs(0),
    }
}

fn hook(kind: HookKind) -> HookCall {
    let body = format!(r#"{{"type":"{}","task":{{"id":"t1"}}}}"#, kind.as_str());
    HookCall {
        kind,
        id: "k7f3q2-t1-s1-task.prepare".to_owned(),
        body,
        timeout: Duration::from_secs(10),
    }
}

async fn reply(act: Act) -> HookReply {
    let server = Server::start(move |_| act.clone()).await;
    client()
        .call(
            &business(&server.url(), json!({}), json!({})),
            &hook(HookKind::Prepare),
        )
        .await
}

#[tokio::test]
async fn a_hook_is_a_signed_post_with_the_businesss_headers_and_its_body_as_given() {
    let server = Server::always(204, "").await;
    let call = hook(HookKind::Finished);
    let answered = client()
        .call(&business(&server.url(), json!({}), json!({})), &call)
        .await;
    assert_eq!(answered, HookReply::Done(None));
    let seen = server.seen().remove(0);
    assert_eq!(
        (seen.method.as_str(), seen.body.as_ref()),
        ("POST", call.body.as_bytes())
    );
    assert_eq!(seen.header("webhook-id"), Some(call.id.as_str()));
    assert_eq!(seen.header("x-team"), Some("growth"));
    assert_eq!(
        seen.header("authorization"),
        Some(format!("Bearer {CANARY}").as_str())
    );
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert!(seen.header("user-agent").expect("told").ends_with("(+n7)"));
    let timestamp: i64 = seen
        .header("webhook-timestamp")
        .expect("told")
        .parse()
        .expect("a number");
    let expected = Signer::new(&[SECRET])
        .expect("good")
        .signature(&call.id, timestamp, call.body.as_bytes());
    assert_eq!(seen.header("webhook-signature"), expected.as_deref());
}

#[tokio::test]
async fn a_hook_goes_to_its_own_url_if_it_has_one() {
    let (handler, own) = (Server::always(500, "").await, Server::always(200, "").await);
    let hooks = json!({"prepare": {"url": own.url()}});
    let business = business(&handler.url(), json!({}), hooks);
    assert_eq!(
        client().call(&business, &hook(HookKind::Prepare)).await,
        HookReply::Done(None)
    );
    assert!(matches!(
        client().call(&business, &hook(HookKind::Stopped)).await,
        HookReply::Failed(_)
    ));
    assert_eq!((own.seen().len(), handler.seen().len()), (1, 1));
}

#[tokio::test]
async fn each_status_means_what_the_protocol_says() {
    assert_eq!(
        reply(answer(200, r#"{"total":3}"#)).await,
        HookReply::Done(Some(json!({"total": 3})))
    );
    assert_eq!(reply(answer(200, "fine")).await, HookReply::Done(None));
    assert_eq!(reply(answer(202, "")).await, HookReply::Later);
    for status in [400, 401, 403, 404, 409, 410, 422] {
        let refused = reply(answer(status, r#"{"message":"no campaign on Sundays"}"#)).await;
        assert_eq!(
            refused,
            HookReply::Refused("no campaign on Sundays".to_owned()),
            "{status}"
        );
    }
    let problem = reply(answer(422, r#"{"type":"about:blank","detail":"too big"}"#)).await;
    assert_eq!(problem, HookReply::Refused("too big".to_owned()));
    let HookReply::Refused(text) = reply(answer(422, "<h1>no</h1>")).await else {
        panic!("not refused")
    };
    assert!(text.contains("422") && text.contains("\"no\""), "{text}");
    for status in [408, 425, 429, 500, 502, 503] {
        let HookReply::Failed(text) = reply(answer(status, "busy")).await else {
            panic!("{status}")
        };
        assert!(
            text.contains(&status.to_string()) && text.contains("busy"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_a_long_reply_is_not_read() {
    let target = Server::always(204, "").await;
    let moved = Act::Answer(307, vec![("location", target.url())], String::new());
    let HookReply::Failed(text) = reply(moved).await else {
        panic!("not failed")
    };
    assert!(text.contains("redirects are not followed"), "{text}");
    assert!(target.seen().is_empty());
    let long = format!("\"{}\"", "x".repeat(64 * 1024));
    let HookReply::Failed(text) = reply(answer(200, &long)).await else {
        panic!("not failed")
    };
    assert!(text.contains("larger than 65536 bytes"), "{text}");
}

#[tokio::test]
async fn an_envelope_is_opened_with_the_businesss_pointer() {
    let server = Server::always(200, r#"{"code":0,"data":{"total":7}}"#).await;
    let business = business(&server.url(), json!({"response_pointer": "/data"}), json!({}));
    let answered = client().call(&business, &hook(HookKind::Validate)).await;
    assert_eq!(answered, HookReply::Done(Some(json!({"total": 7}))));
}

#[tokio::test]
async fn a_hook_that_hangs_or_may_not_be_called_fails_in_words_without_secrets() {
    let server = Server::start(|_| Act::Hang).await;
    let late = HookCall {
        timeout: Duration::from_millis(200),
        ..hook(HookKind::Stopped)
    };
    let HookReply::Failed(text) = client()
        .call(&business(&server.url(), json!({}), json!({})), &late)
        .await
    else {
        panic!("not failed")
    };
    assert!(text.contains("200ms") && !text.contains(CANARY), "{text}");
    let metadata = business("http://169.254.169.254/", json!({}), json!({}));
    let HookReply::Failed(text) = client().call(&metadata, &hook(HookKind::Stopped)).await else {
        panic!("not failed")
    };
    assert!(text.contains("may not be called"), "{text}");
    let mut foreign = business(&server.url(), json!({}), json!({}));
    foreign.slug = "other".to_owned();
    let HookReply::Failed(text) = client().call(&foreign, &hook(HookKind::Stopped)).await else {
        panic!("not failed")
    };
    assert!(
        text.contains("damaged"),
        "secrets of another row are not opened: {text}"
    );
}

/// A run may last for days, and the secret before a rotation is valid for one.
#[tokio::test]
async fn a_rotated_secret_signs_the_calls_of_runs_that_are_open() {
    let server = Server::always(204, "").await;
    let desk = client();
    let ring = desk
        .transports
        .ring("push", &[SECRET.to_owned()])
        .expect("a secret");
    let options = HttpOptions {
        ring: Some(ring),
        ..HttpOptions::new(server.url())
    };
    let handler = open(options);
    assert_eq!(handler.process(single()).await, Reply::AllOk);
    let newer = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let secrets = BusinessSecrets::new(SECRET.to_owned(), BTreeMap::new());
    let rotated = secrets.rotated(newer.to_owned(), clock().wall());
    let mut business = business(&server.url(), json!({}), json!({}));
    business.sealed = Some(vault().seal(&BusinessSecrets::place("push"), &rotated.to_bytes()));
    desk.refresh(&business);
    assert_eq!(handler.process(single()).await, Reply::AllOk);
    for (seen, secrets) in server.seen().iter().zip([&[SECRET][..], &[newer, SECRET]]) {
        let timestamp = seen
            .header("webhook-timestamp")
            .expect("told")
            .parse()
            .expect("a number");
        let id = seen.header("webhook-id").expect("told");
        let expected = Signer::new(secrets)
            .expect("good")
            .signature(id, timestamp, &seen.body);
        assert_eq!(seen.header("webhook-signature"), expected.as_deref());
    }
}

#[tokio::test]
async fn a_hook_at_another_origin_gets_no_secret_header_and_is_signed_all_the_same() {
    let (handler, other) = (Server::always(500, "").await, Server::always(200, "").await);
    for (hook_server, gets_secret) in [(&other, false), (&handler, true)] {
        let own = json!({"finished": {"url": format!("{}/hooks", hook_server.url())}});
        let business = business(&format!("{}/items", handler.url()), json!({}), own);
        client().call(&business, &hook(HookKind::Finished)).await;
        let seen = hook_server.seen().remove(0);
        assert_eq!(seen.header("authorization").is_some(), gets_secret);
        assert_eq!(seen.header("x-team"), Some("growth"));
        assert!(seen.header("webhook-signature").is_some());
    }
}
