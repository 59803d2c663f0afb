//! What workers answer, in all the ways in which lines can arrive.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use windrow_core::ids::ItemIndex;
use windrow_core::items::verdict::{HandlerCommand, Outcome, RetryAdvice};
use windrow_engine::ports::handling::handler::{CallFailure, ItemVerdict, LogLevel, Reply};

use crate::command_support::{PATIENCE, Setup, bad_reply, charged, failed, verdict};

#[tokio::test]
async fn answers_in_any_order_reach_their_items() {
    let rig = Setup::script(8).open();
    rig.slots_at_least(8).await;
    let calls = (0..8_u64).map(|index| {
        let code = format!("C{index}");
        // Held until all eight are in flight, then answered last first; each second one has its own words.
        rig.send(index, json!({"do": "hold", "count": 8, "code": code}))
    });
    assert!(join_all(calls).await.iter().all(|reply| *reply == Reply::AllOk));
    rig.close().await;
}

#[tokio::test]
async fn each_item_of_a_batch_gets_its_own_verdict() {
    let rig = Setup::script(4).open();
    rig.slots_at_least(4).await;
    let say = |reply| json!({"do": "reply", "reply": reply});
    let data = [
        say(json!({"result": "ok"})),
        say(json!({"result": "skip"})),
        say(json!({"result": "retry", "retry_after": "5s", "code": "BUSY", "message": "later"})),
        say(json!({"result": "fail", "code": "NO_USER"})),
    ];
    let Reply::Items(items) = rig.batch(10, &data).await else {
        panic!("a verdict per item was expected")
    };
    let indexes: Vec<ItemIndex> = items.verdicts.iter().map(|(index, _)| *index).collect();
    assert_eq!(indexes, [10, 11, 12, 13].map(ItemIndex));
    assert_eq!(items.verdicts[0].1, ItemVerdict::Settled(Outcome::Succeeded));
    assert_eq!(items.verdicts[1].1, ItemVerdict::Settled(Outcome::Skipped));
    let ItemVerdict::Failed { failure, advice } = &items.verdicts[2].1 else {
        panic!("{items:?}")
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
    assert!(matches!(
        &items.verdicts[3].1,
        ItemVerdict::Failed {
            advice: RetryAdvice::Fail,
            ..
        }
    ));
    rig.close().await;
}

#[tokio::test]
async fn a_batch_larger_than_the_slots_is_worked_off() {
    let rig = Setup::python("echo.py", &["2"]).open();
    rig.slots_at_least(2).await;
    assert_eq!(rig.batch(0, &vec![json!({}); 50]).await, Reply::AllOk);
    rig.close().await;
}

#[tokio::test]
async fn a_line_that_comes_byte_by_byte_is_one_answer() {
    let rig = Setup::script(1).open();
    assert_eq!(rig.item(0, json!({"do": "bytes"})).await, Reply::AllOk);
    rig.close().await;
}

#[tokio::test]
async fn a_line_that_is_no_protocol_is_quoted_with_its_number() {
    let rig = Setup::script(1).open();
    let reply = rig
        .item(
            0,
            json!({"do": "print", "line": "pushing to user 7", "then_ok": true}),
        )
        .await;
    let failure = bad_reply(&reply);
    assert_eq!(failure.code, "BAD_REPLY");
    for part in [
        "line 2 ",
        "`pushing to user 7`",
        "print everything else to stderr",
    ] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    assert_eq!(
        rig.item(1, json!({})).await,
        Reply::AllOk,
        "the answer that followed was not taken for another item's"
    );
    rig.close().await;
}

#[tokio::test]
async fn three_bad_lines_in_a_row_are_three_bad_replies() {
    let rig = Setup::script(1).open();
    for index in 0..3 {
        bad_reply(&rig.item(index, json!({"do": "print", "line": "<html>"})).await);
    }
    rig.close().await;
}

#[tokio::test]
async fn an_overlong_line_is_a_bad_reply_and_the_worker_is_replaced() {
    let rig = Setup::script(2).open();
    let pid = rig.worker_pid(0).await;
    let failure = bad_reply(&rig.item(1, json!({"do": "long", "bytes": 3 * 1024 * 1024})).await);
    assert!(
        failure.message.contains("longer than 1048576 bytes (max_line)"),
        "{}",
        failure.message
    );
    crate::command_support::gone(pid).await;
    assert_ne!(rig.worker_pid(2).await, pid);
    rig.close().await;
}

#[tokio::test]
async fn words_beside_the_answer_are_kept() {
    let rig = Setup::script(1).open();
    let lines = json!([
        r#"{"type":"log","index":3,"level":"warn","message":"stale token","extra":{"age":91}}"#,
        r#"{"type":"command","command":"stop","reason":"enough"}"#,
        r#"{"type":"pong","n":1}"#,
        r#"{"type":"of the future"}"#,
        "",
    ]);
    let reply = rig.item(3, json!({"do": "say", "lines": lines})).await;
    assert_eq!(verdict(&reply), ItemVerdict::Settled(Outcome::Succeeded));
    let Reply::Items(items) = reply else {
        panic!("the command needs words")
    };
    assert_eq!(
        items.commands,
        [HandlerCommand::Stop {
            reason: "enough".to_owned()
        }]
    );
    rig.log.wait_for("stale token").await;
    let lines = rig.log.lines();
    let line = lines
        .iter()
        .find(|line| line.message == "stale token")
        .expect("just seen");
    assert_eq!((line.index, line.level), (Some(ItemIndex(3)), LogLevel::Warn));
    rig.close().await;
}

#[tokio::test]
async fn a_log_line_after_the_answer_and_one_before_the_end_are_kept_where_they_belong() {
    let worker = r#"while read -r line; do
        case "$line" in
            *'"type":"hello"'*) echo '{"type":"ready","protocol":1}' ;;
            *'"type":"item"'*) echo ok; echo '{"type":"log","index":3,"message":"after the answer"}' ;;
        esac
    done
    echo '{"type":"log","message":"before the end"}'"#;
    let rig = Setup::new(&["sh", "-c", worker]).open();
    assert_eq!(rig.item(3, json!(null)).await, Reply::AllOk);
    rig.close().await;
    let told: Vec<_> = rig
        .log
        .lines()
        .into_iter()
        .map(|line| (line.index, line.message))
        .collect();
    let expected = [
        (Some(ItemIndex(3)), "after the answer".to_owned()),
        (None, "before the end".to_owned()),
    ];
    assert_eq!(told, expected, "it ended calmly, so nothing else is said");
}

