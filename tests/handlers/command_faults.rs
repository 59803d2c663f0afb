//! Workers that die, hang or never begin: each item gets its due, and the others go on.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use windrow_core::ids::Moment;

use windrow_engine::ports::handling::handler::{CallFailure, Reply};

use crate::command_support::{Rig, Setup, charged, gone, rejected, scratch};

#[test]
fn a_missing_command_is_named_with_the_path_that_was_searched() {
    let setup = Setup::new(&["no-such-command-here"]);
    let refusal = setup
        .with(|settings| {
            settings
                .environment
                .variables
                .push(("PATH".into(), "/nowhere".into()))
        })
        .refusal();
    assert_eq!(
        refusal,
        "command not found in PATH=/nowhere: no-such-command-here"
    );
    let long = Setup::new(&["no-such-command-here"]).with(|settings| {
        let path = ("PATH".into(), "/a:/b:/c:/d:/e".into());
        settings.environment.variables.push(path);
    });
    assert!(
        long.refusal()
            .starts_with("command not found in PATH=/a:/b:/c:… (2 more): no"),
        "a long one is not told whole"
    );
    assert!(
        Setup::new(&["./no/such/file"])
            .refusal()
            .contains("does not exist")
    );
    assert!(Setup::new(&["/"]).refusal().contains("is a directory"));
    assert!(Setup::new(&[]).refusal().contains("no command was given"));
}

#[test]
fn a_file_that_is_not_executable_is_told_to_be() {
    let (_dir, path) = scratch();
    let file = path("handler.py");
    std::fs::write(&file, "print('ok')").expect("written");
    let refusal = Setup::new(&[file.to_str().expect("UTF-8")]).refusal();
    assert!(
        refusal.contains("permission denied") && refusal.contains("chmod +x"),
        "{refusal}"
    );
}

/// Sends items until the handler refuses; says why.
async fn refused(rig: &Rig) -> String {
    for index in 0..20 {
        let reply = rig.item(index, json!({})).await;
        if let Some(failure) = rejected(&reply) {
            return failure.message;
        }
        charged(&reply);
    }
    panic!("twenty failures and no refusal");
}

#[tokio::test]
async fn a_command_that_dies_at_once_is_refused_with_its_last_words() {
    let rig = Setup::python("syntax_error.py", &[]).open();
    let why = refused(&rig).await;
    assert!(
        why.contains("exited with code 1") && why.contains("SyntaxError"),
        "{why}"
    );
    for index in 100..103 {
        assert!(
            rejected(&rig.item(index, json!({})).await).is_some(),
            "three in a row stop the task"
        );
    }
    rig.close().await;
}

#[tokio::test]
async fn exit_codes_of_the_shell_are_explained() {
    for (script, words) in [
        ("no-such-command", "command not found in PATH="),
        ("exit 126", "not executable"),
    ] {
        let rig = Setup::new(&["sh", "-c", script]).open();
        let why = refused(&rig).await;
        assert!(why.contains(words), "{why}");
        rig.close().await;
    }
}

#[tokio::test]
async fn a_command_that_dies_of_every_item_is_refused() {
    let rig = Setup::new(&["sh", "-c", "read -r hello; echo ok; read -r item; exit 5"]).open();
    let why = refused(&rig).await;
    assert!(
        why.contains("exited with code 5 while items were in flight"),
        "{why}"
    );
    rig.close().await;
}

#[tokio::test]
async fn a_worker_removed_while_it_ran_is_named() {
    let (_dir, path) = scratch();
    let file = path("worker.sh");
    std::fs::copy(crate::command_support::fixture("lazy.sh"), &file).expect("copied");
    let rig = Setup::new(&[file.to_str().expect("UTF-8")]).open();
    assert_eq!(rig.item(0, json!({})).await, Reply::AllOk);
    rig.close().await;
    let rig = Setup::new(&[file.to_str().expect("UTF-8")]).open();
    std::fs::remove_file(&file).expect("removed");
    let why = refused(&rig).await;
    assert!(why.contains("worker.sh"), "{why}");
    rig.close().await;
}

