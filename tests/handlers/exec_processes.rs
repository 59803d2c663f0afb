//! No process outlives its call, and none costs more than its time: no zombie, no descriptor, no thread for ever.

use std::time::Duration;

use serde_json::json;
use windrow_core::items::output::Output;
use windrow_engine::ports::handling::handler::{CallFailure, ItemVerdict, Reply};

use super::command_support::{Rig, charged, gone, is_alive, over, verdict};
use super::exec_support::Exec;

/// The process id that a process printed.
fn printed_pid(reply: &Reply) -> i32 {
    match verdict(reply) {
        ItemVerdict::SucceededWith(Output::Json(json)) => json.parse().expect("a process id"),
        other => panic!("no output, but {other:?}"),
    }
}

/// The process id in a line of stderr.
async fn said_pid(rig: &Rig) -> i32 {
    let line = rig.log.wait_for("pid ").await;
    let (_, pid) = line.rsplit_once(' ').expect("a word before it");
    pid.parse().expect("a process id")
}

#[tokio::test]
async fn a_timeout_ends_all_that_the_process_started() {
    let rig = Exec::shell("sleep 1000 & echo pid $! >&2; wait")
        .timeout(Duration::from_millis(500))
        .open();
    let failure = charged(&rig.item(1, json!({})).await);
    assert_eq!(failure.code, "TIMEOUT");
    gone(said_pid(&rig).await).await;
}

#[tokio::test]
async fn what_a_process_leaves_is_ended_soon_after_it() {
    let rig = Exec::shell("sleep 1000 & echo $!").open();
    let reply = rig.item(1, json!({})).await;
    gone(printed_pid(&reply)).await;
    let quiet = Exec::shell("sleep 1000 >/dev/null 2>&1 & echo $!").open();
    let reply = quiet.item(1, json!({})).await;
    gone(printed_pid(&reply)).await;
}

#[tokio::test]
async fn what_a_process_leaves_may_still_say_its_last_words() {
    let rig = Exec::shell("(sleep 0.03; echo late) & echo early").open();
    let reply = rig.item(1, json!({})).await;
    let kept = Output::Json(r#""early\nlate""#.into());
    assert_eq!(verdict(&reply), ItemVerdict::SucceededWith(kept));
}

#[tokio::test]
async fn a_call_that_is_given_up_ends_its_process() {
    let rig = Exec::shell("echo pid $$ >&2; sleep 1000; true").open();
    let call = rig.handler.process(rig.call(1, &[json!({})]));
    let pid = tokio::select! {
        reply = call => panic!("it ended: {reply:?}"),
        pid = said_pid(&rig) => pid,
    };
    gone(pid).await;
    rig.close().await;
}

#[tokio::test]
async fn nothing_is_started_once_the_gate_has_shut() {
    let rig = Exec::argv(&["true"]).open();
    rig.gate.close();
    let reply = rig.item(1, json!({})).await;
    assert_eq!(reply, Reply::Failed(Box::new(CallFailure::NotSent)));
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("Linux").count()
}

/// Processes of this one, dead ones included.
fn children() -> Vec<i32> {
    let threads = std::fs::read_dir("/proc/self/task").expect("Linux");
    let lists = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .map(|pid| pid.parse().expect("a number"))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_processes_leave_no_zombie_and_no_descriptor() {
    let rig = Exec::argv(&["true", "{n}"]).open();
    let some = async |from: u64| {
        let rows: Vec<_> = (0..40).map(|n| json!({"n": n})).collect();
        assert_eq!(rig.batch(from, &rows).await, Reply::AllOk);
    };
    // The first ones start the threads.
    some(0).await;
    let (descriptors_before, children_before) = (descriptors(), children().len());
    for round in 1..=50 {
        some(round * 40).await;
    }
    assert_eq!(children().len(), children_before, "{:?}", children());
    assert_eq!(descriptors(), descriptors_before);
    rig.close().await;
    // A thread that was joined may be listed for a moment longer.
    over("a thread", || threads("exec") == 0).await;
}

/// How many threads of this process have a name.
fn threads(named: &str) -> usize {
    let threads = std::fs::read_dir("/proc/self/task").expect("Linux").flatten();
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|name| name.trim() == named).count()
}

#[tokio::test]
async fn closing_waits_for_what_was_given_up() {
    let rig = Exec::shell("echo pid $$ >&2; exec sleep 1000")
        .timeout(Duration::from_millis(200))
        .open();
    charged(&rig.item(1, json!({})).await);
    rig.close().await;
    assert!(!is_alive(said_pid(&rig).await));
}
