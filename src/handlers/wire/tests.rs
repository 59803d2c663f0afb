use std::time::Duration;

use super::*;
use windrow_core::ids::{Attempt, ItemCount};
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::{Dispatch, HandlerCommand, MESSAGE_BYTES_MAX};
use windrow_core::task::Rate;
use windrow_engine::ports::handling::handler::CallItems;

const AT: ItemIndex = ItemIndex(7);

fn single(json: &str) -> ItemReplies {
    item_result(json.as_bytes(), AT).unwrap_or_else(|why| panic!("{json}: {why:?}"))
}

fn only(json: &str) -> ItemVerdict {
    single(json).verdicts.remove(0).1
}

fn failed(code: &'static str, message: &str, advice: RetryAdvice) -> ItemVerdict {
    ItemVerdict::Failed {
        failure: Failure::new(code, message),
        advice,
    }
}

fn calls(parts: &[(u64, u32)]) -> CallItems {
    let one = |(first, len): &(u64, u32)| {
        let run = IndexRun::new(ItemIndex(*first), *len).expect("not empty");
        Dispatch {
            run,
            attempt: Attempt::FIRST,
        }
    };
    CallItems::Many(parts.iter().map(one).collect())
}

fn batch(json: &str, parts: &[(u64, u32)]) -> ItemReplies {
    match parse_batch(json.as_bytes(), &calls(parts)) {
        Ok(Reply::Items(replies)) => *replies,
        other => panic!("{json}: {other:?}"),
    }
}

