//! What the end of an item's process means, and what it prints.

use std::time::Duration;

use serde_json::{Value, json};
use windrow_core::items::output::Output;
use windrow_core::items::verdict::{FailureClass, Outcome, RetryAdvice};
use windrow_engine::ports::handling::handler::{CallFailure, ItemVerdict, Reply};

use super::command_support::{charged, failed, rejected, verdict};
use super::exec_support::Exec;

/// Of whom a failed call speaks.
fn class_of(reply: &Reply) -> FailureClass {
    match reply {
        Reply::Failed(failure) => match &**failure {
            CallFailure::Failed { class, .. } => *class,
            other => panic!("no class, but {other:?}"),
        },
        other => panic!("no failed call, but {other:?}"),
    }
}

/// What a process printed, as it is kept.
fn output(reply: &Reply) -> Value {
    match verdict(reply) {
        ItemVerdict::SucceededWith(Output::Json(json)) => serde_json::from_str(&json).expect("it is JSON"),
        other => panic!("no output, but {other:?}"),
    }
}

#[tokio::test]
async fn exit_codes_say_what_becomes_of_an_item() {
    let rig = Exec::shell("echo why >&2; exit $ROW_code").open();
    let end = async |code: u32| rig.item(1, json!({"code": code})).await;
    assert_eq!(end(0).await, Reply::AllOk);
    let (exited, unavailable) = (FailureClass::Exited, FailureClass::Unavailable);
    let passes = " (reported as temporary)";
    for (code, class, hint) in [
        (1, exited, ""),
        (255, exited, ""),
        (75, unavailable, passes),
        (28, unavailable, passes),
    ] {
        let reply = end(code).await;
        let (failure, told) = (charged(&reply), class_of(&reply));
        assert_eq!(
            (failure.code.as_ref(), told),
            (format!("EXIT_{code}").as_str(), class)
        );
        assert_eq!(
            failure.message,
            format!("exited with code {code}{hint}; stderr: why")
        );
        assert_eq!(failure.output.as_deref(), Some(r#"{"stderr":["why"]}"#));
    }
    let (failure, wished) = failed(&end(65).await);
    assert_eq!((failure.code.as_ref(), wished), ("EXIT_65", RetryAdvice::Fail));
    for code in [126, 127] {
        let failure = rejected(&end(code).await).expect("the program is at fault");
        assert_eq!(failure.code, format!("EXIT_{code}"));
    }
    let killed = Exec::shell("kill -9 $$").open();
    let failure = charged(&killed.item(1, json!({})).await);
    assert!(
        failure.code == "SIGNAL_9" && failure.message.contains("out of memory?"),
        "{failure:?}"
    );
    rig.close().await;
    killed.close().await;
}

#[tokio::test]
async fn what_is_printed_is_the_output_if_it_is_kept() {
    let print = |words: &[&str]| Exec::argv(words);
    let json = print(&["echo", "{x}"]).open();
    assert_eq!(
        output(&json.item(1, json!({"x": r#"{"a": [1, 2]}"#})).await),
        json!({"a": [1, 2]})
    );
    assert_eq!(output(&json.item(1, json!({"x": "a b"})).await), json!("a b"));
    let silent = print(&["true"]).open();
    assert_eq!(silent.item(1, json!({})).await, Reply::AllOk);
    let dropped = print(&["echo", "{x}"]).without_results().open();
    assert_eq!(dropped.item(1, json!({"x": "a"})).await, Reply::AllOk);
    let much = print(&["head", "-c", "300000", "/dev/zero"]).open();
    let large = ItemVerdict::SucceededWith(Output::TooLarge(300_000));
    assert_eq!(verdict(&much.item(1, json!({})).await), large);
}

#[tokio::test]
async fn the_row_is_a_line_on_stdin_and_the_item_in_the_environment() {
    let rig = Exec::shell("cat; echo $WINDROW_INDEX $WINDROW_KEY $WINDROW_ATTEMPT $WINDROW_TASK").open();
    for row in [json!({"a": "b"}), json!({"a": "x".repeat(20_000)})] {
        let printed = output(&rig.item(7, row.clone()).await);
        assert_eq!(printed, json!(format!("{row}\n7 k7f3q2-t42-7 1 t42")));
    }
    // A program that doesn't read it isn't disturbed.
    let deaf = Exec::argv(&["true"]).open();
    assert_eq!(
        deaf.item(1, json!({"a": "x".repeat(1_000_000)})).await,
        Reply::AllOk
    );
}

#[tokio::test]
async fn values_reach_their_argument_whole_whatever_they_are() {
    let rig = Exec::argv(&["printf", "%s|", "{a}", "x{b}y"]).open();
    for (a, b) in [("$(id)", "; ls"), ("", "\n"), ("'\"\\", "*"), ("中 ü", "{a}")] {
        let printed = output(&rig.item(1, json!({"a": a, "b": b})).await);
        assert_eq!(printed, json!(format!("{a}|x{b}y|")));
    }
    let shell = Exec::shell(r#"printf '%s' "$ROW_a""#).open();
    assert_eq!(
        output(&shell.item(1, json!({"a": "\"; exit 1; $(id) `id`"})).await),
        json!("\"; exit 1; $(id) `id`")
    );
}

#[tokio::test]
async fn a_value_that_does_not_fit_costs_its_item_only() {
    let rig = Exec::argv(&["true", "{a}"]).open();
    for row in [
        json!({"a": "-x"}),
        json!({"a": "\0"}),
        json!({"a": null}),
        json!({"b": 1}),
    ] {
        let (failure, advice) = failed(&rig.item(1, row).await);
        assert_eq!(
            (failure.code.as_ref(), advice),
            ("TEMPLATE_VALUE", RetryAdvice::Fail),
            "{}",
            failure.message
        );
    }
    let (failure, advice) = failed(&rig.item(1, json!({"a": "x".repeat(3_000_000)})).await);
    assert_eq!(
        (failure.code.as_ref(), advice),
        ("ARGUMENTS_TOO_LONG", RetryAdvice::Fail)
    );
    assert_eq!(rig.item(2, json!({"a": "x"})).await, Reply::AllOk);
}

#[tokio::test]
async fn lines_on_stderr_are_told_with_their_item() {
    let rig = Exec::shell("echo one >&2; printf two >&2").open();
    rig.item(7, json!({})).await;
    let lines: Vec<_> = rig
        .log
        .lines()
        .into_iter()
        .map(|line| (line.index.map(|at| at.0), line.message))
        .collect();
    assert_eq!(
        lines,
        [
            (Some(7), "exec: one".to_owned()),
            (Some(7), "exec: two".to_owned())
        ]
    );
}

#[tokio::test]
async fn several_items_of_a_call_have_a_process_each() {
    let rig = Exec::shell("[ $ROW_n != 2 ] || exit 65; echo $ROW_n").open();
    let rows: Vec<Value> = (0..4).map(|n| json!({"n": n})).collect();
    let Reply::Items(replies) = rig.batch(10, &rows).await else {
        panic!("a verdict for each was expected")
    };
    let well = |n: u64| ItemVerdict::SucceededWith(Output::Json(n.to_string().into()));
    for (at, (index, verdict)) in replies.verdicts.iter().enumerate() {
        assert_eq!(index.0, 10 + at as u64);
        match at {
            2 => assert!(matches!(
                verdict,
                ItemVerdict::Failed {
                    advice: RetryAdvice::Fail,
                    ..
                }
            )),
            n => assert_eq!(*verdict, well(n as u64)),
        }
    }
    assert_ne!(ItemVerdict::Settled(Outcome::Succeeded), replies.verdicts[0].1);
}

#[tokio::test]
async fn an_end_in_time_counts_and_one_too_late_does_not() {
    let rig = Exec::shell("echo slow >&2; sleep $ROW_s")
        .timeout(Duration::from_millis(300))
        .open();
    assert_eq!(rig.item(1, json!({"s": 0})).await, Reply::AllOk);
    let failure = charged(&rig.item(2, json!({"s": 1000})).await);
    assert_eq!(failure.code, "TIMEOUT");
    assert!(
        failure.message.contains("300ms") && failure.message.contains("stderr: slow"),
        "{failure:?}"
    );
}
