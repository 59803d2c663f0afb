use std::time::Duration;

use hyper::header::HeaderValue;

use super::*;
use windrow_core::ids::Attempt;
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::{Dispatch, FailureClass, Outcome, RetryAdvice};
use windrow_engine::ports::handling::handler::ItemVerdict;

/// What an answer must mean, without its words.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Meaning {
    AllOk,
    Items(Vec<&'static str>),
    Failed(FailureClass, String, Option<u64>),
    Final(String),
    Bad(String),
    Rejected(String),
    Gone(String),
    BackPressure(String, Option<u64>),
    Fenced,
}

fn meant(reply: Reply) -> Meaning {
    let code = |failure: Failure| {
        assert!(!failure.message.is_empty());
        failure.code.into_owned()
    };
    let seconds = |after: Option<Duration>| after.map(|wait| wait.as_secs());
    match reply {
        Reply::AllOk => Meaning::AllOk,
        Reply::Items(replies) => {
            Meaning::Items(replies.verdicts.into_iter().map(|(_, v)| word(&v)).collect())
        }
        Reply::Failed(failed) => match *failed {
            CallFailure::Failed {
                class,
                failure,
                after,
            } => Meaning::Failed(class, code(failure), seconds(after)),
            CallFailure::Final(failure) => Meaning::Final(code(failure)),
            CallFailure::BadReply(failure) => Meaning::Bad(code(failure)),
            CallFailure::Rejected(failure) => Meaning::Rejected(code(failure)),
            CallFailure::Gone(failure) => Meaning::Gone(code(failure)),
            CallFailure::BackPressure { after, failure } => {
                Meaning::BackPressure(code(failure), seconds(after))
            }
            CallFailure::Fenced => Meaning::Fenced,
            CallFailure::NotSent | CallFailure::Unsendable(_) | CallFailure::Unstarted(_) => {
                panic!("an answer arrived")
            }
        },
        Reply::Told(told) => meant(told.reply),
    }
}

fn word(verdict: &ItemVerdict) -> &'static str {
    match verdict {
        ItemVerdict::Settled(Outcome::Succeeded) | ItemVerdict::SucceededWith(_) => "ok",
        ItemVerdict::Settled(Outcome::Skipped) => "skip",
        ItemVerdict::Unclear(_) => "unclear",
        ItemVerdict::Failed {
            advice: RetryAdvice::Retry { .. },
            ..
        } => "retry",
        ItemVerdict::Failed {
            advice: RetryAdvice::Fail,
            ..
        } => "fail",
    }
}

fn calls(len: u32) -> CallItems {
    let run = IndexRun::new(ItemIndex(5), len).expect("not empty");
    CallItems::One(Dispatch {
        run,
        attempt: Attempt::FIRST,
    })
}