#[test]
fn each_word_of_result_has_its_verdict() {
    let again = RetryAdvice::Retry { after: None };
    let table = [
        (r#"{"result":"ok"}"#, ItemVerdict::Settled(Outcome::Succeeded)),
        (
            r#"{"result":"ok","code":"X","message":"ignored"}"#,
            ItemVerdict::Settled(Outcome::Succeeded),
        ),
        (r#"{"result":"skip"}"#, ItemVerdict::Settled(Outcome::Skipped)),
        (
            r#"{"result":"retry"}"#,
            failed("RETRY", "the handler asked for another attempt", again),
        ),
        (
            r#" {"result":"retry","retry_after":"5s","code":"BUSY","message":"later"}"#,
            failed(
                "BUSY",
                "later",
                RetryAdvice::Retry {
                    after: Some(Duration::from_secs(5)),
                },
            ),
        ),
        (
            r#"{"result":"fail"}"#,
            failed("FAILED", "the handler failed the item", RetryAdvice::Fail),
        ),
        (
            r#"{"result":"fail","code":"NO_USER","message":"gone","unknown":[1,{"a":2}]}"#,
            failed("NO_USER", "gone", RetryAdvice::Fail),
        ),
        (
            r#"{"type":"result","id":17,"result":"skip"}"#,
            ItemVerdict::Settled(Outcome::Skipped),
        ),
        (
            r#"{"result":"fail","code":" ","message":null}"#,
            failed("FAILED", "the handler failed the item", RetryAdvice::Fail),
        ),
    ];
    for (json, verdict) in table {
        assert_eq!(only(json), verdict, "{json}");
    }
}

#[test]
fn what_is_not_a_result_is_never_success() {
    let table = [
        "",
        " ",
        "ok",
        "null",
        "true",
        "1",
        "\"ok\"",
        "[]",
        r#"["ok"]"#,
        "{",
        "{}",
        "<html>Login</html>",
        r#"{"status":"error"}"#,
        r#"{"success":true}"#,
        r#"{"result":"okay"}"#,
        r#"{"result":"OK"}"#,
        r#"{"result":true}"#,
        r#"{"result":["ok"]}"#,
        r#"{"result":"ok"} trailing"#,
        r#"{"result":"ok","result":"ok"}"#,
        r#"{"result":"retry","retry_after":5}"#,
        r#"{"result":"retry","retry_after":"-5s"}"#,
        r#"{"result":"retry","retry_after":"soon"}"#,
        r#"{"result":"ok","command":"stop"}"#,
        r#"{"result":"ok","command":{"command":"halt"}}"#,
        r#"{"result":"ok","command":{}}"#,
        r#"{"result":"ok","logs":["x"]}"#,
        "\u{feff}{\"result\":\"ok\"}",
    ];
    for json in table {
        let failure = item_result(json.as_bytes(), AT).expect_err(json);
        assert_eq!(failure.code, BAD_REPLY, "{json}");
        assert!(
            failure.message.contains("answer {\"result\":\"ok\"}"),
            "{}",
            failure.message
        );
    }
    assert_eq!(
        item_result(b"{\"result\":\"o\xffk\"}", AT)
            .expect_err("not utf-8")
            .code,
        BAD_REPLY
    );
}

#[test]
fn a_reply_that_says_something_but_no_result_is_a_bad_one_unless_it_is_a_command() {
    for json in [
        r#"{"result":null,"code":"X"}"#,
        r#"{"logs":[]}"#,
        r#"{"message":"hm"}"#,
        r#"{"output":{"id":7}}"#,
    ] {
        let failure = item_result(json.as_bytes(), ItemIndex(7)).expect_err("no result");
        assert_eq!(failure.code, BAD_REPLY, "{json}");
        assert!(failure.message.contains("no `result`"), "{failure:?}");
    }
    let json = r#"{"command":{"command":"stop","reason":"enough"}}"#;
    let ItemVerdict::Failed { failure, advice } = only(json) else {
        panic!("{json} succeeded")
    };
    let expected = (MISSING_RESULT, RetryAdvice::Retry { after: None });
    assert_eq!((failure.code.as_ref(), advice), expected);
    let replies = single(json);
    assert_eq!(
        replies.commands,
        [HandlerCommand::Stop {
            reason: "enough".into()
        }]
    );
}

#[test]
fn texts_of_the_business_are_cut_and_cleaned() {
    let long = "x".repeat(5000);
    let json =
        format!(r#"{{"result":"fail","code":"{long}","message":"\u001b[31m{long}","output":"{long}"}}"#);
    let ItemVerdict::Failed { failure, .. } = only(&json) else {
        panic!("succeeded")
    };
    assert!(
        failure.code.len() <= 64 && failure.message.len() <= MESSAGE_BYTES_MAX,
        "{failure:?}"
    );
    assert_eq!(failure.code, "X".repeat(64));
    assert!(
        failure.message.starts_with("(code \"xxx") && failure.message.contains(")  [31mx"),
        "{failure:?}"
    );
    let output = failure.output.expect("kept");
    assert!(
        output.len() <= OUTPUT_BYTES_MAX && output.contains("…(+"),
        "{}",
        output.len()
    );
}

#[test]
fn output_is_kept_as_written_and_not_too_deep() {
    let ItemVerdict::Failed { failure, .. } =
        only(r#"{"result":"fail","output":{"push_id":null, "n":1.50}}"#)
    else {
        panic!("succeeded")
    };
    assert_eq!(failure.output.as_deref(), Some(r#"{"push_id":null, "n":1.50}"#));
    for (depth, fits) in [(DEPTH_MAX, true), (DEPTH_MAX + 1, false), (400_000, false)] {
        let json = format!(
            r#"{{"result":"fail","output":{}"[\""{}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        assert_eq!(item_result(json.as_bytes(), AT).is_ok(), fits, "{depth}");
    }
    let deep = format!(
        r#"{{"result":"ok","ignored":{}{}}}"#,
        "[".repeat(400_000),
        "]".repeat(400_000)
    );
    assert_eq!(only(&deep), ItemVerdict::Settled(Outcome::Succeeded));
}

#[test]
fn log_lines_carry_level_index_and_extra() {
    let json = r#"{"result":"ok","logs":[{"level":"warn","message":"stale\ntoken","extra":{"age":91}},
        {"level":"notice","message":"m","index":9},{"message":"plain"}]}"#;
    let lines = single(json).logs;
    let line = |index, level, message: &str, extra: Option<&str>| LogLine {
        index: Some(ItemIndex(index)),
        level,
        message: message.into(),
        extra: extra.map(str::to_owned),
    };
    assert_eq!(
        lines,
        [
            line(7, LogLevel::Warn, "stale token", Some(r#"{"age":91}"#)),
            line(9, LogLevel::Info, "[notice] m", None),
            line(7, LogLevel::Info, "plain", None),
        ]
    );
    let log = parse_log(br#"{"type":"log","index":3,"level":"error","message":"x"}"#).expect("a line");
    assert_eq!(log, line(3, LogLevel::Error, "x", None));
}

#[test]
fn a_flood_of_log_lines_is_bounded_and_said() {
    let many = vec![r#"{"message":"x"}"#; LOG_LINES_MAX + 5].join(",");
    let lines = single(&format!(r#"{{"result":"ok","logs":[{many}]}}"#)).logs;
    assert_eq!(lines.len(), LOG_LINES_MAX + 1);
    assert_eq!(
        lines[LOG_LINES_MAX].message,
        "further log lines in this reply, omitted: 5"
    );
}

#[test]
fn each_command_is_read_with_its_members() {
    let rate = |items, seconds| Rate::new(items, Duration::from_secs(seconds)).expect("a rate");
    let slow = |rate| HandlerCommand::SlowDown {
        rate,
        lasting: Duration::from_secs(60),
        reason: "lag".into(),
    };
    let table = [
        (
            r#""stop","reason":"user abort""#,
            Some(HandlerCommand::Stop {
                reason: "user abort".into(),
            }),
        ),
        (
            r#""stop""#,
            Some(HandlerCommand::Stop {
                reason: String::new(),
            }),
        ),
        (r#""finish""#, Some(HandlerCommand::Finish { total: None })),
        (
            r#""finish","total":10"#,
            Some(HandlerCommand::Finish {
                total: Some(ItemCount(10)),
            }),
        ),
        (r#""finish","total":9223372036854775808"#, None),
        (r#""finish","total":-1"#, None),
        (
            r#""pause_for","for":"30s""#,
            Some(HandlerCommand::PauseFor(Duration::from_secs(30))),
        ),
        (r#""pause_for""#, None),
        (
            r#""slow_down","rate":"200/s","for":"1m","reason":"lag""#,
            Some(slow(rate(200, 1))),
        ),
        (
            r#""slow_down","rate":"1_000/10s","for":"1m","reason":"lag""#,
            Some(slow(rate(1000, 10))),
        ),
        (
            r#""slow_down","rate":"5/h","for":"1m","reason":"lag""#,
            Some(slow(rate(5, 3600))),
        ),
        (r#""slow_down","rate":"0/s","for":"1m""#, None),
        (r#""slow_down","rate":"fast","for":"1m""#, None),
        (r#""slow_down","rate":"5/s""#, None),
        (r#""explode""#, None),
    ];
    for (members, command) in table {
        let line = format!(r#"{{"type":"command","command":{members}}}"#);
        assert_eq!(parse_command(line.as_bytes()).ok(), command, "{members}");
    }
}

#[test]
fn a_batch_has_a_verdict_for_each_item_in_the_calls_order() {
    let json = r#"{"results":[{"index":41,"result":"skip"},{"index":3,"result":"retry","retry_after":"5s","code":"BUSY"}],
        "default":"ok","command":{"command":"slow_down","rate":"200/s","for":"1m"}}"#;
    let replies = batch(json, &[(40, 2), (2, 3)]);
    let settled = |index, outcome| (ItemIndex(index), ItemVerdict::Settled(outcome));
    let busy = failed(
        "BUSY",
        "the handler asked for another attempt",
        RetryAdvice::Retry {
            after: Some(Duration::from_secs(5)),
        },
    );
    assert_eq!(
        replies.verdicts,
        [
            settled(40, Outcome::Succeeded),
            settled(41, Outcome::Skipped),
            settled(2, Outcome::Succeeded),
            (ItemIndex(3), busy),
            settled(4, Outcome::Succeeded),
        ]
    );
    assert_eq!(replies.commands.len(), 1);
}

#[test]
fn an_item_without_result_and_default_is_missing_not_ok() {
    for json in [
        "{}",
        r#"{"results":[]}"#,
        r#"{"results":[{"index":0}]}"#,
        r#"{"result":"ok"}"#,
    ] {
        for (index, verdict) in batch(json, &[(0, 2)]).verdicts {
            let ItemVerdict::Failed { failure, advice } = verdict else {
                panic!("{json}: {index:?} succeeded")
            };
            assert_eq!(
                (failure.code.as_ref(), advice),
                (MISSING_RESULT, RetryAdvice::Retry { after: None }),
                "{json}"
            );
        }
    }
    let replies = batch(
        r#"{"results":[{"index":1,"result":"ok"}],"default":"fail"}"#,
        &[(0, 2)],
    );
    assert!(matches!(
        &replies.verdicts[0].1,
        ItemVerdict::Failed {
            advice: RetryAdvice::Fail,
            ..
        }
    ));
}

#[test]
fn a_batch_that_names_strange_items_is_bad() {
    let table = [
        r#"{"results":[{"index":5,"result":"ok"}],"default":"ok"}"#,
        r#"{"results":[{"index":1,"result":"ok"},{"index":1,"result":"ok"}],"default":"ok"}"#,
        r#"{"results":[{"index":1},{"index":1}]}"#,
        r#"{"results":[{"result":"ok"}]}"#,
        r#"{"results":[{"index":"1","result":"ok"}]}"#,
        r#"{"results":[{"index":-1,"result":"ok"}]}"#,
        r#"{"results":[{"index":1.0,"result":"ok"}]}"#,
        r#"{"results":[[1,"ok"]]}"#,
        r#"{"results":{"1":"ok"}}"#,
        r#"{"default":"fine"}"#,
        "[]",
        "ok",
    ];
    for json in table {
        assert_eq!(
            parse_batch(json.as_bytes(), &calls(&[(0, 2), (4, 1)]))
                .expect_err(json)
                .code,
            BAD_REPLY,
            "{json}"
        );
    }
}

#[test]
fn plain_success_allocates_no_verdicts() {
    assert_eq!(
        parse_batch(br#"{"default":"ok"}"#, &calls(&[(0, 100)])),
        Ok(Reply::AllOk)
    );
    let each = r#"{"results":[{"index":0,"result":"ok"},{"index":1,"result":"ok"}]}"#;
    assert_eq!(parse_batch(each.as_bytes(), &calls(&[(0, 2)])), Ok(Reply::AllOk));
    assert_eq!(parse_single(br#"{"result":"ok"}"#, AT), Ok(Reply::AllOk));
}

#[test]
fn a_quote_is_short_clean_and_says_that_there_is_more() {
    assert_eq!(quote(b"  hi\x1b[0m\n"), "`hi [0m`");
    assert_eq!(
        quote("中".repeat(200).as_bytes()),
        format!("`{}…`", "中".repeat(80))
    );
}

/// Texts around the vocabulary: pieces of good replies, put together in any order.
fn near_replies() -> impl proptest::strategy::Strategy<Value = String> {
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"result\"",
        "\"results\"",
        "\"default\"",
        "\"index\"",
        "\"ok\"",
        "\"skip\"",
        "\"retry\"",
        "\"fail\"",
        "\"logs\"",
        "\"command\"",
        "\"output\"",
        "null",
        "true",
        "0",
        "1",
        "-1",
        "1e9",
        " ",
        "\"x\"",
        "\u{0}",
        "{\"result\":\"ok\"}",
        "{\"index\":0,\"result\":\"ok\"}",
        "\"results\":[",
    ];
    let pieces = proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..12);
    proptest::strategy::Strategy::prop_map(pieces, |pieces| pieces.concat())
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]

    /// Invariant I9 against a twin that reads the reply as plain JSON: success only where `result` says so.
    #[test]
    fn success_is_only_what_a_reply_says(text in near_replies()) {
        let value = serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default();
        let says = |value: &serde_json::Value| matches!(value.as_str(), Some("ok" | "skip"));
        if let Ok(replies) = item_result(text.as_bytes(), AT)
            && matches!(replies.verdicts[0].1, ItemVerdict::Settled(_))
        {
            proptest::prop_assert!(value.as_object().is_some_and(|object| says(&object["result"])), "{}", text);
        }
        match parse_batch(text.as_bytes(), &calls(&[(0, 2)])) {
            Ok(Reply::AllOk) => {
                let named = value["results"].as_array().map_or(0, Vec::len);
                proptest::prop_assert!(says(&value["default"]) || named == 2, "{}", text);
            }
            Ok(Reply::Items(replies)) => proptest::prop_assert_eq!(replies.verdicts.len(), 2),
            Ok(Reply::Failed(_)) => proptest::prop_assert!(false, "a reply is no failed call: {}", text),
            Ok(Reply::Told(_)) => panic!("a body has no headers"),
            Err(failure) => proptest::prop_assert_eq!(failure.code, BAD_REPLY),
        }
    }

    /// Whatever bytes arrive, the parser neither panics nor finds success in them by chance.
    #[test]
    fn noise_is_a_bad_reply(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
        proptest::prop_assert!(item_result(&bytes, AT).is_err());
        proptest::prop_assert!(quote(&bytes).chars().all(|c| !c.is_control()));
    }
}
