//! What comes back from a business that answers: each row of the tables, over a real connection.

use std::time::Duration;

use windrow_core::ids::{ItemCount, ItemIndex};
use windrow_core::items::verdict::{FailureClass, HandlerCommand, Outcome, RetryAdvice};
use windrow_core::task::Rate;
use windrow_engine::ports::handling::handler::{CallFailure, ItemReplies, ItemVerdict, LogLevel, Reply};
use windrow_handlers::http::HttpOptions;

use crate::support_server::{Act, Server, answer, call, failure, items, open, single};

async fn reply_to_single(act: Act) -> Reply {
    let server = Server::start(move |_| act.clone()).await;
    open(HttpOptions::new(server.url())).process(single()).await
}

async fn reply_to_batch(body: &str) -> Reply {
    let server = Server::always(200, body).await;
    let handler = open(HttpOptions {
        batch: 3,
        ..HttpOptions::new(server.url())
    });
    handler.process(call(items(&[(10, 2, 1), (3, 1, 4)]))).await
}

fn replies(reply: Reply) -> ItemReplies {
    match reply {
        Reply::Items(replies) => *replies,
        other => panic!("no verdicts: {other:?}"),
    }
}

#[tokio::test]
async fn each_status_has_its_meaning_over_the_wire() {
    let table = [
        (400, "faulty"),
        (408, "unclear"),
        (409, "faulty"),
        (418, "faulty"),
        (425, "unclear"),
        (500, "unclear"),
        (502, "unavailable"),
        (504, "unclear"),
        (422, "failed"),
        (429, "back pressure"),
        (503, "unavailable"),
        (501, "rejected"),
        (301, "rejected"),
        (302, "rejected"),
        (307, "rejected"),
        (308, "rejected"),
        (401, "rejected"),
        (403, "rejected"),
        (404, "rejected"),
        (405, "rejected"),
        (415, "rejected"),
        (410, "gone"),
    ];
    for (status, kind) in table {
        let (found, failure) = failure(reply_to_single(answer(status, "because")).await);
        assert_eq!(
            (found, failure.code.as_ref()),
            (kind, format!("HTTP_{status}").as_str())
        );
        assert!(failure.message.contains("`because`"), "{}", failure.message);
    }
    for status in [200, 201, 202, 204, 205] {
        assert_eq!(
            reply_to_single(answer(status, "")).await,
            Reply::AllOk,
            "{status}"
        );
    }
}

#[tokio::test]
async fn back_pressure_carries_the_wait_that_was_asked_for() {
    for (header, pause, wait) in [
        ("7", Some(7), Some(7)),
        ("3600", Some(3600), Some(300)),
        ("172800", Some(86_400), Some(300)),
        ("1e9", None, None),
        ("-1", None, None),
        ("NaN", None, None),
    ] {
        for (status, wait) in [(429, pause), (503, wait)] {
            let act = Act::Answer(status, vec![("retry-after", header.into())], String::new());
            let Reply::Failed(failed) = reply_to_single(act).await else {
                panic!("not failed")
            };
            let after = match *failed {
                CallFailure::BackPressure { after, .. } if status == 429 => after,
                CallFailure::Failed {
                    class: FailureClass::Unavailable,
                    after,
                    ..
                } => after,
                other => panic!("{other:?}"),
            };
            assert_eq!(after, wait.map(Duration::from_secs), "{status} {header}");
        }
    }
}

#[tokio::test]
async fn a_stale_epoch_fences_the_run() {
    let problem = r#"{"type":"https://windrow.dev/problems/stale-epoch","status":409}"#;
    let act = Act::Answer(
        409,
        vec![("content-type", "application/problem+json".into())],
        problem.into(),
    );
    assert_eq!(
        reply_to_single(act).await,
        Reply::Failed(Box::new(CallFailure::Fenced))
    );
}