#[tokio::test]
async fn a_crash_is_charged_with_exit_code_and_stderr_and_the_worker_comes_back() {
    let rig = Setup::script(1).open();
    assert_eq!(rig.item(0, json!({})).await, Reply::AllOk);
    let failure = charged(&rig.item(1, json!({"do": "die", "code": 42})).await);
    assert_eq!(failure.code, "WORKER_CRASH");
    for part in ["exited with code 42", "about to die", "script.py"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    assert!(
        failure
            .output
            .is_some_and(|output| output.contains("about to die"))
    );
    assert_eq!(rig.item(2, json!({})).await, Reply::AllOk);
    rig.close().await;
}

#[tokio::test]
async fn a_line_that_the_death_of_a_worker_cut_off_belongs_to_the_death() {
    let rig = Setup::script(1).open();
    assert_eq!(rig.item(0, json!({})).await, Reply::AllOk);
    let cut = json!({"do": "die", "first": "{\"type\":\"result\",\"id\":"});
    assert_eq!(charged(&rig.item(1, cut).await).code, "WORKER_CRASH");
    rig.log.wait_for("ended in the middle of a line").await;
    // A whole answer counts, also without the end of its line.
    assert_eq!(
        rig.item(2, json!({"do": "die", "answers": true})).await,
        Reply::AllOk
    );
    rig.close().await;
}

#[tokio::test]
async fn a_poison_item_is_run_alone_in_the_end_while_the_others_complete() {
    let rig = Setup::script(4).open();
    assert_eq!(rig.item(99, json!({})).await, Reply::AllOk);
    let (_dir, path) = scratch();
    let never = path("never");
    let mut innocent_failures = 0;
    for _ in 0..3 {
        rig.slots_at_least(4).await;
        let innocent = rig.send(1, json!({"do": "wait", "file": never}));
        let (innocent, poison) = tokio::join!(innocent, rig.send(0, json!({"do": "die"})));
        assert_eq!(charged(&poison).code, "WORKER_CRASH");
        innocent_failures += u32::from(charged(&innocent).code == "WORKER_CRASH");
    }
    assert_eq!(innocent_failures, 3);
    std::fs::write(&never, "").expect("written");
    // Both have been in three crashes: each now has the worker for itself.
    rig.slots_at_least(4).await;
    let (poison, innocent) = tokio::join!(
        rig.send(0, json!({"do": "die"})),
        rig.send(1, json!({"do": "wait", "file": never}))
    );
    // Whether it is given up is not for the workers to say.
    let failure = charged(&poison);
    assert_eq!(failure.code, "WORKER_CRASH");
    assert!(
        failure.message.contains("crashed its worker again, alone in it"),
        "{}",
        failure.message
    );
    assert_eq!(innocent, Reply::AllOk, "it was not beside the poison item");
    rig.close().await;
}

#[tokio::test]
async fn hanging_items_do_not_hold_the_others_back() {
    let rig = Setup::script(4).timeout(Duration::from_millis(300)).open();
    let pid = rig.worker_pid(0).await;
    let mut hanging = 0;
    for round in 0..3_u64 {
        rig.slots_at_least(2).await;
        let calls = (0..2).map(|at| {
            let data = if at == 0 { json!({"do": "hang"}) } else { json!({}) };
            rig.send(10 * round + at, data)
        });
        let replies = join_all(calls).await;
        hanging += u32::from(charged(&replies[0]).code == "TIMEOUT");
        assert_eq!(replies[1], Reply::AllOk);
    }
    assert_eq!(hanging, 3);
    // The worker that holds them is killed, and another takes its place.
    gone(pid).await;
    rig.slots_where(|slots| slots == 4).await;
    assert_eq!(rig.item(1000, json!({})).await, Reply::AllOk);
    rig.close().await;
}

/// A worker with one slot that hangs does not stop the run: it is killed after its patience.
#[tokio::test]
async fn a_hanging_lazy_worker_is_replaced() {
    let (_dir, path) = scratch();
    let once = path("once");
    let script = r#"while read -r l; do case $l in *'"hang"'*) sleep 1000;; esac; echo ok; done"#;
    let rig = Setup::new(&["sh", "-c", script])
        .timeout(Duration::from_millis(300))
        .open();
    assert_eq!(rig.item(0, json!({})).await, Reply::AllOk);
    assert_eq!(
        charged(&rig.item(1, json!({"do": "hang", "file": once})).await).code,
        "TIMEOUT"
    );
    assert_eq!(rig.item(2, json!({})).await, Reply::AllOk);
    rig.close().await;
}

#[tokio::test]
async fn a_deaf_worker_is_replaced_when_a_heartbeat_is_set() {
    let setup = Setup::python("script.py", &["1", "x", "deaf"]);
    let rig = setup
        .with(|settings| settings.heartbeat = Some(Duration::from_millis(100)))
        .open();
    let reply = rig.item(0, json!({"do": "hang"})).await;
    let failure = charged(&reply);
    assert_eq!(failure.code, "WORKER_HUNG");
    assert!(failure.message.contains("(heartbeat)"), "{}", failure.message);
    rig.close().await;
}

#[tokio::test]
async fn a_worker_that_answers_pings_lives() {
    let rig = Setup::script(1)
        .with(|settings| settings.heartbeat = Some(Duration::from_millis(400)))
        .open();
    let pid = rig.worker_pid(0).await;
    let (_dir, path) = scratch();
    let go = path("go");
    let release = async {
        rig.log.wait_for("pinged 3").await;
        std::fs::write(&go, "").expect("written");
    };
    let (reply, ()) = tokio::join!(rig.item(1, json!({"do": "wait", "file": go})), release);
    assert_eq!(reply, Reply::AllOk);
    assert_eq!(rig.worker_pid(2).await, pid);
    rig.close().await;
}

#[tokio::test]
async fn a_worker_that_says_bye_is_followed_by_another() {
    let rig = Setup::script(1).open();
    let pid = rig.worker_pid(0).await;
    assert_eq!(rig.item(1, json!({"do": "bye"})).await, Reply::AllOk);
    gone(pid).await;
    assert_ne!(rig.worker_pid(2).await, pid);
    rig.close().await;
}

#[tokio::test]
async fn an_item_that_finds_no_worker_in_time_goes_back_uncharged() {
    let rig = Setup::script(1).timeout(Duration::from_millis(100)).open();
    rig.slots_at_least(1).await;
    let mut call = rig.call(0, &[json!({"do": "hang"})]);
    call.timeout = Duration::from_secs(20);
    let hanging = rig.handler.process(call);
    tokio::pin!(hanging);
    assert!(futures_util::poll!(&mut hanging).is_pending());
    assert_eq!(
        rig.send(1, Value::Null).await,
        Reply::Failed(Box::new(CallFailure::NotSent))
    );
    rig.close().await;
}

/// Sent at the last moment, it would be charged with a timeout that its worker had no time to avoid.
#[tokio::test]
async fn an_item_that_waited_for_half_its_time_is_not_sent_any_more() {
    let rig = Setup::script(1).open();
    rig.slots_at_least(1).await;
    let hanging = rig.handler.process(rig.call(0, &[json!({"do": "hang"})]));
    tokio::pin!(hanging);
    assert!(futures_util::poll!(&mut hanging).is_pending());
    let mut call = rig.call(1, &[Value::Null]);
    call.gate_time = Moment(call.gate_time.0 - 16_000_000_000);
    // 14 s are left, in which it might be sent.
    let late = tokio::time::timeout(Duration::from_secs(7), rig.handler.process(call)).await;
    assert_eq!(
        late.expect("at once"),
        Reply::Failed(Box::new(CallFailure::NotSent))
    );
    rig.close().await;
}