#[tokio::test]
async fn stderr_goes_to_the_log_and_a_flood_of_it_blocks_nobody() {
    let rig = Setup::script(1).open();
    assert_eq!(
        rig.item(0, json!({"do": "stderr", "lines": 50_000})).await,
        Reply::AllOk
    );
    rig.log.wait_for("worker 1: noise 0 ").await;
    rig.close().await;
    rig.log.wait_for("lines omitted: ").await;
    assert!(rig.log.lines().len() < 20_000, "the flood was passed on");
}

#[tokio::test]
async fn a_hanging_item_times_out_and_its_late_answer_is_ignored() {
    let (_dir, path) = crate::command_support::scratch();
    let go = path("go");
    let setup = Setup::script(2).timeout(Duration::from_millis(400));
    let rig = setup
        .with(|settings| settings.kill_grace = Duration::from_secs(30))
        .open();
    rig.slots_at_least(2).await;
    let mut call = rig.call(0, &[json!({"do": "wait", "file": go})]);
    call.timeout = Duration::from_secs(20);
    let slow = rig.handler.process(call);
    tokio::pin!(slow);
    // Dropping the call takes the item back, and its slot is not announced while the worker is still at it.
    assert!(futures_util::poll!(&mut slow).is_pending());
    let timed_out = charged(&rig.item(1, json!({"do": "wait", "file": go})).await);
    assert_eq!(
        (timed_out.code.as_ref(), timed_out.message.as_str()),
        ("TIMEOUT", "no answer within 400ms")
    );
    rig.slots_where(|slots| slots <= 1).await;
    std::fs::write(&go, "").expect("written");
    assert_eq!(
        tokio::time::timeout(PATIENCE, slow)
            .await
            .expect("it was released"),
        Reply::AllOk
    );
    rig.slots_where(|slots| slots == 2).await;
    assert_eq!(rig.item(2, json!({})).await, Reply::AllOk);
    rig.close().await;
}