fn reply(status: u16, headers: &[(&'static str, &str)], body: &str, pointer: &str, len: u32) -> Reply {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, HeaderValue::from_str(value).expect(value));
    }
    let status = StatusCode::from_u16(status).expect("a status");
    let answer = Answer {
        status,
        headers: map,
        body: bytes::Bytes::copy_from_slice(body.as_bytes()),
    };
    let (items, pointer) = (calls(len), Pointer::new(pointer).expect(pointer));
    let single = (len == 1).then_some(ItemIndex(5));
    classify(
        &answer,
        Asked {
            items: &items,
            single,
            pointer: &pointer,
            limits_from: LimitsFrom::Off,
            now: WallMs(0),
        },
    )
}

fn code(status: u16) -> String {
    format!("HTTP_{status}")
}

const STALE: &str = r#"{"type":"https://windrow.dev/problems/stale-epoch","title":"old"}"#;

/// Status, headers, body, meaning.
type Row<'a> = (u16, &'a [(&'static str, &'a str)], &'a str, Meaning);

#[test]
fn every_row_of_the_status_table_has_its_meaning() {
    let wait: &[(&str, &str)] = &[("retry-after", "7")];
    let table: [Row<'_>; 45] = [
        (200, &[], "", Meaning::AllOk),
        (204, &[], "", Meaning::AllOk),
        (202, &[], r#"{"result":"ok"}"#, Meaning::AllOk),
        (299, &[], r#"{"result":"skip"}"#, Meaning::Items(vec!["skip"])),
        (200, &[], r#"{"result":"retry"}"#, Meaning::Items(vec!["retry"])),
        (200, &[], "{}", Meaning::Bad("BAD_REPLY".into())),
        (200, &[], "ok", Meaning::Bad("BAD_REPLY".into())),
        (
            200,
            &[("content-encoding", "gzip")],
            r#"{"result":"ok"}"#,
            Meaning::Bad("BAD_REPLY".into()),
        ),
        (
            200,
            &[("content-encoding", "identity")],
            r#"{"result":"ok"}"#,
            Meaning::AllOk,
        ),
        (429, wait, "", Meaning::BackPressure(code(429), Some(7))),
        (429, &[], "", Meaning::BackPressure(code(429), None)),
        (
            503,
            &[("retry-after", "1e9")],
            "x",
            Meaning::Failed(FailureClass::Unavailable, code(503), None),
        ),
        (
            503,
            &[("retry-after", "86400")],
            "",
            Meaning::Failed(FailureClass::Unavailable, code(503), Some(300)),
        ),
        (
            408,
            &[],
            "",
            Meaning::Failed(FailureClass::Unclear, code(408), None),
        ),
        (
            425,
            wait,
            "",
            Meaning::Failed(FailureClass::Unclear, code(425), Some(7)),
        ),
        (
            500,
            &[],
            r#"{"result":"ok"}"#,
            Meaning::Failed(FailureClass::Unclear, code(500), None),
        ),
        (
            502,
            &[],
            "<html>bad gateway",
            Meaning::Failed(FailureClass::Unavailable, code(502), None),
        ),
        (
            599,
            &[],
            "",
            Meaning::Failed(FailureClass::Unclear, code(599), None),
        ),
        (
            999,
            &[],
            "",
            Meaning::Failed(FailureClass::Unclear, code(999), None),
        ),
        (
            402,
            &[],
            "",
            Meaning::Failed(FailureClass::Faulty, code(402), None),
        ),
        (
            413,
            &[],
            "",
            Meaning::Failed(FailureClass::Faulty, code(413), None),
        ),
        (409, &[], STALE, Meaning::Fenced),
        (409, &[], r#"{"type":"stale-epoch"}"#, Meaning::Fenced),
        (
            409,
            &[],
            r#"["stale-epoch"]"#,
            Meaning::Failed(FailureClass::Faulty, code(409), None),
        ),
        (
            409,
            &[],
            r#"{"type":"other"}"#,
            Meaning::Failed(FailureClass::Faulty, code(409), None),
        ),
        (
            409,
            &[],
            "",
            Meaning::Failed(FailureClass::Faulty, code(409), None),
        ),
        (
            500,
            &[],
            STALE,
            Meaning::Failed(FailureClass::Unclear, code(500), None),
        ),
        (
            400,
            &[],
            "",
            Meaning::Failed(FailureClass::Faulty, code(400), None),
        ),
        (
            400,
            &[],
            r#"{"message":"no"}"#,
            Meaning::Failed(FailureClass::Faulty, code(400), None),
        ),
        (400, &[], r#"{"result":"fail"}"#, Meaning::Items(vec!["fail"])),
        (422, &[], "", Meaning::Final(code(422))),
        (422, &[], "<html>", Meaning::Final(code(422))),
        (422, &[], r#"["ok"]"#, Meaning::Final(code(422))),
        (422, &[], r#"{"result":"retry"}"#, Meaning::Items(vec!["retry"])),
        (422, &[], r#"{"result":"hm"}"#, Meaning::Bad("BAD_REPLY".into())),
        (401, &[], r#"{"result":"ok"}"#, Meaning::Rejected(code(401))),
        (403, &[], "", Meaning::Rejected(code(403))),
        (404, &[], "", Meaning::Rejected(code(404))),
        (405, &[], "", Meaning::Rejected(code(405))),
        (415, &[], "", Meaning::Rejected(code(415))),
        (301, &[("location", "/login")], "", Meaning::Rejected(code(301))),
        (302, &[], "", Meaning::Rejected(code(302))),
        (304, &[], "", Meaning::Rejected(code(304))),
        (307, &[], "", Meaning::Rejected(code(307))),
        (410, wait, "", Meaning::Gone(code(410))),
    ];
    for (status, headers, body, expected) in table {
        let reply = reply(status, headers, body, "", 1);
        assert_eq!(meant(reply), expected, "{status} {headers:?} {body}");
    }
}

#[test]
fn batched_answers_have_the_same_table() {
    let partial = r#"{"results":[{"index":6,"result":"retry"}],"default":"ok"}"#;
    let table = [
        (200, "", Meaning::AllOk),
        (200, r#"{"default":"ok"}"#, Meaning::AllOk),
        (200, partial, Meaning::Items(vec!["ok", "retry", "ok"])),
        (200, r#"{"result":"ok"}"#, Meaning::Items(vec!["retry"; 3])),
        (400, partial, Meaning::Items(vec!["ok", "retry", "ok"])),
        (422, r#"{"default":"skip"}"#, Meaning::Items(vec!["skip"; 3])),
        (422, r#"{"result":"retry"}"#, Meaning::Final(code(422))),
        (
            422,
            r#"{"results":[{"index":99,"result":"ok"}]}"#,
            Meaning::Bad("BAD_REPLY".into()),
        ),
    ];
    for (status, body, expected) in table {
        assert_eq!(
            meant(reply(status, &[], body, "", 3)),
            expected,
            "{status} {body}"
        );
    }
}

#[test]
fn the_result_is_found_in_an_envelope() {
    let body = r#"{"code":0,"data":{"result":"skip"}}"#;
    assert_eq!(
        meant(reply(200, &[], body, "/data", 1)),
        Meaning::Items(vec!["skip"])
    );
    assert_eq!(
        meant(reply(422, &[], body, "/data", 1)),
        Meaning::Items(vec!["skip"])
    );
    assert_eq!(meant(reply(200, &[], "", "/data", 1)), Meaning::AllOk);
    for bad in [
        r#"{"code":0,"data":null}"#,
        r#"{"code":0}"#,
        r#"{"result":"ok"}"#,
        "ok",
    ] {
        assert_eq!(
            meant(reply(200, &[], bad, "/data", 1)),
            Meaning::Bad("BAD_REPLY".into()),
            "{bad}"
        );
    }
}

fn message(reply: Reply) -> String {
    let Reply::Failed(failed) = reply else {
        panic!("no failure: {reply:?}")
    };
    match *failed {
        CallFailure::BadReply(failure) | CallFailure::Rejected(failure) => failure.message,
        CallFailure::Failed { failure, .. } => failure.message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_quote_the_answer_and_say_what_to_try() {
    let page = format!("\n<!DOCTYPE html><title>Login</title>{}", "x".repeat(9000));
    let said = message(reply(200, &[("content-type", "text/html")], &page, "", 1));
    assert!(
        said.contains("the reply (page title \"Login\") is") && said.contains("check the URL"),
        "{said}"
    );
    assert!(said.len() < 400, "{said}");
    let page = "<html>\r\n<head><TITLE class='x'>502 Bad\n Gateway</TITLE></head><body><hr>nginx</body>";
    let said = message(reply(502, &[], page, "", 1));
    assert!(
        said.contains("Bad Gateway (page title \"502 Bad Gateway\"): the handler or a proxy"),
        "{said}"
    );
    let page = "<title>Whoa &amp; 500 &lt;&#39;&#x2019;&gt;&nbsp;&quot;&apos; R&D &later; &amp;lt; &#x110000;</title>";
    let said = message(reply(500, &[], page, "", 1));
    assert!(
        said.contains("(page title \"Whoa & 500 <'\u{2019}> \"' R&D &later; &lt; &#x110000;\")"),
        "{said}"
    );
    let said = message(reply(502, &[], "<html>no title</html>", "", 1));
    assert!(said.contains("(first line of a page \"no title\")"), "{said}");
    let page = format!(
        "<!doctype html><html><style>p {{}}</style><h1>No <b>route</b> &amp; way</h1>{}",
        "<p>x".repeat(99)
    );
    let said = message(reply(500, &[], &page, "", 1));
    assert!(
        said.contains("(first line of a page \"No route & way\")"),
        "{said}"
    );
    let said = message(reply(500, &[], "<Error><Code>SlowDown</Code></Error>", "", 1));
    assert!(
        said.contains("`<Error><Code>SlowDown</Code></Error>`"),
        "no page: {said}"
    );
    let said = message(reply(
        302,
        &[("location", "https://sso.example/login")],
        "",
        "",
        1,
    ));
    assert!(
        said.contains("https://sso.example/login") && said.contains("not followed"),
        "{said}"
    );
    let said = message(reply(401, &[], r#"{"error":"no token"}"#, "", 1));
    assert!(
        said.contains("401 Unauthorized `{\"error\":\"no token\"}`") && said.contains("authorization"),
        "{said}"
    );
    let said = message(reply(500, &[], "boom\u{1b}[31m\nat line 3", "", 1));
    assert!(said.contains("`boom [31m at line 3`"), "{said}");
}