#[tokio::test]
async fn a_single_reply_carries_verdict_logs_and_command() {
    let body = r#"{"result":"fail","code":"INVALID_TOKEN","message":"token expired","output":{"push_id":null},
        "logs":[{"level":"warn","message":"stale token","extra":{"age_days":91}}],
        "command":{"command":"stop","reason":"enough"}}"#;
    let replies = replies(reply_to_single(answer(200, body)).await);
    let [
        (
            ItemIndex(3817),
            ItemVerdict::Failed {
                failure,
                advice: RetryAdvice::Fail,
            },
        ),
    ] = &replies.verdicts[..]
    else {
        panic!("{replies:?}")
    };
    assert_eq!(
        (failure.code.as_ref(), failure.message.as_str()),
        ("INVALID_TOKEN", "token expired")
    );
    assert_eq!(failure.output.as_deref(), Some(r#"{"push_id":null}"#));
    assert_eq!(
        replies.commands,
        [HandlerCommand::Stop {
            reason: "enough".into()
        }]
    );
    let line = &replies.logs[0];
    assert_eq!((line.index, line.level), (Some(ItemIndex(3817)), LogLevel::Warn));
    assert_eq!(line.extra.as_deref(), Some(r#"{"age_days":91}"#));
}

#[tokio::test]
async fn a_batch_may_succeed_in_part() {
    let body = r#"{"results":[{"index":3,"result":"retry","retry_after":"5s","code":"BUSY"},{"index":10,"result":"skip"}],
        "default":"ok", "command":{"command":"slow_down","rate":"200/s","for":"1m","reason":"db replica lag"}}"#;
    let replies = replies(reply_to_batch(body).await);
    let [
        (ItemIndex(10), skipped),
        (ItemIndex(11), ok),
        (ItemIndex(3), busy),
    ] = &replies.verdicts[..]
    else {
        panic!("{replies:?}")
    };
    assert_eq!(*skipped, ItemVerdict::Settled(Outcome::Skipped));
    assert_eq!(*ok, ItemVerdict::Settled(Outcome::Succeeded));
    let ItemVerdict::Failed { failure, advice } = busy else {
        panic!("{busy:?}")
    };
    assert_eq!(
        (failure.code.as_ref(), *advice),
        (
            "BUSY",
            RetryAdvice::Retry {
                after: Some(Duration::from_secs(5))
            }
        )
    );
    let rate = Rate::per_second(200).expect("a rate");
    let lasting = Duration::from_secs(60);
    assert_eq!(
        replies.commands,
        [HandlerCommand::SlowDown {
            rate,
            lasting,
            reason: "db replica lag".into()
        }]
    );
}

#[tokio::test]
async fn an_item_that_a_batch_leaves_out_is_missing_and_a_strange_one_makes_it_bad() {
    let verdicts = replies(reply_to_batch(r#"{"results":[{"index":10,"result":"ok"}]}"#).await).verdicts;
    assert_eq!(verdicts[0].1, ItemVerdict::Settled(Outcome::Succeeded));
    for (_, verdict) in &verdicts[1..] {
        let ItemVerdict::Failed { failure, .. } = verdict else {
            panic!("{verdict:?}")
        };
        assert_eq!(failure.code, "MISSING_RESULT");
    }
    for strange in [
        r#"{"results":[{"index":4,"result":"ok"}],"default":"ok"}"#,
        "ok",
        r#"{"default":"fine"}"#,
    ] {
        let (kind, failure) = failure(reply_to_batch(strange).await);
        assert_eq!(
            (kind, failure.code.as_ref()),
            ("bad reply", "BAD_REPLY"),
            "{strange}"
        );
    }
}

#[tokio::test]
async fn every_command_arrives() {
    let rate = Rate::new(30, Duration::from_secs(60)).expect("a rate");
    let table = [
        (
            r#"{"command":"stop"}"#,
            HandlerCommand::Stop {
                reason: String::new(),
            },
        ),
        (
            r#"{"command":"finish","total":5}"#,
            HandlerCommand::Finish {
                total: Some(ItemCount(5)),
            },
        ),
        (r#"{"command":"finish"}"#, HandlerCommand::Finish { total: None }),
        (
            r#"{"command":"pause_for","for":"30s"}"#,
            HandlerCommand::PauseFor(Duration::from_secs(30)),
        ),
        (
            r#"{"command":"slow_down","rate":"30/m","for":"10s"}"#,
            HandlerCommand::SlowDown {
                rate,
                lasting: Duration::from_secs(10),
                reason: String::new(),
            },
        ),
    ];
    for (json, command) in table {
        let body = format!(r#"{{"result":"ok","command":{json}}}"#);
        assert_eq!(
            replies(reply_to_single(answer(200, &body)).await).commands,
            std::slice::from_ref(&command),
            "{json}"
        );
        let body = format!(r#"{{"default":"ok","command":{json}}}"#);
        assert_eq!(replies(reply_to_batch(&body).await).commands, [command], "{json}");
    }
}

#[tokio::test]
async fn a_login_page_is_no_success() {
    let page = "<!DOCTYPE html><html><head><title>Sign in</title></head></html>";
    let act = Act::Answer(
        200,
        vec![("content-type", "text/html; charset=utf-8".into())],
        page.into(),
    );
    let (kind, failure) = failure(reply_to_single(act).await);
    assert_eq!((kind, failure.code.as_ref()), ("bad reply", "BAD_REPLY"));
    assert!(
        failure.message.contains("(page title \"Sign in\")") && failure.message.contains("login"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn a_reply_that_is_packed_in_another_way_than_gzip_or_is_no_gzip_is_refused() {
    for (encoding, said) in [
        ("br", "send it uncompressed or as gzip"),
        ("gzip", "can't be unpacked"),
    ] {
        let headers = vec![("content-encoding", encoding.to_owned())];
        let act = Act::Answer(200, headers, r#"{"result":"ok"}"#.into());
        let (kind, failure) = failure(reply_to_single(act).await);
        assert_eq!((kind, failure.code.as_ref()), ("bad reply", "BAD_REPLY"));
        assert!(failure.message.contains(said), "{}", failure.message);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let act = |seen: &crate::support_server::Seen| match seen.uri.path() {
        "/windrow" => Act::Answer(307, vec![("location", "/elsewhere".into())], String::new()),
        _ => answer(204, ""),
    };
    let server = Server::start(act).await;
    let (kind, failure) = failure(open(HttpOptions::new(server.url())).process(single()).await);
    assert_eq!(kind, "rejected");
    assert!(failure.message.contains("/elsewhere"), "{}", failure.message);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn the_result_is_read_from_an_envelope() {
    let server = Server::always(200, r#"{"code":0,"data":{"rsp":{"result":"skip"}}}"#).await;
    let options = HttpOptions {
        response_pointer: "/data/rsp".into(),
        ..HttpOptions::new(server.url())
    };
    let replies = replies(open(options).process(single()).await);
    assert_eq!(
        replies.verdicts,
        [(ItemIndex(3817), ItemVerdict::Settled(Outcome::Skipped))]
    );
}

#[tokio::test]
async fn a_reply_may_be_large_but_not_too_large() {
    let padded = |bytes: usize| format!(r#"{{"result":"skip","x":"{}"}}"#, "x".repeat(bytes - 24));
    for (bytes, fits) in [
        (1_000_000, true),
        (1 << 20, true),
        ((1 << 20) + 1, false),
        (8 << 20, false),
    ] {
        let body = padded(bytes);
        assert_eq!(body.len(), bytes);
        let reply = reply_to_single(answer(200, &body)).await;
        if fits {
            assert_eq!(replies(reply).verdicts.len(), 1, "{bytes}");
        } else {
            let (kind, failure) = failure(reply);
            assert_eq!(
                (kind, failure.code.as_ref()),
                ("bad reply", "REPLY_TOO_BIG"),
                "{bytes}"
            );
        }
    }
}