#[tokio::test]
async fn a_dropped_call_frees_its_slot_when_the_worker_answers_the_cancel() {
    let rig = Setup::python("script.py", &["1", "answers-cancel"]).open();
    rig.slots_at_least(1).await;
    {
        let hanging = rig.handler.process(rig.call(0, &[json!({"do": "hang"})]));
        tokio::pin!(hanging);
        assert!(futures_util::poll!(&mut hanging).is_pending());
    }
    assert_eq!(rig.item(1, json!({})).await, Reply::AllOk);
    rig.close().await;
}

#[tokio::test]
async fn nothing_is_sent_once_the_gate_is_shut() {
    let rig = Setup::script(1).open();
    rig.slots_at_least(1).await;
    rig.gate.close();
    let reply = rig.send(0, json!({"do": "die"})).await;
    assert_eq!(reply, Reply::Failed(Box::new(CallFailure::NotSent)));
    rig.close().await;
}

#[tokio::test]
async fn an_answer_without_an_id_means_the_oldest_item() {
    let rig = Setup::script(1).open();
    let words = json!({"do": "print", "line": r#"{"result":"fail","code":"OLDEST"}"#});
    assert_eq!(failed(&rig.item(0, words).await).0.code, "OLDEST");
    rig.close().await;
}

/// Prints how fast workers answer; a number for people, no limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_answers_at_a_rate_worth_printing() {
    for (name, setup, in_flight) in [
        ("python, 64 in flight", Setup::python("echo.py", &["64"]), 64_u64),
        ("python, 1 in flight", Setup::python("silent.py", &[]), 1),
        ("shell, 1 in flight", Setup::shell("picky.sh", &[]), 1),
    ] {
        let rig = setup.open();
        rig.slots_at_least(u32::try_from(in_flight).expect("few")).await;
        let (each, begun) = (
            4000 / (1 + 3 * u64::from(in_flight == 1)) / in_flight,
            std::time::Instant::now(),
        );
        let lanes = (0..in_flight).map(async |lane| {
            for item in 0..each {
                assert_eq!(
                    rig.send(lane * each + item, json!({"user_id": item})).await,
                    Reply::AllOk
                );
            }
        });
        join_all(lanes).await;
        let rate = (each * in_flight) as f64 / begun.elapsed().as_secs_f64();
        println!("{name}: {rate:.0} items/s");
        rig.close().await;
    }
}

#[tokio::test]
async fn a_byte_order_mark_before_the_first_line_is_no_part_of_it_and_later_it_is_named() {
    let marked = "printf '\\357\\273\\277'; while read -r line; do echo ok; done";
    let rig = Setup::new(&["sh", "-c", marked]).open();
    assert_eq!(rig.item(0, json!({})).await, Reply::AllOk);
    assert_eq!(rig.item(1, json!({})).await, Reply::AllOk);
    rig.close().await;
    let each = "while read -r line; do printf '\\357\\273\\277ok\\n'; done";
    let rig = Setup::new(&["sh", "-c", each]).open();
    let failure = bad_reply(&rig.item(0, json!({})).await);
    assert!(
        failure.message.contains("a byte order mark (EF BB BF)"),
        "{}",
        failure.message
    );
    rig.close().await;
}
